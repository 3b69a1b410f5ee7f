/**
 * A language in which every message is its English in brackets: what a page shows outside of brackets was not
 * translated.
 */
import { readFileSync } from 'node:fs';
import type { TestPage } from './page.js';

export const pseudo: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(JSON.parse(readFileSync('l10n/bundle.l10n.json', 'utf8')) as Record<string, string>).map((m) => [
    m,
    `⟦${m}⟧`,
  ]),
);

/** Without what may stand around it, and white space however it is shown. */
const core = (x: string): string => x.replace(/[⇥⏎\s]+/g, ' ').replace(/^[ ·“(]+|[ ·”).]+$/g, '');
const strings = (x: unknown): string[] =>
  typeof x === 'string'
    ? [x, ...x.split('/').slice(1)]
    : typeof x === 'object' && x !== null
      ? Object.values(x).flatMap(strings)
      : [];
/** "Nov 22, 06:42 AM": as the browser's language has it. */
const moment = /^[A-Z][a-z]{2} \d+, \d\d:\d\d [AP]M$/;
/**
 * Words that the page shows or says and that are no message, once each; not those of `code` and `kbd`, which are the
 * wire's and the keyboard's, and not those of `data`, as they are. A single small word of the data may be one of the
 * wire's, which a page has its own word for: those that are none stand in `also`.
 */
export async function bare(t: TestPage, data: unknown, also: readonly string[] = []): Promise<readonly string[]> {
  const known = new Set([
    ...strings(data)
      .filter((x) => !/^[a-z]+$/.test(x))
      .map(core),
    ...also,
  ]);
  const all = await t.page.evaluate<string[]>(`(() => {
    const texts = [], out = [], skip = 'script, style, code, kbd';
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let n = walk.currentNode; n; n = walk.nextNode()) {
      if (n.nodeType === Node.TEXT_NODE) { if (!n.parentElement.closest(skip)) texts.push(n.data); continue; }
      for (const a of ['title', 'aria-label', 'aria-description', 'aria-roledescription', 'aria-valuetext', 'placeholder', 'alt']) if (n.hasAttribute(a)) out.push(n.getAttribute(a));
    }
    return [texts.join('\\u0001'), ...out];
  })()`);
  const left = all.flatMap((x) => {
    let now = x;
    for (let old = ''; old !== now;) {
      old = now;
      now = now.replace(/⟦[^⟦⟧]*⟧/g, '');
    }
    return now.split('\u0001');
  });
  return [
    ...new Set(
      left.filter(
        (x) =>
          !known.has(core(x)) &&
          !moment.test(core(x)) &&
          x
            .split(/ · |, |: /)
            .map(core)
            .some((part) => /[A-Za-z]{2,}/.test(part) && !known.has(part)),
      ),
    ),
  ];
}
