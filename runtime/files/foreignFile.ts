import { constants } from 'node:fs';
import { copyFile, lstat, open, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode } from '../domain/index.js';
import { linkBetween } from './folderParts.js';

/**
 * The one way to open a file that somebody else may have made: of an import, of a run folder that was copied here, a
 * task file, a checkpoint. It must be a regular file of at most so many bytes. A FIFO would hold one of the four threads
 * that all file access of the process shares, until somebody writes to it; a device may have an effect when it is
 * opened, or no end.
 *
 * What is refused is a `ForeignFileError`; anything else (ENOENT, EACCES) is Node's own error. Both have a `code`.
 */
export type ForeignFault = 'EIRREGULAR' | 'ETOOLARGE' | 'EDAMAGED';
export class ForeignFileError extends Error {
  readonly code: ForeignFault;
  /** `what` follows the name of the file in a sentence. */
  constructor(code: ForeignFault, what: string) {
    super(what);
    this.name = 'ForeignFileError';
    this.code = code;
  }
}

export interface ForeignOptions {
  /** Most bytes; without it the size is not looked at, for files that are read piece by piece. */
  readonly most?: number;
  /** Whether a symbolic link is followed. Default true; false with `inside`. */
  readonly follow?: boolean;
  /**
   * A folder that it must lie in: between the two nothing is a link, and it is none itself. How that folder is reached
   * does not matter. For the parts of a run folder.
   */
  readonly inside?: string | undefined;
  /** Default false: reading. */
  readonly write?: boolean;
}

/** Absent on Windows, where a named pipe has no place among files. */
const NONBLOCK = constants.O_NONBLOCK ?? 0,
  NOCTTY = constants.O_NOCTTY ?? 0,
  NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const irregular = (): ForeignFileError => new ForeignFileError('EIRREGULAR', 'is not a regular file');

/** Opens it. Never waits for another program. */
export async function openForeign(path: string, o: ForeignOptions = {}): Promise<FileHandle> {
  const { most = Infinity, inside, follow = inside === undefined, write = false } = o;
  if (inside !== undefined && (await linkBetween(inside, dirname(path))) !== undefined)
    throw new ForeignFileError('EIRREGULAR', 'lies behind a link, which is not followed');
  // Looked at first, because opening a device may do something; looked at again, because it may have been replaced.
  if (!(await (follow ? stat(path) : lstat(path))).isFile()) throw irregular();
  const access = write ? constants.O_RDWR : constants.O_RDONLY,
    file = await open(path, access | NONBLOCK | NOCTTY | (follow ? 0 : NOFOLLOW)).catch((e: unknown) => {
      // A link that is not followed; a socket, or a FIFO that is opened for writing and has no reader.
      throw ['ELOOP', 'EMLINK', 'ENXIO', 'EISDIR'].includes(errorCode(e) ?? '') ? irregular() : e;
    });
  try {
    const s = await file.stat();
    if (!s.isFile()) throw irregular();
    if (s.size > most) throw tooLarge(s.size, most);
    return file;
  } catch (e) {
    await file.close();
    throw e;
  }
}
const tooLarge = (size: number, most: number): ForeignFileError =>
  new ForeignFileError('ETOOLARGE', `is ${size} bytes long; at most ${most} are read`);

type Where = Pick<ForeignOptions, 'follow' | 'inside'>;
/** The file whole. It may grow while it is read: what counts is what was read. */
export async function readForeign(path: string, most: number, o: Where = {}): Promise<Buffer> {
  const file = await openForeign(path, { ...o, most });
  try {
    // One byte more than the file has, so that its end is seen.
    let buffer: Buffer = Buffer.allocUnsafe((await file.stat()).size + 1),
      have = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, have, buffer.length - have, have);
      have += bytesRead;
      if (have > most) throw tooLarge(have, most);
      if (bytesRead === 0) return buffer.subarray(0, have);
      if (have === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * have, most + 1));
    }
  } finally {
    await file.close();
  }
}
export const readForeignText = async (path: string, most: number, o: Where = {}): Promise<string> =>
  (await readForeign(path, most, o)).toString('utf8');

/** The bytes of a file in chunks of at most `size`. A chunk is valid until the next one is asked for. */
export async function* foreignChunks(
  path: string,
  o: ForeignOptions & { readonly size?: number } = {},
): AsyncGenerator<Buffer, void, undefined> {
  const file = await openForeign(path, o),
    chunk = Buffer.allocUnsafe(o.size ?? 256 * 1024);
  try {
    for (let at = 0; ;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/**
 * A copy with a content of its own; blocks are shared where the file system can. Rejects with EEXIST when `to` is there.
 */
export async function copyForeign(from: string, to: string, most: number, o: Where = {}): Promise<void> {
  const file = await openForeign(from, { ...o, most });
  try {
    // Opened by its descriptor: a file of the same name may have been replaced by something that holds the thread.
    const opened = process.platform === 'linux' ? `/proc/self/fd/${file.fd}` : from;
    await copyFile(opened, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  } finally {
    await file.close();
  }
}
