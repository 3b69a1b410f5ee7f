import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import type { TrainResult } from '../../../runtime/run/trainRun.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { endAll, ensureBundle, folderOf, replay, start, type Replay } from '../../helpers/run/cli.js';
import { processTree, stillRunning } from '../../helpers/machine/processes.js';

/**
 * A budget that is spent before reinforcement learning begins: whatever phase it meets ends with it, and the run goes
 * on from there when it gets more.
 */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: runs whose budget ends early (${noLocal})`);

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-budget-'));
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

/** What a part of a run gets: starting the engine takes some of it, on a busy machine all; then the next gets twice as much. */
const STEP_MS = 5000;

interface Part {
  readonly result: TrainResult;
  readonly journal: Replay;
  readonly overMs: number;
}

/** Starts a run and resumes it, each time with a step more of budget, until the journal is as wanted. */
async function parts(
  name: string,
  file: RunFile,
  wanted: (r: Replay) => boolean,
): Promise<{ run: string; of: Part[] }> {
  const path = join(dir, `${name}.json`),
    of: Part[] = [];
  await writeFile(path, JSON.stringify({ ...base, ...file, name }));
  let run = '',
    spent = 0,
    step = STEP_MS,
    done = 0;
  for (let i = 1; i <= 8; i++) {
    const minutes = (spent + step) / 60_000,
      how = run === '' ? [path, '--runs', join(dir, 'runs')] : ['--resume', run];
    const c = start('train', ...how, '--minutes', String(minutes), '--json');
    run = await folderOf(c);
    const tree = processTree(c.pid),
      ended = await c.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null });
    const result = c.said.find((l) => l['type'] === 'result') as unknown as TrainResult;
    expect(result.stopped).toBe('budget');
    await expect.poll(() => stillRunning(tree), { timeout: 60_000 }).toEqual([]);
    const journal = await replay(run),
      elapsed = journal.of('metrics').findLast((m) => m.source === 'run')!.values['elapsedMs']!;
    expect(journal.of('run.closed').at(-1)!.reason).toBe('finished');
    of.push({ result, journal, overMs: elapsed - minutes * 60_000 });
    expect(of.at(-1)!.overMs).toBeGreaterThanOrEqual(0);
    if (wanted(journal)) return { run, of };
    const worked = made(journal).length + journal.of('checkpoint').length;
    if (worked === done) step *= 2;
    [spent, done] = [elapsed, worked];
  }
  throw new Error(`${name}: ${JSON.stringify(of.map((p) => [p.overMs, p.journal.events.length]))}`);
}

const base: RunFile = {
  seed: 5,
  tasks: { families: ['press-button', 'term-touch'] },
  desktops: { count: 2, provider: 'local' },
  policy: { replicas: 1 },
  rollout: { maxSteps: 4 },
  evaluation: { episodes: 2, everyMinutes: 0, untrained: false },
};
/** A phase that would take far longer than any budget here. */
const ENDLESS = 1_000_000;
const made = (r: Replay) =>
  r
    .of('trajectory.recorded')
    .filter((e) => e.head.provenance.kind === 'oracle')
    .map((e) => e.head);
const steps = (r: Replay, source: string): number[] =>
  r.of('checkpoint').flatMap((e) => (e.learned?.source === source ? [e.learned.values['steps']!] : []));
const checkpointThere = (run: string, version: number): boolean =>
  existsSync(join(run, 'checkpoints', `v${String(version).padStart(6, '0')}`, 'policy.onnx'));

// A part takes as long as the machine does, and a run has up to eight.
describe.skipIf(noLocal !== undefined)('a budget that is spent', { timeout: 600_000 }, () => {
  it('during the demonstrations ends them; those made are kept, and more budget makes more', async () => {
    let first: number | undefined;
    const { of } = await parts(
      'demonstrations',
      { tasks: { ...base.tasks, trainSeeds: 5000 }, warmStart: { demonstrations: 4000, steps: 10 } },
      (r) => {
        const n = made(r).length;
        if (first === undefined && n > 0) {
          first = n;
          return false;
        }
        return first !== undefined && n > first;
      },
    );
    const { result, journal } = of.at(-1)!;
    // Verified successes only, none twice, and nothing was learned or rolled out.
    expect(new Set(made(journal).map((h) => h.id)).size).toBe(made(journal).length);
    expect(made(journal).every((h) => h.outcome.kind === 'success')).toBe(true);
    expect([result.version, result.rollouts, journal.of('checkpoint').length]).toEqual([0, 0, 0]);
    // Nothing to measure: the policy never changed.
    expect(result.points).toEqual([]);
    expect(journal.of('log').map((l) => l.message)).toContainEqual(
      expect.stringContaining('The budget is used up: demonstrations'),
    );
  });

  it('during the reading lessons keeps what was read: a checkpoint, its evaluation, and the rest later', async () => {
    const { run, of } = await parts(
      'reading',
      { warmStart: { reading: { steps: ENDLESS, screens: 24 }, demonstrations: 0, steps: 0 } },
      (r) => steps(r, 'reading.part').length >= 2,
    );
    const { result, journal } = of.at(-1)!;
    expect(steps(journal, 'reading')).toEqual([]);
    expect(Math.min(...steps(journal, 'reading.part'))).toBeGreaterThan(0);
    expect(journal.of('checkpoint').map((e) => e.version)).toEqual([1, 2]);
    expect([result.version, checkpointThere(run, 2)]).toEqual([2, true]);
    expect(result.points.map((p) => [p.label, p.version, p.errors])).toEqual([
      ['final', 1, 0],
      ['final', 2, 0],
    ]);
  });

  it('during the warm start keeps what was imitated; a warm start is only done when it is whole', async () => {
    const { run, of } = await parts(
      'warm',
      { warmStart: { demonstrations: 1, steps: ENDLESS } },
      (r) => steps(r, 'warm-start.part').length >= 2,
    );
    const { result, journal } = of.at(-1)!;
    expect(made(journal)).toHaveLength(2);
    expect(steps(journal, 'warm-start')).toEqual([]);
    expect(Math.min(...steps(journal, 'warm-start.part'))).toBeGreaterThan(0);
    expect(journal.of('checkpoint').map((e) => e.version)).toEqual([1, 2]);
    expect([result.version, result.rollouts, checkpointThere(run, 2)]).toEqual([2, 0, true]);
    expect(result.points.map((p) => [p.label, p.version])).toEqual([
      ['final', 1],
      ['final', 2],
    ]);
    // One record for both: a crash cannot tell of the checkpoint and not of the part, or the other way round.
    expect(journal.of('checkpoint').map((e) => e.learned?.source)).toEqual(['warm-start.part', 'warm-start.part']);
  });
});
