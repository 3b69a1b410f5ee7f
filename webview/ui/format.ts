/** Numbers and times as people read them; pure. */
import { t } from './words.js';

/** A number with at most `digits` decimals, no trailing zeros, and a true minus sign. */
export function num(x: number, digits = 2): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? t('not a number') : x > 0 ? '∞' : '−∞';
  const s = Number(x.toFixed(digits)).toString();
  return s.replace('-', '−').replace(/^−0$/, '0');
}
export const signed = (x: number, digits = 2): string => {
  const s = num(x, digits);
  return s.startsWith('−') || s === '0' ? s : `+${s}`;
};
/** A share in [0, 1]; tiny ones are not shown as nothing. */
export const percent = (p: number): string => (p > 0 && p < 0.001 ? '< 0.1 %' : `${num(p * 100, p < 0.1 ? 1 : 0)} %`);

/** Milliseconds. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return t('unknown');
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 1) return t('{0} ms', num(ms, 1));
  if (ms < 999.5) return t('{0} ms', Math.round(ms));
  if (ms < 59_950) return t('{0} s', num(ms / 1000, 1));
  const s = Math.round(ms / 1000),
    m = Math.floor(s / 60);
  if (m < 60) return s % 60 ? t('{0} min {1} s', m, s % 60) : t('{0} min', m);
  return m % 60 ? t('{0} h {1} min', Math.floor(m / 60), m % 60) : t('{0} h', m / 60);
}
/** Cuts long text in the middle of nowhere, with an ellipsis. */
export const clip = (words: string, max: number): string =>
  words.length <= max ? words : `${words.slice(0, Math.max(0, max - 1)).trimEnd()}…`;
