import { resolve } from 'node:path';
import { errorCode, messageOf, StudioError } from '../domain/index.js';
import { listRunFolders } from '../run/runFolders.js';

/** The folder of runs where --runs names none: before the first run it is not there. */
const USUAL = 'runs';

/** Absolute folders of the runs under `dir`, newest first. Throws `store.io` where that cannot be read. */
export async function listedRuns(dir: string, o: { readonly damaged?: boolean } = {}): Promise<string[]> {
  return await listRunFolders(resolve(dir), { ...o, strict: true }).catch((e: unknown): string[] => {
    const missing = errorCode(e) === 'ENOENT';
    if (missing && dir === USUAL) return [];
    if (errorCode(e) === undefined) throw e;
    throw new StudioError(
      'store.io',
      missing ? `${dir} is not there.` : `The folder of runs ${dir} cannot be read: ${messageOf(e)}`,
      'Name the folder that holds the run folders with --runs.',
      { cause: e },
    );
  });
}
