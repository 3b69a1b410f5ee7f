import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectEngine, ensureImage } from '../../../runtime/cluster/imageBuild.js';
import type { RunFile } from '../../../runtime/config/index.js';
import { checkpointOf } from '../../../runtime/data/events.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import type { EvalPoint } from '../../../runtime/run/evaluateEpisodes.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import {
  cli,
  cliJson,
  endAll,
  ensureBundle,
  folderOf,
  journalWhen,
  replay,
  start,
  type Ended,
  type Replay,
} from '../../helpers/run/cli.js';
import { utilisations, recorded, resultOf, type Result } from '../../helpers/run/trained.js';
import { processTree, stillRunning, type ProcessMark } from '../../helpers/machine/processes.js';

/**
 * Whole training runs, as a user starts, interrupts, kills, resumes and reads them: the bundle in a process of its own,
 * real desktops, real training.
 */
const noLocal = await whyNoLocalDesktops(),
  engine = await engineHere();
if (noLocal) console.warn(`skipped: training runs on local desktops (${noLocal})`);
if (!engine) console.warn('skipped: training runs on Docker desktops (no Docker engine answers here)');

let dir: string, runs: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-run-'));
  runs = join(dir, 'runs');
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

/**
 * Two easy families; groups that fail get a demonstration, so every group can teach something and there are updates
 * from the start.
 */
async function runFile(
  name: string,
  provider: 'local' | 'docker',
  rollouts: number,
  demonstrations = 2,
  episodes = 2,
): Promise<string> {
  const file = join(dir, `${name}.json`);
  const content: RunFile = {
    name,
    seed: 3,
    tasks: { families: ['press-button', 'term-touch'] },
    desktops: { count: 2, provider },
    policy: { replicas: 2 },
    rollout: { maxSteps: 4 },
    curation: { dynamicRollouts: { max: 4 } },
    trainer: { batchGroups: 1, epochs: 1, replay: 4 },
    warmStart: { demonstrations, steps: 10 },
    evaluation: { episodes, everyMinutes: 0 },
    budget: { rollouts },
  };
  await writeFile(file, JSON.stringify(content));
  return file;
}
interface Shown {
  readonly id: string;
  readonly rollouts: number;
  readonly planned: number;
  readonly live: boolean;
  readonly states: Record<string, number>;
  readonly retired: Record<string, number>;
  readonly evals: readonly { readonly label: string; readonly version: number; readonly episodes: number }[];
  readonly families: readonly { readonly family: string }[];
}

const sum = (xs: Record<string, number>): number => Object.values(xs).reduce((a, b) => a + b, 0);

/**
 * What must hold of every run that ended by itself: the ledger closes, in the journal and in what `runs show` says of
 * it, and nothing runs.
 */
async function closes(run: string): Promise<Replay> {
  const r = await replay(run),
    c = r.counts;
  expect(r.damage).toBe(0);
  expect(c.generated).toBe(c.trained + c.inFlight + sum(c.retired));
  expect(c.byState).toMatchObject({ queued: 0, running: 0, claimed: 0 });
  expect(r.events.at(-1)!.type).toBe('run.closed');
  const shown = await cliJson<Shown>('runs', 'show', run, '--json');
  expect(shown).toMatchObject({
    id: basename(run),
    rollouts: c.begun,
    planned: c.generated,
    live: false,
    retired: c.retired,
  });
  expect(shown.states).toEqual(Object.fromEntries(Object.entries(c.byState).filter(([, n]) => n > 0)));
  // Versions follow one another without a gap or a repeat, over kills and resumes too; each has its checkpoint.
  const versions = r.of('batch.trained').map((e) => e.version);
  expect(versions).toEqual(versions.map((_, i) => i + 2));
  expect(r.events.flatMap((e) => checkpointOf(e)?.version ?? [])).toEqual([1, ...versions]);
  return r;
}

describe.each([
  ['local', noLocal],
  ['docker', engine ? undefined : 'no Docker engine answers here'],
] as const)('train, %s desktops', (provider, missing) => {
  describe.skipIf(missing !== undefined)('a run', () => {
    beforeAll(async () => {
      if (provider === 'docker') await ensureImage(connectEngine());
    });
    /** Containers of a run, running or not. */
    const containers = async (run: string): Promise<number> =>
      provider === 'docker'
        ? (
            await connectEngine().listContainers({
              all: true,
              filters: { label: ['app=dart-studio', `run=${basename(run)}`] },
            })
          ).length
        : 0;
    const nothingLeft = async (of: readonly ProcessMark[], run: string): Promise<void> => {
      await expect.poll(() => stillRunning(of), { timeout: 60_000 }).toEqual([]);
      expect(await containers(run)).toBe(0);
    };

    /** One whole run, made once for the tests that look at it. */
    let whole:
      Promise<{ result: Result; ended: Ended; tree: readonly ProcessMark[]; seenContainers: number }> | undefined;
    const wholeRun = (): NonNullable<typeof whole> =>
      (whole ??= (async () => {
        const c = start('train', await runFile(`whole-${provider}`, provider, 16), '--runs', runs, '--json');
        const run = await folderOf(c);
        await c.hear((l) => 'eval' in l);
        const tree = processTree(c.pid),
          seenContainers = await containers(run),
          ended = await c.ended;
        return { result: resultOf(c), ended, tree, seenContainers };
      })());

    it('ends by its budget: evaluations, updates, a policy, a closed ledger, and nothing left behind', async () => {
      const { result, ended, tree, seenContainers } = await wholeRun();
      expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null });
      expect(result).toMatchObject({ stopped: 'budget', run: basename(result.dir) });
      expect(result.rollouts).toBeGreaterThanOrEqual(16);
      expect(result.points.map((p) => [p.label, p.episodes + p.errors])).toEqual([
        ['untrained', 2],
        ['warm start', 2],
        ['final', 2],
      ]);
      expect(result.points.map((p) => p.errors)).toEqual([0, 0, 0]);
      const r = await closes(result.dir);
      expect(result.version).toBe(1 + r.of('batch.trained').length);
      expect(result.version).toBeGreaterThan(1);
      for (const [counted, lanes] of utilisations(r, 2)) expect(Math.abs(counted - lanes)).toBeLessThan(0.02);
      expect(r.of('eval').map((e) => [e.label, e.version])).toEqual(result.points.map((p) => [p.label, p.version]));
      expect(r.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'oracle')).toHaveLength(4);
      const policy = await readFile(
        join(result.dir, 'checkpoints', `v${String(result.version).padStart(6, '0')}`, 'policy.onnx'),
      );
      expect(policy.length).toBeGreaterThan(10_000);
      expect(existsSync(join(result.dir, '.weights'))).toBe(false);
      if (provider === 'docker') expect(seenContainers).toBeGreaterThan(0);
      else expect(tree.some((m) => m.what.startsWith('bwrap'))).toBe(true);
      expect(tree.filter((m) => m.what.includes('__replica'))).toHaveLength(2);
      await nothingLeft(tree, result.dir);
    });

    /** Whether it was resumed before each kill. What Docker adds, containers that nobody ends, one kill shows. */
    const killed = provider === 'docker' ? [false] : [false, true];
    it('killed in the middle of reinforcement learning and resumed: no accepted rollout is lost', async () => {
      const kills: { readonly before: Replay; readonly tree: readonly ProcessMark[] }[] = [];
      let run = '',
        trained = 0;
      for (const resumed of killed) {
        const c = resumed
          ? start('train', '--resume', run, '--json')
          : start('train', await runFile(`killed-${provider}`, provider, 32), '--runs', runs, '--json');
        run = await folderOf(c);
        // First before any update, then after one: with rollouts under way each time.
        await journalWhen(
          run,
          c,
          (r) =>
            recorded(r).length >= (resumed ? recorded(kills[0]!.before).length + 1 : 3) &&
            (!resumed || r.counts.trained > trained) &&
            r.counts.byState.running > 0,
        );
        const tree = processTree(c.pid);
        c.signal('SIGKILL', false);
        expect((await c.ended).signal).toBe('SIGKILL');
        const before = await replay(run);
        trained = before.counts.trained;
        expect(
          before.counts.byState.running + before.counts.byState.queued + (before.counts.retired.lost ?? 0),
        ).toBeGreaterThan(0);
        // Its children see that it is gone. Containers are the engine's: the next start removes those.
        await expect.poll(() => stillRunning(tree), { timeout: 60_000 }).toEqual([]);
        if (provider === 'docker') expect(await containers(run)).toBeGreaterThan(0);
        kills.push({ before, tree });
      }
      const c = start('train', '--resume', run, '--json');
      const ended = await c.ended;
      expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null });
      expect(resultOf(c).stopped).toBe('budget');
      const after = await closes(run),
        seqs = after.events.map((e) => e.seq);
      expect(seqs).toEqual(seqs.map((_, i) => i));
      expect(after.of('run.opened').map((e) => e.resumed)).toEqual([...killed, true]);
      // Each of these processes trained: its rates and shares count from there.
      expect([after.of('training.began').length, after.of('training.ended').length]).toEqual([killed.length + 1, 1]);
      // Demonstrations and warm start were made once.
      expect(after.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'oracle')).toHaveLength(4);
      expect(after.of('eval').map((e) => e.label)).toEqual(['untrained', 'warm start', 'final']);
      const reader = await RunReader.open(run, { index: 'local' });
      for (const k of kills) {
        // The journal only grew: what it said stands, and every trajectory of then comes back whole, with its screens.
        expect(after.events.slice(0, k.before.events.length)).toEqual(k.before.events);
        for (const head of recorded(k.before)) {
          const t = await reader.readTrajectory(head.id);
          expect(t?.steps).toHaveLength(head.steps);
          for (const s of t!.steps) expect(await reader.frames.place(s.frame.hash)).toBeDefined();
        }
        // Rollouts that were under way are retired as lost, never anything else, and their places handed out again.
        const [opened] = after.events.slice(k.before.events.length);
        expect(opened!.type).toBe('run.opened');
      }
      await reader.close();
      expect(after.counts.retired.lost).toBeGreaterThan(0);
      expect(after.counts.generated).toBeGreaterThanOrEqual(32);
      await nothingLeft(
        kills.flatMap((k) => k.tree),
        run,
      );
    });

    it('Ctrl-C ends it cleanly: exit code 130, rollouts recorded or stopped, a checkpoint, and it can go on', async () => {
      const c = start('train', await runFile(`stopped-${provider}`, provider, 500), '--runs', runs, '--json');
      const run = await folderOf(c);
      await journalWhen(run, c, (r) => r.counts.trained > 0 && r.counts.byState.running > 0);
      const tree = processTree(c.pid);
      c.signal('SIGINT');
      const ended = await c.ended;
      expect(ended, ended.stderr).toMatchObject({ code: 130, signal: null });
      expect(resultOf(c)).toMatchObject({ stopped: 'signal' });
      const r = await closes(run);
      expect(r.of('run.closed').map((e) => e.reason)).toEqual(['stopped']);
      expect(r.counts.retired.error ?? 0).toBe(0);
      expect(
        existsSync(join(run, 'checkpoints', `v${String(resultOf(c).version).padStart(6, '0')}`, 'policy.onnx')),
      ).toBe(true);
      await nothingLeft(tree, run);
    });

    if (provider === 'local')
      it('Ctrl-C during the demonstrations ends it too, and those made are kept', async () => {
        const c = start('train', await runFile('early', provider, 4, 8, 0), '--runs', runs, '--json');
        const run = await folderOf(c);
        const made = (r: Replay) =>
          r.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'oracle').length;
        await journalWhen(run, c, (r) => made(r) > 0);
        const tree = processTree(c.pid);
        c.signal('SIGINT');
        const ended = await c.ended;
        expect(ended, ended.stderr).toMatchObject({ code: 130, signal: null });
        expect(made(await replay(run))).toBeLessThan(16);
        await nothingLeft(tree, run);
        expect(await cli('train', '--resume', run)).toMatchObject({ code: 0 });
        const r = await replay(run);
        expect(made(r)).toBe(16);
        expect(new Set(r.of('trajectory.recorded').map((e) => e.head.id)).size).toBe(
          r.of('trajectory.recorded').length,
        );
      });

    if (provider === 'local')
      it('Ctrl-C while it starts, at every moment: the same clean end, and nothing left', async () => {
        const file = await runFile('starting', provider, 500);
        for (let i = 0; i < 6; i++) {
          const c = start('train', file, '--runs', runs, '--json'),
            run = await folderOf(c);
          await after(270 * i);
          const tree = processTree(c.pid);
          c.signal('SIGINT');
          const ended = await c.ended;
          expect(ended, ended.stderr).toMatchObject({ code: 130, signal: null });
          expect(resultOf(c)).toMatchObject({ stopped: 'signal' });
          await nothingLeft(tree, run);
          const events = existsSync(join(run, 'run.json')) ? (await replay(run)).of('run.closed') : [];
          expect(events.map((e) => e.reason)).toEqual(events.map(() => 'stopped'));
        }
      });

    if (provider === 'local')
      it('its results can be listed, exported and evaluated again', async () => {
        const { result } = await wholeRun();
        expect(
          (await cliJson<Shown[]>('runs', 'list', '--json', '--runs', runs)).find((r) => r.id === result.run),
        ).toMatchObject({ rollouts: result.rollouts });
        const shown = await cli('runs', 'show', result.run, '--runs', runs);
        expect(shown.code).toBe(0);
        expect(shown.stdout).toMatch(
          new RegExp(
            `rollouts  ${result.rollouts}; \\d+ planned = \\d+ trained \\+ \\d+ not trained when the run ended \\+ \\d+ retired`,
          ),
        );
        const exported = ['csv', 'json', 'parquet'].map((ending) =>
          cli('runs', 'export', result.run, join(dir, `m.${ending}`), '--runs', runs),
        );
        expect((await Promise.all(exported)).map((e) => e.code)).toEqual([0, 0, 0]);
        const rows = JSON.parse(await readFile(join(dir, 'm.json'), 'utf8')) as { name: string; value: number }[],
          csv = (await readFile(join(dir, 'm.csv'), 'utf8')).trim().split('\n');
        expect(csv[0]).toBe('name,at,version,value');
        expect(csv).toHaveLength(rows.length + 1);
        expect(rows.filter((r) => r.name === 'update.loss')).toHaveLength(result.version - 1);
        const tokens = rows.filter((r) => r.name === 'update.tokens').map((r) => r.value);
        expect([tokens.length, Math.min(...tokens) > 0]).toEqual([result.version - 1, true]);
        // The file has its bytes to itself, whatever buffer they were read into.
        const parquet = (await parquetReadObjects({
          file: new Uint8Array(await readFile(join(dir, 'm.parquet'))).buffer,
        })) as { name: string; value: number | null }[];
        expect(parquet.map((r) => [r.name, r.value])).toEqual(rows.map((r) => [r.name, r.value]));
        expect(await cli('runs', 'export', result.run, join(dir, 'm.txt'), '--runs', runs)).toMatchObject({
          code: 2,
          stderr: expect.stringContaining('.csv, .json or .parquet') as string,
        });

        const before = await replay(result.dir);
        const point = await cliJson<EvalPoint>(
          'evaluate',
          result.run,
          '--episodes',
          '2',
          '--json',
          '--runs',
          runs,
          '--provider',
          provider,
        );
        expect(point).toMatchObject({ label: 'heldout', version: result.version, episodes: 2, errors: 0 });
        const first = await cliJson<EvalPoint>(
          'evaluate',
          result.dir,
          '--episodes',
          '2',
          '--checkpoint',
          String(result.version - 1),
          '--split',
          'train',
          '--json',
          '--provider',
          provider,
        );
        expect(first).toMatchObject({ label: 'train', version: result.version - 1, episodes: 2 });
        const untaught = ['--checkpoint', '0', '--episodes', '2', '--json', '--provider', provider];
        expect(await cliJson<EvalPoint>('evaluate', result.dir, ...untaught)).toMatchObject({
          version: 0,
          episodes: 2,
          errors: 0,
        });
        // Evaluating only reads.
        expect((await replay(result.dir)).events).toEqual(before.events);
        expect(await cli('evaluate', result.run, '--checkpoint', '999', '--runs', runs)).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('no checkpoint of version 999') as string,
        });
      });

    if (provider === 'local')
      it('refuses a second writer, naming the first', async () => {
        const c = start('train', await runFile('busy', provider, 500), '--runs', runs, '--json');
        const run = await folderOf(c);
        await c.hear((l) => l['type'] === 'status');
        const second = await cli('train', '--resume', run);
        expect(second.code).toBe(1);
        expect(second.stderr).toContain(`process ${c.pid}`);
        // The first was not disturbed.
        c.signal('SIGINT');
        const ended = await c.ended;
        expect(ended, ended.stderr).toMatchObject({ code: 130, signal: null });
      });
  });
});

it('no run folder holds a file that was not finished', async () => {
  if (!existsSync(runs)) return;
  expect((await readdir(runs, { recursive: true })).filter((f) => /\.(new|tmp|part)$/.test(f))).toEqual([]);
});
