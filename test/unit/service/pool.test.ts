import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { id, type RolloutId } from '../../../runtime/domain/index.js';
import { headOf } from '../../../runtime/data/events.js';
import { poolEntryOf } from '../../../runtime/data/experiencePool.js';
import { newRun } from '../../../runtime/data/collections.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import * as m from '../../../runtime/protocol/methods.js';
import type { PoolEntryRow, PoolView, RunSummary, TrajectoryRow } from '../../../runtime/protocol/types.js';
import { createStudioService, type Broadcast, type StudioService } from '../../../runtime/service/index.js';
import { Studio } from '../../../runtime/service/studio.js';
import {
  bundle,
  dataConfig,
  failure,
  familyIds,
  makeTrajectory,
  openManager,
  success,
  taskOf,
} from '../../helpers/data/manager.js';
import { writeSyntheticRun, type SyntheticRun } from '../../helpers/data/syntheticRun.js';

/** The pool of runs nobody is training, through the service and its real workers. */
let dir: string,
  entry: { file: string },
  truth: SyntheticRun,
  run: string,
  n = 0;
const open: StudioService[] = [],
  studios: Studio[] = [];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-pool-'));
  entry = await bundle('runtime/main.ts', 'pool-service');
});
afterEach(async () => {
  for (const s of open.splice(0)) await s.close({ now: true });
  for (const s of studios.splice(0)) await s.close(true);
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const never = new AbortController().signal;
interface Client {
  readonly told: Broadcast[];
  call<R>(method: { readonly method: string }, params: unknown): Promise<R>;
}
function client(): Client {
  const s = createStudioService({ entry, cacheDir: join(dir, 'cache'), log: () => undefined }),
    told: Broadcast[] = [];
  open.push(s);
  s.onBroadcast((b) => told.push(b));
  return {
    told,
    call: async <R>(method: { readonly method: string }, params: unknown) =>
      s.handlers.get(method.method)!(params, { signal: never, notify: () => undefined }) as Promise<R>,
  };
}
function studio(): Studio {
  const s = new Studio({ entry, cacheDir: join(dir, 'cache'), log: () => undefined });
  studios.push(s);
  return s;
}
async function fresh(config?: unknown): Promise<void> {
  run = join(dir, `run-${++n}`);
  truth = await writeSyntheticRun(run, {
    groups: 6,
    size: 4,
    steps: 3,
    close: 'finished',
    ...(config === undefined ? {} : { config }),
  });
}
const entries = (v: PoolView): PoolEntryRow[] => v.families.flatMap((f) => f.entries);
const of = (kind: string): string => truth.told.find((t) => t.outcome === kind)!.id;

describe('pool requests on a run that is over', () => {
  it('add a success, refuse what is none, and take it with a reason; every change is on disk and the run stays as it ended', async () => {
    await fresh();
    const c = client(),
      won = of('success'),
      lost = of('failure');
    expect(await c.call<PoolView>(m.listPool, { run })).toMatchObject({ entries: 0, injections: 0, active: false });
    const one = await c.call<PoolView>(m.addToPool, { run, rollout: won });
    expect(entries(one)).toMatchObject([
      {
        rollout: won,
        source: 'rollout',
        uses: 0,
        enabled: true,
        usable: true,
        steps: truth.told.find((t) => t.id === won)!.steps,
      },
    ]);
    await expect(c.call(m.addToPool, { run, rollout: lost })).rejects.toMatchObject({
      kind: 'params.invalid',
      message: expect.stringContaining('did not call it a success') as string,
    });
    await expect(c.call(m.addToPool, { run, rollout: 'probe/untrained/v0/0' })).rejects.toMatchObject({
      message: expect.stringContaining('held out') as string,
    });
    await expect(c.call(m.addToPool, { run, rollout: 'nobody', override: 'x' })).rejects.toMatchObject({
      kind: 'not.found',
    });
    await expect(c.call(m.addToPool, { run, rollout: lost, override: '  ' })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
    const two = await c.call<PoolView>(m.addToPool, {
      run,
      rollout: lost,
      override: 'the verifier looked at the wrong file',
    });
    expect(entries(two).find((e) => e.rollout === lost)).toMatchObject({
      override: 'the verifier looked at the wrong file',
      usable: true,
    });
    const off = await c.call<PoolView>(m.setPool, { run, rollouts: [won, 'nobody'], enabled: false });
    expect(entries(off).find((e) => e.rollout === won)).toMatchObject({ enabled: false, usable: false, why: 'off' });
    expect(
      entries(
        await c.call<PoolView>(m.removeFromPool, { run, rollouts: [lost], reason: 'it was right after all' }),
      ).map((e) => e.rollout),
    ).toEqual([won]);
    // Adding what is switched off switches it on.
    expect(entries(await c.call<PoolView>(m.addToPool, { run, rollout: won }))).toMatchObject([
      { rollout: won, enabled: true },
    ]);
    // Answered = on disk: another process reads the same, and the journal holds why.
    expect(entries(await client().call<PoolView>(m.listPool, { run }))).toMatchObject([
      { rollout: won, enabled: true },
    ]);
    const reader = await RunReader.open(run, { index: 'local' }),
      told: unknown[] = [];
    for await (const e of reader.events())
      if (e.type.startsWith('pool.')) {
        const { seq: _s, at: _a, ...rest } = e;
        told.push(rest);
      }
    await reader.close();
    expect(told).toMatchObject([
      { type: 'pool.added', by: 'person', entry: { id: won } },
      { type: 'pool.added', by: 'person', entry: { id: lost, override: 'the verifier looked at the wrong file' } },
      { type: 'pool.switched', entries: [won], enabled: false },
      { type: 'pool.removed', entry: lost, reason: 'it was right after all', by: 'person' },
      { type: 'pool.switched', entries: [won], enabled: true },
    ]);
    expect((await c.call<{ runs: RunSummary[] }>(m.listRuns, { roots: [run] })).runs).toMatchObject([
      { state: 'finished' },
    ]);
    expect(c.told.filter((b) => b.method === 'pool/changed').map((b) => b.params)).toEqual(new Array(5).fill({ run }));
  });

  it("many at once do not stand in each other's way, and lists stay right meanwhile", async () => {
    await fresh();
    const c = client(),
      won = truth.told.filter((t) => t.outcome === 'success').map((t) => t.id);
    const rows = (): Promise<{ rows: TrajectoryRow[] }> => c.call(m.listTrajectories, { run });
    const [before] = await Promise.all([
      rows(),
      ...won.map((rollout) => c.call(m.addToPool, { run, rollout })),
      rows(),
      c.call(m.getRun, { run }),
    ]);
    expect(
      entries(await c.call<PoolView>(m.listPool, { run }))
        .map((e) => e.rollout)
        .sort(),
    ).toEqual([...won].sort());
    expect(await rows()).toEqual(before);
  });

  it('say that another process writes the run, and change nothing', async () => {
    await fresh();
    const c = client(),
      store = await RunStore.open(run, { index: 'local' });
    try {
      await expect(c.call(m.addToPool, { run, rollout: of('success') })).rejects.toMatchObject({
        error: { kind: 'run.busy' },
      });
    } finally {
      await store.close();
    }
    expect(entries(await c.call<PoolView>(m.addToPool, { run, rollout: of('success') }))).toHaveLength(1);
    await expect(c.call(m.listPool, { run: join(dir, 'nowhere') })).rejects.toMatchObject({ kind: 'not.found' });
    await expect(
      c.call(m.setPool, { run: join(dir, 'nowhere'), rollouts: ['r'], enabled: true }),
    ).rejects.toMatchObject({ kind: 'not.found' });
    expect(existsSync(join(dir, 'nowhere'))).toBe(false);
  });

  it('obey the run file: a pool that is off takes nothing', async () => {
    await fresh({ curation: { pool: { enabled: false } } });
    await expect(client().call(m.addToPool, { run, rollout: of('success') })).rejects.toMatchObject({
      message: expect.stringContaining('the pool is off') as string,
    });
  });

  it('families never solved come first, and it is said which of them the pool covers', async () => {
    await fresh();
    const c = client(),
      solved = new Set(truth.told.filter((t) => t.outcome === 'success').map((t) => t.family)),
      tried = new Set(
        truth.told.filter((t) => t.outcome === 'success' || t.outcome === 'failure').map((t) => t.family),
      );
    const unsolved = [...tried].filter((f) => !solved.has(f)),
      s = studio(),
      w = await s.writers.open(run),
      family = id<never>('desk/nobody-does-it');
    // A family with two failures of the policy and one success in which a person helped: still never solved.
    const helped = makeTrajectory(
      { rollout: id<RolloutId>('r900003'), family, task: id('desk/nobody-does-it#1'), cap: 5 },
      success,
      { steps: 2 },
    );
    await w.record(
      makeTrajectory({ rollout: id<RolloutId>('r900001'), family, task: id('desk/nobody-does-it#1'), cap: 5 }, failure),
      'auto',
    );
    await w.record(
      { ...helped, steps: helped.steps.map((x, i) => (i === 0 ? { ...x, origin: 'human' as const } : x)) },
      'never',
    );
    await w.close();
    const view = await c.call<PoolView>(m.listPool, { run }),
      mine = view.families.find((f) => f.family === family)!;
    expect(mine).toMatchObject({ rollouts: 1, neverSolved: true, entries: [], successes: 0, rate: 0 });
    expect(view.families[0]!.neverSolved).toBe(true);
    expect([view.neverSolved, view.covered]).toEqual([unsolved.length + 1, 0]);
    expect(
      (await c.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run, filter: { family } })).rows.map((r) => [
        r.rollout,
        r.assisted,
      ]),
    ).toEqual([
      ['r900003', true],
      ['r900001', undefined],
    ]);
    expect(await c.call<PoolView>(m.addToPool, { run, rollout: 'r900003' })).toMatchObject({
      covered: 1,
      neverSolved: unsolved.length + 1,
    });
  });
});

/** As pools were written before entries said what they do: the folder's own trajectories tell. */
it('an entry of an older folder is known by its trajectory', async () => {
  const folder = join(dir, `old-${++n}`),
    family = familyIds[0]!,
    t = makeTrajectory({ rollout: id<RolloutId>('o1'), family, task: taskOf(family, 1), cap: 9 }, success, {
      provenance: { kind: 'human' },
    });
  const { content: _, ...entry } = poolEntryOf(t),
    store = await RunStore.open(folder, { index: 'local', create: newRun('old', 1) });
  await Promise.all([
    ...t.steps.map((step) => store.append({ type: 'rollout.step', rollout: t.id, step })),
    store.append({ type: 'trajectory.recorded', head: headOf(t) }),
    store.append({ type: 'pool.added', entry, by: 'person' }),
  ]);
  await store.close();
  const w = await studio().writers.open(folder);
  expect(await w.record({ ...t, id: id<RolloutId>('o2') }, 'auto')).toMatchObject({ pooled: false, twin: 'o1' });
  await w.close();
  // And the same where a run goes on.
  const manager = await openManager(folder, dataConfig());
  expect((await manager.record({ ...t, id: id<RolloutId>('o3') }, 'auto')).pool).toMatchObject({
    pooled: false,
    twin: 'o1',
  });
  await manager.close();
});

describe('the run writer', () => {
  it('makes a collection once, keeps demonstrations in it, and what fails only with a reason', async () => {
    const s = studio(),
      base = join(dir, 'collections'),
      told: Broadcast[] = [];
    s.onBroadcast((b) => told.push(b));
    const w = await s.writers.openCollection(base, 'my demos'),
      family = familyIds[0]!,
      demo = (name: string) => ({ rollout: id<RolloutId>(name), family, task: taskOf(family, 1), cap: 9 });
    expect(w.run).toBe(join(base, 'my demos'));
    expect(await w.record(makeTrajectory(demo('h1'), success, { provenance: { kind: 'human' } }), 'auto')).toEqual({
      pooled: true,
    });
    // A second demonstration of the same task joins too, a person made it; but not one that does the very same, screens
    // or not.
    const h1 = makeTrajectory(demo('h1'), success, { provenance: { kind: 'human' } }),
      nudged = h1.steps.map((x) => ({ ...x, actions: [{ type: 'wait' as const, ms: 700 }] }));
    expect(
      await w.record(
        {
          ...h1,
          id: id<RolloutId>('h1b'),
          steps: h1.steps.map((x) => ({
            ...x,
            frame: { ...x.frame, hash: x.frame.hash.split('').reverse().join('') },
          })),
        },
        'auto',
      ),
    ).toMatchObject({ pooled: false, twin: 'h1' });
    expect(await w.pool('h1b', 'auto')).toMatchObject({ pooled: false, twin: 'h1' });
    expect(await w.record({ ...h1, id: id<RolloutId>('h2'), steps: nudged }, 'auto')).toEqual({ pooled: true });
    expect(
      await w.record(makeTrajectory(demo('h3'), failure, { provenance: { kind: 'human' } }), 'auto'),
    ).toMatchObject({ pooled: false, why: expect.stringContaining('verifier') as string });
    expect(
      await w.record(makeTrajectory(demo('h4'), failure, { provenance: { kind: 'human' } }), 'never'),
    ).toMatchObject({ pooled: false });
    expect(await w.pool('h4', { override: 'it shows the way' })).toEqual({ pooled: true });
    // Read while it is open for writing: neither 'elsewhere' nor running.
    expect(await s.summary(w.run)).toMatchObject({ state: 'finished' });
    await w.unpool(['h2'], 'discarded');
    await w.close();
    await w.close();
    await expect(w.pool('h1', 'auto')).rejects.toThrow('no longer open for writing');
    const again = await s.writers.openCollection(base, 'my demos');
    expect(await again.pool('h1', 'auto')).toEqual({ pooled: true });
    await again.close();
    const c = client();
    expect(
      entries(await c.call<PoolView>(m.listPool, { run: w.run })).map((e) => [e.rollout, e.source, e.override]),
    ).toEqual([
      ['h1', 'human', undefined],
      ['h4', 'human', 'it shows the way'],
    ]);
    expect((await c.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run: w.run })).rows).toHaveLength(5);
    expect((await c.call<{ runs: RunSummary[] }>(m.listRuns, { roots: [base] })).runs).toMatchObject([
      { state: 'finished', name: 'my demos' },
    ]);
    expect(told.some((b) => b.method === 'run/changed')).toBe(true);
    await expect(c.call(m.addToPool, { run: w.run, rollout: 'h1b' })).rejects.toMatchObject({
      kind: 'params.invalid',
      message: expect.stringContaining('the pool has the same steps of this task (h1)') as string,
      remedy: expect.stringContaining('h1') as string,
    });
    await expect(s.writers.openCollection(base, '../out')).rejects.toMatchObject({ error: { kind: 'config.invalid' } });
    expect(existsSync(join(dir, 'out'))).toBe(false);
  });

  it('is shared by those who write at the same time, and lets go of the folder with the last', async () => {
    await fresh();
    const s = studio(),
      [a, b] = await Promise.all([s.writers.open(run), s.writers.open(run)]);
    await a.close();
    expect(await b.pool(of('success'), 'auto')).toEqual({ pooled: true });
    const closing = b.close(),
      c = await s.writers.open(run);
    await closing;
    await c.setEnabled([of('success')], false);
    await c.close();
    const store = await RunStore.open(run, { index: 'local' });
    await store.close();
    await expect(s.writers.open(join(dir, 'nowhere'))).rejects.toMatchObject({ error: { kind: 'store.io' } });
  });
});
