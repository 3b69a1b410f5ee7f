import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import {
  id,
  type FamilyId,
  type FrameRef,
  type Outcome,
  type RolloutId,
  type Step,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { RunAppender } from '../../../runtime/data/runAppender.js';
import { newRun, poolConfigOf } from '../../../runtime/data/collections.js';
import { deskSuite, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import { hasFrame } from '../../helpers/data/hasFrame.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import * as m from '../../../runtime/protocol/methods.js';
import type { PoolView } from '../../../runtime/protocol/types.js';
import { createStudioService } from '../../../runtime/service/index.js';
import { cli, endAll, ensureBundle, folderOf, replay, start } from '../../helpers/run/cli.js';

/** What people collected, brought to a training run: real desktops, real training, nothing demonstrated by scripts. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: pools of other folders (${noLocal})`);

let dir: string, runs: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-pool-run-'));
  runs = join(dir, 'runs');
  await mkdir(runs);
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

const suite = deskSuite();
/** A person's demonstration of a task of the suite, on plain screens. */
function demo(
  name: string,
  family: string,
  seed: number,
  frame: FrameRef,
  outcome: Outcome['kind'] = 'success',
): Trajectory {
  const f = id<FamilyId>(family),
    known = suite.families.some((x) => x.id === f),
    s = trainSeed(seed);
  const steps = [{ type: 'click', at: { x: 40 + seed, y: 100 } }, { type: 'finished' }].map((a, index): Step => ({
    index,
    frame,
    actions: [a as Step['actions'][number]],
    origin: 'human',
    settled: true,
    timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
  }));
  return {
    id: id<RolloutId>(name),
    task: id(`${family}#${s}`),
    family: f,
    instruction: known ? suite.task(f, s).instruction : 'Do it.',
    provenance: { kind: 'human' },
    steps,
    outcome:
      outcome === 'success'
        ? { kind: 'success', reward: 1, truncated: false }
        : { kind: 'failure', reward: 0, truncated: false },
    cap: 9,
    startedAt: 1,
    endedAt: 2,
    resetMs: 0,
    verifyMs: 0,
  };
}
async function collection(name: string): Promise<string> {
  const to = join(runs, name),
    c = await RunAppender.open(to, { index: 'local', create: newRun(name, 1), pool: poolConfigOf });
  try {
    const frame = (n: number): Promise<FrameRef> =>
      c.store.frames.put({ width: 640, height: 400, data: Buffer.alloc(640 * 400 * 4, n), capturedAt: 0 });
    for (const [i, t] of [
      demo('h1', 'desk/press-button', 1, await frame(10)),
      demo('h2', 'desk/term-touch', 2, await frame(20)),
      demo('h3', 'desk/calc-copy', 3, await frame(30)),
      demo('h4', 'desk/press-button', 4, await frame(40)),
    ].entries()) {
      expect(await c.record(t, 'auto'), `h${i + 1}`).toEqual({ pooled: true });
    }
    expect(
      await c.record(
        demo('h5', 'desk/press-button', 5, await frame(50), 'failure'),
        { override: 'the right button, seen by a person' },
        'person',
      ),
    ).toEqual({ pooled: true });
    // The same demonstration under another name does not join; one is switched off.
    expect(await c.record(demo('h1-again', 'desk/press-button', 1, await frame(10)), 'auto')).toMatchObject({
      pooled: false,
      twin: 'h1',
    });
    await c.switchPool([id('h4')], false);
  } finally {
    await c.close();
  }
  return to;
}
/** One demonstration that the other collection has too. */
async function twin(name: string): Promise<string> {
  const to = join(runs, name),
    c = await RunAppender.open(to, { index: 'local', create: newRun(name, 1), pool: poolConfigOf });
  try {
    expect(
      await c.record(
        demo(
          'elsewhere',
          'desk/press-button',
          1,
          await c.store.frames.put({ width: 640, height: 400, data: Buffer.alloc(640 * 400 * 4, 10), capturedAt: 0 }),
        ),
        'auto',
      ),
    ).toEqual({ pooled: true });
  } finally {
    await c.close();
  }
  return to;
}
async function runFile(name: string, from: string[], rollouts: number): Promise<string> {
  const file = join(dir, `${name}.json`);
  await writeFile(
    file,
    JSON.stringify({
      name,
      seed: 3,
      tasks: { families: ['press-button', 'term-touch'] },
      desktops: { count: 2, provider: 'local' },
      policy: { replicas: 1 },
      rollout: { maxSteps: 2 },
      curation: { dynamicRollouts: { max: 2 }, pool: { from, addSuccesses: false } },
      trainer: { batchGroups: 1 },
      warmStart: { demonstrations: 0, steps: 4 },
      evaluation: { episodes: 0, everyMinutes: 0 },
      budget: { rollouts },
    } satisfies RunFile),
  );
  return file;
}

describe.skipIf(noLocal)('curation.pool.from', () => {
  it('joins the pool before the warm start, is imitated and injected, and does not come twice', async () => {
    const from = await collection('my-demos'),
      c = start(
        'train',
        await runFile('brought', ['my-demos', from, await twin('my-twin')], 24),
        '--runs',
        runs,
        '--json',
      ),
      run = await folderOf(c),
      ended = await c.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const said = c.said.map((l) => String(l['text'])).find((t) => t.startsWith('Pool: '))!;
    expect(said).toMatch(
      /^Pool: 3 of 4 successes of other folders joined\. 1 more were the same as others\. 1 are of task families this run does not train \(desk\/calc-copy\)/,
    );
    const one = await replay(run),
      added = one.of('pool.added'),
      heads = one.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'human');
    expect(heads.map((e) => [e.head.family, e.head.outcome.kind]).sort()).toEqual([
      ['desk/press-button', 'failure'],
      ['desk/press-button', 'success'],
      ['desk/term-touch', 'success'],
    ]);
    expect(
      added
        .slice(0, 3)
        .map((e) => e.entry.override ?? '')
        .sort(),
    ).toEqual(['', '', 'the right button, seen by a person']);
    const warm = one.of('checkpoint').find((e) => e.learned?.source === 'warm-start')!;
    expect(warm.learned!.values['samples']).toBeGreaterThanOrEqual(4);
    expect(added[2]!.seq).toBeLessThan(warm.seq);
    // Groups that fail get one of them; every one of its steps is trained.
    const injected = one.of('group.formed').flatMap((e) => e.members.filter((m) => m.injected));
    expect(injected.length).toBeGreaterThan(0);
    for (const m of injected) expect([m.reward, m.keep]).toEqual([1, [true, true]]);
    expect(one.of('batch.trained').length).toBeGreaterThan(0);
    for (const { step } of one.of('rollout.step').filter((e) => e.rollout.startsWith('import/')))
      expect(await hasFrame(run, step.frame.hash)).toBe(true);

    // Resumed, with the folder gone: what was brought is there, nothing is asked for again.
    await rm(from, { recursive: true, force: true });
    const again = await cli('train', '--resume', run, '--runs', runs);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    const two = await replay(run);
    expect(two.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'human')).toHaveLength(3);
    expect(two.of('metrics').filter((e) => e.source === 'pool-from')).toHaveLength(1);
  }, 240_000);

  it('says which folder is missing or damaged before anything is made', async () => {
    const nowhere = await cli('train', await runFile('missing', ['no-such-collection'], 4), '--runs', runs);
    expect(nowhere).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/curation\.pool\.from: .*no-such-collection: there is no such folder/) as string,
    });
    const broken = await collection('broken'),
      frames = join(broken, 'frames');
    for (const f of await readdir(frames)) await rm(join(frames, f), { recursive: true });
    const damaged = await cli('train', await runFile('damaged', [broken], 4), '--runs', runs);
    expect(damaged).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/curation\.pool\.from: .*broken: frame .* is missing/) as string,
    });
    const off = join(dir, 'off.json');
    await writeFile(off, JSON.stringify({ curation: { pool: { enabled: false, from: ['x'] } } }));
    expect(await cli('train', off, '--runs', runs)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the pool is off') as string,
    });
    expect(
      (await readdir(runs)).filter((n) => /missing|damaged|off/.test(n) && existsSync(join(runs, n, 'run.json'))),
    ).toEqual([]);
  }, 120_000);

  it('of an active run obeys its people at once, and says so; what they did is there when it is over', async () => {
    const from = await collection('live-demos'),
      service = createStudioService({
        entry: { file: join(process.cwd(), 'dist/runtime.js') },
        cacheDir: join(dir, 'cache'),
        log: () => undefined,
      });
    const call = async <R>(method: { readonly method: string }, params: unknown): Promise<R> =>
      service.handlers.get(method.method)!(params, {
        signal: new AbortController().signal,
        notify: () => undefined,
      }) as Promise<R>;
    const told: string[] = [],
      state = (v: PoolView): unknown[] =>
        v.families.flatMap((f) => f.entries.map((e) => [e.source, e.enabled, e.override !== undefined])).sort();
    service.onBroadcast((b) => {
      told.push(b.method);
    });
    try {
      const text = JSON.stringify({
          ...(JSON.parse(await readFile(await runFile('live', [from], 10_000), 'utf8')) as RunFile),
          store: { dir: runs },
        }),
        { run } = await call<{ run: string }>(m.startRun, { text, base: dir });
      const view = await call<PoolView>(m.listPool, { run }),
        [one, two] = view.families.flatMap((f) => f.entries);
      expect(view).toMatchObject({ active: true, entries: 3 });
      expect(
        (await call<PoolView>(m.setPool, { run, rollouts: [one!.rollout], enabled: false })).families
          .flatMap((f) => f.entries)
          .find((e) => e.rollout === one!.rollout),
      ).toMatchObject({ enabled: false, why: 'off' });
      const after = await call<PoolView>(m.removeFromPool, { run, rollouts: [two!.rollout], reason: 'not good' });
      expect(after.entries).toBe(2);
      expect(told).toContain('pool/changed');
      await call(m.stopRun, { run, now: true });
      expect(state(await call<PoolView>(m.listPool, { run }))).toEqual(state(after));
      expect((await replay(run)).of('pool.removed')).toMatchObject([
        { entry: two!.rollout, reason: 'not good', by: 'person' },
      ]);
    } finally {
      await service.close({ now: true });
    }
  }, 120_000);
});
