import { randomBytes } from 'node:crypto';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StudioError } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { namesInside } from '../../files/folderParts.js';
import { lockFolder, type FolderLock } from './folderLock.js';

/** A folder for what is needed as long as something runs. */
export interface Scratch {
  /** Its name is random: model servers know adapters by it, and no two processes may share one. */
  readonly dir: string;
  remove(): Promise<void>;
}

const SUFFIX = '.scratch',
  NAME = /^[a-z]+-[\da-f]{12}\.scratch$/;
/** A folder this young may belong to a process that has not locked it yet. */
const YOUNG_MS = 60_000;

/**
 * A scratch folder in the run folder that it is about: that of temporary files is often small, or in memory. A run that
 * can only be read has it there all the same. Rejects with Node's errors where neither can be written.
 */
export async function openScratch(run: string, what: string): Promise<Scratch> {
  return (
    (await orUndefined(openIn(run, what), 'a run that can only be read leaves the folder of temporary files')) ??
    openIn(tmpdir(), what)
  );
}
async function openIn(place: string, what: string): Promise<Scratch> {
  await removeScratch(place);
  const name = `${what}-${randomBytes(6).toString('hex')}`,
    outer = join(place, `${name}${SUFFIX}`),
    dir = join(outer, name);
  await mkdir(outer, { mode: 0o700 });
  const removeAll = (): Promise<void> => rm(outer, { recursive: true, force: true });
  let lock: FolderLock | undefined;
  try {
    const taken = await lockFolder(outer);
    if (!('lock' in taken)) throw new StudioError('store.io', `${outer} was taken by another process.`, 'Try again.');
    ({ lock } = taken);
    await mkdir(dir, { mode: 0o700 });
  } catch (e) {
    await lock?.release();
    await orUndefined(removeAll(), 'the next one removes it');
    throw e;
  }
  const held = lock;
  return {
    dir,
    remove: async () => {
      await rm(dir, { recursive: true, force: true });
      await held.release();
      await orUndefined(removeAll(), 'the next one removes it');
    },
  };
}

/** Removes the scratch folders in `place` whose processes were killed, wherever those ran. */
export async function removeScratch(place: string): Promise<void> {
  const me = process.geteuid?.();
  for (const name of await namesInside(place, place)) {
    if (!NAME.test(name)) continue;
    const path = join(place, name),
      s = await orUndefined(lstat(path), 'another process removed it');
    if (!s?.isDirectory() || (me !== undefined && s.uid !== me) || Date.now() - s.mtimeMs < YOUNG_MS) continue;
    const taken = await orUndefined(lockFolder(path), 'one that cannot be locked stays');
    if (!taken || !('lock' in taken)) continue;
    const inside = join(path, name.slice(0, -SUFFIX.length));
    await orUndefined(rm(inside, { recursive: true, force: true }), 'the next one tries again');
    // A network file system keeps what is open.
    await taken.lock.release();
    await orUndefined(rm(path, { recursive: true, force: true }), 'the next one tries again');
  }
}
