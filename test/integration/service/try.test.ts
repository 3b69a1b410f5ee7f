import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import type { Action } from '../../../runtime/domain/index.js';
import * as m from '../../../runtime/protocol/methods.js';
import type {
  ControlState,
  DesktopRow,
  InputEvent,
  PoolView,
  RunDetail,
  TrajectoryView,
  TryPolicy,
  TrySteps,
} from '../../../runtime/protocol/types.js';
import { createStudioService, type Broadcast, type StudioService } from '../../../runtime/service/index.js';
import { hasFrame } from '../../helpers/data/hasFrame.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { ReferenceServer } from '../../helpers/engine/server.js';
import { processes } from '../../helpers/machine/processes.js';
import { ensureBundle, tryInTerminal } from '../../helpers/run/cli.js';
import { untaughtRun } from '../../helpers/run/untaughtRun.js';

/** A policy that is tried with a real checkpoint on real desktops. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: trying a policy on local desktops (${noLocal})`);

const entry = { file: join(process.cwd(), 'dist/runtime.js') };
let dir: string, runs: string, run: string;
const open: StudioService[] = [];

interface Studio {
  readonly service: StudioService;
  call<R>(method: { readonly method: string }, params: unknown): Promise<R>;
  state(session: string): ControlState;
}
function studio(): Studio {
  const service = createStudioService({ entry, cacheDir: join(dir, 'cache'), log: () => undefined }),
    broadcasts: Broadcast[] = [];
  open.push(service);
  service.onBroadcast((b) => broadcasts.push(b));
  return {
    service,
    call: async <R>(method: { readonly method: string }, params: unknown) =>
      service.handlers.get(method.method)!(params, {
        signal: new AbortController().signal,
        client: new AbortController().signal,
        notify: () => undefined,
      }) as Promise<R>,
    state: (session) =>
      broadcasts
        .filter((b) => b.method === 'control/changed')
        .map((b) => b.params as ControlState)
        .filter((s) => s.session === session)
        .at(-1)!,
  };
}
/**
 * What is drawn depends on every pixel of the screen, and an untaught policy may as well close the terminal, or end. The
 * test looks at where it would act, too: something without a point will not do.
 */
const harmless = (a: Action): boolean => a.type === 'scroll' || (a.type === 'click' && a.at.y > 150 && a.at.y < 350);
/** Declines what the policy proposes until that does no harm to the task; returns its number. */
async function harmlessProposal(s: Studio, session: string): Promise<number> {
  for (let n = 1; n <= 50; n++) {
    await expect.poll(() => s.state(session)?.proposal?.id, { timeout: 20_000 }).toBe(n);
    if (s.state(session).proposal!.actions.every(harmless)) return n;
    await s.call(m.setControlMode, { session, mode: 'human' });
    await s.call(m.setControlMode, { session, mode: 'step' });
  }
  throw new Error('an untaught policy proposed nothing harmless in 50 draws');
}

let clock = 0;
const click = (x: number, y: number): InputEvent[] => [
  { type: 'move', at: (clock += 10), x, y },
  { type: 'button', at: (clock += 10), x, y, button: 'left', down: true },
  { type: 'button', at: (clock += 60), x, y, button: 'left', down: false },
];
const pressed = (key: string, down: boolean): InputEvent => ({ type: 'key', at: (clock += 10), key, down });
const typed = (text: string): InputEvent[] =>
  [...text].flatMap((c) => {
    const key = c === '\n' ? 'Enter' : c;
    return [pressed(key, true), pressed(key, false)];
  });
const ctrlC = (): InputEvent[] => [
  pressed('Control', true),
  pressed('c', true),
  pressed('c', false),
  pressed('Control', false),
];

describe.skipIf(noLocal)('trying a policy', () => {
  beforeAll(async () => {
    ensureBundle();
    dir = await mkdtemp(join(tmpdir(), 'dart-try-'));
    runs = join(dir, 'runs');
    run = join(runs, 'untaught');
    await mkdir(runs);
    await untaughtRun(run, entry);
  });
  afterEach(async () => {
    for (const s of open.splice(0)) await s.close({ now: true });
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it('asks before each step with what it considered; a person takes over and solves it; it is kept, pooled and found', async () => {
    // What a daemon that was killed left behind.
    await mkdir(join(dir, 'cache', 'try', 'left'), { recursive: true });
    const s = studio();
    await writeFile(
      join(dir, 'model.dart-run.json'),
      JSON.stringify({ policy: { kind: 'openai', openai: { baseUrls: ['http://127.0.0.1:9/v1'], model: 'M' } } }),
    );
    const { policies } = await s.call<{ policies: TryPolicy[] }>(m.tryPolicies, {
      roots: [runs],
      files: [join(dir, 'model.dart-run.json'), join(dir, 'nothing.json')],
    });
    expect(policies).toEqual([
      { run, name: 'untaught', kind: 'embedded', versions: [0] },
      expect.objectContaining({ file: join(dir, 'model.dart-run.json'), kind: 'openai', model: 'M' }),
    ]);
    const begun = await s.call<ControlState>(m.tryStart, {
        policy: { run },
        base: runs,
        family: 'term-touch',
        seed: 2_000_081,
        mode: 'step',
        provider: 'local',
      }),
      { session } = begun;
    await s.call(m.attachControl, { session });
    expect(begun).toMatchObject({ purpose: 'try', trial: { policy: 'untaught v0', verified: true, heldOut: false } });
    expect((await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops.map((d) => d.desktop)).toEqual([
      begun.desktop,
    ]);
    expect(s.service.busy).toBe(true);
    // A policy is tried without anything of it being in the runs.
    expect(existsSync(join(runs, 'tries'))).toBe(false);
    const proposal = await harmlessProposal(s, session),
      asked = await s.call<TrySteps>(m.trySteps, { session, from: 0 });
    expect(asked.steps).toEqual([]);
    expect(asked.proposal!.step.tokens!.length).toBeGreaterThan(0);
    expect(asked.proposal!.step.entropy).toBeGreaterThan(0);
    expect(asked.proposal!.step.tokens![0]!.alternatives!.length).toBeGreaterThan(1);
    // Where it would click, for the heat map.
    expect(asked.proposal!.step.tokens!.some((x) => x.alternatives?.some((a) => a.at !== undefined))).toBe(true);
    await s.call(m.acceptProposal, { session, proposal });
    await expect.poll(() => s.state(session).proposal?.id, { timeout: 20_000 }).toBe(proposal + 1);
    const { steps } = await s.call<TrySteps>(m.trySteps, { session, from: 0 });
    expect(steps).toMatchObject([{ index: 0, origin: 'policy', version: 0 }]);
    const hash = steps[0]!.frame.hash;
    expect(existsSync(join(begun.trial!.frames, hash.slice(0, 2), `${hash}.png`))).toBe(true);

    await s.call(m.setControlMode, { session, mode: 'human' });
    const line = /"(.*)"/.exec(begun.instruction)![1]!;
    await s.call(m.controlInput, { session, events: click(600, 390) });
    // What the policy may have typed is taken back.
    await s.call(m.controlInput, { session, events: ctrlC() });
    await s.call(m.controlInput, { session, events: typed(`${line}\n`) });
    const done = await s.call<ControlState>(m.finishControl, { session });
    expect(done).toMatchObject({ mode: 'ended', verdict: { outcome: 'success', reward: 1 } });
    const kept = await s.call<ControlState>(m.keepDemonstration, { session, pool: 'auto', note: 'with a hand' });
    expect(kept.kept).toMatchObject({ pooled: true });

    const tries = join(runs, 'tries'),
      view = await s.call<TrajectoryView>(m.getTrajectory, { run: tries, rollout: kept.kept!.rollout });
    expect(view.row).toMatchObject({ outcome: 'success', provenance: 'imported' });
    expect(view.steps[0]!.origin).toBe('policy');
    expect(new Set(view.steps.slice(1).map((x) => x.origin))).toEqual(new Set(['human']));
    expect(view.steps[0]!.tokens![0]!.alternatives!.length).toBeGreaterThan(1);
    expect(await hasFrame(tries, hash)).toBe(true);
    const pool = await s.call<PoolView>(m.listPool, { run: tries });
    expect(JSON.stringify(pool)).toContain(kept.kept!.rollout);
    expect((await s.call<RunDetail>(m.getRun, { run: tries })).summary).toMatchObject({ collection: true });
    await expect.poll(async () => (await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops).toEqual([]);
    await s.call(m.discardControl, { session });
    // Its screens and weights are gone with it.
    await expect.poll(() => readdir(join(dir, 'cache', 'try'))).toEqual([]);
  });

  it('what somebody asks in their own words is stopped and judged by them; faults say what to choose and leave no desktop', async () => {
    const s = studio(),
      ask = { policy: { run }, base: runs, mode: 'policy', provider: 'local' };
    const { session, trial } = await s.call<ControlState>(m.tryStart, {
      ...ask,
      instruction: 'Frobnicate the screen',
      sampled: true,
    });
    await s.call(m.attachControl, { session });
    expect(trial).toMatchObject({
      verified: false,
      notes: ['No instruction that it learned from had “Frobnicate”, “screen”. The policy goes by the words it knows.'],
    });
    await expect
      .poll(() => (s.state(session)?.steps.length ?? 0) > 0 || s.state(session)?.mode === 'ended', { timeout: 20_000 })
      .toBe(true);
    const stopped = await s.call<ControlState>(m.tryStop, { session });
    expect(stopped.mode).toBe('ended');
    expect(stopped.verdict).toBeUndefined();
    const kept = await s.call<ControlState>(m.keepDemonstration, { session, pool: 'auto', verdict: 'failure' });
    expect(kept).toMatchObject({ verdict: { outcome: 'failure' }, kept: { pooled: false } });

    // Two at a time: each has a desktop of its own.
    const many = await Promise.allSettled(
      [1, 2, 3].map(() => s.call<ControlState>(m.tryStart, { ...ask, mode: 'step', instruction: 'Press OK' })),
    );
    expect(many.map((x) => x.status).sort()).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(many.find((x) => x.status === 'rejected')?.reason).toMatchObject({ kind: 'busy' });
    for (const x of many) if (x.status === 'fulfilled') await s.call(m.discardControl, { session: x.value.session });

    const fails = async (p: object): Promise<unknown> =>
      s.call(m.tryStart, { ...ask, ...p }).then(
        () => 'began',
        (e: unknown) => e,
      );
    expect(await fails({ instruction: '  ' })).toMatchObject({ kind: 'config.invalid' });
    expect(await fails({ instruction: 'x', policy: { run, version: 7 } })).toMatchObject({ kind: 'config.invalid' });
    expect(await fails({ instruction: 'x', image: 'nothing' })).toMatchObject({ kind: 'config.invalid' });
    const broken = join(runs, 'broken');
    await cp(run, broken, { recursive: true });
    await truncate(join(broken, 'checkpoints', 'v000000', 'weights.f32'), 1000);
    expect(await fails({ instruction: 'x', policy: { run: broken } })).toMatchObject({
      error: { kind: 'trainer.invalid', remedy: 'Choose another version, or another run.' },
    });
    expect((await s.call<{ desktops: DesktopRow[] }>(m.listDesktops, {})).desktops).toEqual([]);
    await s.service.close({ now: true });
    expect(processes().filter((p) => p.what.includes(dir))).toEqual([]);
  });

  it('a model behind a server is tried as well, named by a run file', async () => {
    const click = "Action: click(start_box='(500,500)')",
      server = await ReferenceServer.start({ policy: { words: [click], wordsOnly: true } }),
      file = join(dir, 'served.dart-run.json'),
      s = studio();
    try {
      const policy: RunFile['policy'] = {
        kind: 'openai',
        openai: { baseUrls: [`${server.url}/v1`], model: server.baseModel, coordinates: 'relative1000', maxTokens: 8 },
      };
      await writeFile(file, JSON.stringify({ policy } satisfies RunFile));
      const { session, trial } = await s.call<ControlState>(m.tryStart, {
        policy: { file },
        base: runs,
        instruction: 'Click the middle',
        mode: 'step',
        provider: 'local',
      });
      await s.call(m.attachControl, { session });
      expect(trial).toMatchObject({ verified: false });
      await expect.poll(() => s.state(session)?.proposal?.id, { timeout: 20_000 }).toBe(1);
      const { proposal } = await s.call<TrySteps>(m.trySteps, { session, from: 0 });
      // What the server said is what is proposed, with what it considered beside it.
      expect(proposal!.step.actions).toMatchObject([{ type: 'click' }]);
      expect(proposal!.step.tokens!.length).toBeGreaterThan(0);
      await s.call(m.acceptProposal, { session, proposal: 1 });
      await expect.poll(() => s.state(session).proposal?.id, { timeout: 20_000 }).toBe(2);
      expect((await s.call<TrySteps>(m.trySteps, { session, from: 0 })).steps).toMatchObject([{ origin: 'policy' }]);
      const asked = server.calls.filter((c) => c.path.endsWith('/chat/completions'));
      expect(asked.length).toBeGreaterThanOrEqual(2);
      expect(asked[0]!.body.toString()).toContain('Click the middle');
      await s.call(m.discardControl, { session });
    } finally {
      server.close();
    }
  });

  it('in a terminal: a line of JSON for each step, and no run is written', async () => {
    const before = await readdir(runs),
      { lines } = await tryInTerminal(join(run, 'checkpoints', 'v000000'));
    expect(lines[0]).toMatchObject({ policy: 'untaught v0', instruction: expect.stringContaining('"') as string });
    expect(lines[1]).toMatchObject({ step: 0, version: 0, tokens: expect.any(Array) as unknown });
    // Untaught weights may type the right line by chance.
    expect(['success', 'failure']).toContain((lines.at(-1)!.outcome as { kind: string }).kind);
    expect(await readdir(runs)).toEqual(before);
  });
});
