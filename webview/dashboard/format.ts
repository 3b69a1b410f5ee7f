/** Numbers as words, as dashboard, table and comparison of runs show them. English digits and units; a missing number is an en dash. */
import { t } from '../ui/words.js';

const dash = '–';
const known = (x: number | undefined): x is number => x !== undefined && Number.isFinite(x);

/** 0.876 -> "88 %". */
export const percent = (x: number | undefined, digits = 0): string =>
  known(x) ? `${(100 * x).toFixed(digits)} %` : dash;
/** Digits behind the point that tell values apart which differ by `step`. */
const digitsOf = (step: number): number => Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-6)));
/** A tick of an axis of shares; `step`: distance of the ticks. */
export const percentTick = (x: number, step: number): string => percent(x, step > 0 ? digitsOf(step * 100) : 0);
/** A tick of any other number: as many digits as its neighbours need to differ from it. */
export function decimalTick(x: number, step: number): string {
  if (x === 0) return '0';
  const a = Math.abs(x);
  // A distance is the difference of two ticks, and may be a little less than it should be.
  if (!(step > 0) || a >= 1e6 || step < 1e-4 * (1 - 1e-6)) return decimal(x);
  const [whole = '', part] = a.toFixed(digitsOf(step)).split('.'),
    grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return `${x < 0 ? '−' : ''}${part === undefined ? grouped : `${grouped}.${part}`}`;
}
/** 21504.3 -> "21,504". */
export const count = (x: number | undefined): string =>
  known(x)
    ? Math.round(x)
        .toString()
        .replace(/\B(?=(\d{3})+$)/g, ',')
    : dash;
/** Three significant digits, thousands grouped: 0.0123, 1.26, 634, 21,500; very small and very large in powers. */
export function decimal(x: number | undefined): string {
  if (!known(x)) return dash;
  const a = Math.abs(x);
  if (a === 0) return '0';
  const s =
    a >= 1e6 || a < 1e-4
      ? a.toExponential(1).replace('e+', 'e').replace('e-', 'e−')
      : a >= 100
        ? count(a)
        : Number(a.toPrecision(3)).toString();
  return x < 0 ? `−${s}` : s;
}
/** "77–94 %". */
export const interval = (low: number | undefined, high: number | undefined): string =>
  known(low) && known(high) ? `${(100 * low).toFixed(0)}–${(100 * high).toFixed(0)} %` : dash;

/** Running time: "0:42", "13:38", "2:05:00", "3 d 04:00". */
export function clock(ms: number | undefined): string {
  if (!known(ms)) return dash;
  const s = Math.max(0, Math.round(ms / 1000)),
    d = Math.floor(s / 86_400),
    h = Math.floor(s / 3600),
    two = (x: number): string => String(x).padStart(2, '0');
  if (d > 0) return t('{0} d {1}', d, `${two(h % 24)}:${two(Math.floor((s % 3600) / 60))}`);
  return h > 0 ? `${h}:${two(Math.floor((s % 3600) / 60))}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
}
/** A duration with decimals of a second: "4:38.2". */
export const fine = (ms: number, digits = 1): string =>
  `${clock(Math.floor(ms / 1000) * 1000)}.${String(Math.floor(ms % 1000))
    .padStart(3, '0')
    .slice(0, digits)}`;
/** Seconds of running time to the second, however long: "1:01", "2:05:00", "3 d 04:00:12". */
function exactly(s: number): string {
  const two = (x: number): string => String(x).padStart(2, '0');
  return s < 86_400
    ? clock(s * 1000)
    : t(
        '{0} d {1}',
        Math.floor(s / 86_400),
        [(s / 3600) % 24, (s / 60) % 60, s % 60].map((x) => two(Math.floor(x))).join(':'),
      );
}
/** A tick of a time axis; `step` = distance of the ticks in ms. */
export function tickTime(ms: number, step: number): string {
  if (ms === 0) return '0';
  if (step >= 86_400_000) return t('{0} d', Math.round(ms / 86_400_000));
  if (step >= 3_600_000) return t('{0} h', Math.round(ms / 3_600_000));
  if (step >= 60_000)
    return ms >= 3_600_000
      ? t('{0} h', `${Math.floor(ms / 3_600_000)}:${String(Math.round((ms % 3_600_000) / 60_000)).padStart(2, '0')}`)
      : t('{0} min', Math.round(ms / 60_000));
  const tail =
    step < 1000
      ? String(Math.floor(ms % 1000))
          .padStart(3, '0')
          .slice(0, step < 10 ? 3 : step < 100 ? 2 : 1)
      : '';
  return `${exactly(tail === '' ? Math.round(ms / 1000) : Math.floor(ms / 1000))}${tail && `.${tail}`}`;
}
/** A moment to the minute, as people write it: "Nov 20, 12:47". */
export const dayTime = (ms: number): string =>
  new Date(ms).toLocaleString(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
/** "12:47"; with the day where that is not today. */
export const timeOfDay = (ms: number): string =>
  new Date(ms).toDateString() === new Date().toDateString()
    ? new Date(ms).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
    : dayTime(ms);
/** Since when, for people: "just now", "4 min ago". */
export function ago(ms: number): string {
  const s = Math.max(0, ms / 1000);
  if (s < 10) return t('just now');
  if (s < 90) return t('{0} s ago', Math.round(s));
  if (s < 5400) return t('{0} min ago', Math.round(s / 60));
  return s < 129_600 ? t('{0} h ago', Math.round(s / 3600)) : t('{0} days ago', Math.round(s / 86_400));
}
/** "desk/press-two" -> "press-two"; other names stay. */
export const shortFamily = (f: string): string => (f.startsWith('desk/') ? f.slice(5) : f);
