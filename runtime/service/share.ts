import { resolve } from 'node:path';
import { z } from 'zod';
import { id, type RolloutId, type TrajectoryView } from '../domain/index.js';
import { runPaths, type RunReader } from '../data/store/runStore.js';
import * as m from '../protocol/methods.js';
import type { RunFootprint, RunSummary, Ledger } from '../protocol/types.js';
import { series, successCurves } from '../queries/curves.js';
import { outcomes } from '../queries/outcomes.js';
import type { RunFacts } from '../queries/facts.js';
import { evalPoints } from '../queries/overview.js';
import { taskRows } from '../queries/tasks.js';
import { timelineOf } from '../queries/timeline.js';
import type { RunFigures } from '../run/figures.js';
import { plottedMetrics } from '../share/metricPlots.js';
import type { RunPageData } from '../share/runPage.js';
import type { ShareJob } from '../share/write.js';
import { TABLE_FILE } from './exportTable.js';
import { runInterchangeJob } from './interchangeJob.js';
import { redact } from './machine.js';
import { fields, type Handlers } from './params.js';
import { recordedView } from './recordedView.js';
import { footprintOf, runFileText } from './runFacts.js';
import type { Studio } from './studio.js';
import type { FindView } from './trajectories.js';

const path = fields.text.refine((p) => /^(\/|[a-z]:[\\/]|\\\\)/i.test(p), 'must be an absolute path'),
  schema = z
    .strictObject({
      run: fields.run.optional(),
      rollout: fields.text.optional(),
      trajectory: path.refine((p) => p.endsWith('.jsonl'), 'must be a .traj.jsonl file').optional(),
      // A page is written over what is there: nothing but a page.
      to: path.refine((p) => /\.html$/i.test(p), 'must end in .html'),
    })
    .refine((p) => (p.run === undefined) !== (p.trajectory === undefined), 'Give either run or trajectory.')
    .refine((p) => p.rollout === undefined || p.run !== undefined, 'A rollout is one of a run.');

const tableSchema = z.strictObject({
  run: fields.run,
  what: z.enum(['metrics', 'rollouts']),
  // Written over what is there: nothing but a table.
  to: path.refine((p) => TABLE_FILE.test(p), 'must end in .csv, .json or .parquet'),
});

/** share/page and run/exportTable: made and written in a worker thread. */
export function shareHandlers(h: Handlers, s: Studio, find: FindView): void {
  h.on(m.sharePage, schema, (p, c) =>
    s.job('A page is being exported.', c.signal, async (signal) => {
      const job = await jobOf(s, p, find);
      return runInterchangeJob(s.entry, { do: 'share', share: job }, { signal, onProgress: () => undefined });
    }),
  );
  h.on(m.exportTable, tableSchema, (p, c) =>
    s.job('A table is being exported.', c.signal, async (signal) => {
      const run = resolve(p.run);
      await s.mustExist(run);
      const job = { do: 'table', run, to: resolve(p.to), what: p.what } as const;
      return { rows: await runInterchangeJob(s.entry, job, { signal, onProgress: () => undefined }) };
    }),
  );
}

async function jobOf(
  s: Studio,
  p: z.infer<typeof schema>,
  find: FindView,
): Promise<ShareJob | { readonly file: string; readonly to: string }> {
  const to = resolve(p.to);
  if (p.trajectory !== undefined) return { file: resolve(p.trajectory), to };
  const dir = resolve(p.run!),
    framesDir = runPaths(dir).frames;
  await s.mustExist(dir);
  if (p.rollout !== undefined) {
    const { rollout } = p,
      [trajectory, summary] = await Promise.all([
        s.read(dir, async (r) => (await find(r, { run: dir, rollout })).view),
        s.summary(dir),
      ]);
    return { to, framesDir, trajectory, runName: summary.name };
  }
  return s.read(dir, async (r) => {
    const [summary, ledger, footprint] = await Promise.all([s.summary(dir), s.ledgerOf(r), footprintOf(dir, r.reader)]);
    return { to, framesDir, run: await runPageData(r.reader, r.facts, { summary, ledger, footprint }) };
  });
}

/** Points of a curve, and rollouts of its window. */
const POINTS = 300,
  WINDOW = 64;
/** How many of each outcome are shown. */
const EXAMPLES = 3;

/** The data of a run's page. A run that is still written gives what it has so far. */
export async function runPageData(
  run: RunReader,
  facts: RunFacts,
  o: {
    readonly summary: RunSummary;
    readonly ledger: Ledger;
    readonly footprint?: RunFootprint;
    readonly figures?: RunFigures;
  },
): Promise<RunPageData> {
  const [evals, tasks, timeline, all, metrics, success, failure] = await Promise.all([
      evalPoints(run),
      taskRows(run, facts),
      timelineOf(run),
      outcomes(run),
      series(run, plottedMetrics, POINTS),
      examples(run, 'success'),
      examples(run, 'failure'),
    ]),
    infeasible = (f: string): boolean => facts.families.get(f)?.infeasible ?? false,
    curves = await successCurves(all, { window: WINDOW, maxPoints: POINTS, infeasible });
  return {
    detail: { summary: o.summary, ledger: o.ledger, evals, tasks, timeline },
    curves: curves.filter((c) => c.family === undefined),
    series: metrics,
    // A run file may name folders of the person who ran it.
    runFile: redact(runFileText(run.meta.config ?? {})),
    ...(o.footprint ? { footprint: o.footprint } : {}),
    ...(o.figures ? { figures: o.figures } : {}),
    examples: { success, failure },
    madeAt: Date.now(),
  };
}

/** Examples from the newest evaluation, spread over its tasks; from training rollouts where none was made. */
async function examples(run: RunReader, outcome: 'success' | 'failure'): Promise<TrajectoryView[]> {
  const ids = async (where: string): Promise<string[]> => {
    const [found = []] = await run.index.columns(
      `SELECT id FROM rollouts WHERE ${where} AND outcome = ? AND steps > 0 ORDER BY family, id`,
      [outcome],
    );
    return found.map(String);
  };
  const probes = await ids(
      "provenance = 'probe' AND version_max = (SELECT MAX(version_max) FROM rollouts WHERE provenance = 'probe')",
    ),
    from = probes.length > 0 ? probes : await ids("provenance <> 'probe'"),
    every = Math.max(1, Math.floor(from.length / EXAMPLES));
  return Promise.all(
    from
      .filter((_, i) => i % every === 0)
      .slice(0, EXAMPLES)
      .map((rollout) => recordedView(run, id<RolloutId>(rollout))),
  );
}
