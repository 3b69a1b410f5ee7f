import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { id, random, type BatchId } from '../../../runtime/domain/index.js';
import type { ProcessEntry } from '../../../runtime/concurrency/process.js';
import { loadOrt } from '../../../runtime/domain/onnxRuntime.js';
import { WatchedThread } from '../../../runtime/concurrency/watchedThread.js';
import { Learner, type LearnerHost, type LearnerState } from '../../../runtime/trainer/native/learner.js';
import { LookAhead } from '../../../runtime/trainer/native/lookAhead.js';
import { policyModel } from '../../../runtime/trainer/native/model/policyGraph.js';
import { initialTheta } from '../../../runtime/trainer/native/model/params.js';
import { perceive } from '../../../runtime/trainer/native/perceive.js';
import { Sessions } from '../../../runtime/trainer/native/sessions.js';
import { imitationRate } from '../../../runtime/trainer/schedule.js';
import { trainerEntry } from '../../helpers/trainer/entry.js';
import { demonstration, glyphTask, readingScreen, SMALL_READER } from '../../helpers/trainer/glyphScreens.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';

type LookThread = WatchedThread<{ readonly id: number }, { readonly id: number }, unknown>;
const BATCH = 4,
  STEPS = 6,
  OPTIONS = { ...baseTrainerOptions, imitateStates: 7, microBatch: BATCH };
let entry: ProcessEntry;
beforeAll(async () => {
  entry = await trainerEntry();
});
afterEach(() => vi.restoreAllMocks());

const tasks = (n: number): ReturnType<typeof glyphTask>[] => {
  const rng = random('look ahead');
  return Array.from({ length: n }, () => glyphTask(SMALL_READER, rng, 3));
};
const demos = tasks(20).map((t, i) => demonstration(SMALL_READER, t, `d${i}`));

/** What `run` learned, and how many micro-batches the other thread saw. */
async function looking(
  run: () => Promise<LearnerState>,
): Promise<{ readonly looks: number; readonly state: LearnerState }> {
  const all = vi.spyOn(LookAhead.prototype, 'look'),
    state = await run();
  let looks = 0;
  for (const r of all.mock.results) if (await (r.value as ReturnType<LookAhead['look']>)) looks++;
  return { looks, state };
}

/** After lessons, imitation (with a lesson in each step at `readingCoef`) and lessons again. */
async function taught(
  o: LearnerHost & { readonly readingCoef?: number; readonly interruptAt?: number } = {},
): Promise<LearnerState> {
  const l = await Learner.create(SMALL_READER, { ...OPTIONS, readingCoef: o.readingCoef ?? 0 }, 1, o),
    screens = tasks(8).map(readingScreen),
    batch = { id: id<BatchId>('demos'), samples: demos, epochs: 1 };
  try {
    await l.read(screens, { steps: 4, lr: 6e-3, shift: 4 });
    await l.imitate(batch, { steps: STEPS, lr: 3e-3, shift: 4, tones: 0.5 }, (p) => {
      if (p.step === o.interruptAt) l.interrupt();
    });
    // What was seen before was seen by another reader.
    await l.read(screens, { steps: 2, lr: 6e-3, shift: 4 });
    await l.imitate(batch, { steps: 3, lr: 3e-3, shift: 4 });
    return { ...l.state(), theta: l.theta.slice() };
  } finally {
    await l.release();
  }
}

it('a lesson that is interrupted before its first step is over', async () => {
  const l = await Learner.create(SMALL_READER, { ...OPTIONS, readingCoef: 0 }, 1),
    lesson = l.imitate({ id: id<BatchId>('demos'), samples: demos, epochs: 1 }, { steps: 3, lr: 3e-3, shift: 4 });
  l.interrupt();
  expect((await lesson).optimizerSteps).toBe(0);
  await l.release();
});

it('a lesson that goes on has the learning rates of a whole one', async () => {
  const l = await Learner.create(SMALL_READER, { ...OPTIONS, readingCoef: 0 }, 1),
    batch = { id: id<BatchId>('demos'), samples: demos, epochs: 1 },
    rates: number[] = [],
    ratesOf = (p: { readonly kind: string; readonly lr?: number }): void => void rates.push(p.lr!),
    imitated = { steps: 6, lr: 3e-3, shift: 4 },
    expected = Array.from({ length: 6 }, (_, i) => imitationRate(3e-3, i, 6));
  try {
    await l.imitate(batch, { ...imitated, until: 4 }, ratesOf);
    expect((await l.imitate(batch, { ...imitated, from: 4 }, ratesOf)).optimizerSteps).toBe(2);
    expect(rates).toEqual(expected);
    rates.length = 0;
    const screens = tasks(8).map(readingScreen);
    await l.read(screens, { ...imitated, until: 4 }, ratesOf);
    expect((await l.read(screens, { ...imitated, from: 4 }, ratesOf)).steps).toBe(2);
    expect(rates).toEqual(expected);
  } finally {
    await l.release();
  }
});

const oneProcessor = availableParallelism() < 2;
if (oneProcessor) console.warn('skipped: looking at states in another thread (this machine has one processor)');

describe.skipIf(oneProcessor)('looking at states in another thread while a gradient is computed', () => {
  let alone: LearnerState;
  beforeAll(async () => {
    alone = await taught();
  });

  it('changes no bit of what is learned, nor of what is drawn next', async () => {
    const both = await looking(() => taught({ entry }));
    expect(both.state).toEqual(alone);
    // A micro-batch and three states that fill none, for each step but the first.
    expect(both.looks).toBe(4 * (STEPS - 1 + 2));
  });

  it('draws no more than it uses when it is interrupted', async () => {
    const interruptAt = 3,
      both = await looking(() => taught({ entry, interruptAt }));
    expect(both.looks).toBe(4 * (interruptAt + 2));
    expect(both.state).toEqual(await taught({ interruptAt }));
  });

  it('is left out where every step teaches the reader, too', async () => {
    expect((await looking(() => taught({ entry, readingCoef: 0.5 }))).looks).toBe(0);
  });

  it('goes on alone when the thread dies, is not there or says nothing', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'look-ahead-'));
    try {
      const file = async (name: string, does: string): Promise<string> => {
        await writeFile(
          join(dir, name),
          `import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => { ${does} });`,
        );
        return join(dir, name);
      };
      const dies = await file('dies.mjs', "throw new Error('no');");
      const notes: string[] = [];
      expect(await looking(() => taught({ entry: { file: dies }, onNote: (n) => notes.push(n) }))).toEqual({
        looks: 0,
        state: alone,
      });
      expect(notes).toEqual([expect.stringMatching(/goes on with one thread, .*: no\.$/)]);
      for (const thread of [join(dir, 'none.mjs'), await file('silent.mjs', '')]) {
        const ahead = LookAhead.here({ entry: { file: thread }, spec: SMALL_READER, batch: BATCH, silentMs: 100 })!,
          theta = initialTheta(policyModel(SMALL_READER).layout, 1);
        for (let i = 0; i < 3; i++) expect(await ahead.look([demos[0]!.state], theta)).toBeUndefined();
        expect(ahead.works).toBe(false);
        expect(ahead.look([demos[0]!.state], theta)).toBeUndefined();
        ahead.close();
      }
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  it('is with the weights as they are, however often the reader changes', async () => {
    const model = policyModel(SMALL_READER),
      sessions = new Sessions(await loadOrt(), model, BATCH, 1, 1),
      ahead = LookAhead.here({ entry, spec: SMALL_READER, batch: BATCH })!,
      states = demos.slice(0, 3).map((d) => d.state);
    const one = initialTheta(model.layout, 1),
      two = initialTheta(model.layout, 2),
      seen = (theta: Float32Array): ReturnType<typeof perceive> => perceive(model, sessions, states, theta);
    expect(await ahead.look(states, one)).toEqual(await seen(one));
    ahead.readerChanged();
    const ask = vi.spyOn(WatchedThread.prototype, 'ask');
    expect(await ahead.look(states, two)).toEqual(await seen(two));
    // As when it has had nothing to do for a minute: the next one is told the weights again.
    (ask.mock.contexts[0] as LookThread).end();
    expect(await ahead.look(states, two)).toEqual(await seen(two));
    expect(new Set(ask.mock.contexts).size).toBe(2);
    expect(await seen(one)).not.toEqual(await seen(two));
    ahead.close();
    await sessions.release();
  });
});
