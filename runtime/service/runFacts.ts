import { opendir, stat } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { merge, parseRunFile, parseStoredConfig } from '../config/index.js';
import { isObject } from '../foreign/json.js';
import { orUndefined } from '../concurrency/failures.js';
import { freeBytes } from '../files/freeSpace.js';
import type { RunReader } from '../data/store/runStore.js';
import * as m from '../protocol/methods.js';
import type { RunFootprint } from '../protocol/types.js';
import { checkpoints } from '../queries/overview.js';
import { schemas, type Handlers } from './params.js';
import type { Studio } from './studio.js';

/** Files of a run folder that are looked at: a day of training has some ten thousand. */
const MOST_FILES = 200_000;
/** Files whose sizes are asked for at once. */
const AT_ONCE = 32;

/** run/footprint, run/file. */
export function runFactHandlers(h: Handlers, s: Studio): void {
  h.on(m.getFootprint, schemas.run, (p) => {
    const dir = resolve(p.run);
    return s.read(dir, (r) => footprintOf(dir, r.reader));
  });
  h.on(m.getRunFile, schemas.run, (p) =>
    s.read(p.run, (r) => Promise.resolve({ text: runFileText(r.reader.meta.config ?? {}) })),
  );
}

export async function footprintOf(dir: string, run: RunReader): Promise<RunFootprint> {
  const kept = await checkpoints(run),
    [size, free, weights] = await Promise.all([
      folderBytes(dir, MOST_FILES),
      freeBytes(dir),
      kept[0] && orUndefined(stat(join(kept[0].path, 'weights.f32')), 'weights of a model are kept elsewhere'),
    ]);
  return {
    bytes: size.bytes,
    ...(size.whole ? {} : { atLeast: true }),
    ...(free === undefined ? {} : { freeBytes: free }),
    // 32-bit floats, one a parameter.
    ...(weights ? { parameters: weights.size / 4 } : {}),
    machine: { processor: cpus()[0]?.model.trim() ?? '', cores: cpus().length, memoryBytes: totalmem() },
  };
}

/** Bytes of all files below a folder; `whole` is false when it has more files than `most`. Links are not followed. */
export async function folderBytes(
  dir: string,
  most: number,
): Promise<{ readonly bytes: number; readonly whole: boolean }> {
  let bytes = 0,
    files = 0;
  const folders = [dir];
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    const entries = await orUndefined(opendir(at), 'a folder may go while the run is written');
    if (!entries) continue;
    let some: Promise<number>[] = [];
    for await (const e of entries) {
      const path = join(at, e.name);
      if (e.isDirectory()) folders.push(path);
      else if (e.isFile()) {
        if (++files > most) return { bytes: bytes + (await sum(some)), whole: false };
        some.push(
          stat(path).then(
            (x) => x.size,
            () => 0,
          ),
        );
        if (some.length >= AT_ONCE) {
          bytes += await sum(some);
          some = [];
        }
      }
    }
    bytes += await sum(some);
  }
  return { bytes, whole: true };
}
const sum = async (sizes: readonly Promise<number>[]): Promise<number> =>
  (await Promise.all(sizes)).reduce((a, b) => a + b, 0);

/**
 * The run file of a run as a person would write it: its preset, and what it says beyond it. Run again, it makes the
 * same configuration. One of another version is given whole.
 */
export function runFileText(config: unknown): string {
  const name = isObject(config) ? config['preset'] : undefined;
  let short: unknown = config;
  try {
    const base: unknown = parseRunFile(typeof name === 'string' ? { preset: name } : {}),
      own = beyond(parseStoredConfig(config), base);
    short = { ...(typeof name === 'string' ? { preset: name } : {}), ...(isObject(own) ? own : {}) };
  } catch {
    /* as it is */
  }
  return `${JSON.stringify(merge({ $schema: 'dart-studio:/run.schema.json' }, short), null, 2)}\n`;
}
/** The part of `value` that is not in `base`; undefined when nothing is. */
function beyond(value: unknown, base: unknown): unknown {
  if (!isObject(value) || !isObject(base)) return same(value, base) ? undefined : value;
  const out = Object.fromEntries(
    Object.entries(value).flatMap(([k, v]) => {
      const rest = beyond(v, base[k]);
      return rest === undefined ? [] : [[k, rest]];
    }),
  );
  return Object.keys(out).length === 0 ? undefined : out;
}
function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x, i) => same(x, b[i]));
  if (!isObject(a) || !isObject(b)) return a === b;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((k) => same(a[k], b[k]));
}
