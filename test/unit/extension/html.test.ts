import fc from 'fast-check';
import { expect, it } from 'vitest';
import { contentPolicy, escapeHtml, jsonInHtml, newNonce, pageHtml } from '../../../extension/panels/html.js';
import { readWords } from '../../../webview/ui/words.js';

const page = (title: string, words?: Readonly<Record<string, unknown>>): string =>
  pageHtml({
    kind: 'inspector',
    title,
    lang: 'en',
    words,
    nonce: 'N0',
    lost: { patienceMs: 1000, words: 'It did not come </script>' },
    sources: {
      cspSource: 'https://x.test',
      script: 'https://x.test/inspector.js',
      styles: ['https://x.test/inspector.css'],
    },
  });

it("the policy lets in the page's own script, styles, fonts and pictures, and nothing out", () => {
  const p = Object.fromEntries(
    contentPolicy('SRC', 'N0')
      .split('; ')
      .map((d) => [d.split(' ')[0], d.split(' ').slice(1)]),
  );
  expect(p).toEqual({
    'default-src': ["'none'"],
    'script-src': ["'nonce-N0'"],
    'style-src': ['SRC', "'nonce-N0'"],
    'font-src': ['SRC'],
    'img-src': ['SRC', 'blob:', 'data:'],
    'connect-src': ["'none'"],
    'base-uri': ["'none'"],
    'form-action': ["'none'"],
  });
  expect(contentPolicy('SRC', 'N0')).not.toMatch(/unsafe|\*/);
});
it('a page has a language, a title, one script with the nonce, and what waits for that', () => {
  const html = page('Trajectory 5');
  expect(html).toMatch(/<html lang="en">/);
  expect(html).toContain('<title>Trajectory 5</title>');
  expect(html.match(/<script/g)).toHaveLength(2);
  expect(html.match(/<\/script/g)).toHaveLength(2);
  expect(html).toContain('<script nonce="N0">');
  expect(html).toContain('<script type="module" nonce="N0" src="https://x.test/inspector.js">');
});
it('translations are data in the page, before its script; none in English', () => {
  for (const none of [undefined, {}]) expect(page('A', none)).not.toContain('application/json');
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string(), { minKeys: 1 }), (words) => {
      const html = page('A', words),
        [, json = ''] =
          /<script type="application\/json" id="ds-words">([^<]*)<\/script>\n<script type="module" nonce="N0" src/.exec(
            html,
          ) ?? [];
      expect([...readWords(json)]).toEqual(Object.entries(words));
      expect(html.match(/<script/g)).toHaveLength(3);
    }),
  );
  expect(page('A', { Close: '</script><script>alert(1)</script>' }).match(/<script/g)).toHaveLength(3);
});
it('no title breaks out of the page', () => {
  fc.assert(
    fc.property(fc.string(), (s) => {
      const e = escapeHtml(s);
      return !/[<>"']/.test(e) && e.replace(/&#(\d+);/g, (_m, c: string) => String.fromCharCode(Number(c))) === s;
    }),
  );
  expect(page('</title><script>alert(1)</script>').match(/<script/g)).toHaveLength(2);
});
it('JSON in a page cannot end its element and reads back the same', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (v) => {
      const s = jsonInHtml(v);
      return !/[<>&\u2028\u2029]/.test(s) && JSON.stringify(JSON.parse(s)) === JSON.stringify(v);
    }),
  );
});
it('nonces are long and never the same', () => {
  const all = new Set(Array.from({ length: 200 }, newNonce));
  expect(all.size).toBe(200);
  for (const n of all) expect(n).toMatch(/^[\w-]{32}$/);
});
