import { orUndefined, toRunError } from '../domain/index.js';
import { keepsAll, removedText, retain, type KeepRules, type Removed } from '../data/store/retention.js';
import { RunReader, RunStore } from '../data/store/runStore.js';
import { annotatedRollouts } from '../queries/annotated.js';
import { listRunFolders, runFolder, startedWith } from '../run/runFolders.js';
import { numberOption, type Options } from './options.js';

interface Collected {
  readonly run: string;
  readonly frames: number;
  readonly bytes: number;
  readonly rollouts: number;
  /** Why nothing was looked at. */
  readonly skipped?: string;
}

/** `runs gc [RUN]`: removes screens by the rules of each run, or by those that are given. */
export async function gc(dir: string, run: string | undefined, o: Options): Promise<number> {
  const folders = run === undefined ? await listRunFolders(dir) : [runFolder(dir, run)],
    dry = o['dryRun'] === true,
    out: Collected[] = [];
  let failed = false;
  for (const folder of folders) {
    const say = (text: string): void => {
      if (o['json'] !== true) process.stdout.write(`${folder}: ${text}\n`);
    };
    try {
      out.push(await collect(folder, o, dry, say));
    } catch (e) {
      const { message, remedy } = toRunError(e);
      failed = true;
      say(`${message} ${remedy}`);
      out.push({ ...NOTHING, run: folder, skipped: message });
    }
  }
  if (o['json'] === true) process.stdout.write(JSON.stringify(out, null, 2) + '\n');
  return failed ? 1 : 0;
}
const NOTHING = { frames: 0, bytes: 0, rollouts: 0 };

async function collect(folder: string, o: Options, dry: boolean, say: (text: string) => void): Promise<Collected> {
  const { config } = await startedWith(folder),
    rules: KeepRules = {
      retiredHours: numberOption(o, 'retiredHours', 0) ?? config.store.keep.retiredHours,
      failureHours: numberOption(o, 'failureHours', 0) ?? config.store.keep.failureHours,
      successHours: numberOption(o, 'successHours', 0) ?? config.store.keep.successHours,
      gigabytes: numberOption(o, 'gigabytes', 0) ?? config.store.keep.gigabytes,
    };
  if (keepsAll(rules)) {
    say('keeps all screens (store.keep sets no rule)');
    return { ...NOTHING, run: folder, skipped: 'store.keep sets no rule' };
  }
  const options = {
    rules,
    successes: config.curation.pool.maxPerFamily,
    annotated: await annotatedRollouts(folder),
    dry,
    now: Date.now(),
  };
  const removed = dry ? await looked(folder, options) : await written(folder, options);
  for (const r of removed) say(removedText(r, dry));
  if (removed.length === 0) say('nothing to remove');
  const sum = (f: (r: Removed) => number): number => removed.reduce((n, r) => n + f(r), 0);
  return {
    run: folder,
    frames: sum((r) => r.frames),
    bytes: sum((r) => r.bytes),
    rollouts: sum((r) => r.rollouts.length),
  };
}
type RetentionOptions = Parameters<typeof retain>[1];

/** Changes nothing: also of a run that is active. */
async function looked(folder: string, o: RetentionOptions): Promise<readonly Removed[]> {
  const run = await RunReader.open(folder, { index: 'local' });
  try {
    return await retain(run, o, () => Promise.resolve());
  } finally {
    await run.close();
  }
}
/** With the folder's lock; what went is journalled. A run that is active applies its rules itself. */
async function written(folder: string, o: RetentionOptions): Promise<readonly Removed[]> {
  const run = await RunStore.open(folder, { index: 'local' });
  try {
    return await retain(run, o, async (r) => {
      await run.append(r);
      await run.append({ type: 'log', level: 'info', message: `Retention ${removedText(r)}.` });
    });
  } finally {
    await orUndefined(run.close(), 'what was removed is journalled');
  }
}
