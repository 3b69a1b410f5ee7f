/**
 * Words for people. `t` translates and fills `{0}`; the English is the key, and what has no translation stays English.
 * The translations are in the page itself (extension/panels/html.ts), so that they are available before the first thing
 * is drawn, also by a module that loads. scripts/l10n.mjs collects the messages: write them as plain string literals, a
 * whole phrase each.
 */
import { fill } from '../../runtime/protocol/words.js';

type Words = ReadonlyMap<string, string>;

/** Reads the words of the page's `#ds-words`; a page in English has none. */
export function readWords(json: string | null | undefined): Words {
  if (!json) return new Map();
  try {
    return new Map(
      Object.entries(JSON.parse(json) as object).filter((e): e is [string, string] => typeof e[1] === 'string'),
    );
  } catch {
    return new Map();
  }
}
export const translator =
  (words: Words) =>
  (message: string, ...args: readonly (string | number)[]): string =>
    fill(words.get(message) ?? message, args);

// Pure modules have words too, and are tested without a page.
const page = (
  globalThis as { readonly document?: { getElementById(id: string): { readonly textContent: string | null } | null } }
).document;
export const t = translator(readWords(page?.getElementById('ds-words')?.textContent));
/** A text that came from the daemon, which marks it for translation (`message` in runtime/domain). */
export const fromDaemon = t;

/** A translated message with something of the page in the place of {0}; the rest as text. */
export function around<N>(message: string, node: N): (string | N)[] {
  const [before = '', ...after] = message.split('{0}');
  return after.length === 0 ? [before, node] : [before, node, after.join('{0}')];
}

/** 12345 -> "12,345". */
export const whole = (n: number): string => n.toLocaleString('en');
export const steps = (n: number): string => (n === 1 ? t('1 step') : t('{0} steps', whole(n)));
export const rollouts = (n: number): string => (n === 1 ? t('1 rollout') : t('{0} rollouts', whole(n)));
