import type { RunConfig } from '../config/index.js';
import { id, type RolloutId, type Trajectory } from '../domain/index.js';
import type { DataManager } from '../data/dataManager.js';
import type { OracleSource, TaskSource } from '../tasks/types.js';
import { demonstrate } from './demonstrate.js';
import type { DesktopRegistry } from '../rollout/desktopRegistry.js';
import { settleOf } from '../cluster/provide.js';
import type { Engine } from './engine.js';
import type { SpanRecorder } from './lanes.js';
import type { RunProgress } from './live.js';
import type { Tasks } from '../tasks/open.js';
import { readingScreens, vocabulary } from './reading.js';
import { imitationSamples } from './samples.js';

/** What a policy learns before it learns from its own rollouts; the run it belongs to, as far as that goes. */
export interface LessonRun {
  readonly config: RunConfig;
  readonly tasks: Tasks;
  readonly data: DataManager;
  readonly engine: Engine;
  readonly spans: SpanRecorder;
  readonly desktops: DesktopRegistry;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** It had its warm start before it was resumed. */
  readonly warmStarted: boolean;
  /** Whether the budget was used up before. */
  readonly spent: () => boolean;
  readonly version: () => number;
  readonly learnt: (version: number) => void;
  /** All that may be imitated later, and what may be imitated now. */
  readonly successes: Map<RolloutId, Trajectory>;
  readonly imitable: () => Trajectory[];
  readonly phase: (phase: RunProgress['phase']) => void;
  readonly detail: (text: string | undefined) => void;
  readonly note: (text: string) => void;
}

/**
 * The base policy: eyes before tasks. Skipped when there is nothing to warm-start or it was done before the run was
 * resumed.
 */
export async function readingLessons(r: LessonRun): Promise<void> {
  const w = r.config.warmStart.reading,
    { trainer, spec, pool } = r.engine;
  if (w.steps === 0 || w.screens === 0 || r.signal.aborted || !trainer) return;
  // A resumed run has had its lessons; the screens are drawn again for those mixed into later steps.
  const had = r.version() > 0;
  if (had && r.spent()) return;
  r.phase('reading');
  const words = vocabulary(spec, r.tasks),
    t0 = r.now();
  const screens = await readingScreens({
    pool,
    spec,
    words,
    count: w.screens,
    seed: r.config.seed,
    parallel: Math.min(2, r.config.desktops.count),
    signal: r.signal,
    onProgress: (n) => {
      r.detail(`drawing screens, ${n} of ${w.screens}`);
    },
  });
  const lessons = r.now();
  const report = await interruptible(r, () => trainer.read(screens, { steps: had ? 0 : w.steps, lr: w.lr, shift: 16 }));
  r.detail(undefined);
  if (!report || had) return;
  r.learnt(report.version);
  r.spans.trainer('imitate', lessons, r.now(), report.version);
  await r.data.note({
    type: 'metrics',
    source: 'reading',
    version: report.version,
    values: { loss: report.loss, ms: report.ms, screens: report.screens, steps: report.steps, words: words.length },
  });
  r.note(
    `Reading: ${report.steps} lessons on ${report.screens} drawn screens of ${words.length} words in ${Math.round((r.now() - t0) / 1000)} s, loss ${report.loss.toFixed(2)}.`,
  );
}

/** Scripted successes of every family, as many as the run file asks for and the run has not yet. */
export async function demonstrations(r: LessonRun): Promise<void> {
  const n = r.config.warmStart.demonstrations,
    { source } = r.tasks;
  if (n === 0 || r.warmStarted || r.signal.aborted || !('oracle' in source)) return;
  const have = new Map<string, number>();
  const done = new Set<string>();
  for (const t of r.successes.values())
    if (t.provenance.kind === 'oracle') {
      have.set(t.family, (have.get(t.family) ?? 0) + 1);
      done.add(t.task);
    }
  r.phase('demonstrations');
  const size = Math.min(4, r.config.desktops.count);
  const pool = r.engine.openDemoPool(size);
  const t0 = r.now();
  let made = 0,
    failed = 0;
  try {
    for (const f of r.tasks.families) {
      const left = n - (have.get(f.id) ?? 0);
      if (left <= 0) continue;
      const seeds = r.tasks.demoSeeds.filter((s) => !done.has(r.tasks.taskOf(f.id, s))).slice(0, left + 8);
      const got = await demonstrate(
        {
          pool,
          source: source as TaskSource & OracleSource,
          tasks: r.tasks.engine,
          frames: r.engine.observations,
          settle: settleOf(r.config.desktops),
          now: Date.now,
          desktops: r.desktops,
        },
        {
          families: [f.id],
          seeds,
          count: left,
          parallel: size,
          maxSteps: r.config.rollout.maxSteps * 2,
          signal: r.signal,
          onTrajectory: async (t) => {
            await r.data.record(t);
            r.successes.set(t.id, t);
          },
          onProgress: (k) => {
            r.detail(`${f.id}, ${k} of ${left}`);
          },
        },
      );
      made += got.made;
      failed += got.failed;
    }
  } finally {
    r.detail(undefined);
    r.desktops.detach(pool);
    await pool.close();
  }
  r.note(
    `Demonstrations: ${made} verified successes of ${r.tasks.families.length} families in ${Math.round((r.now() - t0) / 1000)} s${failed ? `, ${failed} failed and were left out` : ''}.`,
  );
}

/**
 * Imitation of what there is; replicas act with it when this resolves. False when there was nothing to do, or it was
 * stopped.
 */
export async function warmStart(r: LessonRun): Promise<boolean> {
  const w = r.config.warmStart,
    { trainer, models, spec, observations } = r.engine;
  if (w.steps === 0 || r.warmStarted || r.signal.aborted || !trainer || !models) return false;
  r.phase('warm start');
  const samples = await imitationSamples(spec, observations, r.imitable());
  if (samples.length === 0) return false;
  const began = r.now();
  const report = await interruptible(r, () =>
    trainer.imitate({ id: id('warm-start'), samples, epochs: 1 }, { steps: w.steps, lr: w.lr, shift: w.shift }),
  );
  if (!report) return false;
  r.spans.trainer('imitate', began, r.now(), report.version);
  const [weights, checkpoint] = [await trainer.exportWeights(), await trainer.checkpoint()];
  await r.data.note({
    type: 'metrics',
    source: 'warm-start',
    version: report.version,
    values: { loss: report.imitationLoss, ms: report.ms, samples: samples.length, steps: report.optimizerSteps },
  });
  await r.data.note({ type: 'checkpoint', version: report.version, dir: checkpoint.dir });
  r.learnt(report.version);
  await models.publish(weights);
  r.detail(undefined);
  r.note(
    `Warm start: ${report.optimizerSteps} imitation steps on ${samples.length} demonstrated steps in ${Math.round(report.ms / 1000)} s, loss ${report.imitationLoss.toFixed(3)}.`,
  );
  return true;
}

/** A long lesson that a stop ends early; its half-learned result is then not used (undefined). */
async function interruptible<T>(r: LessonRun, lesson: () => Promise<T>): Promise<T | undefined> {
  const stop = (): void => r.engine.trainer?.interrupt();
  r.signal.addEventListener('abort', stop, { once: true });
  try {
    const x = await lesson();
    return r.signal.aborted ? undefined : x;
  } finally {
    r.signal.removeEventListener('abort', stop);
  }
}
