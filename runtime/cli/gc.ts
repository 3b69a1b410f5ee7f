import { resolve } from 'node:path';
import { toRunError } from '../domain/index.js';
import { annotatedRollouts } from '../queries/annotated.js';
import { removeOldScreens, removedText } from '../run/removeOldScreens.js';
import { runFolder } from '../run/runFolders.js';
import { asCalled } from './called.js';
import { listedRuns } from './listedRuns.js';
import { numberOption, type Options } from './options.js';
import { print, printJson } from './output.js';

interface Collected {
  readonly run: string;
  readonly frames: number;
  readonly bytes: number;
  readonly rollouts: number;
  /** Why nothing was looked at. */
  readonly skipped?: string;
}
const NOTHING = { frames: 0, bytes: 0, rollouts: 0 };

/** `runs gc [RUN]`: removes screens by the rules of each run, or by those that are given. */
export async function gc(dir: string, run: string | undefined, o: Options): Promise<number> {
  // A wrong option is wrong for every run: it is said once, before any of them.
  const how: Rules = {
      dry: o['dryRun'] === true,
      rules: {
        retiredHours: numberOption(o, 'retiredHours', 0),
        failureHours: numberOption(o, 'failureHours', 0),
        successHours: numberOption(o, 'successHours', 0),
        gigabytes: numberOption(o, 'gigabytes', 0),
      },
    },
    folders = run === undefined ? await listedRuns(dir) : [resolve(runFolder(dir, run))],
    out: Collected[] = [];
  let failed = false;
  for (const folder of folders) {
    const say = (text: string): void => {
      if (o['json'] !== true) print(`${folder}: ${text}\n`);
    };
    try {
      out.push(await collect(folder, how, say));
    } catch (e) {
      const { message, remedy } = toRunError(e);
      failed = true;
      say(asCalled(`${message} ${remedy}`));
      out.push({ ...NOTHING, run: folder, skipped: message });
    }
  }
  if (o['json'] === true) printJson(out);
  return failed ? 1 : 0;
}

type Rules = Pick<Parameters<typeof removeOldScreens>[1], 'dry' | 'rules'>;
async function collect(run: string, how: Rules, say: (text: string) => void): Promise<Collected> {
  const { dry } = how,
    removed = await removeOldScreens(run, { ...how, annotated: await annotatedRollouts(run) });
  if (!removed) {
    say('keeps all screens (store.keep sets no rule)');
    return { ...NOTHING, run, skipped: 'store.keep sets no rule' };
  }
  for (const r of removed) say(removedText(r, dry));
  if (removed.length === 0) say('nothing to remove');
  const sum = (f: (r: NonNullable<typeof removed>[number]) => number): number => removed.reduce((n, r) => n + f(r), 0);
  return { run, frames: sum((r) => r.frames), bytes: sum((r) => r.bytes), rollouts: sum((r) => r.rollouts.length) };
}
