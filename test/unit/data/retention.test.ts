import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { gc } from '../../../runtime/cli/gc.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import { retain, type KeepRules, type Removed } from '../../../runtime/data/store/retention.js';
import { RunReader, type RunStore } from '../../../runtime/data/store/runStore.js';
import {
  id,
  type FamilyId,
  type FrameRef,
  type Outcome,
  type RolloutId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { logicalTrajectory } from '../../../runtime/run/logicalTime.js';
import { loadSuccesses } from '../../../runtime/run/successes.js';
import { RunWriters } from '../../../runtime/human/runWriter.js';
import { annotatedRollouts } from '../../../runtime/queries/annotated.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import {
  broken,
  dataConfig,
  failure,
  familyIds,
  makeTrajectory,
  managerOptions,
  openManager,
  success,
  taskOf,
  withDir,
} from '../../helpers/data/manager.js';
import { group, n3, order } from '../../helpers/data/groups.js';

const HOUR = 3_600_000;
let shade = 1;
/** A screen that was never shown before. */
const screen = (n = shade++): Parameters<DataManager['frames']['put']>[0] => ({
  width: 8,
  height: 4,
  data: Buffer.alloc(8 * 4 * 4, n),
  capturedAt: 0,
});

async function made(dir: string): Promise<{
  readonly store: RunStore;
  readonly counts: unknown;
  add(o: {
    outcome: Outcome;
    endedAt: number;
    frames?: FrameRef[];
    provenance?: Trajectory['provenance'];
    again?: RolloutId;
    recordedAt?: number;
    recorded?: (t: Trajectory) => Trajectory;
  }): Promise<{
    readonly id: RolloutId;
    readonly frames: readonly FrameRef[];
  }>;
  close(): Promise<void>;
}> {
  const options = managerOptions(dir, dataConfig({ pool: { enabled: false } }));
  const config = parseRunFile({ store: { keep: { retiredHours: 1 } } });
  let n = 0,
    wall: number | undefined;
  const data = await DataManager.open({
    ...options,
    store: { ...options.store, now: () => wall ?? Date.now(), create: { ...options.store.create!, config } },
  });
  return {
    store: data.store,
    get counts() {
      return data.stats().ledger;
    },
    async add({
      outcome,
      endedAt,
      frames,
      provenance = { kind: 'probe' },
      again,
      recordedAt = endedAt,
      recorded = (t) => t,
    }) {
      const own = frames ?? [await data.frames.put(screen()), await data.frames.put(screen())],
        name = again ?? id<RolloutId>(`t-${n++}`),
        family = familyIds[0]!,
        t = makeTrajectory({ rollout: name, family, task: taskOf(family, 1), cap: 9 }, outcome, {
          steps: own.length,
          endedAt,
          provenance,
        });
      wall = recordedAt;
      await data.record(recorded({ ...t, steps: t.steps.map((s, i) => ({ ...s, frame: own[i]! })) }), 'never');
      wall = undefined;
      return { id: name, frames: own };
    },
    close: () => data.close(),
  };
}
const all = { successes: 1, annotated: new Set<string>(), dry: false };
async function keep(
  run: RunStore,
  rules: KeepRules,
  o: Partial<Parameters<typeof retain>[1]> = {},
): Promise<readonly Removed[]> {
  return retain(run, { ...all, rules, now: Date.now() + 24 * HOUR, ...o }, (r) => run.append(r));
}
const there = (run: RunReader, frames: readonly FrameRef[]): Promise<boolean[]> =>
  Promise.all(frames.map(async (f) => (await run.frames.bytesOf(f.hash)) !== undefined));

afterEach(() => vi.restoreAllMocks());

describe('which screens of a run are kept', () => {
  it('those of old failures go, but none that another trajectory shows; records and figures stay', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        now = Date.now();
      const old = await run.add({ outcome: failure, endedAt: now }),
        won = await run.add({ outcome: success, endedAt: now }),
        young = await run.add({
          outcome: failure,
          endedAt: now + 23.5 * HOUR,
          frames: [old.frames[0]!, won.frames[1]!],
        }),
        shown = await run.add({ outcome: success, endedAt: now, provenance: { kind: 'oracle' } });
      const dry = await keep(run.store, { failureHours: 1 }, { dry: true });
      expect(dry).toMatchObject([{ rollouts: [old.id], frames: 1, why: 'age' }]);
      expect(await there(run.store, old.frames)).toEqual([true, true]);

      const before = run.counts,
        [removed, ...more] = await keep(run.store, { failureHours: 1 });
      expect(removed).toMatchObject({ rollouts: [old.id], frames: 1 });
      expect(removed!.bytes).toBeGreaterThan(0);
      expect(more).toEqual([]);
      expect(await there(run.store, old.frames)).toEqual([true, false]);
      for (const t of [won, young, shown]) expect(await there(run.store, t.frames)).toEqual([true, true]);
      expect(run.counts).toEqual(before);
      expect((await run.store.readTrajectory(old.id))?.steps.length).toBe(2);
      // What went does not go again, and it is in the journal.
      expect(await keep(run.store, { failureHours: 1 })).toMatchObject([]);
      expect(await run.store.latest('frames.removed')).toMatchObject({ rollouts: [old.id], frames: 1 });
      await run.close();
    }));

  it('a full disk has room back before the journal, which waits for it, says what went', () =>
    withDir(async (dir) => {
      const before = await made(dir),
        old = await before.add({ outcome: failure, endedAt: Date.now() }),
        pack = (await before.store.frames.place(old.frames[0]!.hash))!.file;
      await before.close();
      const run = await made(dir),
        found = new Promise<void>((r) => run.store.room.onChange(() => r())),
        waiting = run.store.room.write(() =>
          existsSync(pack)
            ? Promise.reject(Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' }))
            : Promise.resolve('written'),
        );
      await found;
      expect(await keep(run.store, { failureHours: 1 })).toMatchObject([{ rollouts: [old.id], frames: 2 }]);
      expect(await waiting).toBe('written');
      expect(await run.store.latest('frames.removed')).toMatchObject({ rollouts: [old.id] });
      await run.close();
    }));

  it('what people put into the active run is known to its retention, also by a writer that was closed', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        nothing = (): void => undefined,
        session = { run: resolve(dir), data: { store: run.store }, ended: Promise.resolve() },
        host = { entry: undefined, session, forget: nothing, changed: nothing, poolChanged: nothing },
        writer = await new RunWriters(host as never).open(dir as never),
        again = screen(),
        ref = await writer.frames.put(again);
      run.store.frames.mark([ref.hash], Date.now() + HOUR);
      expect(await run.store.frames.removeMarked({ dry: false })).toMatchObject({ frames: 1 });
      await writer.close();
      await writer.frames.put(again);
      expect(await there(run.store, [ref])).toEqual([true]);
      run.store.frames.mark([ref.hash]);
      expect(await run.store.frames.removeMarked({ dry: false })).toMatchObject({ frames: 0 });
      await run.close();
    }));

  it('one that two show goes with the second of them, be it in a later look or in the same one', () =>
    withDir(async (dir) => {
      for (const looks of [[{ failureHours: 1 }, { successHours: 1 }], [{ failureHours: 1, gigabytes: 1e-9 }]]) {
        const run = await made(`${dir}/${looks.length}`),
          endedAt = Date.now(),
          lost = await run.add({ outcome: failure, endedAt }),
          won = await run.add({
            outcome: success,
            endedAt,
            frames: [lost.frames[0]!, await run.store.frames.put(screen())],
          });
        const removed = [];
        for (const rules of looks) removed.push(...(await keep(run.store, rules)));
        expect(removed).toMatchObject([
          { rollouts: [lost.id], frames: 1 },
          { rollouts: [won.id], frames: 2 },
        ]);
        expect(await there(run.store, [...lost.frames, ...won.frames])).toEqual([false, false, false, false]);
        await run.close();
      }
    }));

  it('what one that went shares with another stays once somebody has worked on it, or it was made again', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        endedAt = Date.now(),
        shared = [await run.store.frames.put(screen()), await run.store.frames.put(screen())],
        [told, again] = [
          await run.add({ outcome: failure, endedAt, frames: [shared[0]!] }),
          await run.add({ outcome: failure, endedAt, frames: [shared[1]!] }),
        ];
      await run.add({ outcome: success, endedAt, frames: shared });
      await keep(run.store, { failureHours: 1 });
      await run.add({
        outcome: failure,
        endedAt: endedAt + 24 * HOUR,
        frames: again.frames as FrameRef[],
        again: again.id,
      });
      await keep(run.store, { successHours: 1 }, { annotated: new Set([told.id as string]) });
      expect(await there(run.store, shared)).toEqual([true, true]);
      await run.close();
    }));

  it('demonstrations and what people worked on stay', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        endedAt = Date.now();
      const first = await run.add({ outcome: success, endedAt }),
        second = await run.add({ outcome: success, endedAt }),
        demo = await run.add({ outcome: success, endedAt, provenance: { kind: 'oracle' } });
      const removed = await keep(run.store, { successHours: 1 }, { annotated: new Set([first.id as string]) });
      expect(removed.flatMap((r) => r.rollouts)).toEqual([second.id]);
      for (const t of [first, demo]) expect(await there(run.store, t.frames)).toEqual([true, true]);
      await run.close();
    }));

  it('the newest successes of a family that may be imitated stay: evaluations and cut off ones take no place of theirs', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, pool: { enabled: false } })),
        now = Date.now(),
        cutOff: Outcome = { kind: 'success', reward: 1, truncated: true },
        at = [0, 1, 2].map((i) => ({ endedAt: now + i, steps: 2 })),
        { orders } = await group(m, [success, cutOff, failure], at),
        [won, cut] = orders,
        { family, task, cap } = won!,
        seen = { rollout: id<RolloutId>('probe'), family, task, cap };
      await m.record(makeTrajectory(seen, success, { endedAt: now + 9, provenance: { kind: 'probe' } }), 'never');
      await m.trained((await m.claimBatch({ version: 0 }))!.id, 1);
      const removed = await keep(m.store, { successHours: 1 });
      expect(removed.flatMap((r) => r.rollouts)).toEqual([cut!.rollout, seen.rollout]);
      const imitable = async (): Promise<string[]> => (await loadSuccesses(m.store, 64)).map((t) => t.id);
      expect(await imitable()).toEqual([won!.rollout]);
      // One that lost its screens is not imitated by a run that is resumed.
      await keep(m.store, { successHours: 1 }, { successes: 0 });
      expect(await imitable()).toEqual([]);
      await m.close();
    }));

  it('what a resumed run imitates are the newest of each family, as in one that was never interrupted', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, pool: { enabled: false } })),
        of = new Map<FamilyId, RolloutId[]>();
      let rare: FamilyId | undefined;
      for (let i = 0; i < 12; i++) {
        const o = await order(m),
          endedAt = o.family === (rare ??= o.family) ? 1 + i : 1000 + i;
        await m.started(o.rollout, 0);
        await m.record(makeTrajectory(o, success, { version: 0, endedAt }));
        of.set(o.family, [...(of.get(o.family) ?? []), o.rollout]);
      }
      expect(of.size).toBeGreaterThan(1);
      const ids = (await loadSuccesses(m.store, 2)).map((t) => t.id);
      expect(ids.sort()).toEqual([...of.values()].flatMap((all) => all.slice(-2)).sort());
      await m.close();
    }));

  it('hours are those of the clock on the wall, in a deterministic run too', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        before = Date.now(),
        { id: name } = await run.add({
          outcome: failure,
          endedAt: 0,
          recordedAt: Date.now(),
          recorded: logicalTrajectory,
        }),
        [row] = await run.store.index.query('SELECT started_at, ended_at FROM rollouts WHERE id = ?', [name]);
      for (const at of Object.values(row!)) expect(Number(at)).toBeGreaterThanOrEqual(before);
      expect(await keep(run.store, { failureHours: 24 }, { now: Date.now() + HOUR })).toEqual([]);
      expect(await keep(run.store, { failureHours: 24 }, { now: Date.now() + 25 * HOUR })).toMatchObject([
        { rollouts: [name] },
      ]);
      await run.close();
    }));

  it('what ended by a clock that stood still while the machine slept is as old as its record', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        now = Date.now(),
        { id: name } = await run.add({ outcome: failure, endedAt: now - 9 * HOUR, recordedAt: now });
      expect(await keep(run.store, { failureHours: 8 }, { now: now + HOUR })).toEqual([]);
      expect(await keep(run.store, { failureHours: 8 }, { now: now + 9 * HOUR })).toMatchObject([{ rollouts: [name] }]);
      await run.close();
    }));

  it('one with a screen that must stay for now keeps all of them, and goes later, unless others show that screen', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        now = Date.now(),
        start = await run.store.frames.put(screen()),
        fresh = await run.add({ outcome: failure, endedAt: now }),
        // Its first screen is shown by the next one, too, which is no candidate.
        shared = await run.add({
          outcome: failure,
          endedAt: now,
          frames: [start, await run.store.frames.put(screen())],
        });
      await run.add({ outcome: success, endedAt: now, frames: [start], provenance: { kind: 'oracle' } });
      const rules = { gigabytes: 1e-9 };
      expect(await keep(run.store, rules, { now })).toEqual([]);
      expect(await run.store.latest('frames.removed')).toBeUndefined();
      for (const frames of [fresh.frames, shared.frames]) expect(await there(run.store, frames)).toEqual([true, true]);
      const removed = await keep(run.store, rules, { now: now + 24 * HOUR });
      expect(removed.flatMap((r) => r.rollouts)).toEqual([fresh.id, shared.id]);
      expect(await there(run.store, [...fresh.frames, ...shared.frames])).toEqual([false, false, true, false]);
      await run.close();
    }));

  it('beyond a size the oldest go first: retired, then failures, then successes', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        now = Date.now();
      const won = await run.add({ outcome: success, endedAt: now }),
        demo = await run.add({ outcome: success, endedAt: now, provenance: { kind: 'oracle' } }),
        lost = await run.add({ outcome: failure, endedAt: now + 1 }),
        later = await run.add({ outcome: failure, endedAt: now + 2 }),
        fault = await run.add({ outcome: broken, endedAt: now + 3 }),
        total = await run.store.frames.totalBytes(),
        one = (await run.store.frames.bytesOf(lost.frames[0]!.hash))!;
      // The one that counts for nothing goes before older ones that were judged.
      await keep(run.store, { gigabytes: (total - one) / 1e9 });
      expect(await there(run.store, [...fault.frames, ...lost.frames])).toEqual([false, false, true, true]);
      await keep(run.store, { gigabytes: (total - 3 * one) / 1e9 });
      expect(await there(run.store, lost.frames)).toEqual([false, false]);
      expect(await there(run.store, later.frames)).toEqual([true, true]);
      await keep(run.store, { gigabytes: 1e-9 });
      expect(await there(run.store, [...later.frames, ...won.frames])).toEqual([false, false, false, false]);
      expect(await there(run.store, demo.frames)).toEqual([true, true]);
      await run.close();
    }));

  it('what was trained, retired and dropped is counted as before, also by the next opening', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ dynamicRollouts: { max: 2 }, pool: { enabled: false } })),
        ended = Date.now();
      for (let i = 0; i < 8; i++) {
        const o = (await m.nextOrder({ maxConcurrent: 99, version: 0 }))!;
        await m.started(o.rollout, 0);
        const t = makeTrajectory(o, i === 7 ? broken : i % 2 ? failure : success, { endedAt: ended }),
          frames = await Promise.all(t.steps.map(() => m.frames.put(screen())));
        await m.record({ ...t, steps: t.steps.map((x, k) => ({ ...x, frame: frames[k]! })) });
      }
      const b = (await m.claimBatch({ version: 0, minGroups: 2 }))!;
      await m.trained(b.id, 1);
      const before = JSON.stringify(m.stats()),
        rows = 'SELECT id, state, outcome, steps, reward FROM rollouts ORDER BY id';
      const index = JSON.stringify(await m.store.index.query(rows, []));
      const removed = await keep(m.store, { retiredHours: 1, failureHours: 1, successHours: 1 }, { successes: 0 });
      // Retired ones are of the first part, whatever else is as old.
      const [first] = removed.flatMap((r) => r.rollouts);
      expect(removed.reduce((n, r) => n + r.frames, 0)).toBeGreaterThan(6);
      expect(await m.store.index.query('SELECT state FROM rollouts WHERE id = ?', [first!])).toEqual([
        { state: 'retired' },
      ]);
      expect(JSON.stringify(m.stats())).toBe(before);
      await m.close();
      const again = await openManager(dir, dataConfig({ dynamicRollouts: { max: 2 }, pool: { enabled: false } }));
      expect(JSON.stringify(again.stats())).toBe(before);
      expect(JSON.stringify(await again.store.index.query(rows, []))).toBe(index);
      await again.close();
    }));

  it('a screen that comes again meanwhile, or came just now, stays', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        again = screen(),
        ref = await run.store.frames.put(again),
        other = await run.store.frames.put(screen()),
        old = await run.add({ outcome: failure, endedAt: Date.now(), frames: [ref, other] });
      expect(await keep(run.store, { failureHours: 1 }, { now: Date.now() + 1.001 * HOUR, dry: true })).toMatchObject([
        { frames: 2 },
      ]);
      const records = run.store.records.bind(run.store);
      vi.spyOn(run.store, 'records').mockImplementation(async function* () {
        await run.store.frames.put(again); // a running episode shows it, its step is not recorded yet
        yield* records();
      });
      expect(await keep(run.store, { failureHours: 1 })).toEqual([]);
      vi.restoreAllMocks();
      expect(await there(run.store, old.frames)).toEqual([true, true]);
      // Nobody recorded it in the end: it goes with its trajectory after all.
      expect(await keep(run.store, { failureHours: 1 })).toMatchObject([{ rollouts: [old.id], frames: 2 }]);
      await run.close();
    }));

  it('what a running episode was shown stays until it is over, however long it waits for a person', () =>
    withDir(async (dir) => {
      const run = await made(dir),
        seen = screen(),
        held = run.store.frames.hold(),
        other = run.store.frames.hold(),
        [ref] = [await held.put(seen), await other.put(seen)],
        old = await run.add({ outcome: failure, endedAt: Date.now(), frames: [ref] });
      for (const h of [held, other]) {
        expect(await keep(run.store, { failureHours: 1 })).toEqual([]);
        h.end();
      }
      // Its step is recorded just afterwards.
      expect(await keep(run.store, { failureHours: 0 }, { now: Date.now() + 60_000 })).toEqual([]);
      expect(await there(run.store, [ref])).toEqual([true]);
      expect(await keep(run.store, { failureHours: 1 })).toMatchObject([{ rollouts: [old.id], frames: 1 }]);
      await run.close();
    }));

  it('is done by `runs gc` with the rules of the run, and only told with --dry-run', () =>
    withDir(async (dir) => {
      const said: string[] = [];
      vi.spyOn(process.stdout, 'write').mockImplementation((s) => said.push(String(s)) > 0);
      const run = await made(`${dir}/one`),
        old = await run.add({ outcome: failure, endedAt: Date.now() - 2 * HOUR });
      await run.close();
      const told = async (o: object): Promise<unknown> => {
        said.length = 0;
        expect(await gc(dir, undefined, { json: true, ...o } as never)).toBe(0);
        return JSON.parse(said.join(''));
      };
      expect(await told({ dryRun: true })).toMatchObject([{ frames: 0, rollouts: 0 }]); // its rule is of retired ones
      expect(await told({ dryRun: true, failureHours: '1' })).toMatchObject([{ frames: 2, rollouts: 1 }]);
      expect(await told({ failureHours: '1' })).toMatchObject([{ frames: 2, rollouts: 1 }]);
      const reader = await RunReader.open(`${dir}/one`, { index: 'local' });
      expect(await there(reader, old.frames)).toEqual([false, false]);
      expect((await reader.latest('log'))?.message).toContain('removed 2 screens');
      expect([...(await annotatedRollouts(`${dir}/one`))]).toEqual([]);
      await reader.close();
    }));
});
