import { keepsAll, removedText, retain, type KeepRules, type Removed } from '../data/store/retention.js';
import { RunReader, RunStore } from '../data/store/runStore.js';
import { orUndefined } from '../concurrency/failures.js';
import { startedWith } from './runFolders.js';

export interface RemovalOptions {
  /** Rules that replace the run's own; those left out stay as they are. */
  readonly rules: KeepRules;
  readonly annotated: ReadonlySet<string>;
  /** Changes nothing: also of a run that is active. */
  readonly dry: boolean;
}

/**
 * Removes the screens that the rules of a run that is over no longer keep; undefined when there is no rule. Rejects with
 * `run.busy` for a run that is active: it applies its rules itself.
 */
export async function removeOldScreens(folder: string, o: RemovalOptions): Promise<readonly Removed[] | undefined> {
  const { config } = await startedWith(folder),
    given = Object.entries(o.rules).filter(([, v]) => v !== undefined),
    rules: KeepRules = { ...config.store.keep, ...Object.fromEntries(given) };
  if (keepsAll(rules)) return undefined;
  const options = {
    rules,
    successes: config.curation.pool.maxPerFamily,
    annotated: o.annotated,
    dry: o.dry,
    now: Date.now(),
  };
  const run = o.dry
    ? await RunReader.open(folder, { index: 'local' })
    : await RunStore.open(folder, { index: 'local' });
  try {
    return await retain(run, options, async (r) => {
      if (!(run instanceof RunStore)) return;
      await run.append(r);
      await run.append({ type: 'log', level: 'info', message: `Retention ${removedText(r)}.` });
    });
  } finally {
    await orUndefined(run.close(), 'what was removed is journalled');
  }
}
export { removedText };
