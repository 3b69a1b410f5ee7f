import { FileValue, brief, isFile, isList } from '../values.js';
import type { Value } from '../values.js';
import { metrics } from './index.js';
import { MAX_MEDIA_BYTES, MAX_TEXT_BYTES, NoGold } from './types.js';
import type { Verdict } from './types.js';
import { messageOf } from '../../domain/index.js';

/** A metric and its getters' values, in a form that can be sent between threads. */
export interface MetricJob {
  readonly func: string;
  readonly result: Packed;
  readonly expected: Packed | undefined;
  readonly options: Readonly<Record<string, unknown>>;
  /** `expected` comes from the desktop, where the agent could change it, and not from the task. */
  readonly desktopGold: boolean;
}
/** `fault`: a fault of the verifier, in words; else a score from 0 to 1 with what people are shown. */
export type MetricDone =
  { readonly score: number; readonly expected: string; readonly found: string } | { readonly fault: string };

/** Files stand alone or in a list of files, never deeper. */
export type Packed =
  | { readonly file: string; readonly data: Uint8Array<ArrayBuffer>; readonly size: number }
  | { readonly list: readonly Packed[] }
  | { readonly value: Value };

/** Metrics that look at bytes instead of text, and how many from the start; a tag or header lies within these. */
const BYTES: ReadonlyMap<string, number> = new Map(
  Object.entries({
    check_mp3_meta: MAX_MEDIA_BYTES,
    check_image_size: MAX_MEDIA_BYTES,
    check_image_file_size: 0,
  }),
);
/** Bytes to send of a file that is too long for its metric: enough to show its beginning. */
const SHOWN = 4096;

/** A value ready to be sent; bytes are copied, since the getters' cache goes on using them. */
export function pack(v: Value, func: string): Packed {
  if (isFile(v)) {
    const most = BYTES.get(func),
      bytes = v.data.length <= (most ?? MAX_TEXT_BYTES) ? v.data.length : Math.max(most ?? 0, SHOWN),
      data = new Uint8Array(Math.min(bytes, v.data.length));
    v.data.copy(data);
    return { file: v.name, data, size: v.size };
  }
  return isList(v) && v.some(isFile) ? { list: v.map((x) => pack(x, func)) } : { value: v };
}
function unpack(p: Packed): Value {
  if ('file' in p)
    return new FileValue(p.file, Buffer.from(p.data.buffer, p.data.byteOffset, p.data.byteLength), p.size);
  return 'list' in p ? p.list.map(unpack) : p.value;
}
/** The buffers to transfer instead of copying them once more. */
export const buffersOf = (p: Packed | undefined): ArrayBuffer[] =>
  p === undefined ? [] : 'file' in p ? [p.data.buffer] : 'list' in p ? p.list.flatMap(buffersOf) : [];

/**
 * Judges; never rejects. What the agent left behind never causes a fault: nesting too deep for this machine's stack and
 * a gold file that it damaged on its own desktop are judged 0. Anything else that a metric throws is a fault of the
 * task.
 */
export async function evaluate(job: MetricJob): Promise<MetricDone> {
  const result = unpack(job.result),
    expected = job.expected && unpack(job.expected);
  const done = (v: Verdict): MetricDone => ({
    score: Math.min(1, Math.max(0, v.score)),
    expected: brief(v.expected ?? expected),
    found: brief(v.found ?? result),
  });
  try {
    const v = await metrics[job.func]!({ result, expected, options: job.options });
    return Number.isFinite(v.score) ? done(v) : { fault: 'it gave no number' };
  } catch (e) {
    if (tooDeep(e)) return { score: 0, expected: '', found: 'values nested too deep to be judged' };
    if (e instanceof NoGold && job.desktopGold) return done({ score: 0, found: e.message });
    return { fault: messageOf(e) };
  }
}
const tooDeep = (e: unknown): boolean => e instanceof RangeError && /call stack/.test(e.message);

/** Runs metrics. Rejects with `task.verify` when there is no verdict, with the signal's reason when it fires. */
export interface MetricRunner {
  run(job: MetricJob, signal: AbortSignal): Promise<MetricDone>;
}
