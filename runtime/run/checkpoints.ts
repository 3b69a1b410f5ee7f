import { existsSync } from 'node:fs';
import { lstat, readdir, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { checkpointOf } from '../data/events.js';
import type { RunReader } from '../data/store/runStore.js';
import { StudioError, checkpointName, errorCode, messageOf } from '../domain/index.js';
import { damageOf } from '../trainer/checkpoint.js';

/** A checkpoint of a run; its folder may have moved with the run. */
export interface RunCheckpoint {
  readonly version: number;
  readonly dir: string;
}
/** The checkpoints named in the journal, newest first, whether or not their folders still exist. */
async function* checkpointsOf(run: RunReader): AsyncGenerator<RunCheckpoint> {
  const rows = await run.index.query(
    "SELECT position FROM events WHERE type IN ('checkpoint', 'batch.trained') ORDER BY seq DESC",
    [],
  );
  for (const row of rows) {
    const e = await run.at(Number(row['position'])),
      written = e && checkpointOf(e),
      // The journal may come from elsewhere: a checkpoint lies in the run's own folder, whatever path the journal
      // gives.
      name = written?.dir.split(/[\\/]/).at(-1) ?? '';
    if (written && checkpointName.test(name))
      yield { version: written.version, dir: join(run.dir, 'checkpoints', name) };
  }
}
/** The version of the newest checkpoint in the journal; 0 without one. */
export async function newestVersion(run: RunReader): Promise<number> {
  for await (const c of checkpointsOf(run)) return c.version;
  return 0;
}

/** Rejects with `store.io` where that cannot be told: a disk that does not answer has not lost the folder. */
async function isThere(dir: string): Promise<boolean> {
  try {
    await lstat(dir);
    return true;
  } catch (e) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(e) ?? '')) return false;
    throw new StudioError(
      'store.io',
      `Whether the checkpoint ${dir} is there cannot be told at the moment: ${messageOf(e)}.`,
      'Nothing of it is given up: check its disk and its permissions, then start again, or resume the run.',
      { cause: e, details: { dir } },
    );
  }
}

/** The newest checkpoint in the journal, or that of a version, if its folder is there. Rejects as `isThere`. */
export async function lastCheckpoint(run: RunReader, version?: number): Promise<RunCheckpoint | undefined> {
  for await (const c of checkpointsOf(run))
    if ((version === undefined || c.version === version) && (await isThere(c.dir))) return c;
  return undefined;
}

/** The checkpoint that a run can go on from. */
export interface SoundCheckpoint {
  /** The newest checkpoint that is whole. */
  readonly checkpoint: RunCheckpoint | undefined;
  /** The newest version there was, where that is a newer one, and what became of it. */
  readonly damaged?: { readonly version: number; readonly why: string };
}
/** Rejects with `store.io` where a checkpoint cannot be read at the moment: whether it is whole is then not known. */
export async function soundCheckpoint(run: RunReader): Promise<SoundCheckpoint> {
  let damaged: SoundCheckpoint['damaged'];
  for await (const c of checkpointsOf(run)) {
    const why = (await isThere(c.dir)) ? (await damageOf(c.dir))?.message : `The checkpoint ${c.dir} is gone.`;
    if (why === undefined) return { checkpoint: c, ...(damaged ? { damaged } : {}) };
    damaged ??= { version: c.version, why };
  }
  return { checkpoint: undefined, ...(damaged ? { damaged } : {}) };
}

/**
 * The checkpoint that `warmStart.from` names: the folder itself, or the newest one of a run folder. Rejects with
 * `config.invalid`.
 */
export async function startingPoint(from: string): Promise<{ version: number; dir: string }> {
  const isCheckpoint = (dir: string): boolean => existsSync(join(dir, 'manifest.json'));
  const folder = resolve(from),
    checkpoints = join(folder, 'checkpoints');
  const dirs = isCheckpoint(folder)
    ? [folder]
    : (await readdir(checkpoints).catch((): string[] => []))
        .filter((n) => checkpointName.test(n))
        .sort()
        .map((n) => join(checkpoints, n))
        .filter(isCheckpoint);
  const dir = dirs.at(-1),
    version = Number(/^v(\d+)$/.exec(basename(dir ?? ''))?.[1]);
  if (dir === undefined || !Number.isInteger(version))
    throw new StudioError(
      'config.invalid',
      `warmStart.from: there is no checkpoint in ${folder}.`,
      'Set it to a run folder that has checkpoints, or to one of the folders under its checkpoints/.',
    );
  return { version, dir };
}

/** Keeps the newest `keep` checkpoint folders. */
export async function pruneCheckpoints(dir: string, keep: number): Promise<void> {
  const names = (await readdir(dir).catch((): string[] => [])).filter((n) => checkpointName.test(n)).sort();
  await Promise.all(
    names.slice(0, Math.max(0, names.length - keep)).map((n) => rm(join(dir, n), { recursive: true, force: true })),
  );
}
