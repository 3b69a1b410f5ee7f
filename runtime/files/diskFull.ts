import { errorCode } from '../domain/index.js';

/** What programs say of a disk or a quota that is full: the system's codes and words, Rust's, and Python's. */
const SAID =
  /\b(ENOSPC|EDQUOT)\b|No space left on device|Disk quota exceeded|\bos error (28|122)\b|\bErrno (28|122)\b/i;

/** Whether it says that a disk or quota is full, also when another process said so. */
export const isFull = (e: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes(errorCode(e) ?? '') ||
  (e instanceof Error && (SAID.test(e.message) || (e.cause !== undefined && isFull(e.cause))));
