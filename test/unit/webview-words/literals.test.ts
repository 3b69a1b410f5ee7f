import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { untranslated } from './literals.js';

/** No words, by file: keys as they are printed on keyboards or called by the browser, deeds, a fault for the log. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'live/controller.ts': ['Control', 'Alt', 'Shift', 'Meta'],
  'live/app.ts': ['Enter', 'pause', 'actYourself'],
  'live/view.ts': ['Ctrl', 'Alt'],
  'ui/actions.ts': ['Ctrl', 'Shift', 'Alt', 'Super', 'Enter', 'Tab', 'Esc', 'Del', 'Space', 'Home', 'End'],
  'ui/commands.ts': ['Ctrl', 'Shift', 'Alt', 'Space', 'Esc'],
  'ui/host.ts': ['{} at {}:{}'],
};

/** Nothing but names of keys, and of colours. */
const without = new Set(['ui/remoteKeys.ts', 'ui/chartTheme.ts']);

describe('literals of the pages that are words', () => {
  const files = readdirSync('webview', { recursive: true })
    .map(String)
    .filter((f) => f.endsWith('.ts') && !f.endsWith('.d.ts'))
    .map((f) => f.replaceAll('\\', '/'));
  it('all go through t()', () => {
    expect(files.length).toBeGreaterThan(60);
    expect(
      files
        .filter((f) => !without.has(f))
        .flatMap((f) =>
          untranslated(f, readFileSync(join('webview', f), 'utf8'), new Set(allowed[f])).map(
            (l) => `webview/${f}:${l.line}: ${l.text}`,
          ),
        ),
    ).toEqual([]);
  });
  it('what is allowed is there', () => {
    for (const [f, words] of Object.entries(allowed)) {
      const found = new Set(untranslated(f, readFileSync(join('webview', f), 'utf8')).map((l) => l.text));
      expect(
        words.filter((w) => !found.has(w)),
        f,
      ).toEqual([]);
    }
  });
  it.each([
    ["h('p', null, 'kept')", 'kept'],
    ["h('p', { title: 'kept' })", 'kept'],
    ["h('p', { 'aria-label': on ? 'kept' : t('dropped') })", 'kept'],
    ["h('li', null, xs.map((x) => `${x} steps`))", '{} steps'],
    ["e.textContent = n + ' steps'", ' steps'],
    ["e.title = 'Close'", 'Close'],
    ["text(e, 'steps')", 'steps'],
    ["button('ok', run)", 'ok'],
    ["replace(e, ['a', x && 'none'].filter(Boolean).join(', '))", 'none'],
    ["const noteWords = (n) => (n ? 'deleted' : '')", 'deleted'],
    ["const kindWords = { a: 'desktop' }", 'desktop'],
    ["function endLabel() { return 'over'; }", 'over'],
    ["x.push('It is done.')", 'It is done.'],
    ["const a = 'Nothing'", 'Nothing'],
    ['const a = `The end of ${x}`', 'The end of {}'],
    ["t('{0} left', 'all of it')", 'all of it'],
    ["out.set('accept', 'There is none yet')", 'There is none yet'],
    ["h('b', null, ({ a: 'yes' })[k])", 'yes'],
  ])('%s is found', (code, text) => {
    expect(untranslated('x.ts', code).map((l) => l.text)).toEqual([text]);
  });
  it.each([
    "h('p', { class: 'ds-badge high', role: 'status' }, t('kept'))",
    "h('p', null, '→', n, '%')",
    "if (x === 'Enter') f()",
    "e.addEventListener('click', f)",
    "icon('loading codicon-modifier-spin')",
    "host.request('run/get', { run })",
    "import { a } from './some file.js'",
    "const m: 'left' | 'right' = 'left'",
    "throw new Error('the page cannot show this')",
    "e.querySelector('.a .b')",
    "h('p', { style: { width: '1px solid' }, data: { key: 'a b' } })",
    "switch (x) { case 'Enter': f(); }",
    "x['Some key']",
    "h('i', null, t('{0} of {1}', a, b))",
    "e.dataset['key'] = 'a'",
  ])('%s is no word', (code) => {
    expect(untranslated('x.ts', code)).toEqual([]);
  });
});
