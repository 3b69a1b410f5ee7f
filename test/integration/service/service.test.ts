import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import { decodePng } from '../../../runtime/data/store/png.js';
import * as m from '../../../runtime/protocol/methods.js';
import type {
  DesktopRow,
  Lanes,
  RunDetail,
  RunEvent,
  RunStatus,
  RunSummary,
  TrajectoryRow,
  TrajectoryView,
} from '../../../runtime/protocol/types.js';
import {
  createStudioService,
  gone,
  type Broadcast,
  type ScreenPatch,
  type StudioService,
} from '../../../runtime/service/index.js';
import { hasFrame } from '../../helpers/data/hasFrame.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { bundle } from '../../helpers/data/manager.js';
import { processTree, stillRunning } from '../../helpers/machine/processes.js';
import { ensureBundle, replay } from '../../helpers/run/cli.js';
import { follow } from '../../helpers/service/follow.js';

/** Training runs driven through the service: real local desktops, real replicas, real trainer. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: the service with a run on local desktops (${noLocal})`);

const entry = { file: join(process.cwd(), 'dist/runtime.js') };
let dir: string;
const open: StudioService[] = [],
  children: ChildProcess[] = [];
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-studio-'));
});
afterEach(async () => {
  for (const c of children.splice(0)) c.kill('SIGKILL');
  for (const s of open.splice(0)) await s.close({ now: true });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const file = (rollouts: number): string =>
  JSON.stringify({
    name: 'service',
    seed: 3,
    tasks: { families: ['press-button', 'term-touch'] },
    desktops: { count: 2, provider: 'local' },
    policy: { replicas: 2 },
    rollout: { maxSteps: 4 },
    curation: { dynamicRollouts: { max: 4 } },
    trainer: { batchGroups: 1, epochs: 1, replay: 4 },
    warmStart: { demonstrations: 2, steps: 10 },
    evaluation: { episodes: 2, everyMinutes: 0 },
    budget: { rollouts },
  } satisfies RunFile);

interface Studio {
  readonly service: StudioService;
  readonly broadcasts: Broadcast[];
  idle: number;
  call<R>(method: { readonly method: string }, params: unknown): Promise<R>;
}
function studio(log: (text: string) => void = () => undefined): Studio {
  const service = createStudioService({
      entry,
      cacheDir: join(dir, 'cache'),
      log: (_level, text) => {
        log(text);
      },
    }),
    broadcasts: Broadcast[] = [];
  open.push(service);
  service.onBroadcast((b) => broadcasts.push(b));
  const s: Studio = {
    service,
    broadcasts,
    idle: 0,
    call: async <R>(method: { readonly method: string }, params: unknown) =>
      service.handlers.get(method.method)!(params, {
        signal: new AbortController().signal,
        notify: () => undefined,
      }) as Promise<R>,
  };
  service.onIdle(() => {
    s.idle++;
  });
  return s;
}
/** What this process started and has not ended. */
const mine = (): ReturnType<typeof processTree> =>
  processTree(process.pid).filter((p) => p.pid !== process.pid && /__replica|__trainer|Xvfb|bwrap/.test(p.what));

describe.skipIf(noLocal)('the service with a run on local desktops', () => {
  it('starts a run, shows it live, pauses, restarts a desktop, stops it cleanly and leaves nothing', async () => {
    const s = studio();
    expect(s.service).toMatchObject({ active: [], busy: false });
    const { run, id } = await s.call<{ run: string; id: string }>(m.startRun, { text: file(10_000), base: dir });
    expect(existsSync(join(run, 'run.json'))).toBe(true);
    expect(s.service).toMatchObject({ active: [run], busy: true });
    for (const [method, params] of [
      [m.startRun, { base: dir }],
      [m.resumeRun, { run }],
      [m.evaluate, { run }],
    ] as const)
      await expect(s.call(method, params), method.method).rejects.toMatchObject({
        kind: 'busy',
        message: expect.stringContaining(id) as string,
      });
    const live = follow(s.service, run);

    // A probe is seen before any training: its steps come, and its trajectory can be opened while it runs.
    const first = await live.when((e) => e.type === 'started');
    if (first.type !== 'started') throw new Error('not started');
    expect(first.row).toMatchObject({
      provenance: 'probe',
      outcome: 'running',
      instruction: expect.stringMatching(/\w/) as string,
    });
    const desktops = (await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops;
    expect(desktops.map((d) => [d.run, d.provider])).toEqual([
      [run, 'local'],
      [run, 'local'],
    ]);

    // A desktop is watched: the whole screen, then what changes.
    const stopWatching = new AbortController(),
      watched = await s.service.watch(first.desktop!, { maxFps: 10 }, stopWatching.signal),
      patches: ScreenPatch[] = [];
    for await (const p of watched.patches) {
      patches.push(p);
      if (patches.length === 4) stopWatching.abort();
    }
    expect(patches[0]).toMatchObject({ x: 0, y: 0, width: watched.width, height: watched.height });
    for (const p of patches) {
      const png = await decodePng(Buffer.from(p.png));
      expect([png.width, png.height]).toEqual([p.width, p.height]);
      expect(p.x + p.width <= watched.width && p.y + p.height <= watched.height).toBe(true);
    }

    await live.when((e) => e.type === 'trained');
    const step = await live.when(
      (e) =>
        e.type === 'step' &&
        live.events.some((x) => x.type === 'started' && x.row.rollout === e.rollout && x.row.provenance === 'rollout'),
    );
    if (step.type !== 'step') throw new Error('not a step');
    expect(step.step.tokens?.[0]?.label).toBeTruthy();
    expect(step.step.replica).toMatch(/^replica-/);
    const place = live.events
      .flatMap((e) => (e.type === 'step' ? (e.step.tokens ?? []) : []))
      .find((t) => t.alternatives?.some((a) => a.at))!;
    expect(place.alternatives!.length).toBeGreaterThan(5);
    expect(place.alternatives!.every((a) => a.at && a.at.width > 0)).toBe(true);

    // One that was trained has its mask, advantage and weights; one that runs can be opened.
    const trained = await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, {
      run,
      filter: { provenance: ['rollout'], outcome: ['success', 'failure'] },
      sort: 'oldest',
    });
    const done = trained.rows.find((r) => r.state === 'trained')!,
      view = await s.call<TrajectoryView>(m.getTrajectory, { run, rollout: done.rollout });
    expect(view.steps.some((x) => x.kept && x.weight !== undefined && x.weight > 0 && x.weight <= 1.000001)).toBe(true);
    expect(view.group?.members.some((x) => x.rollout === done.rollout)).toBe(true);
    for (const x of view.steps) expect(await hasFrame(run, x.frame.hash)).toBe(true);
    await expect
      .poll(
        async () => {
          const [r] = (
            await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, {
              run,
              filter: { outcome: ['running'], provenance: ['rollout'] },
            })
          ).rows;
          const v = r && (await s.call<TrajectoryView>(m.getTrajectory, { run, rollout: r.rollout }));
          return v?.live;
        },
        { timeout: 60_000 },
      )
      .toBe(true);

    // Paused: what runs ends, nothing begins; then it goes on.
    await s.call(m.pauseRun, { run });
    expect((await s.call<{ runs: RunSummary[] }>(m.listRuns, { roots: [run] })).runs[0]).toMatchObject({
      state: 'paused',
      status: { state: 'paused' },
    });
    await expect
      .poll(
        async () =>
          (await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops.every((d) => d.rollout === undefined),
        { timeout: 60_000 },
      )
      .toBe(true);
    const before = live.events.filter((e) => e.type === 'started').length;
    await s.call(m.unpauseRun, { run });
    await live.when(
      (e) => e.type === 'started' && live.events.filter((x) => x.type === 'started').indexOf(e) >= before,
    );

    // A desktop restarted by hand: its rollout is an error that is tried again, and another desktop comes.
    await expect
      .poll(
        async () => {
          const busy = (await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops.find(
            (d) => d.rollout !== undefined,
          );
          if (busy) await s.call(m.restartDesktop, { desktop: busy.desktop }).catch(() => undefined);
          return live.events.some((e) => e.type === 'ended' && e.row.errorKind === 'desktop.lost');
        },
        { timeout: 60_000, interval: 300 },
      )
      .toBe(true);

    const statuses = s.broadcasts.flatMap((b) => (b.method === 'run/status' ? [b.params] : []));
    expect(statuses.every((x) => x.ledger.closes)).toBe(true);
    expect((statuses.at(-1)!.status as RunStatus).bounds?.rolloutsPerHour).toBeGreaterThan(0);
    expect(s.broadcasts.some((b) => b.method === 'desktop/changed')).toBe(true);
    // The restarted desktop may still be on its way: without it, nothing would watch that it ends with the run.
    const count = (what: string): number => mine().filter((p) => p.what.includes(what)).length;
    await expect.poll(() => ['__replica', '__trainer', 'Xvfb'].map(count), { timeout: 60_000 }).toEqual([2, 1, 2]);
    const tree = mine();
    const summary = await s.call<RunSummary>(m.stopRun, { run });
    expect(summary).toMatchObject({ state: 'stopped', run });
    await live.ended;
    expect(live.batches.at(-1)).toMatchObject({ ended: true, live: true });
    expect(live.events.filter((e) => e.type === 'closed').map((e) => (e.type === 'closed' ? e.reason : ''))).toEqual([
      'stopped',
    ]);
    expect(s.service).toMatchObject({ active: [], busy: false });
    expect(s.idle).toBeGreaterThan(0);
    await expect.poll(() => stillRunning(tree), { timeout: 30_000 }).toEqual([]);

    // What was told live is what the folder says; the lanes show every desktop, replica and the trainer.
    const again: RunEvent[] = [];
    for await (const b of s.service.events({ run, sinceSeq: 0 }, new AbortController().signal)) again.push(...b.events);
    expect(again.map((e) => [e.seq, e.type])).toEqual(live.events.map((e) => [e.seq, e.type]));
    const lanes = await s.call<Lanes>(m.getLanes, { run, width: 5000 });
    expect([...new Set(lanes.lanes.map((l) => l.kind))].sort()).toEqual(['desktop', 'replica', 'trainer']);
    expect(new Set(lanes.lanes.flatMap((l) => l.what))).toEqual(
      new Set([
        ...new Set(lanes.lanes.flatMap((l) => l.what)),
        'reset',
        'setup',
        'observe',
        'decide',
        'act',
        'settle',
        'verify',
        'update',
        'sync',
      ]),
    );
    expect(lanes.syncs.length).toBeGreaterThan(0);
    const detail = await s.call<RunDetail>(m.getRun, { run }),
      { counts } = await replay(run);
    expect(detail.ledger).toMatchObject({
      generated: counts.generated,
      trained: counts.trained,
      inFlight: counts.inFlight,
      closes: true,
    });
    expect(detail.checkpoints.length).toBeGreaterThan(0);
  }, 240_000);

  it('a start that is cancelled leaves nothing; one that had begun is stopped cleanly', async () => {
    const base = join(dir, 'cancelled'),
      asks = (s: Studio, method: { readonly method: string }, params: unknown, signal: AbortSignal): Promise<unknown> =>
        s.service.handlers.get(method.method)!(params, { signal, notify: () => undefined });
    const s = studio(),
      early = new AbortController(),
      starting = asks(s, m.startRun, { text: file(10_000), base }, early.signal);
    // Desktops are being chosen.
    expect(s.service.busy).toBe(true);
    early.abort();
    await expect(starting).rejects.toMatchObject({
      error: { kind: 'cancelled', message: expect.stringContaining('while it was starting') as string },
    });
    expect(s.service).toMatchObject({ active: [], busy: false });
    expect(s.idle).toBe(1);
    expect(existsSync(base)).toBe(false);

    // Its processes are on their way: what is said first is the last that is wanted.
    const { run } = await s.call<{ run: string }>(m.startRun, { text: file(10_000), base });
    await s.call(m.stopRun, { run, now: true });
    const late = new AbortController(),
      hasty = studio((text) => {
        if (text.includes('Resumed')) late.abort();
      });
    await expect(asks(hasty, m.resumeRun, { run }, late.signal)).rejects.toMatchObject({
      error: { kind: 'cancelled' },
    });
    expect(late.signal.aborted).toBe(true);
    expect(hasty.service).toMatchObject({ active: [], busy: false });
    expect((await hasty.call<{ runs: RunSummary[] }>(m.listRuns, { roots: [run] })).runs[0]).toMatchObject({
      state: 'stopped',
    });
    const events: RunEvent[] = [];
    for await (const b of hasty.service.events({ run, sinceSeq: 0, types: ['closed'] }, new AbortController().signal))
      events.push(...b.events);
    expect(events.map((e) => (e.type === 'closed' ? e.reason : ''))).toEqual(['stopped', 'stopped']);
    await expect.poll(mine, { timeout: 30_000 }).toEqual([]);

    // A window that went away cancelled nothing: training survives it.
    const left = new AbortController(),
      kept = studio((text) => {
        if (text.includes('Resumed')) left.abort(gone);
      });
    await asks(kept, m.resumeRun, { run }, left.signal);
    expect(kept.service.active).toEqual([run]);
    await kept.call(m.stopRun, { run, now: true });
    await expect.poll(mine, { timeout: 30_000 }).toEqual([]);
  });

  it('a run whose process is killed is interrupted; resumed, it goes on to its end', async () => {
    const service = await bundle('runtime/service/index.ts', 'service'),
      driver = join(dir, 'driver.mjs');
    // Desktops are made from what lies beside the code that asks for them.
    await cp('runtime/cluster/images', join(dirname(service.file), 'images'), { recursive: true });
    await writeFile(
      driver,
      `
      const { createStudioService } = await import(${JSON.stringify(service.file)});
      const s = createStudioService({ entry: ${JSON.stringify(entry)}, cacheDir: ${JSON.stringify(join(dir, 'cache2'))}, log: () => undefined }), c = { signal: new AbortController().signal, notify() {} };
      const { run } = await s.handlers.get('run/start')({ text: ${JSON.stringify(file(16))}, base: ${JSON.stringify(dir)} }, c);
      for await (const b of s.events({ run, sinceSeq: 0, types: ['trained'] }, c.signal)) if (b.events.length > 0) console.log(run);
    `,
    );
    const child = spawn(process.execPath, [driver], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const run = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).once('line', resolve);
      child.once('exit', () => {
        reject(new Error('it ended before it trained'));
      });
    });
    const s = studio(),
      tree = processTree(child.pid!);
    expect((await s.call<{ runs: RunSummary[] }>(m.listRuns, { roots: [run] })).runs[0]!.state).toBe('elsewhere');
    await expect(s.call(m.resumeRun, { run })).rejects.toMatchObject({ kind: 'run.busy' });
    const gone = new Promise((r) => child.once('exit', r));
    child.kill('SIGKILL');
    await gone;
    await expect.poll(() => stillRunning(tree), { timeout: 60_000 }).toEqual([]);
    const [dead] = (await s.call<{ runs: RunSummary[] }>(m.listRuns, { roots: [run] })).runs;
    expect(dead).toMatchObject({ state: 'interrupted' });
    const running = await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, {
      run,
      filter: { outcome: ['running'] },
    });
    expect(running.rows).toEqual([]);

    await s.call(m.resumeRun, { run });
    const live = follow(s.service, run);
    await live.ended;
    expect(live.events.at(-1)).toMatchObject({ type: 'closed', reason: 'finished' });
    const after = await s.call<RunDetail>(m.getRun, { run });
    expect(after.summary.state).toBe('finished');
    expect(after.ledger.closes).toBe(true);
    expect(after.evals.at(-1)?.label).toBe('final');
    expect(after.ledger.generated).toBeGreaterThanOrEqual(16);

    // A run that is finished and resumed ends at once: no lessons, no screens, no rollouts.
    const rollouts = after.ledger.generated;
    await s.call(m.resumeRun, { run });
    await follow(s.service, run).ended;
    expect((await s.call<RunDetail>(m.getRun, { run })).ledger.generated).toBe(rollouts);

    // Its checkpoint can be evaluated, with progress, and that can be cancelled.
    const progress: unknown[] = [],
      abort = new AbortController(),
      evaluate = s.service.handlers.get(m.evaluate.method)!;
    const point = await evaluate(
      { run, episodes: 2, split: 'train' },
      { signal: abort.signal, notify: (_, p) => progress.push(p) },
    );
    expect(point).toMatchObject({ label: 'train', episodes: 2 });
    expect(progress.at(-1)).toMatchObject({ run, done: 2, episodes: 2 });
    const cancelled = evaluate(
      { run, episodes: 500 },
      {
        signal: abort.signal,
        notify: () => {
          abort.abort();
        },
      },
    );
    await expect(cancelled).rejects.toMatchObject({ error: { kind: 'cancelled' } });
    await expect.poll(mine, { timeout: 30_000 }).toEqual([]);
    expect(await readFile(join(run, 'run.json'), 'utf8')).toContain('service');
  }, 300_000);
});
