import { open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { folderInside } from '../files/folderParts.js';

/**
 * TensorBoard's event files: TFRecords (length, its masked CRC-32C, the bytes, theirs) of `Event` messages in protobuf's
 * wire format. Only what scalars need. Read back by TensorBoard itself: `npm run test:peers:tensorboard`.
 */
export interface Scalars {
  /** ms since the epoch. */
  readonly at: number;
  readonly step: number;
  /** Values by tag, such as `update/loss`. */
  readonly values: Readonly<Record<string, number>>;
}

const castagnoli = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0x82f63b78 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});
/** CRC-32C, as iSCSI and TFRecords have it. */
export function crc32c(b: Uint8Array): number {
  let c = 0xffffffff;
  for (const x of b) c = castagnoli[(c ^ x) & 0xff]! ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
/** A TFRecord rotates a checksum and adds a constant, because a checksum over data that holds checksums is weak. */
const masked = (b: Uint8Array): number => {
  const c = crc32c(b);
  return (((c >>> 15) | (c << 17)) + 0xa282ead8) >>> 0;
};
export function tfRecord(data: Uint8Array): Buffer {
  const length = Buffer.alloc(8),
    sums = [Buffer.alloc(4), Buffer.alloc(4)] as const;
  length.writeBigUInt64LE(BigInt(data.length));
  sums[0].writeUInt32LE(masked(length));
  sums[1].writeUInt32LE(masked(data));
  return Buffer.concat([length, sums[0], data, sums[1]]);
}

// Protobuf: a key is the field's number and how its value is written.
const DOUBLE = 1,
  BYTES = 2,
  FLOAT = 5,
  VARINT = 0;
function varint(n: number): Buffer {
  const out: number[] = [];
  let rest = BigInt(Math.trunc(n));
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    out.push(rest > 0n ? low | 0x80 : low);
  } while (rest > 0n);
  return Buffer.from(out);
}
const field = (number: number, kind: number, value: Buffer): Buffer =>
  Buffer.concat([varint(number * 8 + kind), ...(kind === BYTES ? [varint(value.length)] : []), value]);
function double(x: number): Buffer {
  const b = Buffer.alloc(8);
  b.writeDoubleLE(x);
  return b;
}
function float(x: number): Buffer {
  const b = Buffer.alloc(4);
  b.writeFloatLE(x);
  return b;
}
/** The event that every file begins with. */
export const versionEvent = (at: number): Buffer =>
  Buffer.concat([field(1, DOUBLE, double(at / 1000)), field(3, BYTES, Buffer.from('brain.Event:2'))]);
/** `Event { wall_time, step, summary { value { tag, simple_value }… } }` */
export function scalarEvent({ at, step, values }: Scalars): Buffer {
  const summary = Object.entries(values).map(([tag, x]) =>
    field(1, BYTES, Buffer.concat([field(1, BYTES, Buffer.from(tag)), field(2, FLOAT, float(x))])),
  );
  return Buffer.concat([
    field(1, DOUBLE, double(at / 1000)),
    field(2, VARINT, varint(Math.max(0, step))),
    field(5, BYTES, Buffer.concat(summary)),
  ]);
}

/** The events of a run that hold scalars. */
export type Journalled =
  | {
      readonly type: 'metrics';
      readonly source: string;
      readonly version?: number | undefined;
      readonly values: Readonly<Record<string, number>>;
    }
  | {
      readonly type: 'eval';
      readonly version: number;
      readonly episodes: number;
      readonly successes: number;
      readonly low: number;
      readonly high: number;
    }
  | { readonly type: string };
const is = <T extends 'metrics' | 'eval'>(e: Journalled, type: T): e is Extract<Journalled, { readonly type: T }> =>
  e.type === type;
/**
 * The scalars of a journal's event; undefined without any. A step is the policy version, but of `run/…`, which is
 * measured several times a version, the seconds since the run began.
 */
export function scalarsOf(e: Journalled, at: number, beganAt: number): Scalars | undefined {
  if (is(e, 'eval')) {
    if (e.episodes === 0) return undefined;
    return {
      at,
      step: e.version,
      values: { 'evaluation/success': e.successes / e.episodes, 'evaluation/low': e.low, 'evaluation/high': e.high },
    };
  }
  if (!is(e, 'metrics')) return undefined;
  const values = Object.fromEntries(
    Object.entries(e.values).flatMap(([k, v]) => (Number.isFinite(v) ? [[`${e.source}/${k}`, v] as const] : [])),
  );
  if (Object.keys(values).length === 0) return undefined;
  const seconds = Math.max(0, Math.round((at - beganAt) / 1000));
  return { at, step: e.source === 'run' ? seconds : (e.version ?? seconds), values };
}

/**
 * One event file, made with its first scalar. Each call is written before the next: a process that dies leaves a file
 * whose last record may be cut, which TensorBoard expects. Nothing follows a record that was cut by a full disk:
 * TensorBoard would read no further.
 */
export class EventFile {
  readonly #dir: string;
  readonly #inside: string;
  #file: FileHandle | undefined;
  /** Bytes of whole records. */
  #good = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** `inside`: a run folder, out of which no link leads. */
  constructor(dir: string, inside = dir) {
    this.#dir = dir;
    this.#inside = inside;
  }
  /** Rejects when the disk does. */
  write(s: Scalars): Promise<void> {
    const written = this.#last.then(async () => {
      this.#file ??= await this.#open(s.at);
      await this.#append(this.#file, tfRecord(scalarEvent(s)));
    });
    this.#last = written.catch(() => undefined);
    return written;
  }
  async close(): Promise<void> {
    await this.#last;
    await this.#file?.close();
  }
  /** Appends a record completely or not at all. */
  async #append(file: FileHandle, record: Buffer): Promise<void> {
    try {
      for (let at = 0; at < record.length;)
        at += (await file.write(record, at, record.length - at, this.#good + at)).bytesWritten;
      this.#good += record.length;
    } catch (e) {
      await orUndefined(file.truncate(this.#good), 'the next record is written over it');
      throw e;
    }
  }
  /** A file for each process: TensorBoard reads all of a folder, in the order of their names. */
  async #open(at: number): Promise<FileHandle> {
    await folderInside(this.#inside, this.#dir);
    const { file, path } = await openNew(
      join(this.#dir, `events.out.tfevents.${String(Math.floor(at / 1000)).padStart(10, '0')}.dart.${process.pid}`),
    );
    this.#good = 0;
    try {
      await this.#append(file, tfRecord(versionEvent(at)));
      return file;
    } catch (e) {
      // The next scalar makes another.
      await orUndefined(file.close(), 'the error that matters is thrown');
      await orUndefined(rm(path, { force: true }), 'the error that matters is thrown');
      throw e;
    }
  }
}

/** Exclusive: never through a link, and into no file of another part of the run. A name that is taken gets a number. */
async function openNew(wanted: string): Promise<{ readonly file: FileHandle; readonly path: string }> {
  for (let n = 1; ; n++) {
    const path = n === 1 ? wanted : `${wanted}.${n}`,
      file = await open(path, 'wx').catch((e: unknown) => {
        if (errorCode(e) !== 'EEXIST') throw e;
      });
    if (file) return { file, path };
  }
}
