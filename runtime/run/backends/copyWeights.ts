import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { StudioError } from '../../domain/index.js';
import { ForeignFileError, copyForeign } from '../../files/foreignFile.js';

/** Copies files of weights; no link leads out of `inside`. Rejects with `store.damaged` for one that cannot be read. */
export async function copyWeights(inside: string, from: string, to: string, names: readonly string[]): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of names)
    await copyForeign(join(from, name), join(to, name), Infinity, { inside }).catch(refused(join(from, name)));
}

/** Throws `store.damaged` for a file of a run folder that cannot be read, and every other error again. */
export const refused =
  (file: string) =>
  (e: unknown): never => {
    if (!(e instanceof ForeignFileError)) throw e;
    throw new StudioError(
      'store.damaged',
      `${file} ${e.message}.`,
      'Restore the run folder from a copy, or choose another version.',
      { cause: e },
    );
  };
