import { readdir } from 'node:fs/promises';
import { StudioError } from '../domain/index.js';
import type { RunConfig } from '../config/index.js';
import { readMeta, RunReader, runPaths } from '../data/store/runStore.js';
import { COLLECTION } from '../queries/overview.js';

/**
 * Throws `config.invalid` for a folder in which nothing was ever trained: a collection, or what holds imports and
 * demonstrations alone. Its run file is a preset that nobody chose.
 */
export async function mustTrain(dir: string, config: RunConfig): Promise<void> {
  const what = (await readMeta(dir)).collected
    ? 'a collection'
    : (await onlyImports(dir, config))
      ? 'only imports and demonstrations'
      : undefined;
  if (what !== undefined)
    throw new StudioError(
      'config.invalid',
      `${dir} holds ${what}: there is no training that could go on.`,
      'Name it in curation.pool.from of a run file: a new run then learns from it.',
    );
}

async function onlyImports(dir: string, { curation }: RunConfig): Promise<boolean> {
  // What joined from other folders is an import, too, and all there is until the first rollout.
  if (curation.pool.from.length > 0) return false;
  const saved = await readdir(runPaths(dir).checkpoints).catch((): string[] => []);
  if (saved.length > 0) return false;
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const [only] = await run.index.query(COLLECTION, []),
      [learned] = await run.index.query('SELECT 1 FROM metrics LIMIT 1', []);
    return only?.['c'] === 1 && learned === undefined;
  } finally {
    await run.close();
  }
}
