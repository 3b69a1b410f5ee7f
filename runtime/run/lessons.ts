import { id, toRunError, type FamilyId, type LearnStep, type PolicyVersion } from '../domain/index.js';
import { demoDesktops } from '../config/index.js';
import type { EventOf } from '../data/events.js';
import type { DesktopPool } from '../cluster/types.js';
import { settleOf } from '../cluster/provide.js';
import type { OracleSource, TaskSource } from '../tasks/types.js';
import type { UpdateReport } from '../trainer/types.js';
import type { Learner } from './backends/index.js';
import { unreadableTrajectory, untrainable } from './backends/learner.js';
import { imitationSteps } from './credit.js';
import { demonstrate, whyLeftOut } from './demonstrate.js';
import { logicalTrajectory } from './logicalTime.js';
import type { RunParts } from './parts.js';
import { PatientPool } from './patientPool.js';
import { MOST_UNTRAINABLE } from './sparedBatches.js';

/**
 * The lessons of a policy before it learns from its own rollouts. Each of these phases ends early when the run ends,
 * keeps what was made or learned so far, and continues with the rest when the run is resumed.
 */

/** Random shift of a screen in a reading lesson, in observation pixels: two cells, so that no word has a fixed place. */
const READING_SHIFT = 16;
/** Desktops that draw reading screens: drawing is quick, learning from them is what takes time. */
const DRAWING_DESKTOPS = 2;
/** Seeds tried beyond those wanted: a scripted solution that fails on one is replaced by the next. */
const SPARE_SEEDS = 8;
/** A scripted solution may look before it acts, so it may take this many times the steps of a rollout. */
const DEMO_STEPS_FACTOR = 2;

/** Teaches the policy to read screens, before it sees any task. */
export async function readingLessons(r: RunParts): Promise<void> {
  const w = r.config.warmStart.reading,
    { learner, reading, pool } = r.engine;
  if (w.steps === 0 || w.screens === 0 || !learner || !reading) return;
  r.state.phase = 'reading';
  const words = reading.words(r.tasks),
    began = r.clock.now();
  // The screens are needed even when no lesson is left: some are mixed into later steps.
  const screens = await reading.screens({
    pool: patient(r, pool),
    image: r.config.desktops.image,
    words,
    withheld: r.tasks.withheld,
    count: w.screens,
    seed: r.config.seed,
    fonts: w.fonts,
    sizes: w.sizes,
    parallel: Math.min(DRAWING_DESKTOPS, r.config.desktops.count),
    signal: r.ending,
    onProgress: (n) => {
      r.state.detail = `drawing screens, ${n} of ${w.screens}`;
    },
  });
  const left = readingLeft(w.steps, r.progress.untaught ? 0 : r.state.version, r.progress.readingSteps);
  const report = await interruptible(r, learner, () =>
    reading.read(screens, {
      steps: w.steps,
      from: w.steps - left,
      lr: w.lr,
      shift: READING_SHIFT,
      tones: r.config.warmStart.tones,
    }),
  );
  if (report.steps === 0) return;
  await saveLearned(r, learner, {
    source: report.steps < left ? 'reading.part' : 'reading',
    values: { loss: report.loss, ms: report.ms, screens: report.screens, steps: report.steps, words: words.length },
  });
  r.log.note(
    `Reading: ${countOf(report.steps, left)} lessons on ${report.screens} drawn screens of ${words.length} words in ${secondsSince(r, began)} s, loss ${report.loss.toFixed(2)}.`,
  );
}

/**
 * Lessons still to be learned. A policy with a version but no journalled part of the lessons is past them: it was warm
 * started, or comes from another run. Pure.
 */
export const readingLeft = (planned: number, version: number, part: number): number =>
  version === 0 ? planned : part > 0 ? Math.max(0, planned - part) : 0;

/** Records scripted successes of every family until the run has as many as the run file asks for. */
export async function demonstrations(r: RunParts): Promise<void> {
  const { source } = r.tasks;
  if (r.config.warmStart.demonstrations === 0 || r.state.warmStartVersion !== undefined || !hasOracle(source)) return;
  r.state.phase = 'demonstrations';
  const began = r.clock.now(),
    pool = r.engine.openDemoPool(demoDesktops(r.config.desktops)),
    leases = patient(r, pool);
  let made = 0,
    failed = 0;
  try {
    for (const f of r.tasks.families) {
      if (r.ending.aborted) break;
      const got = await demonstrateFamily(r, f.id, leases, source);
      made += got.made;
      failed += got.failed;
    }
  } finally {
    r.desktops.detach(pool);
    await pool.close();
  }
  r.log.note(
    `Demonstrations: ${made} verified successes of ${r.tasks.families.length} families in ${secondsSince(r, began)} s${failed ? `, ${failed} failed and were left out` : ''}.`,
  );
}

/** The desktop pool for a lesson, which reports in the run's log when it waits. */
const patient = (r: RunParts, pool: DesktopPool): PatientPool =>
  new PatientPool({
    pool,
    clock: r.clock,
    onWait: (why) => {
      r.state.detail = why ? 'waiting for a desktop' : undefined;
      r.log.note(
        why
          ? `No desktop: ${why.message} ${why.remedy} The lesson waits for one.`
          : 'There are desktops again: the lesson continues.',
      );
    },
  });

const hasOracle = (s: TaskSource & Partial<OracleSource>): s is TaskSource & OracleSource => s.oracle !== undefined;

async function demonstrateFamily(
  r: RunParts,
  family: FamilyId,
  pool: Pick<DesktopPool, 'lease'>,
  source: TaskSource & OracleSource,
): Promise<{ readonly made: number; readonly failed: number }> {
  const have = r.successes.demonstrations().filter((t) => t.family === family),
    done = new Set(have.map((t) => t.task)),
    count = r.config.warmStart.demonstrations - have.length;
  if (count <= 0) return { made: 0, failed: 0 };
  return demonstrate(
    {
      pool,
      source,
      tasks: r.tasks.engine,
      frames: r.engine.frames,
      settle: settleOf(r.config.desktops),
      mustRest: r.config.run.deterministic,
      now: r.clock.now,
      desktops: r.desktops,
    },
    {
      families: [family],
      seeds: r.tasks.demoSeeds.filter((s) => !done.has(r.tasks.taskOf(family, s))).slice(0, count + SPARE_SEEDS),
      count,
      parallel: demoDesktops(r.config.desktops),
      maxSteps: r.config.rollout.maxSteps * DEMO_STEPS_FACTOR,
      signal: r.ending,
      onTrajectory: async (t) => {
        const made = r.config.run.deterministic ? logicalTrajectory(t) : t;
        await r.data.record(made);
        r.successes.add(made);
      },
      onFailure: (t) => r.log.note(`Demonstration left out: ${t.task}, ${whyLeftOut(t)}`),
      onProgress: (k) => {
        r.state.detail = `${family}, ${k} of ${count}`;
      },
    },
  );
}

/**
 * Imitates the successes the run has; when this resolves, replicas act with the result. Does nothing without successes.
 */
export async function warmStart(r: RunParts): Promise<void> {
  const w = r.config.warmStart,
    { learner } = r.engine,
    imitate = learner?.imitate,
    left = Math.max(0, w.steps - r.progress.imitationSteps);
  if (left === 0 || r.state.warmStartVersion !== undefined || !learner || !imitate) return;
  r.state.phase = 'warm start';
  const imitated = await imitateReadable(r, learner, (steps) =>
    imitate(
      { id: id('warm-start'), steps, epochs: 1 },
      { steps: w.steps, from: w.steps - left, lr: w.lr, shift: w.shift, tones: w.tones },
    ),
  );
  if (!imitated) return;
  const { report, steps } = imitated;
  const done = report.optimizerSteps + report.skippedNonFinite,
    whole = done >= left;
  if (done === 0) return;
  await saveLearned(r, learner, {
    source: whole ? 'warm-start' : 'warm-start.part',
    values: { loss: report.imitationLoss, ms: report.ms, samples: steps.length, steps: report.optimizerSteps },
  });
  if (whole) r.state.warmStartVersion = report.version;
  r.log.note(
    `Warm start: ${countOf(report.optimizerSteps, left)} imitation steps on ${steps.length} demonstrated steps in ${Math.round(report.ms / 1000)} s, loss ${report.imitationLoss.toFixed(3)}.`,
  );
}

/**
 * Imitates the successes there are, without those that turn out to be damaged on disk or are not taken by the trainer;
 * undefined without any.
 */
async function imitateReadable(
  r: RunParts,
  learner: Learner,
  lesson: (steps: readonly LearnStep[]) => Promise<UpdateReport>,
): Promise<{ readonly report: UpdateReport; readonly steps: readonly LearnStep[] } | undefined> {
  let refused = 0;
  for (let asked = 0; ; asked++) {
    const steps = imitationSteps(r.successes.imitable(), (t, i) => learner.expressible(t, i));
    // A lesson that was begun is asked for even then: interrupted at once, it ends with what it has learned.
    if (steps.length === 0 || (r.ending.aborted && asked === 0)) return undefined;
    try {
      return { report: await interruptible(r, learner, () => withRoom(r, learner, () => lesson(steps))), steps };
    } catch (e) {
      const damaged = unreadableTrajectory(e),
        { rollouts, theirs } = damaged === undefined ? untrainable(e) : { rollouts: [damaged], theirs: true };
      // A trainer that takes none of them is not to be asked about each.
      if (rollouts.length === 0 || (!theirs && ++refused === MOST_UNTRAINABLE)) throw e;
      for (const rollout of rollouts) r.successes.forget(rollout);
      const who = rollouts.length > 1 ? `${rollouts.join(', ')} are` : 'It is';
      r.log.note(`${toRunError(e).message} ${who} not imitated.`);
    }
  }
}

/** An engine of the run's own saves on the same disk: a lesson that finds it full goes on where it stopped. */
const withRoom = <T>({ data, ending }: RunParts, learner: Learner, lesson: () => Promise<T>): Promise<T> =>
  data.room.write(() => {
    const done = lesson();
    // The signal that the run ends may have come while the lesson waited for room.
    if (ending.aborted) learner.interrupt();
    return done;
  });

/**
 * The trainer's weights are on disk before the journal says that they were learned, in one record: a crash before it
 * repeats the lesson, a crash after it neither skips nor repeats it. Replicas act with them when this resolves.
 */
async function saveLearned(
  r: RunParts,
  learner: Learner,
  learned: NonNullable<EventOf<'checkpoint'>['learned']>,
): Promise<void> {
  const { room } = r.data,
    snapshot = await room.write(() => learner.snapshot()),
    { version, dir } = await room.write(() => learner.checkpoint());
  await r.data.note({ type: 'checkpoint', version, dir, learned });
  r.state.version = version;
  await snapshot.publish();
}

/** Runs a long lesson that ends early, keeping what it has learned, when the run ends. */
async function interruptible<T extends { readonly version: PolicyVersion }>(
  r: RunParts,
  learner: Learner,
  lesson: () => Promise<T>,
): Promise<T> {
  const stop = (): void => learner.interrupt(),
    { spans } = r.monitor;
  let report: T | undefined;
  r.ending.addEventListener('abort', stop, { once: true });
  spans.trainerBegins('imitate', r.clock.now());
  try {
    report = await lesson();
    return report;
  } finally {
    spans.trainerEnds(r.clock.now(), report?.version);
    r.ending.removeEventListener('abort', stop);
  }
}

const countOf = (done: number, planned: number): string => (done < planned ? `${done} of ${planned}` : String(done));
const secondsSince = (r: RunParts, at: number): number => Math.round((r.clock.now() - at) / 1000);
