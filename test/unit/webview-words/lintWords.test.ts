import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

type Source = readonly [file: string, code: string];
const { riddles, untranslated, wordProblems } = (await import(pathToFileURL('scripts/lint-words.mjs').href)) as {
  untranslated(file: string, code: string): { readonly line: number; readonly text: string }[];
  riddles(
    bundles: readonly (readonly [string, Readonly<Record<string, string>>])[],
    of?: Readonly<Record<string, string>>,
  ): string[];
  wordProblems(
    sources: readonly Source[],
    allowed: Readonly<Record<string, readonly string[]>>,
    without: readonly string[],
  ): string[];
};

describe('the lint for words of the pages', () => {
  it('names file and line of what does not go through t(), but for what is allowed there', () => {
    const sources: Source[] = [
      ['a.ts', "h('p', null, t('kept'));\nh('p', null, 'loose');\nh('kbd', null, 'Ctrl');"],
      ['b.ts', "h('kbd', null, 'Ctrl');"],
      ['keys.ts', "h('kbd', null, 'Shift');"],
    ];
    expect(wordProblems(sources, { 'a.ts': ['Ctrl'] }, ['keys.ts'])).toEqual([
      'webview/a.ts:2: loose',
      'webview/b.ts:1: Ctrl',
    ]);
    expect(wordProblems(sources.slice(0, 1), { 'a.ts': ['Ctrl', 'loose'] }, [])).toEqual([]);
  });
  it('names wordings that had to be explained', () => {
    expect(riddles([['l10n.json', { a: 'Watch On', b: 'Keep watching' }]], { 'Watch On': 'Keep watching' })).toEqual([
      'l10n.json: "Watch On" has "Watch On". Say: Keep watching',
    ]);
    expect(riddles([['package.nls.json', { a: 'Toggle Queue' }]])).toHaveLength(1);
  });
  it('says when what is allowed is not there any more', () => {
    const problems = wordProblems([['a.ts', "h('p', null, t('kept'));"]], { 'a.ts': ['Ctrl'], 'b.ts': ['Alt'] }, [
      'c.ts',
    ]);
    expect(problems.map((p) => p.split(':')[0])).toEqual(['webview/a.ts', 'webview/b.ts', 'webview/c.ts']);
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
