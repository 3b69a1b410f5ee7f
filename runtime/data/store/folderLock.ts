import { randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { StudioError, messageOf, errorCode } from '../../domain/index.js';
import { ignoreFailure, orUndefined } from '../../concurrency/failures.js';
import { readClaim, type Claim, type LockHolder } from './lockClaim.js';
import { hasKernelLock, openKernelLocked } from './kernelLock.js';
import { processState, thisProcess } from './processIdentity.js';

/**
 * One holder per folder, by a lock inside the folder.
 *
 * Why files, and not a name of the kernel: version 0.1 listened on an abstract socket. Node 20 pads such a name with
 * NULs and Node 24 does not, network namespaces have names of their own, and any user may take one. Files in a folder
 * that only its owner can write are the same for every Node and every namespace that sees the folder, and folders that
 * are copied keep no sockets.
 *
 * How: each holder has a claim `lock/<epoch>/` with `owner.json` (who) and `alive` (an open file with a kernel lock,
 * written to every few seconds). A contender prepares its claim under a name of its own, judges the claim of the
 * greatest epoch, and when that holder is dead or has released it renames its own to the next epoch. A folder cannot be
 * renamed onto one that is not empty, so one contender gets an epoch. Then it looks again: it holds the lock only when
 * its epoch is the greatest. The greatest claim is never removed, only claims below it, so epochs never fall. Hence a
 * contender that was slow between judging and renaming cannot win: either its epoch exists already, or it was cleaned
 * up, and then a greater one is there to be seen. A dead lock is never removed first, so there is no moment without a
 * claim.
 *
 * Who is dead is judged by what the kernel knows:
 * - same kernel and process namespace: process id and start time (an id is used again, both together are not); of our
 *   own process, whose thread may have died, the flock on `alive`, which goes with the thread;
 * - same kernel, other process namespace (a container beside its host): the flock on `alive`, which the kernel drops
 *   when the last thread of the holder is gone, however it ended;
 * - other kernel (a network file system, a virtual machine), or no flock(1): `alive` has not been written to for
 *   `SILENT_MS`. That is a guess; the fence of the journal (`FolderLock.verify`) stops a holder that was only slow. A
 *   claim that was copied with its folder is orphaned: its `alive` is another inode.
 */
export interface FolderLock {
  /** Grows with every holder. */
  readonly epoch: number;
  /** Resolves with false when the lock was taken over or its files were removed: two looks at the file system. */
  verify(): Promise<boolean>;
  /** Idempotent. */
  release(): Promise<void>;
}
export type Taken = { readonly lock: FolderLock } | { readonly holder: LockHolder | 'unknown' };

export const lockDir = (dir: string): string => join(dir, 'lock');
/** How often a holder writes to `alive`, and how long it may be silent without counting as dead. */
const ALIVE_MS = 5_000,
  SILENT_MS = 30_000;
/** A claim in preparation that is older than this belongs to a process that died. */
const PREPARING_MS = 60_000;
/** Every lost attempt means that another contender won: more are never needed. */
const ATTEMPTS = 20;

/** Takes the lock, or returns its holder. Rejects with `store.io` when the folder cannot be written. */
export async function lockFolder(dir: string): Promise<Taken> {
  const root = lockDir(dir);
  try {
    await makeRoot(root);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const mine = await prepare(root);
      try {
        const found = await contend(root, mine);
        if (found === 'again') continue;
        if (found !== 'won') return { holder: found };
        await cleanUp(root, mine);
        return { lock: held(root, mine) };
      } finally {
        if (!mine.won) await drop(mine);
      }
    }
    return { holder: 'unknown' };
  } catch (e) {
    if (e instanceof StudioError) throw e;
    throw new StudioError(
      'store.io',
      `The folder ${dir} cannot be locked: ${messageOf(e)}.`,
      'Check free space and the permissions of the folder.',
      { cause: e, details: { dir, code: errorCode(e) } },
    );
  }
}

/** The current holder of the lock; undefined when there is none. Changes nothing. */
export async function folderHolder(dir: string): Promise<LockHolder | 'unknown' | undefined> {
  const root = lockDir(dir),
    epoch = await greatest(root).catch(() => 0);
  return epoch === 0 ? undefined : judge(join(root, String(epoch)), Date.now());
}

interface Mine {
  /** Path of the claim now. */
  path: string;
  epoch: number;
  won: boolean;
  readonly alive: FileHandle;
  /** Inode of owner.json. */
  readonly owner: bigint;
  /** ms of the file system's own clock, when the claim was made. */
  readonly now: number;
}

/** The folder of claims. Only its owner writes there, whatever the umask and the folder above allow. */
async function makeRoot(root: string): Promise<void> {
  await mkdir(root, { mode: 0o755 }).catch((e: NodeJS.ErrnoException) => {
    if (e.code !== 'EEXIST') throw e;
  });
  const s = await lstat(root),
    me = process.geteuid?.();
  if (!s.isDirectory()) throw new Error('"lock" is not a folder');
  if (me !== undefined && me !== 0 && s.uid !== me && s.uid !== 0)
    throw new Error(`"lock" belongs to another user (${s.uid})`);
  if ((s.mode & 0o022) !== 0) await chmod(root, 0o755);
}

async function prepare(root: string): Promise<Mine> {
  const path = join(root, `new-${randomBytes(8).toString('hex')}`);
  await mkdir(path, { mode: 0o755 });
  let alive: FileHandle | undefined;
  try {
    const opened = await openKernelLocked(join(path, 'alive'));
    alive = opened.file;
    await alive.write('.', 0);
    const { ino, mtimeMs } = await alive.stat({ bigint: true });
    const claim: Claim = {
      ...thisProcess(),
      host: hostname(),
      since: new Date().toISOString(),
      kernelLock: opened.locked,
      inode: String(ino),
    };
    const file = join(path, 'owner.json');
    await writeFile(file, `${JSON.stringify(claim)}\n`, { flag: 'wx', mode: 0o644 });
    const owner = (await stat(file, { bigint: true })).ino;
    return { path, epoch: 0, won: false, alive, owner, now: Number(mtimeMs) };
  } catch (e) {
    await alive?.close();
    await rm(path, { recursive: true, force: true });
    throw e;
  }
}

async function contend(root: string, mine: Mine): Promise<'won' | 'again' | LockHolder | 'unknown'> {
  const last = await greatest(root);
  const holder = last === 0 ? undefined : await judge(join(root, String(last)), mine.now);
  if (holder !== undefined) return holder;
  const to = join(root, String(last + 1));
  try {
    await rename(mine.path, to);
  } catch (e) {
    // Another contender got the epoch first, or judged our claim dead.
    if (['EEXIST', 'ENOTEMPTY', 'ENOENT'].includes(errorCode(e) ?? '')) return 'again';
    throw e;
  }
  mine.path = to;
  mine.epoch = last + 1;
  if ((await greatest(root)) !== mine.epoch) return 'again';
  mine.won = true;
  return 'won';
}

/** The greatest epoch with a claim; 0 when there is none. */
async function greatest(root: string): Promise<number> {
  let max = 0;
  for (const name of await readdir(root)) if (/^[1-9]\d{0,14}$/.test(name)) max = Math.max(max, Number(name));
  return max;
}

/** Who holds a claim; undefined when its holder is dead or has released it. `now`: the file system's clock, ms. */
async function judge(path: string, now: number): Promise<LockHolder | 'unknown' | undefined> {
  const alive = join(path, 'alive');
  const claim = await readClaim(join(path, 'owner.json'));
  if (claim === 'absent') return undefined;
  const me = thisProcess(),
    found = await orUndefined(stat(alive, { bigint: true }), 'a claim without the file has no holder');
  if (!found) return undefined;
  const spoke = now - Number(found.mtimeMs) < SILENT_MS;
  if (claim === 'unreadable') return ((await hasKernelLock(alive)) ?? spoke) ? 'unknown' : undefined;
  const holder: LockHolder = { pid: claim.pid, host: claim.host, since: claim.since };
  if (claim.kernel === undefined || claim.kernel !== me.kernel) return spoke ? holder : undefined;
  if (claim.inode !== String(found.ino)) return undefined;
  const sameIds = claim.namespace !== undefined && claim.namespace === me.namespace;
  if (sameIds && claim.start !== undefined) {
    const state = await processState(claim.pid, claim.start);
    if (state === 'dead') return undefined;
    const died = claim.pid === process.pid && claim.kernelLock && (await hasKernelLock(alive)) === false;
    if (state === 'alive') return died ? undefined : holder;
  }
  const locked = claim.kernelLock ? await hasKernelLock(alive) : undefined;
  return (locked ?? spoke) ? holder : undefined;
}

function held(root: string, mine: Mine): FolderLock {
  const owner = join(mine.path, 'owner.json'),
    next = join(root, String(mine.epoch + 1));
  const own = async (): Promise<boolean> =>
    (await orUndefined(stat(owner, { bigint: true }), 'a claim that was removed is not ours'))?.ino === mine.owner;
  const free = async (): Promise<boolean> =>
    stat(next).then(
      () => false,
      (e: NodeJS.ErrnoException) => e.code === 'ENOENT',
    );
  // A failed heartbeat does no harm: `verify` sees a contender that takes over because of it.
  const beat = setInterval(
    () => ignoreFailure(mine.alive.write('.', 0), 'the next beat tries again'),
    ALIVE_MS,
  ).unref();
  let released: Promise<void> | undefined;
  const release = async (): Promise<void> => {
    clearInterval(beat);
    // The claim stays, without an owner, so that epochs keep growing. A rename needs no space on a full disk.
    if (await own()) await orUndefined(rename(owner, join(mine.path, 'released.json')), 'a dead holder lets go too');
    await mine.alive.close();
  };
  return {
    epoch: mine.epoch,
    verify: async () => (await Promise.all([own(), free()])).every(Boolean),
    release: () => (released ??= release()),
  };
}

/** Removes claims of former holders, and leftovers of contenders that were killed. */
async function cleanUp(root: string, mine: Mine): Promise<void> {
  for (const name of await readdir(root)) {
    const path = join(root, name);
    const old = /^[1-9]\d{0,14}$/.test(name)
      ? Number(name) < mine.epoch
      : name.startsWith('new-') &&
        mine.now - ((await orUndefined(stat(path), 'another contender removed it'))?.mtimeMs ?? mine.now) >
          PREPARING_MS;
    // The next holder removes what is left.
    if (old) await orUndefined(rm(path, { recursive: true, force: true }), 'the next holder removes it');
  }
}

async function drop(mine: Mine): Promise<void> {
  await mine.alive.close();
  // Never the greatest epoch: a claim that lost has one above it, one in preparation has no epoch.
  await rm(mine.path, { recursive: true, force: true });
}
