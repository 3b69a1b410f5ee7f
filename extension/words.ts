/**
 * Words for people. `t` translates (VS Code's l10n bundle of the display language) and fills `{0}`; modules without
 * `vscode` use it too, so they can be tested outside the editor. scripts/l10n.mjs collects the messages: write them as
 * plain string literals.
 */
import { fill } from '../runtime/protocol/words.js';

export type Translate = (message: string, ...args: (string | number)[]) => string;

let translate: Translate = (message, ...args) => fill(message, args);

export const t: Translate = (message, ...args) => translate(message, ...args);
/** Once, at activation. */
export function setTranslator(by: Translate): void {
  translate = by;
}

/** 0.634 -> "63 %". */
export const percent = (share: number): string => `${Math.round(share * 100)} %`;
/** "1 step", "3 steps". */
export const steps = (n: number): string => (n === 1 ? t('1 step') : t('{0} steps', n));
export const rollouts = (n: number): string => (n === 1 ? t('1 rollout') : t('{0} rollouts', n));
/** 83_000 -> "1 min", 7_400_000 -> "2 h 3 min"; from two days on "2 d 5 h". */
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return t('{0} s', s);
  const m = Math.floor(s / 60);
  if (m < 60) return t('{0} min', m);
  const hours = Math.floor(m / 60);
  if (hours >= 48)
    return hours % 24 === 0 ? t('{0} d', hours / 24) : t('{0} d {1} h', Math.floor(hours / 24), hours % 24);
  return m % 60 === 0 ? t('{0} h', hours) : t('{0} h {1} min', hours, m % 60);
}
/** Rolling values in [0, 1] as bars, oldest first; at most `width` of the newest. */
export function spark(values: readonly number[], width = 12): string {
  return values
    .slice(-width)
    .map((v) => '▁▂▃▄▅▆▇█'[Math.min(7, Math.max(0, Math.round(v * 7)))] ?? '')
    .join('');
}
/** The text with everything escaped that Markdown would read as markup; line breaks become spaces. */
export const plain = (text: string): string => text.replace(/[\\`*_{}[\]()#+\-.!|<>~$&]/g, '\\$&').replace(/\s+/g, ' ');
/** The text unchanged, except that VS Code sees no `[words](scheme:…)` in it (toasts.ts). */
export const withoutLinks = (text: string): string => text.replace(/\]\((?=\s*[a-z][\w+.-]*:)/gi, '] (');
