import { readdir } from 'node:fs/promises';
import { readMeta, RunReader, runPaths } from '../data/store/runStore.js';
import { COLLECTION } from './overview.js';

/**
 * What a folder holds in which nothing was ever trained: a collection, or imports and demonstrations alone; undefined
 * for a run. `joined`: its run file has pools of other folders, which are imports, too, and all there is until the
 * first rollout.
 */
export async function untrained(dir: string, { joined }: { readonly joined: boolean }): Promise<string | undefined> {
  if ((await readMeta(dir)).collected) return 'a collection';
  const saved = await readdir(runPaths(dir).checkpoints).catch((): string[] => []);
  if (joined || saved.length > 0) return undefined;
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const [only] = await run.index.query(COLLECTION, []),
      [learned] = await run.index.query('SELECT 1 FROM metrics LIMIT 1', []);
    return only?.['c'] === 1 && learned === undefined ? 'only imports and demonstrations' : undefined;
  } finally {
    await run.close();
  }
}
