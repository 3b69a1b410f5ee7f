import { describe, expect, it } from 'vitest';
import type { ClaimedBatch } from '../../../runtime/data/claims.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import {
  id,
  StudioError,
  type BatchId,
  type FamilyId,
  type LearnStep,
  type RolloutId,
  type TaskId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { regimeGate } from '../../../runtime/rollout/regime.js';
import type { Learner } from '../../../runtime/run/backends/index.js';
import { warmStart } from '../../../runtime/run/lessons.js';
import type { RunParts } from '../../../runtime/run/parts.js';
import { MOST_UNTRAINABLE, SparedBatches } from '../../../runtime/run/sparedBatches.js';
import { updateLoop } from '../../../runtime/run/updateLoop.js';
import { dataConfig, failure, makeTrajectory, openManager, success, withDir } from '../../helpers/data/manager.js';

const refusalOf = (details: Record<string, unknown>): StudioError =>
  new StudioError('trainer.invalid', 'A picture is too large.', 'Change it.', { details });
const refusal = (...rollouts: readonly RolloutId[]): StudioError => refusalOf({ untrainable: rollouts });
const CONFIG = dataConfig({ dynamicRollouts: { max: 2 }, highEntropy: { enabled: false } });

/** A folder with so many groups that wait for an update. */
async function withGroups(dir: string, groups: number): Promise<DataManager> {
  const m = await openManager(dir, CONFIG),
    orders = [];
  for (let i = 0; i < 2 * groups; i++) orders.push((await m.nextOrder({ maxConcurrent: 100, version: 0 }))!);
  for (const [i, o] of orders.entries()) {
    await m.started(o.rollout, 0);
    await m.record(makeTrajectory(o, i % 2 ? failure : success));
  }
  return m;
}
function spared(data: Pick<DataManager, 'lose'>): {
  readonly batches: SparedBatches;
  readonly notes: string[];
  readonly forgotten: RolloutId[];
} {
  const notes: string[] = [],
    forgotten: RolloutId[] = [];
  const parts = {
    data,
    successes: { forget: (r: RolloutId) => forgotten.push(r) },
    log: { note: (text: string) => notes.push(text) },
  };
  return { batches: new SparedBatches(parts as never), notes, forgotten };
}
const stepsOf = (b: ClaimedBatch): Pick<LearnStep, 'trajectory'>[] =>
  b.groups.flatMap((g) => g.members.map(({ trajectory }) => ({ trajectory })));
/** The first rollout of a group. */
const inGroup = (b: ClaimedBatch, i: number): RolloutId => b.groups[i]!.members[0]!.trajectory.id;

describe('trajectories that the trainer does not take', () => {
  it('cost their groups: the others are trained, and a resume does not meet them again', () =>
    withDir(async (dir) => {
      const m = await withGroups(dir, 4),
        { batches, notes, forgotten } = spared(m),
        first = (await m.claimBatch({ version: 0, minGroups: 4 }))!,
        [a, b] = [inGroup(first, 0), inGroup(first, 2)];
      batches.check(stepsOf(first));
      expect(await batches.spare(first, refusal(a, b))).toBe(true);

      // The other one is known by now: the trainer is not asked about it.
      const second = (await m.claimBatch({ version: 0, minGroups: 3 }))!;
      let again: unknown;
      try {
        batches.check(stepsOf(second));
      } catch (e) {
        again = e;
      }
      expect(again).toMatchObject({ message: `Rollout ${b} cannot be trained, as a batch before has shown.` });
      expect(await batches.spare(second, again)).toBe(true);

      const third = (await m.claimBatch({ version: 0, minGroups: 2 }))!;
      batches.check(stepsOf(third));
      expect(third.groups.map((g) => g.id)).toEqual([first.groups[1]!.id, first.groups[3]!.id]);
      await m.trained(third.id, 1);
      expect(forgotten).toEqual([a, b]);
      expect(notes).toEqual([
        `A picture is too large. Its group ${first.groups[0]!.id} is retired as lost.`,
        `Rollout ${b} cannot be trained, as a batch before has shown. Its group ${first.groups[2]!.id} is retired as lost.`,
      ]);
      await m.close();

      const resumed = await openManager(dir, CONFIG);
      expect(await resumed.claimBatch({ version: 1 })).toBeUndefined();
      expect(resumed.stats().ledger).toMatchObject({ generated: 8, trained: 4, inFlight: 0, retired: { lost: 4 } });
      await resumed.close();
    }));

  it('do not end the run', () =>
    withDir(async (dir) => {
      const m = await withGroups(dir, 4),
        { batches } = spared(m),
        stop = new AbortController(),
        trained: string[] = [];
      let version = 0,
        bad: RolloutId | undefined;
      await updateLoop<number>(
        {
          data: m,
          gate: regimeGate({ regime: 'rollout', slots: 1, groups: 1 }),
          batchGroups: 1,
          version: () => 0,
          behavior: () => 0,
          async train(b) {
            batches.check(stepsOf(b));
            // The first that is asked for is never taken.
            bad ??= inGroup(b, 0);
            const asked = stepsOf(b).map((s) => s.trajectory.id);
            if (asked.includes(bad)) throw refusal(bad);
            await m.trained(b.id, ++version);
            batches.trained();
            trained.push(...b.groups.map((g) => g.id));
            if (m.stats().ledger.inFlight === 0) stop.abort();
            return version;
          },
          publish: () => Promise.resolve(),
          spare: (b, e) => batches.spare(b, e),
          onGenerate: () => undefined,
        },
        stop.signal,
      );
      expect(new Set(trained).size).toBe(3);
      expect(m.stats().ledger).toMatchObject({ generated: 8, trained: 6, inFlight: 0, retired: { lost: 2 } });
      await m.close();
    }));

  it('end it where every batch has one, and damage on disk never does', async () => {
    const { batches } = spared({ lose: () => Promise.resolve([]) }),
      batch = { id: id<BatchId>('b') };
    let n = 0;
    const refused = (): Promise<boolean> => batches.spare(batch, refusal(id<RolloutId>(`r${++n}`)));
    for (let i = 1; i < MOST_UNTRAINABLE; i++) expect(await refused()).toBe(true);
    batches.trained();
    for (let i = 1; i < MOST_UNTRAINABLE; i++) expect(await refused()).toBe(true);
    const damaged = new StudioError('store.damaged', 'It is gone.', 'Restore it.', { details: { rollout: 'x' } });
    for (let i = 0; i < 2 * MOST_UNTRAINABLE; i++) expect(await batches.spare(batch, damaged)).toBe(true);
    expect(await refused()).toBe(false);
    expect(await batches.spare(batch, new StudioError('trainer.invalid', 'No rate.', 'Give one.'))).toBe(false);
    expect(await batches.spare(batch, new StudioError('trainer.remote', 'It is away.', 'Wait.'))).toBe(false);
  });
  it('are known from then on, wherever they come up again: neither asked about nor counted', async () => {
    const { batches, forgotten } = spared({ lose: () => Promise.resolve([]) }),
      batch = { id: id<BatchId>('b') },
      r = id<RolloutId>('r'),
      steps = [{ trajectory: { id: r } }] as never;
    expect(await batches.spare(batch, refusal(r))).toBe(true);
    batches.trained();
    for (let i = 0; i < 2 * MOST_UNTRAINABLE; i++) {
      let again: unknown;
      try {
        batches.check(steps);
      } catch (e) {
        again = e;
      }
      expect(again).toMatchObject({ message: 'Rollout r cannot be trained, as a batch before has shown.' });
      expect(await batches.spare(batch, again)).toBe(true);
    }
    expect(new Set(forgotten)).toEqual(new Set([r]));
  });
});

describe('demonstrations that the trainer does not take', () => {
  const shown = (name: string): Trajectory =>
    makeTrajectory(
      { rollout: id<RolloutId>(name), family: id<FamilyId>('f'), task: id<TaskId>('f#1'), cap: 5 },
      success,
      { steps: 2 },
    );
  interface Refusals {
    /** So many at once. */
    readonly named: number;
    /** The trainer took others. */
    readonly theirs?: boolean;
    /** The run ends meanwhile. */
    readonly stops?: boolean;
  }
  /** A warm start on these, with a trainer that does not take the bad ones. */
  async function taught(
    names: readonly string[],
    bad: readonly string[],
    { named, theirs, stops }: Refusals,
  ): Promise<{ readonly notes: string[]; readonly lessons: string[][]; readonly saved: unknown[] }> {
    let known = names.map(shown);
    const notes: string[] = [],
      lessons: string[][] = [],
      saved: unknown[] = [],
      ending = new AbortController();
    const learner: Partial<Learner> = {
      expressible: () => true,
      imitate({ steps }) {
        const of = [...new Set(steps.map((s) => s.trajectory.id))],
          refused = of.filter((r) => bad.includes(r)).slice(0, named);
        lessons.push(of);
        if (stops) ending.abort();
        return refused.length > 0
          ? Promise.reject(refusalOf({ untrainable: refused, theirs }))
          : Promise.resolve({
              version: 1,
              optimizerSteps: 4,
              skippedNonFinite: 0,
              imitationLoss: 0.1,
              ms: 1,
            } as Awaited<ReturnType<NonNullable<Learner['imitate']>>>);
      },
      snapshot: () => Promise.resolve({ version: 1, publish: () => Promise.resolve({} as never) }),
      checkpoint: () => Promise.resolve({ version: 1, dir: '/v1' }),
      interrupt: () => undefined,
    };
    const run = {
      config: { warmStart: { steps: 4, lr: 0.1, shift: 0, tones: false } },
      engine: { learner },
      progress: { imitationSteps: 0 },
      state: {},
      successes: {
        imitable: () => known,
        forget: (r: RolloutId) => {
          known = known.filter((t) => t.id !== r);
        },
      },
      ending: ending.signal,
      clock: { now: () => 0 },
      monitor: { spans: { trainerBegins: () => undefined, trainerEnds: () => undefined } },
      data: {
        room: { write: <T>(f: () => T) => f() },
        note(e: unknown) {
          saved.push(e);
          return Promise.resolve();
        },
      },
      log: { note: (text: string) => notes.push(text) },
    };
    await warmStart(run as unknown as RunParts);
    return { notes, lessons, saved };
  }

  it('are left out, and the others are imitated', async () => {
    const { notes, lessons } = await taught(['r1', 'r2', 'r3', 'r4'], ['r2', 'r4'], { named: 2 });
    expect(lessons).toEqual([
      ['r1', 'r2', 'r3', 'r4'],
      ['r1', 'r3'],
    ]);
    expect(notes).toEqual([
      'A picture is too large. r2, r4 are not imitated.',
      expect.stringContaining('4 imitation steps on 4 demonstrated steps'),
    ]);
  });
  it('are left out one after the other where it takes others, however many there are', async () => {
    const all = Array.from({ length: 9 }, (_, i) => `r${i}`),
      bad = ['r1', 'r3', 'r5', 'r7'],
      { lessons, saved } = await taught(all, bad, { named: 1, theirs: true });
    expect(lessons).toHaveLength(1 + bad.length);
    expect(lessons.at(-1)).toEqual(['r0', 'r2', 'r4', 'r6', 'r8']);
    expect(saved).toHaveLength(1);
  });
  it('cost no lesson that was begun where the run ends meanwhile: it is asked for once more, and saved', async () => {
    const { lessons, saved } = await taught(['r1', 'r2', 'r3'], ['r2'], { named: 1, theirs: true, stops: true });
    expect(lessons).toEqual([
      ['r1', 'r2', 'r3'],
      ['r1', 'r3'],
    ]);
    expect(saved).toEqual([expect.objectContaining({ type: 'checkpoint', version: 1 })]);
  });
  it('end the lesson where it takes none of them', async () => {
    const all = ['r1', 'r2', 'r3', 'r4', 'r5'];
    await expect(taught(all, all, { named: 1 })).rejects.toMatchObject({ kind: 'trainer.invalid' });
  });
});
