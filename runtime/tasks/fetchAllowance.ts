import { deadline, type Deadline } from '../concurrency/deadline.js';
import { Refused } from './download.js';

export interface FetchLimits {
  /** One try of one file, ms. */
  readonly fileMs: number;
  /** The whole call, ms and bytes that arrive; the files that are left then are reported as failed. */
  readonly ms: number;
  readonly bytes: number;
}
/** A server that sends a byte a minute, or task files that name no end of files, hold nobody up for ever. */
const LIMITS: FetchLimits = { fileMs: 2 * 3_600_000, ms: 24 * 3_600_000, bytes: 2 ** 36 };

/** What is left of the time and the bytes of a call. */
export class Allowance {
  readonly limits: FetchLimits;
  readonly #whole: Deadline;
  readonly #signal: AbortSignal;
  #bytes = 0;

  constructor(o: { readonly limits?: Partial<FetchLimits>; readonly signal: AbortSignal }) {
    this.limits = { ...LIMITS, ...o.limits };
    this.#signal = o.signal;
    this.#whole = deadline(this.limits.ms, o.signal);
  }
  /** A try of one file. */
  forFile(): Deadline {
    return deadline(this.limits.fileMs, this.#whole.signal);
  }
  /** Throws `Refused` where more bytes have arrived than a call may fetch. */
  received(bytes: number): void {
    this.#bytes += bytes;
    const { spent } = this;
    if (spent !== undefined) throw new Refused(spent);
  }
  /** Why nothing more is fetched, once that is so. */
  get spent(): string | undefined {
    const { ms, bytes } = this.limits;
    if (this.#bytes > bytes) return `more than ${inWords(bytes, 2 ** 30, 'GB')} have arrived; ${AGAIN}`;
    return this.#whole.signal.aborted && !this.#signal.aborted
      ? `fetching has taken more than ${inWords(ms, 3_600_000, 'h')}; ${AGAIN}`
      : undefined;
  }
  end(): void {
    this.#whole.end();
  }
}
export const AGAIN = 'start the command again, and it goes on',
  inWords = (n: number, unit: number, name: string): string => `${Number((n / unit).toPrecision(3))} ${name}`;
