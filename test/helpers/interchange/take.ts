import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { newRun } from '../../../runtime/data/collections.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { importInto, preview } from '../../../runtime/interchange/importer.js';
import type { ImportReport, Preview } from '../../../runtime/interchange/importReport.js';
import type { ImportFormat, ReadOptions } from '../../../runtime/interchange/types.js';
import { bundle } from '../data/manager.js';
import { importedOf } from './make.js';

let built: Promise<{ file: string }> | undefined;
/** What decodes JPEG pictures, bundled once a test file. */
export const jpegWorker = (): Promise<{ file: string }> =>
  (built ??= bundle('test/helpers/interchange/jpegWorker.ts', `import-jpeg-${threadId}`));

export const look = (
  path: string,
  options: ReadOptions = {},
  format: ImportFormat | 'auto' = 'auto',
): Promise<Preview> => preview({ path, format, options });
/** Imports into `<dir>/run`, made when it is not there. */
export async function take(
  dir: string,
  path: string,
  options: ReadOptions = {},
  o: { pool?: boolean; signal?: AbortSignal } = {},
): Promise<ImportReport> {
  const run = join(dir, 'run');
  return importInto(
    { path, format: 'auto', options },
    { dir: run, index: 'local', entry: await jpegWorker(), ...(existsSync(run) ? {} : { create: newRun('run', 1) }) },
    { pool: o.pool ?? true, ...(o.signal ? { signal: o.signal } : {}) },
  );
}
export const frames = async (path: string): Promise<(readonly Buffer[])[]> => {
  const all = await importedOf(path),
    run = await RunReader.open(path, { index: 'local' });
  try {
    return await Promise.all(
      all.map((t) => Promise.all(t.steps.map(async (s) => (await run.frames.get(s.frame)).data))),
    );
  } finally {
    await run.close();
  }
};
