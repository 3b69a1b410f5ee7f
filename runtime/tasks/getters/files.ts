import { StudioError, errorCode } from '../../domain/index.js';
import type { TaskContext } from '../context.js';
import { desktopPath } from '../context.js';
import { Spoiled } from '../spoiled.js';
import type { Value } from '../values.js';
import { FileValue, truthy } from '../values.js';
import type { Getter, GetterConfig } from './types.js';

/** Python's FileNotFoundError in a result getter: the task is judged 0. */
export class MissingFile extends Error {}

/** The error for more or larger files than a verifier reads, which only the policy can have made. */
export class TooLarge extends Spoiled {}

/** Error codes of reading a file that mean "there is no such file to judge". */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG']);

export async function readDesktopFile(ctx: TaskContext, path: string): Promise<Buffer | null> {
  ctx.looked?.add(desktopPath(path));
  try {
    return await ctx.desktop.readFile(desktopPath(path));
  } catch (e) {
    const code = e instanceof StudioError ? e.error.details?.['code'] : errorCode(e);
    if (typeof code === 'string' && ABSENT.has(code)) return null;
    if (code === 'ENOTREG' || code === 'ENXIO') throw new Spoiled(`${path} is not a regular file`);
    if (code === 'EFBIG') throw new TooLarge(`${path} is too large to be judged`);
    if (code === 'EAGAIN') throw new Spoiled(`a program holds ${path} for itself`);
    throw e;
  }
}

/**
 * path and dest of one file or, with `multi`, of several; `gives` (default [0]) says which the metric sees, one as
 * itself, more as a list.
 */
async function several(c: GetterConfig, read: (path: string, dest: string) => Promise<Value>): Promise<Value> {
  const list = (v: unknown): string[] => (truthy(c['multi']) ? (v as unknown[]) : [v]).map(String);
  const paths = list(c['path']),
    dests = list(c['dest'] ?? c['path']);
  const gives = new Set((c['gives'] as number[] | undefined) ?? [0]);
  const given: Value[] = [];
  for (let i = 0; i < Math.min(paths.length, dests.length); i++) {
    const v = await read(paths[i]!, dests[i]!);
    if (gives.has(i)) given.push(v);
  }
  return given.length === 1 ? given[0]! : given;
}

const remember = (ctx: TaskContext, name: string, data: Buffer): FileValue => {
  ctx.cache.set(name, data);
  return new FileValue(name, data);
};

/** Files of the desktop; a file that is not there is null. */
export const vmFile: Getter = (ctx, c) =>
  several(c, async (path, dest) => {
    const data = await readDesktopFile(ctx, path);
    return data === null ? null : remember(ctx, dest, data);
  });

/** Gold files, from the local assets. */
export const cloudFile: Getter = (ctx, c) =>
  several(c, async (url, dest) => {
    const cached = ctx.cache.get(dest);
    return cached !== undefined
      ? new FileValue(dest, cached)
      : remember(ctx, dest, await ctx.assets.read(url, { name: dest, task: ctx.task }));
  });

/** A file that a step saved with `stdout`, or another getter fetched. */
export const cacheFile: Getter = (ctx, c) => {
  const name = String(c['path']);
  const data = ctx.cache.get(name);
  return data === undefined
    ? Promise.reject(new MissingFile(`${name} was not saved`))
    : Promise.resolve(new FileValue(name, data));
};

/** A configuration file of an application at its fixed place. */
export const configFile =
  (pathOf: (c: GetterConfig) => string): Getter =>
  async (ctx, c) => {
    const data = await readDesktopFile(ctx, pathOf(c));
    return data === null ? null : remember(ctx, String(c['dest'] ?? 'config'), data);
  };
