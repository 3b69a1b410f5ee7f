import { join } from 'node:path';
import { ServiceError, StudioError, id, type RolloutId } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { runPaths, RunReader } from '../data/store/runStore.js';
import { labelled } from '../protocol/runLabel.js';
import type { RunSummary } from '../protocol/types.js';
import { endOf, ledgerFromIndex, summaryOf } from '../queries/overview.js';
import type { RunFigures } from '../run/figures.js';
import { writeShared, type ShareJob, type Shared } from '../share/write.js';
import { factsOf } from './facts.js';
import { recordedView } from './recordedView.js';
import { footprintOf } from './runFacts.js';
import { labelOf } from './runLabels.js';
import { runPageData } from './share.js';
import { fileJob } from './sharedFile.js';

/** Pages of run folders that this process opens itself, for the command line. */
export const writeFilePage = async (file: string, to: string): Promise<Shared> => writeShared(await fileJob(file, to));

export async function writeTrajectoryPage(dir: string, rollout: string, to: string): Promise<Shared> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const job: ShareJob = {
      to,
      framesDir: runPaths(dir).frames,
      trajectory: await recordedView(run, id<RolloutId>(rollout)).catch((e: unknown) => {
        throw e instanceof ServiceError
          ? new StudioError(
              'config.invalid',
              e.message,
              '`dart-studio runs export RUN all.csv --what rollouts` lists what the run holds.',
            )
          : e;
      }),
      runName: run.meta.name ?? run.meta.id,
    };
    return await writeShared(job);
  } finally {
    await run.close();
  }
}

/** `figures`: what was measured afterwards on everything held out. */
export async function writeRunPage(
  dir: string,
  to: string,
  o: { readonly figures?: RunFigures; readonly entry?: ProcessEntry } = {},
): Promise<Shared> {
  const run = await RunReader.open(dir, { index: o.entry ?? 'local' });
  try {
    const [said, end, label, ledger, facts, footprint] = await Promise.all([
        summaryOf(run),
        endOf(run),
        labelOf(dir),
        ledgerFromIndex(run),
        factsOf(run),
        footprintOf(dir, run),
      ]),
      summary: RunSummary = labelled({ ...said, ...end }, label);
    return await writeShared({
      to,
      framesDir: runPaths(dir).frames,
      run: await runPageData(run, facts, { summary, ledger, footprint, ...(o.figures ? { figures: o.figures } : {}) }),
    });
  } finally {
    await run.close();
  }
}
/** `report.html` of a run's own folder. */
export const writeReport = async (dir: string, entry: ProcessEntry, figures: RunFigures): Promise<string> =>
  (await writeRunPage(dir, join(dir, 'report.html'), { figures, entry })).file;
