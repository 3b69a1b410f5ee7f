import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orUndefined } from '../domain/index.js';
import { readForeignText } from '../files/foreignFile.js';
import { summaryName } from '../protocol/version.js';
import type { RunStatus, RunSummary } from '../protocol/types.js';
import type { SessionPlan } from './runSession.js';

/**
 * A run in one line, in its own folder: what a window lists while no runtime is there to read the journal. It may be
 * deleted at any time; a folder that cannot be written goes without it.
 */
export async function leaveSummary(dir: string, summary: Omit<RunSummary, 'status'>): Promise<void> {
  const file = join(dir, summaryName),
    tmp = `${file}.${process.pid}.tmp`;
  await orUndefined(
    writeFile(tmp, `${JSON.stringify(summary)}\n`).then(() => rename(tmp, file)),
    'runs are also listed without it, when the runtime is there',
  );
}
/** While a run is under way: should its process die, the file says that it was. What was known before stays. */
export async function leaveRunning(plan: SessionPlan, s: RunStatus): Promise<void> {
  const before = await orUndefined(
    readForeignText(join(plan.dir, summaryName), 1 << 20).then(parsed),
    'a new run has none',
  );
  await leaveSummary(plan.dir, {
    evals: [],
    ...before,
    run: plan.dir,
    id: plan.run,
    name: plan.config.name,
    createdAt: before?.createdAt ?? Date.now(),
    state: 'running',
    rollouts: s.rollouts,
    version: s.version,
    seed: plan.config.seed,
  });
}
const parsed = (text: string): Partial<RunSummary> => JSON.parse(text) as Partial<RunSummary>;
