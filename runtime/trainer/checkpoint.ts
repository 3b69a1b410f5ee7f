import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { errorCode, messageOf, StudioError } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { foreignJson, isObject } from '../foreign/json.js';
import { createFresh, folderInside } from '../files/folderParts.js';
import { ForeignFileError, readForeign, readForeignText } from '../files/foreignFile.js';

/**
 * A checkpoint is a folder: `manifest.json` naming every other file with its size and sha256, written under a temporary
 * name, flushed to disk and renamed into place. A folder without a manifest, or one that does not match, is damaged.
 */
export interface CheckpointFile {
  readonly bytes: number;
  readonly sha256: string;
}
export interface CheckpointManifest {
  readonly format: 1;
  /** Policy and parameter layout this belongs to; a checkpoint of another one cannot be restored. */
  readonly policy: string;
  readonly layout: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly files: Readonly<Record<string, CheckpointFile>>;
  /** sha256 of the rest of the manifest; version 0.1 wrote none. */
  readonly digest?: string;
}
const MANIFEST = 'manifest.json';
/**
 * Values of a manifest: a few dozen; a remote trainer's of version 0.1 has a number for each token of its last batch, 1.6
 * million where 8 groups of 8 rollouts take 50 steps of 512 tokens.
 */
export const MANIFEST_VALUES = 1 << 21;
/** Bytes of a manifest: a number has a line of its own. */
const MANIFEST_BYTES = 40 * MANIFEST_VALUES;
/** Bytes of all files together, which are held in memory. */
const MOST_BYTES = 4 * 2 ** 30;
const MOST_FILES = 64;
const BOUNDS = { depth: 16, values: MANIFEST_VALUES };
/** A file name that a manifest may give: a file beside it, and not hidden. */
const FILE_NAME = /^\w[\w.-]{0,99}$/;

export const sha256 = (b: Uint8Array): string => createHash('sha256').update(b).digest('hex');
/** Bytes hashed before others have their turn: a few milliseconds. */
const HASH_SLICE = 1 << 20;
async function slicedSha256(b: Uint8Array): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < b.byteLength; at += HASH_SLICE) {
    if (at > 0) await turn();
    hash.update(b.subarray(at, at + HASH_SLICE));
  }
  return hash.digest('hex');
}

async function writeDurable(path: string, data: Uint8Array): Promise<void> {
  const f = await createFresh(path);
  try {
    await f.writeFile(data);
    await f.sync();
  } finally {
    await f.close();
  }
}
async function syncFolder(path: string): Promise<void> {
  // Windows cannot open folders; there the rename itself is durable.
  const f = await orUndefined(open(path, 'r'), 'not every file system opens folders');
  if (f)
    try {
      await f.sync();
    } finally {
      await f.close();
    }
}

/**
 * The folder that must hold the files of a checkpoint, with no link on the way: its run (`RUN/checkpoints/NAME`), else
 * itself.
 */
function insideOf(dir: string): string {
  const own = resolve(dir),
    parent = dirname(own);
  return basename(parent) === 'checkpoints' ? dirname(parent) : own;
}
/** A manifest's text as it stands there, unchecked. */
export const manifestText = (dir: string): Promise<string> =>
  readForeignText(join(resolve(dir), MANIFEST), MANIFEST_BYTES, { inside: insideOf(dir) });

/** The policy that a checkpoint says it is of; undefined where it does not say. Whether it is whole is for `readCheckpoint`. */
export async function policyOfCheckpoint(dir: string): Promise<string | undefined> {
  const said = await manifestJson(dir).catch((e: unknown) => {
      // Who restores a damaged checkpoint says what is wrong with it.
      if (isDamage(e)) return undefined;
      throw e;
    }),
    policy = (said as Partial<CheckpointManifest> | null | undefined)?.policy;
  return typeof policy === 'string' ? policy : undefined;
}
/** A manifest's JSON, within its bounds and otherwise unchecked. Throws trainer.invalid, or store.io as `unread`. */
export async function manifestJson(dir: string): Promise<unknown> {
  const text = await manifestText(dir).catch((cause: unknown) => {
    throw unread(dir, cause, 'its manifest cannot be read');
  });
  try {
    return foreignJson(text, BOUNDS, (why) => new RangeError(`it ${why}`));
  } catch (cause) {
    throw damaged(dir, 'its manifest cannot be read', cause);
  }
}

/** Writes the folder `dir`, replacing one of the same name. */
export async function writeCheckpoint(
  dir: string,
  head: Pick<CheckpointManifest, 'policy' | 'layout' | 'values'>,
  files: Readonly<Record<string, Uint8Array>>,
): Promise<void> {
  const tmp = `${dir}.${process.pid}.tmp`;
  await rm(tmp, { recursive: true, force: true });
  await folderInside(insideOf(tmp), resolve(tmp));
  for (const [name, data] of Object.entries(files)) await writeDurable(join(tmp, name), data);
  const named = Object.fromEntries(
      Object.entries(files).map(([n, d]) => [n, { bytes: d.byteLength, sha256: sha256(d) }]),
    ),
    manifest: CheckpointManifest = { format: 1, ...head, files: named, digest: digestOf({ ...head, files: named }) };
  await writeDurable(join(tmp, MANIFEST), Buffer.from(JSON.stringify(manifest, null, 2) + '\n'));
  await syncFolder(tmp);
  await putInPlace(tmp, dir);
  await syncFolder(dirname(dir));
}

/**
 * Gives a folder its name. One that has the name is set aside first, as `<name>.replaced`, and removed when the new one
 * is there: a kill in between loses neither (data/store/unfinished.ts gives it its name back).
 */
async function putInPlace(made: string, dir: string): Promise<void> {
  const aside = `${dir}.replaced`;
  await rename(dir, aside).catch(async (e: unknown) => {
    const code = errorCode(e);
    if (code === 'ENOENT') return;
    // Left by a kill after the new one was in place; ENOTDIR: no folder at all.
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOTDIR') throw e;
    await rm(aside, { recursive: true, force: true });
    await rename(dir, aside);
  });
  await rename(made, dir);
  await rm(aside, { recursive: true, force: true });
}

/** Digest of a manifest's fields: its values have no checksum elsewhere. */
const digestOf = ({ policy, layout, values, files }: Omit<CheckpointManifest, 'format' | 'digest'>): string =>
  sha256(Buffer.from(JSON.stringify({ policy, layout, values, files })));

const damaged = (dir: string, what: string, cause?: unknown): StudioError =>
  new StudioError(
    'trainer.invalid',
    `The checkpoint ${dir} is damaged: ${what}.`,
    'Resume from an earlier checkpoint of this run, or start without one.',
    { cause, details: { dir } },
  );
const isDamage = (e: unknown): boolean => e instanceof StudioError && e.kind === 'trainer.invalid';
/**
 * A file that is not there, or none that could be a checkpoint's, is damage. A disk, a server or a process that cannot
 * read at the moment says nothing of what is there: that is `store.io`, or a run would give up what it has learned.
 */
function unread(dir: string, cause: unknown, what: string): StudioError {
  if (cause instanceof ForeignFileError || ['ENOENT', 'ENOTDIR'].includes(errorCode(cause) ?? ''))
    return damaged(dir, what, cause);
  return new StudioError(
    'store.io',
    `The checkpoint ${dir} cannot be read at the moment: ${messageOf(cause)}.`,
    'Nothing of it is given up: check its disk and its permissions, then start again, or resume the run.',
    { cause, details: { dir } },
  );
}

/** A manifest may be a stranger's: only what it can be believed in is looked at. Throws trainer.invalid. */
function checkManifest(dir: string, m: CheckpointManifest | null): void {
  if (m?.format !== 1 || !isObject(m.files) || !isObject(m.values))
    throw damaged(dir, 'its manifest is of an unknown format');
  if (typeof m.policy !== 'string' || typeof m.layout !== 'string')
    throw damaged(dir, 'its manifest does not say of which policy it is');
  const files = Object.entries(m.files as Readonly<Record<string, Partial<CheckpointFile> | null>>);
  let bytes = 0;
  for (const [name, f] of files) {
    if (!FILE_NAME.test(name))
      throw damaged(dir, `its manifest names '${name.slice(0, 120)}', which is no file beside it`);
    if (!Number.isSafeInteger(f?.bytes) || f!.bytes! < 0) throw damaged(dir, `its manifest has no size of ${name}`);
    bytes += f!.bytes!;
  }
  if (files.length > MOST_FILES || bytes > MOST_BYTES)
    throw damaged(dir, `its manifest names ${files.length} files of ${bytes} bytes`);
  if (m.digest !== undefined && m.digest !== digestOf(m)) throw damaged(dir, 'its manifest was altered');
}

/**
 * Reads and checks a whole checkpoint. Throws trainer.invalid when a file is missing, truncated or altered, or belongs
 * to another policy; store.io when it cannot be read at the moment.
 */
export async function readCheckpoint(
  dir: string,
  expect: Pick<CheckpointManifest, 'policy' | 'layout'>,
): Promise<{ values: Readonly<Record<string, unknown>>; files: Record<string, Buffer> }> {
  const manifest = await readManifest(dir);
  if (manifest.policy !== expect.policy || manifest.layout !== expect.layout) {
    throw new StudioError(
      'trainer.invalid',
      `The checkpoint ${dir} is of policy '${manifest.policy}' (layout ${manifest.layout}); this run trains '${expect.policy}' (layout ${expect.layout}).`,
      'Use a checkpoint made by this version with the same policy, or start without one.',
      { details: { dir } },
    );
  }
  const files: Record<string, Buffer> = {};
  for (const [name, want] of Object.entries(manifest.files)) files[name] = await readNamed(dir, name, want);
  return { values: manifest.values, files };
}

/**
 * Why a checkpoint cannot be restored, as `trainer.invalid`; undefined for one that is whole. Of which policy it is does
 * not matter here. Rejects with `store.io` where that cannot be told at the moment.
 */
export async function damageOf(dir: string): Promise<StudioError | undefined> {
  try {
    const { files } = await readManifest(dir);
    for (const [name, want] of Object.entries(files)) await readNamed(dir, name, want);
    return undefined;
  } catch (e) {
    if (isDamage(e)) return e as StudioError;
    throw e;
  }
}

async function readManifest(dir: string): Promise<CheckpointManifest> {
  const manifest = (await manifestJson(dir)) as CheckpointManifest;
  checkManifest(dir, manifest);
  return manifest;
}
async function readNamed(dir: string, name: string, want: CheckpointFile): Promise<Buffer> {
  if (name !== basename(name)) throw damaged(dir, 'its manifest names a file outside of it');
  let data: Buffer;
  try {
    data = await readForeign(join(resolve(dir), name), want.bytes, { inside: insideOf(dir) });
  } catch (cause) {
    throw unread(dir, cause, `${name} ${cause instanceof ForeignFileError ? cause.message : 'is missing'}`);
  }
  if (data.byteLength !== want.bytes)
    throw damaged(dir, `${name} has ${data.byteLength} bytes instead of ${want.bytes}`);
  if ((await slicedSha256(data)) !== want.sha256) throw damaged(dir, `${name} does not match its checksum`);
  return data;
}
