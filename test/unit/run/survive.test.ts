import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { PulseCount, type ProcessWork } from '../../../runtime/concurrency/pulse.js';
import {
  id,
  StudioError,
  toRunError,
  type FamilyId,
  type LearnStep,
  type RolloutId,
  type TaskId,
} from '../../../runtime/domain/index.js';
import { learnerOf, unreadableTrajectory } from '../../../runtime/run/backends/learner.js';
import { ScreenFile } from '../../../runtime/run/backends/screenFile.js';
import { processWork, workOf } from '../../../runtime/run/processWork.js';
import { progressOf } from '../../../runtime/run/resume.js';
import { loadSuccesses } from '../../../runtime/run/successes.js';
import { endsWithin, unlessOverdue } from '../../../runtime/run/stopping.js';
import type { ReadingScreen } from '../../../runtime/trainer/types.js';
import { dataConfig, failure, makeTrajectory, openManager, success, withDir } from '../../helpers/data/manager.js';

describe('the pulse of a child process', () => {
  /** Looks every half second; returns when and why it is taken for hung. */
  function watch(seconds: number, work: (at: number) => ProcessWork | undefined, beats: (at: number) => boolean) {
    const p = new PulseCount(0);
    for (let at = 500; at <= seconds * 1000; at += 500) {
      if (beats(at)) p.beat();
      const why = p.look(at, work(at));
      if (why !== undefined) return { at, why };
    }
    return undefined;
  }
  const stopped = (): ProcessWork => ({ cpuMs: 70, busy: false });

  it('is missed after 5 s when the child does nothing', () => {
    expect(watch(60, stopped, () => false)).toMatchObject({ at: 4000 });
    expect(watch(60, stopped, (at) => at === 10_000 || at < 2000)!.at).toBeLessThan(7000);
  });
  it('is not missed while the child computes, waits for the processor, or beats', () => {
    expect(
      watch(
        55,
        (at) => ({ cpuMs: at / 100, busy: false }),
        () => false,
      ),
    ).toBeUndefined();
    expect(
      watch(
        55,
        () => ({ cpuMs: 7, busy: true }),
        () => false,
      ),
    ).toBeUndefined();
    expect(watch(600, stopped, (at) => at % 3000 === 0)).toBeUndefined();
  });
  it('is missed after a minute whatever it does, and after half a minute where nobody can tell', () => {
    expect(
      watch(
        90,
        () => ({ cpuMs: 7, busy: true }),
        () => false,
      ),
    ).toMatchObject({ at: 60_000 });
    expect(
      watch(
        90,
        () => undefined,
        () => false,
      ),
    ).toMatchObject({ at: 30_000 });
  });
  it('is not missed because the one who looks was stopped himself', () => {
    const p = new PulseCount(0);
    expect(p.look(500, stopped())).toBeUndefined();
    expect(p.look(3_600_000, stopped())).toBeUndefined();
    expect(p.silentMs).toBeLessThan(2000);
  });
  it('is asked of Linux: a stopped process is not busy, whatever its name', async () => {
    expect(workOf('7 (a) R 1) T 1 7 7 0 -1 0 0 0 0 0 30 12 0 0')).toEqual({ cpuMs: 420, busy: false });
    expect(workOf('7 (node) R 1 7 7 0 -1 0 0 0 0 0 0 1 0 0')).toEqual({ cpuMs: 10, busy: true });
    expect(workOf('')).toBeUndefined();
    expect(await processWork(2 ** 30)).toBeUndefined();
    if (process.platform === 'linux') expect((await processWork(process.pid))!.cpuMs).toBeGreaterThan(0);
  });
});

describe('stopping a run', () => {
  it('leaves work behind that does not end', async () => {
    const stop = new AbortController(),
      signals = { signal: stop.signal, now: stop.signal },
      endless = new Promise<void>(() => undefined),
      hung = unlessOverdue('the update', endless, signals, { stopped: 60_000, now: 50 });
    expect(await unlessOverdue('it', Promise.resolve(7), signals)).toBe(7);
    stop.abort();
    await expect(hung).rejects.toMatchObject({
      kind: 'cancelled',
      message: 'The run was stopped, and the update had not ended 0.05 s later.',
    });
  });
  it('waits for a part only so long', async () => {
    expect(await endsWithin(20, new Promise<void>(() => undefined))).toBe(false);
    expect(await endsWithin(1000, Promise.resolve())).toBe(true);
    await expect(endsWithin(1000, Promise.reject(new Error('no')))).rejects.toThrow('no');
  });
});

describe('damage on disk', () => {
  it('costs the success whose records it hit, and no other', async () => {
    const whole = makeTrajectory(
        { rollout: id<RolloutId>('t-1'), family: id<FamilyId>('f'), task: id<TaskId>('f#1'), cap: 5 },
        success,
      ),
      fails = (e: Error) => ({
        index: { query: () => Promise.resolve([{ id: 't-1' }, { id: 't-2' }]) } as never,
        readTrajectory: (t: RolloutId) => (t === whole.id ? Promise.resolve(whole) : Promise.reject(e)),
      });
    const damaged = new StudioError('store.damaged', 'Part of it cannot be read back.', 'Restore it.');
    expect(await loadSuccesses(fails(damaged), 64)).toEqual([whole]);
    await expect(loadSuccesses(fails(new Error('no disk')), 64)).rejects.toThrow('no disk');
  });
  const t = (name: string) =>
    makeTrajectory({ rollout: id<RolloutId>(name), family: id('f'), task: id('f#1'), cap: 5 }, success, { steps: 2 });
  it('is told with the trajectory it concerns, and only damage is', async () => {
    let fault: unknown;
    const learner = learnerOf({
      trainer: { update: () => Promise.resolve({}) } as never,
      source: { expressible: () => true, sampleOf: () => Promise.reject(fault) },
      publish: () => Promise.reject(new Error('never')),
    });
    const steps: LearnStep[] = [{ trajectory: t('r7'), step: 1, kind: 'policy', advantage: 1, weight: 1 }];
    const told = () =>
      learner.update({ id: id('b1'), steps, epochs: 1 }).then(
        () => undefined,
        (e: unknown) => [unreadableTrajectory(e), toRunError(e).message],
      );
    fault = new StudioError('store.damaged', 'Frame abc is missing.', 'Restore it.');
    expect(await told()).toEqual(['r7', 'Step 1 of trajectory r7 cannot be read back: Frame abc is missing.']);
    fault = new StudioError('store.io', 'No space.', 'Free some.');
    expect(await told()).toEqual([undefined, 'No space.']);
  });

  it('costs the group it concerns; the other groups of the batch are trained', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ dynamicRollouts: { max: 2 } }));
      const order = async () => (await m.nextOrder({ maxConcurrent: 100, version: 0 }))!;
      const made = [];
      for (let i = 0; i < 4; i++) made.push(await order());
      for (const [i, o] of made.entries()) {
        await m.started(o.rollout, 0);
        await m.record(makeTrajectory(o, i % 2 ? failure : success));
      }
      const b = (await m.claimBatch({ version: 0, minGroups: 2 }))!,
        [bad, good] = b.groups;
      expect(await m.lose(b.id, bad!.members[0]!.trajectory.id)).toEqual([bad!.id]);
      const again = (await m.claimBatch({ version: 0 }))!;
      expect(again.groups.map((g) => g.id)).toEqual([good!.id]);
      expect(await m.claimBatch({ version: 0 })).toBeUndefined();
      await m.trained(again.id, 1);
      expect(m.stats().ledger).toMatchObject({ generated: 4, trained: 2, inFlight: 0, retired: { lost: 2 } });
      await m.close();
      const resumed = await openManager(dir, dataConfig({ dynamicRollouts: { max: 2 } }));
      expect(resumed.recovery.skipped).toBe(0);
      expect(resumed.stats().ledger).toMatchObject({ generated: 4, trained: 2, inFlight: 0, retired: { lost: 2 } });
      await resumed.close();
    }));
});

describe('a lesson', () => {
  it('and its checkpoint are one record, from which a resumed run knows how far it got', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      const learned = (source: string, steps: number) => ({ source, values: { steps, loss: 0.5, ms: NaN } });
      await m.note({ type: 'checkpoint', version: 1, dir: '/v1', learned: learned('reading.part', 40) });
      expect(await progressOf(m.store)).toMatchObject({
        readingSteps: 40,
        imitationSteps: 0,
        warmStartVersion: undefined,
      });
      await m.note({ type: 'checkpoint', version: 2, dir: '/v2', learned: learned('reading', 60) });
      await m.note({ type: 'checkpoint', version: 3, dir: '/v3', learned: learned('warm-start', 10) });
      expect(await progressOf(m.store)).toMatchObject({ readingSteps: 0, warmStartVersion: 3 });
      await m.close();
    }));
  it('keeps its screens for the next start', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'screens-'));
    try {
      const path = join(dir, 'reading.screens'),
        file = new ScreenFile(path),
        screens: ReadingScreen[] = Array.from({ length: 3 }, (_, i) => ({
          obs: Uint8Array.from({ length: 70_000 }, (_, k) => (k * i) % 251),
          buckets: Int32Array.of(i, 10),
          boxes: Int32Array.of(1, 2, 3, 4, 5, 6, 7, i),
          marks: Float32Array.of(i, 10.25, 0.5),
        }));
      expect(await file.load('a')).toBeUndefined();
      const notes: string[] = [];
      await file.keep('a', screens, (text) => notes.push(text));
      expect(notes).toEqual([]);
      const bytes = (all: ReadingScreen[] | undefined): Buffer =>
        Buffer.concat((all ?? []).flatMap((x) => [x.obs, Buffer.from(`${x.buckets} ${x.boxes} ${x.marks}`)]));
      expect(bytes(await file.load('a')).equals(bytes(screens))).toBe(true);
      expect(bytes(await file.load()).equals(bytes(screens))).toBe(true);
      expect(await file.load('b')).toBeUndefined();
      await truncate(path, (await readFile(path)).length - 40);
      expect(await file.load('a')).toBeUndefined();
      await writeFile(path, 'no such thing');
      expect(await file.load()).toBeUndefined();
      // Where they cannot be kept, on a full disk say, the run goes on without.
      await new ScreenFile(join(dir, 'gone', 'reading.screens')).keep('a', screens, (text) => notes.push(text));
      expect(notes).toEqual([expect.stringMatching(/could not be kept \(.*ENOENT/)]);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
  it('takes no screens from a file that was made to cost time or memory', () =>
    withDir(async (dir) => {
      const path = join(dir, 'reading.screens'),
        head = '{"key":"a","screens":1}\n',
        of = (line: string): Promise<void> => writeFile(path, deflateRawSync(Buffer.from(head + line)));
      // A line without an end; pixels without number; lists of something else.
      await of(' '.repeat(64 << 20));
      expect(await new ScreenFile(path).load()).toBeUndefined();
      for (const pixels of [2 ** 40, -1, 0.5, '1', null]) {
        await of(`${JSON.stringify({ pixels, buckets: [], boxes: [], marks: [] })}\nx`);
        expect(await new ScreenFile(path).load(), String(pixels)).toBeUndefined();
      }
      for (const x of [{ buckets: [1] }, { marks: { length: 1e9 } }, { boxes: 'abcd' }, { marks: [null] }]) {
        await of(`${JSON.stringify({ pixels: 1, buckets: [], boxes: [], marks: [], ...x })}\nx`);
        expect(await new ScreenFile(path).load(), JSON.stringify(x)).toBeUndefined();
      }
    }));
});
