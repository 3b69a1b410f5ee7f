import { StudioError, id, type RunId } from '../domain/index.js';
import { parseRunFile, parseStoredConfig } from '../config/index.js';
import type { PoolConfig } from './config.js';
import type { RunMeta } from './store/runStore.js';

/**
 * The description of a collection: a run folder with imported or demonstrated trajectories and no training. Its run
 * file is the quickstart preset. Runs learn from it by `curation.pool.from`.
 */
export const newRun = (name: string, at: number): Omit<RunMeta, 'format'> => ({
  id: id<RunId>(name),
  createdAt: at,
  name,
  config: parseRunFile({ preset: 'quickstart', name: name.replace(/[^\w.-]/g, '-').slice(0, 64) }),
});

/** The pool's options of the run's own run file; the defaults when it has none. */
export function poolConfigOf(meta: Pick<RunMeta, 'config'>): PoolConfig {
  try {
    return parseStoredConfig(meta.config ?? {}).curation.pool;
  } catch (e) {
    if (e instanceof StudioError) return parseRunFile({}).curation.pool;
    throw e;
  }
}
