import { wilson } from './index.js';

export { wilson };

const BARS = '▁▂▃▄▅▆▇█';
/** A row of block characters for values in [0, 1]; the newest `width` of them. */
export function sparkline(values: readonly number[], width = 24): string {
  return values
    .slice(-width)
    .map((v) => BARS[Math.max(0, Math.min(BARS.length - 1, Math.floor(v * BARS.length)))] ?? ' ')
    .join('');
}

export const percent = (x: number, digits = 0): string => (Number.isFinite(x) ? `${(100 * x).toFixed(digits)} %` : '–');

/** "62 % [53, 71]": a rate with its 95 % interval. */
export const intervalText = (rate: number, low: number, high: number): string =>
  `${percent(rate)} [${Math.round(100 * low)}, ${Math.round(100 * high)}]`;
/** The same, of independent episodes (Wilson). */
export function rateText(successes: number, n: number): string {
  if (n === 0) return 'no episodes';
  const w = wilson(successes, n);
  return intervalText(w.rate, w.low, w.high);
}

export function duration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  const h = Math.floor(s / 3600),
    m = Math.floor((s % 3600) / 60);
  return h > 0
    ? `${h}:${String(m).padStart(2, '0')}:${String(s % 60).padStart(2, '0')}`
    : `${m}:${String(s % 60).padStart(2, '0')}`;
}

/** Mean of the newest `size` outcomes. */
export class Rolling {
  readonly #size: number;
  readonly #xs: number[] = [];
  constructor(size: number) {
    this.#size = size;
  }
  add(x: number): void {
    this.#xs.push(x);
    if (this.#xs.length > this.#size) this.#xs.shift();
  }
  get n(): number {
    return this.#xs.length;
  }
  get mean(): number {
    return this.#xs.length === 0 ? NaN : this.#xs.reduce((a, b) => a + b, 0) / this.#xs.length;
  }
}

/** Share of the time of all lanes that they were busy; fed with intervals as they begin and end. */
export class BusyShare {
  readonly #since = new Map<string, number>();
  #busyMs = 0;
  begin(lane: string, at: number): void {
    if (!this.#since.has(lane)) this.#since.set(lane, at);
  }
  set(lane: string, busy: boolean, at: number): void {
    if (busy) this.begin(lane, at);
    else this.end(lane, at);
  }
  end(lane: string, at: number): void {
    const s = this.#since.get(lane);
    if (s === undefined) return;
    this.#busyMs += at - s;
    this.#since.delete(lane);
  }
  /** `startedAt`..`now` over `lanes` lanes. */
  share(startedAt: number, now: number, lanes: number): number {
    let busy = this.#busyMs;
    for (const s of this.#since.values()) busy += now - s;
    return lanes === 0 || now <= startedAt ? 0 : busy / ((now - startedAt) * lanes);
  }
}
