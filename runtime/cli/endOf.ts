import { errorCode, ServiceError, toRunError, type RunError } from '../domain/index.js';

/** Codes of the file system that say something of this machine, not of this program; and what to do. */
const FILE_CODES: Readonly<Record<string, string>> = {
  ENOENT: 'Check the path: a folder of it does not exist.',
  ENOTDIR: 'Check the path: a part of it is a file, not a folder.',
  EISDIR: 'Name a file: this is a folder.',
  EEXIST: 'Name another path, or move away what is there.',
  EACCES: 'Check who may read and write there.',
  EPERM: 'Check who may read and write there.',
  EROFS: 'Name a path that can be written to.',
  ENOSPC: 'Free some space, or name a path on another disk.',
};
const SERVICE_KINDS = {
  'params.invalid': 'config.invalid',
  'not.found': 'store.io',
  busy: 'run.busy',
  draining: 'run.busy',
} as const satisfies Record<ServiceError['kind'], RunError['kind']>;

/** The error that ends a command, for whoever typed it: a file that cannot be used is no fault of this program. */
export function endOf(e: unknown): RunError {
  if (e instanceof ServiceError) return { kind: SERVICE_KINDS[e.kind], message: e.message, remedy: e.remedy };
  const said = toRunError(e),
    what = said.kind === 'internal' ? fileOf(e) : undefined;
  return what === undefined
    ? said
    : {
        kind: 'store.io',
        message: `${what} cannot be written or read: ${said.message}`,
        remedy: FILE_CODES[errorCode(e)!]!,
      };
}

/** The file that an error is about; undefined for one that is about none, such as a program or a port. */
function fileOf(e: unknown): string | undefined {
  const code = errorCode(e);
  if (!(e instanceof Error) || code === undefined || !(code in FILE_CODES)) return undefined;
  const { path, syscall = '' } = e as NodeJS.ErrnoException;
  if (path !== undefined) return syscall.startsWith('spawn') ? undefined : path;
  // What is written to an open file names no path.
  return code === 'ENOSPC' ? 'A file' : undefined;
}
