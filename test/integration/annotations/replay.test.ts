import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { imageContents } from '../../../runtime/cluster/images.js';
import { createLocalProvider } from '../../../runtime/cluster/index.js';
import { createPool } from '../../../runtime/cluster/pool.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { RunAppender } from '../../../runtime/data/runAppender.js';
import { id, type FamilyId, type RolloutId, type TaskId, type Trajectory } from '../../../runtime/domain/index.js';
import * as m from '../../../runtime/protocol/methods.js';
import type {
  AnnotationOp,
  AnnotationView,
  DesktopRow,
  PoolView,
  TrajectoryRow,
  TrajectoryView,
} from '../../../runtime/protocol/types.js';
import { newRun, poolConfigOf } from '../../../runtime/data/collections.js';
import { demonstrate } from '../../../runtime/run/demonstrate.js';
import { specOf } from '../../../runtime/cluster/provide.js';
import { openTasks } from '../../../runtime/tasks/open.js';
import { createStudioService, type Broadcast, type StudioService } from '../../../runtime/service/index.js';
import { hasFrame } from '../../helpers/data/hasFrame.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { bundle } from '../../helpers/data/manager.js';
import { processTree } from '../../helpers/machine/processes.js';

/** A scripted demonstration, edited, acted out again and judged on real local desktops. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: replays on local desktops (${noLocal})`);

const FAMILY = 'desk/entry-type';
let dir: string,
  entry: { file: string },
  demo: Trajectory,
  n = 0,
  run: string;
const open: StudioService[] = [];
const desktops = (): number =>
  processTree(process.pid).filter((p) => p.pid !== process.pid && /Xvfb|bwrap/.test(p.what)).length;

describe.skipIf(noLocal)('replay and verify', () => {
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-replay-'));
    entry = await bundle('runtime/main.ts', 'runtime');
    const config = parseRunFile({ preset: 'quickstart' }),
      tasks = await openTasks(config, await imageContents(config.desktops.image), entry),
      provider = createLocalProvider(),
      pool = createPool({ provider, spec: specOf(config.desktops, { a11y: true }), size: 1 });
    const store = await RunAppender.open(join(dir, 'source'), {
        index: 'local',
        create: newRun('source', Date.now()),
        pool: poolConfigOf,
      }),
      made: Trajectory[] = [];
    try {
      await demonstrate(
        {
          pool,
          source: tasks.source as Parameters<typeof demonstrate>[0]['source'],
          tasks: tasks.engine,
          frames: store.store.frames,
          now: Date.now,
        },
        {
          families: [id<FamilyId>(FAMILY)],
          seeds: [3, 4, 5],
          count: 1,
          parallel: 1,
          maxSteps: 12,
          signal: new AbortController().signal,
          onProgress: () => undefined,
          onTrajectory: (t) => {
            made.push(t);
            return Promise.resolve();
          },
        },
      );
    } finally {
      await pool.close();
      await provider.dispose();
      await store.close();
    }
    demo = made[0]!;
  });
  beforeEach(async () => {
    run = join(dir, `run${n++}`);
    const store = await RunAppender.open(run, {
      index: 'local',
      create: newRun('edited', Date.now()),
      pool: poolConfigOf,
    });
    await store.record(demo, 'never');
    await store.record(
      {
        ...demo,
        id: id<RolloutId>('imported/1'),
        task: id<TaskId>('0a1b'),
        family: id<FamilyId>('0a1b'),
        provenance: { kind: 'imported', from: 'osworld' },
      },
      'never',
    );
    await store.record({ ...demo, id: id<RolloutId>('probe/heldout/v1/0'), provenance: { kind: 'probe' } }, 'never');
    await store.close();
  });
  afterEach(async () => {
    for (const s of open.splice(0)) await s.close({ now: true });
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  function client(): {
    readonly service: StudioService;
    readonly told: Broadcast[];
    call<R>(
      method: { readonly method: string },
      params: unknown,
      o?: { signal?: AbortSignal; notify?: (method: string, params: unknown) => void },
    ): Promise<R>;
  } {
    const service = createStudioService({ entry, cacheDir: join(dir, 'cache'), log: () => undefined }),
      told: Broadcast[] = [];
    open.push(service);
    service.onBroadcast((b) => {
      told.push(b);
    });
    return {
      service,
      told,
      call: async <R>(
        method: { readonly method: string },
        params: unknown,
        o: { signal?: AbortSignal; notify?: (method: string, params: unknown) => void } = {},
      ) =>
        service.handlers.get(method.method)!(params, {
          signal: o.signal ?? new AbortController().signal,
          notify: o.notify ?? (() => undefined),
        }) as Promise<R>,
    };
  }
  const typed = (t: {
    readonly steps: Trajectory['steps'] | TrajectoryView['steps'];
  }): { step: number; action: number; text: string } =>
    t.steps.flatMap((s) =>
      s.actions.flatMap((a, action) => (a.type === 'type' ? [{ step: s.index, action, text: a.text }] : [])),
    )[0]!;

  it('says failure of a demonstration spoilt by an edit, success of the mended one, and only that joins the pool', async () => {
    const s = client(),
      rollout = demo.id,
      { step, action, text } = typed(demo),
      at = (value: string): AnnotationOp => ({ op: 'action', step, action, value: { type: 'type', text: value } });
    const edit = (base: number, ...ops: AnnotationOp[]): Promise<AnnotationView> =>
      s.call<AnnotationView>(m.editAnnotations, { run, rollout, base, ops });
    await edit(
      0,
      at(`${text}x`),
      { op: 'thought', step, text: 'a slip' },
      { op: 'delete', steps: [demo.steps.at(-1)!.index] },
    );
    const seen: { step: number; of: number; desktop?: string }[] = [],
      rows: (DesktopRow | undefined)[] = [],
      pictures: Promise<string>[] = [],
      watching = new AbortController();
    const spoilt = await s.call<AnnotationView>(
      m.replayTrajectory,
      { run, rollout, provider: 'local' },
      {
        notify: (method, p) => {
          expect(method).toBe('annotation/replayProgress');
          const x = p as { step: number; of: number; desktop?: string };
          seen.push(x);
          // While it acts, its desktop is listed and can be watched like any other.
          if (x.desktop && pictures.length === 0)
            pictures.push(
              (async () => {
                rows.push(
                  (await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops.find(
                    (d) => d.desktop === x.desktop,
                  ),
                );
                const w = await s.service.watch(x.desktop!, { maxFps: 5 }, watching.signal);
                for await (const patch of w.patches) {
                  watching.abort();
                  return `${patch.width}x${patch.height}`;
                }
                return 'none';
              })(),
            );
        },
      },
    );
    expect(spoilt.replays).toMatchObject([
      {
        revision: 1,
        outcome: 'failure',
        reward: 0,
        pooled: false,
        rollout: `replay/${rollout}@1`,
        report: { checks: expect.any(Array) as unknown[] },
      },
    ]);
    expect(spoilt.trajectory.row.annotated).toMatchObject({ edited: true, replayed: 'failure' });
    // The end was deleted; a person's `finished` stands for it.
    expect([seen[0], seen.at(-1)?.step, seen.every((x) => x.of === demo.steps.length)]).toEqual([
      { run, rollout, step: 0, of: demo.steps.length },
      demo.steps.length,
      true,
    ]);
    expect([rows[0]?.run, rows[0]?.rollout, await pictures[0]]).toEqual([run, `replay/${rollout}@1`, '640x400']);
    await expect
      .poll(() =>
        s.told.some((b) => b.method === 'desktop/changed' && (b.params as { row?: unknown }).row === undefined),
      )
      .toBe(true);

    await edit(1, at(text), { op: 'thought', step, text: null });
    const mended = await s.call<AnnotationView>(m.replayTrajectory, { run, rollout, provider: 'local' }),
      name = mended.replays[1]!.rollout!;
    expect(mended.replays[1]).toMatchObject({
      revision: 2,
      outcome: 'success',
      reward: 1,
      pooled: true,
      rollout: `replay/${rollout}@2`,
    });
    expect(mended.trajectory.row.annotated).toMatchObject({ replayed: 'success' });
    const t = await s.call<TrajectoryView>(m.getTrajectory, { run, rollout: name });
    expect([t.row.provenance, t.row.outcome, t.steps.map((x) => x.origin), t.steps.map((x) => x.actions)]).toEqual([
      'human',
      'success',
      [...demo.steps.slice(0, -1).map(() => 'oracle'), 'human'],
      demo.steps.map((x) => x.actions),
    ]);
    for (const x of t.steps) {
      expect([x.tokens, x.version, x.settled]).toEqual([undefined, undefined, true]);
      expect(await hasFrame(run, x.frame.hash)).toBe(true);
    }
    const pool = await s.call<PoolView>(m.listPool, { run });
    expect(pool.families.flatMap((f) => f.entries.map((e) => [e.rollout, e.source]))).toEqual([[name, 'human']]);
    expect(
      (await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run, filter: { annotated: true } })).rows.map(
        (r) => r.rollout,
      ),
    ).toEqual([rollout]);
    // Acted out again under a name of its own; a second time the same is no news to the pool.
    const again = await s.call<AnnotationView>(m.replayTrajectory, { run, rollout, provider: 'local' });
    expect(again.replays[2]).toMatchObject({
      outcome: 'success',
      rollout: `${name}.2`,
      pooled: false,
      why: expect.stringMatching(/./) as string,
    });
    await s.service.close({ now: false });
    expect((await client().call<AnnotationView>(m.getAnnotations, { run, rollout })).replays).toEqual(again.replays);
    expect(desktops()).toBe(0);
  });

  it('cancelled leaves nothing: no trajectory, no replay, no desktop', async () => {
    const s = client(),
      stop = new AbortController();
    await expect(
      s.call(
        m.replayTrajectory,
        { run, rollout: demo.id, provider: 'local' },
        {
          signal: stop.signal,
          notify: (_m, p) => {
            if ((p as { step: number }).step === 1) stop.abort();
          },
        },
      ),
    ).rejects.toMatchObject({ kind: 'cancelled' });
    expect((await s.call<AnnotationView>(m.getAnnotations, { run, rollout: demo.id })).replays).toEqual([]);
    expect((await s.call<{ total: number }>(m.listTrajectories, { run })).total).toBe(3);
    expect([
      s.service.busy,
      (await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops,
      desktops(),
    ]).toEqual([false, [], 0]);
    // Before it began, nothing is started at all.
    stop.abort();
    await expect(
      s.call(m.replayTrajectory, { run, rollout: demo.id, provider: 'local' }, { signal: stop.signal }),
    ).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it('on a desktop that is lost is an error, not a failure', async () => {
    const s = client();
    const v = await s.call<AnnotationView>(
      m.replayTrajectory,
      { run, rollout: demo.id, provider: 'local' },
      {
        notify: (_m, p) => {
          const x = p as { step: number; desktop?: string };
          if (x.step === 1) void s.call(m.restartDesktop, { desktop: x.desktop! });
        },
      },
    );
    expect(v.replays).toMatchObject([{ revision: 0, outcome: 'error', error: { kind: 'desktop.lost' } }]);
    expect([
      v.replays[0]!.reward,
      v.replays[0]!.rollout,
      (await s.call<{ total: number }>(m.listTrajectories, { run })).total,
      desktops(),
    ]).toEqual([undefined, undefined, 3, 0]);
  });

  it('of a demonstration that was only tagged is judged, and the pool keeps the demonstration alone', async () => {
    const s = client(),
      rollout = demo.id;
    await s.call<PoolView>(m.addToPool, { run, rollout });
    await s.call<AnnotationView>(m.editAnnotations, { run, rollout, base: 0, ops: [{ op: 'tags', tags: ['nice'] }] });
    const v = await s.call<AnnotationView>(m.replayTrajectory, { run, rollout, provider: 'local' });
    expect(v.replays).toMatchObject([
      { revision: 1, outcome: 'success', pooled: false, why: `the pool has the same steps of this task: ${rollout}` },
    ]);
    expect(
      (await s.call<PoolView>(m.listPool, { run })).families.flatMap((f) => f.entries.map((e) => e.rollout)),
    ).toEqual([rollout]);
    // The other way round: replayed first, what was recorded adds nothing.
    await s.call<PoolView>(m.removeFromPool, { run, rollouts: [rollout], reason: 'to see' });
    await s.call<PoolView>(m.addToPool, { run, rollout: v.replays[0]!.rollout! });
    await expect(s.call(m.addToPool, { run, rollout })).rejects.toMatchObject({
      kind: 'params.invalid',
      message: expect.stringContaining(v.replays[0]!.rollout!) as string,
    });
  });

  it('of an evaluation is judged, and never learnt from', async () => {
    const s = client(),
      v = await s.call<AnnotationView>(m.replayTrajectory, { run, rollout: 'probe/heldout/v1/0', provider: 'local' });
    expect(v.replays).toMatchObject([
      { outcome: 'success', pooled: false, why: expect.stringContaining('evaluation') as string },
    ]);
    expect((await s.call<PoolView>(m.listPool, { run })).entries).toBe(0);
  });

  it('of a task that cannot be set up again is refused before a desktop is started', async () => {
    const s = client();
    await expect(s.call(m.replayTrajectory, { run, rollout: 'imported/1', provider: 'local' })).rejects.toMatchObject({
      kind: 'task.unsupported',
      message: expect.stringContaining('0a1b cannot be set up again') as string,
    });
    expect([s.service.busy, desktops()]).toEqual([false, 0]);
    // The run is free again.
    expect(
      await s.call<AnnotationView>(m.editAnnotations, {
        run,
        rollout: 'imported/1',
        base: 0,
        ops: [{ op: 'reviewed', value: true }],
      }),
    ).toMatchObject({ reviewed: true });
  });
});
