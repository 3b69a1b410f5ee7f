import { mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { orUndefined } from '../concurrency/failures.js';
import { foreignJson } from '../foreign/json.js';
import { readForeignText } from '../files/foreignFile.js';
import { replaceFile } from '../files/replaceFile.js';
import { lacksCheckpoints, summaryName } from '../protocol/version.js';
import type { RunStatus, RunSummary } from '../protocol/types.js';
import type { SessionPlan } from './runSession.js';

/**
 * A run in one line, in its own folder: what a window lists while no runtime is there to read the journal. It may be
 * deleted at any time; a folder that cannot be written goes without it.
 */
export function leaveSummary(dir: string, summary: Omit<RunSummary, 'status'>): Promise<void> {
  return inTurn(dir, () => write(dir, summary));
}
/** While a run is under way: should its process die, the file says that it was. What was known before stays. */
export function leaveRunning(plan: SessionPlan, s: RunStatus): Promise<void> {
  return inTurn(plan.dir, async () => {
    const before = await orUndefined(
        readForeignText(join(plan.dir, summaryName), 1 << 20, { inside: plan.dir }).then(parsed),
        'a new run has none',
      ),
      { endedAt: _ended, ...known } = before ?? {};
    await write(plan.dir, {
      evals: [],
      ...known,
      run: plan.dir,
      id: plan.run,
      name: plan.config.name,
      createdAt: before?.createdAt ?? Date.now(),
      state: 'running',
      rollouts: s.rollouts,
      version: s.version,
      seed: plan.config.seed,
    });
  });
}

/**
 * Whether a run has learned and none of its checkpoints is left: its folder was copied without them, or they were
 * deleted.
 */
export async function isWeightless(s: Pick<RunSummary, 'run' | 'version' | 'status'>): Promise<boolean> {
  if (s.version === 0 || s.status) return false;
  const kept = await orUndefined(readdir(join(s.run, 'checkpoints')), 'a copied run may lack the folder');
  return lacksCheckpoints(s.version, kept ?? []);
}

async function write(dir: string, summary: Omit<RunSummary, 'status'>): Promise<void> {
  await orUndefined(
    replaceFile(join(dir, summaryName), `${JSON.stringify(summary)}\n`),
    'runs are also listed without it, when the runtime is there',
  );
}
/** Writes the cached summary, from which a list of runs is made without a look into the journal. */
export async function keepSummary(file: string, what: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await replaceFile(file, JSON.stringify(what));
}
/** The last write of each folder: writers of one folder do not overtake each other, so the newest summary stays. */
const turns = new Map<string, Promise<void>>();
function inTurn(dir: string, work: () => Promise<void>): Promise<void> {
  const turn: Promise<void> = (turns.get(dir) ?? Promise.resolve()).then(work).finally(() => {
    if (turns.get(dir) === turn) turns.delete(dir);
  });
  turns.set(dir, turn);
  return turn;
}
/** A summary has a few hundred values. */
const BOUNDS = { depth: 32, values: 1 << 14 };
const parsed = (text: string): Partial<RunSummary> =>
  foreignJson(text, BOUNDS, (why) => new Error(`the summary ${why}`)) as Partial<RunSummary>;
