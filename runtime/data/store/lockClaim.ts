import { join } from 'node:path';
import { errorCode } from '../../domain/index.js';
import { openForeign } from '../../files/foreignFile.js';

/** The process that has a folder open for writing. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** ISO 8601. */
  readonly since: string;
}

/** What distinguishes one process from all others, as far as this system tells. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Which kernel, since its last start. */
  readonly kernel?: string;
  /** Which process namespace the id is of. */
  readonly namespace?: string;
  /** When it started, in the kernel's count. */
  readonly start?: string;
}

/** owner.json of a claim. */
export interface Claim extends LockHolder, ProcessIdentity {
  /** A kernel lock is held on the claim's `alive`. */
  readonly kernelLock: boolean;
  /** Inode of the claim's `alive`: a copied claim has another. */
  readonly inode: string;
}

const maxBytes = 4096;

/** The first 4 kB of `DIR/lock/EPOCH/owner.json`; a link, a pipe or a device is not read. */
async function readSmallFile(path: string): Promise<string> {
  const file = await openForeign(path, { inside: join(path, '../../..') });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

export async function readClaim(path: string): Promise<Claim | 'absent' | 'unreadable'> {
  try {
    const c = JSON.parse(await readSmallFile(path)) as Partial<Record<keyof Claim, unknown>> | null;
    const text = (v: unknown): v is string => typeof v === 'string' && v.length <= 300;
    const perhaps = (v: unknown): v is string | undefined => v === undefined || text(v);
    const { pid, host, since, kernel, namespace, start, kernelLock, inode } = c ?? {};
    if (
      typeof pid !== 'number' ||
      !Number.isSafeInteger(pid) ||
      pid <= 0 ||
      !text(host) ||
      !text(since) ||
      !text(inode)
    )
      return 'unreadable';
    if (!perhaps(kernel) || !perhaps(namespace) || !perhaps(start)) return 'unreadable';
    return {
      pid,
      host,
      since,
      inode,
      kernelLock: kernelLock === true,
      kernel,
      namespace,
      start,
    };
  } catch (e) {
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(e) ?? '') ? 'absent' : 'unreadable';
  }
}
