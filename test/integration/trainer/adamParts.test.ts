import { expect, it, onTestFinished } from 'vitest';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { id, random, type BatchId } from '../../../runtime/domain/index.js';
import { readCheckpoint, writeCheckpoint } from '../../../runtime/trainer/checkpoint.js';
import { Learner, type LearnerProgress, type LearnerState } from '../../../runtime/trainer/native/learner.js';
import { layoutDigest, loadCheckpoint, saveCheckpoint } from '../../../runtime/trainer/native/persistence.js';
import type { TrainerOptions } from '../../../runtime/trainer/native/options.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { demonstration, glyphTask, readingScreen, SMALL_READER } from '../../helpers/trainer/glyphScreens.js';

const WORDS = ['SAVE', 'OPEN', 'COPY', 'HELP'],
  READ = 7;

/** Lessons, then one step of imitation: the state before and after it, and its learning rate. */
async function oneStepAfterLessons(
  o: Partial<TrainerOptions>,
): Promise<{ before: LearnerState; after: LearnerState; lr: number; reader: number }> {
  const rng = random('adam'),
    l = await Learner.create(SMALL_READER, { ...baseTrainerOptions, imitateStates: 8, ...o }, 1),
    task = (): ReturnType<typeof glyphTask> => glyphTask(SMALL_READER, rng, 3, WORDS),
    told: LearnerProgress[] = [],
    copy = (): LearnerState => {
      const s = l.state();
      return { ...s, theta: s.theta.slice(), m: s.m.slice(), v: s.v.slice() };
    };
  await l.read(
    Array.from({ length: 8 }, () => readingScreen(task())),
    { steps: READ, lr: 3e-3, shift: 0 },
  );
  const before = copy(),
    samples = Array.from({ length: 8 }, (_, i) => demonstration(SMALL_READER, task(), `d${i}`));
  await l.imitate({ id: id<BatchId>('d'), samples, epochs: 1 }, { steps: 1, lr: 3e-3, shift: 0 }, (p) => told.push(p));
  const after = copy(),
    reader = l.model.reader!.parameters;
  await l.release();
  return { before, after, lr: told[0]!.lr, reader };
}

/**
 * The largest distance, in learning rates, of parameters [from, to) from where AdamW's t-th step puts them (Loshchilov
 * and Hutter, arXiv 1711.05101, algorithm 2), with its weight decay or without.
 */
function apart(
  { before, after, lr }: Awaited<ReturnType<typeof oneStepAfterLessons>>,
  from: number,
  to: number,
  t: number,
): number {
  const { beta1, beta2, adamEpsilon, weightDecay } = baseTrainerOptions;
  let most = 0;
  for (let i = from; i < to; i++) {
    const corrected = after.m[i]! / (1 - beta1 ** t) / (Math.sqrt(after.v[i]! / (1 - beta2 ** t)) + adamEpsilon),
      moved = (before.theta[i]! - after.theta[i]!) / lr,
      decayed = moved - weightDecay * before.theta[i]!;
    most = Math.max(most, Math.min(Math.abs(moved - corrected), Math.abs(decayed - corrected)));
  }
  return most;
}

it('the first step of what decides is its first, however often the reader has learned', async () => {
  const done = await oneStepAfterLessons({ readingCoef: 0 }),
    { reader, before, after } = done,
    all = after.theta.length;
  expect([before.readerSteps, before.adamSteps]).toEqual([READ, 0]);
  expect([after.readerSteps, after.adamSteps]).toEqual([READ, 1]);
  expect(after.theta.subarray(0, reader)).toEqual(before.theta.subarray(0, reader));
  expect(apart(done, reader, all, 1)).toBeLessThan(0.01);
  expect(apart(done, reader, all, READ + 1)).toBeGreaterThan(0.1);
});

it('in a step of both, each part has its own count', async () => {
  const done = await oneStepAfterLessons({ readingCoef: 0.5 }),
    { reader, after } = done,
    all = after.theta.length;
  expect([after.readerSteps, after.adamSteps]).toEqual([READ + 1, 1]);
  expect(apart(done, reader, all, 1)).toBeLessThan(0.01);
  expect(apart(done, 0, reader, READ + 1)).toBeLessThan(0.01);
});

it('a checkpoint holds both counts; an older one has one for both', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'adam-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const { after } = await oneStepAfterLessons({ readingCoef: 0 }),
    { model } = await Learner.create(SMALL_READER, baseTrainerOptions, 1),
    kept = await saveCheckpoint(dir, model, after);
  expect(await loadCheckpoint(kept.dir, model)).toMatchObject({ readerSteps: READ, adamSteps: 1 });
  const about = { policy: model.spec.id, layout: layoutDigest(model) },
    { values, files } = await readCheckpoint(kept.dir, about),
    { readerSteps, ...older } = values;
  expect(readerSteps).toBe(READ);
  await writeCheckpoint(join(dir, 'older'), { ...about, values: older }, files);
  expect(await loadCheckpoint(join(dir, 'older'), model)).toMatchObject({ readerSteps: 1, adamSteps: 1 });
});
