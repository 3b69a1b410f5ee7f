import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import * as m from '../../../runtime/protocol/methods.js';
import type {
  ControlState,
  DesktopRow,
  InputEvent,
  PoolView,
  RunDetail,
  RunEvent,
  TrajectoryRow,
  TrajectoryView,
} from '../../../runtime/protocol/types.js';
import { createStudioService, type Broadcast, type StudioService } from '../../../runtime/service/index.js';
import { hasFrame } from '../../helpers/data/hasFrame.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { processes } from '../../helpers/machine/processes.js';
import { ensureBundle } from '../../helpers/run/cli.js';
import { untaughtRun } from '../../helpers/run/untaughtRun.js';

/** A person at real desktops, by the events a page would send. */
const noLocal = await whyNoLocalDesktops(),
  docker = await engineHere();
if (noLocal) console.warn(`skipped: a person at local desktops (${noLocal})`);
if (!docker) console.warn('skipped: a person at Docker desktops (no engine)');

const entry = { file: join(process.cwd(), 'dist/runtime.js') };
let dir: string;
const open: StudioService[] = [];
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-control-'));
});
afterEach(async () => {
  for (const s of open.splice(0)) await s.close({ now: true });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

interface Studio {
  readonly service: StudioService;
  readonly broadcasts: Broadcast[];
  readonly client: AbortController;
  call<R>(method: { readonly method: string }, params: unknown): Promise<R>;
  state(session: string): ControlState | undefined;
}
function studio(): Studio {
  const service = createStudioService({ entry, cacheDir: join(dir, 'cache'), log: () => undefined }),
    broadcasts: Broadcast[] = [],
    client = new AbortController();
  open.push(service);
  service.onBroadcast((b) => broadcasts.push(b));
  return {
    service,
    broadcasts,
    client,
    call: async <R>(method: { readonly method: string }, params: unknown) =>
      service.handlers.get(method.method)!(params, {
        signal: new AbortController().signal,
        client: client.signal,
        notify: () => undefined,
      }) as Promise<R>,
    state: (session) =>
      broadcasts
        .filter((b) => b.method === 'control/changed')
        .map((b) => b.params as ControlState)
        .filter((s) => s.session === session)
        .at(-1),
  };
}
let clock = 0;
const typed = (text: string): InputEvent[] =>
  [...text].flatMap((c): InputEvent[] => {
    const key = c === '\n' ? 'Enter' : c;
    return [
      { type: 'key', at: (clock += 10), key, down: true },
      { type: 'key', at: (clock += 10), key, down: false },
    ];
  });
const click = (x: number, y: number): InputEvent[] => [
  { type: 'move', at: (clock += 10), x, y },
  { type: 'button', at: (clock += 10), x, y, button: 'left', down: true },
  { type: 'button', at: (clock += 60), x, y, button: 'left', down: false },
];
const line = (s: ControlState): string => /"(.*)"/.exec(s.instruction)![1]!;

describe.each([
  ['local', !noLocal],
  ['docker', docker !== undefined],
] as const)('recording on %s desktops', (provider, there) => {
  it.skipIf(!there)(
    'a success is kept and pooled by itself; a failure only when asked for; each step has its screen',
    async () => {
      const s = studio();
      const begun = await s.call<ControlState>(m.recordDemonstration, {
        base: join(dir, provider),
        family: 'term-touch',
        provider,
      });
      expect(begun).toMatchObject({
        purpose: 'record',
        mode: 'human',
        family: 'desk/term-touch',
        steps: [],
        abandonedAt: expect.any(Number) as number,
      });
      const session = begun.session,
        { run } = begun;
      expect(s.service.busy).toBe(true);
      expect(await s.call<ControlState>(m.attachControl, { session })).not.toHaveProperty('abandonedAt');
      expect((await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops.map((d) => d.desktop)).toContain(
        begun.desktop,
      );

      // What is typed is seen, and is one action with the screen from before it.
      const stop = new AbortController(),
        watched = await s.service.watch(begun.desktop, { maxFps: 30 }, stop.signal),
        seen: number[] = [];
      const watching = (async () => {
        for await (const p of watched.patches) seen.push(p.width * p.height);
      })();
      await expect.poll(() => seen.length).toBeGreaterThan(0);
      const before = seen.length;
      await s.call(m.controlInput, { session, events: click(600, 390) });
      await s.call(m.controlInput, { session, events: typed(line(begun)) });
      await expect.poll(() => seen.length).toBeGreaterThan(before);
      await expect.poll(() => s.state(session)?.doing).toBe(`typing ${JSON.stringify(line(begun))}`);
      // A click that does no good is taken out again.
      await expect.poll(() => s.state(session)?.steps.length).toBe(1);
      await s.call(m.controlInput, { session, events: typed('\n') });
      await expect
        .poll(() => s.state(session)?.steps.map((x) => x.actions[0]))
        .toEqual([
          { type: 'click', at: { x: 600, y: 390 } },
          { type: 'type', text: `${line(begun)}\n` },
        ]);
      stop.abort();
      await watching;
      const done = await s.call<ControlState>(m.finishControl, { session });
      expect(done).toMatchObject({ mode: 'ended', verdict: { outcome: 'success', reward: 1 }, kept: { pooled: true } });
      const rollout = done.kept!.rollout;
      const { rows } = await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, {
        run,
        filter: { provenance: ['human'] },
      });
      expect(rows).toMatchObject([{ rollout, outcome: 'success', steps: 3 }]);
      const view = await s.call<TrajectoryView>(m.getTrajectory, { run, rollout });
      expect(view.steps.map((x) => [x.origin, x.tokens, x.version, x.actions[0]!.type])).toEqual([
        ['human', undefined, undefined, 'click'],
        ['human', undefined, undefined, 'type'],
        ['human', undefined, undefined, 'finished'],
      ]);
      for (const x of view.steps) expect(await hasFrame(run, x.frame.hash)).toBe(true);
      expect(view.steps[1]!.frame.hash).not.toBe(view.steps[2]!.frame.hash);
      expect(
        (await s.call<PoolView>(m.listPool, { run })).families.flatMap((f) => f.entries.map((e) => e.rollout)),
      ).toEqual([rollout]);
      await expect(s.call(m.controlInput, { session, events: click(1, 1) })).rejects.toMatchObject({
        kind: 'params.invalid',
      });
      await s.call(m.detachControl, { session });
      expect(s.service.busy).toBe(false);

      // The next one is another task of the family; left undone it fails, and is kept only with a word.
      const second = await s.call<ControlState>(m.recordDemonstration, {
        base: join(dir, provider),
        family: 'desk/term-touch',
        provider,
      });
      expect(second.task).not.toBe(begun.task);
      await s.call(m.controlAct, { session: second.session, action: { type: 'wait', ms: 10 } });
      expect((await s.call<ControlState>(m.dropStep, { session: second.session })).steps).toEqual([]);
      const failed = await s.call<ControlState>(m.finishControl, { session: second.session });
      expect(failed).toMatchObject({ verdict: { outcome: 'failure' } });
      expect(failed.kept).toBeUndefined();
      await expect(s.call(m.keepDemonstration, { session: second.session, pool: 'override' })).rejects.toMatchObject({
        kind: 'params.invalid',
      });
      const kept = await s.call<ControlState>(m.keepDemonstration, {
        session: second.session,
        pool: 'override',
        reason: 'shows the way',
        note: 'first half only',
        tags: ['half'],
      });
      expect(kept.kept).toMatchObject({ pooled: true });
      expect(
        await s.call<{ tags: string[]; note: string }>(m.getAnnotations, { run, rollout: kept.kept!.rollout }),
      ).toMatchObject({ tags: ['half'], note: 'first half only' });
      await s.call(m.discardControl, { session: second.session });
      expect(
        (await s.call<PoolView>(m.listPool, { run })).families.flatMap((f) => f.entries.map((e) => e.rollout)),
      ).toEqual([rollout]);
      expect(
        (await s.call<{ sessions: ControlState[] }>(m.listControl, {})).sessions.filter(
          (x) => x.session === second.session,
        ),
      ).toEqual([]);
    },
    180_000,
  );
});

describe.skipIf(noLocal)('recording', () => {
  it('a desktop that dies is an error and no failure; what is held out is not demonstrated', async () => {
    const s = studio(),
      base = join(dir, 'dies');
    await expect(
      s.call(m.recordDemonstration, { base, family: 'term-touch', seed: 7_777_777, provider: 'local' }),
    ).rejects.toMatchObject({ error: { kind: 'config.invalid' } });
    await expect(s.call(m.recordDemonstration, { base, family: 'no-such', provider: 'local' })).rejects.toMatchObject({
      kind: 'not.found',
    });
    const begun = await s.call<ControlState>(m.recordDemonstration, {
        base,
        family: 'term-touch',
        provider: 'local',
      }),
      { session } = begun;
    await s.call(m.attachControl, { session });
    await s.call(m.controlInput, { session, events: typed('exi') });
    process.kill(sandboxOf(begun.desktop), 'SIGKILL');
    await expect
      .poll(() => s.state(session))
      .toMatchObject({ mode: 'ended', verdict: { outcome: 'error', error: { kind: 'desktop.lost' } } });
    expect((await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run: begun.run })).rows).toEqual([]);
    await expect(s.call(m.keepDemonstration, { session, pool: 'override', reason: 'x' })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
    expect(s.service.busy).toBe(false);
    // The window is gone: the session will be.
    s.client.abort();
    await expect.poll(() => s.state(session)?.abandonedAt).toBeDefined();
    await s.call(m.discardControl, { session });
    expect((await s.call<{ sessions: ControlState[] }>(m.listControl, {})).sessions).toEqual([]);
  }, 120_000);
});

/** The process that a local desktop's sandbox hangs from. */
function sandboxOf(desktop: string): number {
  for (const { pid } of processes()) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`DART_DESKTOP=${desktop}`)) return pid;
    } catch {
      /* ended meanwhile, or not ours */
    }
  }
  throw new Error(`no sandbox of ${desktop}`);
}

const runFile = JSON.stringify({
  name: 'held',
  seed: 5,
  tasks: { families: ['press-button', 'term-touch'] },
  desktops: { count: 2, provider: 'local' },
  policy: { replicas: 1 },
  rollout: { maxSteps: 40 },
  curation: { dynamicRollouts: { max: 4 }, dynamicLength: { enabled: false } },
  trainer: { batchGroups: 1 },
  warmStart: { demonstrations: 0, steps: 0 },
  evaluation: { episodes: 0 },
  budget: { rollouts: 10_000 },
} satisfies RunFile);

describe.skipIf(noLocal)('a rollout that is taken over', () => {
  it('waits for the person, is handed back, proposes its steps, and is ended; the run goes on and closes', async () => {
    const s = studio(),
      { run } = await s.call<{ run: string }>(m.startRun, { text: runFile, base: dir }),
      events: RunEvent[] = [];
    const following = (async () => {
      for await (const b of s.service.events({ run, sinceSeq: 0 }, new AbortController().signal))
        events.push(...b.events);
    })();
    /**
     * Takes over whatever rollout is under way: asked once, it is held, though rollouts of an untrained policy are over
     * at any moment.
     */
    const take = async (mode: 'human' | 'step'): Promise<ControlState> => {
      const desktop = await vi.waitUntil(
        async () =>
          (await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops.find((d) => d.rollout !== undefined)
            ?.desktop,
        { timeout: 90_000, interval: 20 },
      );
      const got = await s.call<ControlState>(m.takeOver, { desktop, mode });
      expect(got.mode).toBe(mode);
      await s.call(m.attachControl, { session: got.session });
      return got;
    };

    const held = await take('human'),
      { session } = held,
      mine = (): ControlState => s.state(session)!;
    const had = held.steps.length;
    await s.call(m.controlInput, { session, events: click(320, 200) });
    await expect.poll(() => mine().steps.length).toBe(had + 1);
    expect(mine().steps.at(-1)).toMatchObject({
      origin: 'human',
      actions: [{ type: 'click', at: { x: 320, y: 200 } }],
    });
    await s.call(m.setControlMode, { session, mode: 'policy' });
    await expect(s.call(m.controlInput, { session, events: click(1, 1) })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
    await expect.poll(() => mine().steps.length > had + 1 || mine().mode === 'ended', { timeout: 30_000 }).toBe(true);
    await s.call(m.discardControl, { session });

    // A policy is tried beside the run, on a desktop of its own.
    const beside = join(dir, 'beside');
    await mkdir(beside);
    await untaughtRun(join(beside, 'untaught'), entry);
    const tried = await s.call<ControlState>(m.tryStart, {
      policy: { run: join(beside, 'untaught') },
      base: beside,
      family: 'term-touch',
      mode: 'step',
      provider: 'local',
    });
    const { desktops } = await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {});
    expect(desktops.find((d) => d.desktop === tried.desktop)?.run).toBe(join(beside, 'tries'));
    expect(desktops.some((d) => d.run === run)).toBe(true);
    expect(s.service.active).toEqual([run]);
    await s.call(m.discardControl, { session: tried.session });

    // Step by step: what is accepted is the policy's own step; what is done instead is the person's.
    const stepping = await take('step'),
      two = stepping.session,
      now = (): ControlState => s.state(two)!;
    await expect.poll(() => now().proposal, { timeout: 30_000 }).toBeDefined();
    const proposal = now().proposal!,
      n = now().steps.length;
    expect(proposal.probability).toBeGreaterThan(0);
    expect(proposal.actions).toHaveLength(1);
    await expect(s.call(m.acceptProposal, { session: two, proposal: proposal.id + 1 })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
    let last = n;
    if (proposal.actions[0]!.type !== 'finished' && proposal.actions[0]!.type !== 'fail') {
      await s.call(m.acceptProposal, { session: two, proposal: proposal.id });
      await expect.poll(() => now().steps.length, { timeout: 30_000 }).toBe(n + 1);
      expect(now().steps.at(-1)).toMatchObject({ origin: 'policy', actions: proposal.actions });
      await expect.poll(() => now().proposal?.id, { timeout: 30_000 }).toBe(proposal.id + 1);
      last++;
    }
    await s.call(m.controlInput, { session: two, events: click(300, 220) });
    await expect.poll(() => now().steps.length, { timeout: 30_000 }).toBe(last + 1);
    expect(now().steps.at(-1)).toMatchObject({ origin: 'human', actions: [{ type: 'click', at: { x: 300, y: 220 } }] });
    await expect.poll(() => (now().proposal?.id ?? 0) > proposal.id, { timeout: 30_000 }).toBe(true);
    const end = await s.call<ControlState>(m.finishControl, { session: two });
    expect(end).toMatchObject({
      mode: 'ended',
      verdict: { outcome: expect.stringMatching(/success|failure/) as string },
    });
    expect(end.steps.at(-1)).toMatchObject({ origin: 'human', actions: [{ type: 'finished' }] });

    // The same in the run's own words, live and stored.
    const rollout = end.rollout!;
    await expect.poll(() => events.some((e) => e.type === 'ended' && e.row.rollout === rollout)).toBe(true);
    const view = await s.call<TrajectoryView>(m.getTrajectory, { run, rollout });
    expect(view.steps.map((x) => x.index)).toEqual(view.steps.map((_, i) => i));
    expect(view.steps.map((x) => x.origin)).toEqual(end.steps.map((x) => x.origin));
    for (const x of view.steps)
      expect([x.origin, x.tokens !== undefined, x.version !== undefined]).toEqual([
        x.origin,
        x.origin === 'policy',
        x.origin === 'policy',
      ]);
    expect(view.row.assisted).toBe(true);
    expect(events.filter((e) => e.type === 'step' && e.rollout === rollout)).toHaveLength(view.steps.length);

    // The window goes away in the middle: nothing stays pressed, and the rollout is handed back when the time is up or
    // the run ends.
    const third = await take('human');
    await s.call(m.controlInput, {
      session: third.session,
      events: [{ type: 'button', at: (clock += 10), x: 100, y: 100, button: 'left', down: true }],
    });
    s.client.abort();
    await expect.poll(() => s.state(third.session)?.abandonedAt).toBeDefined();
    await expect
      .poll(() => s.state(third.session)?.steps.at(-1))
      .toMatchObject({ origin: 'human', actions: [{ type: 'click', at: { x: 100, y: 100 } }] });
    // A desktop that is lost in a person's hands is an error that is tried again.
    await s.call(m.restartDesktop, { desktop: third.desktop });
    await expect
      .poll(
        () =>
          events.some(
            (e) => e.type === 'ended' && e.row.rollout === third.rollout && e.row.errorKind === 'desktop.lost',
          ),
        { timeout: 30_000 },
      )
      .toBe(true);
    await s.call(m.stopRun, { run });
    await following;
    expect((await s.call<RunDetail>(m.getRun, { run })).ledger.closes).toBe(true);
    expect(s.service.busy).toBe(false);
  }, 240_000);
});
