import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StudioError, id, type FamilyId, type RunId } from '../../domain/index.js';
import { parseRunFile, type RunFile } from '../../config/index.js';
import { DataManager } from '../../data/dataManager.js';
import { RunReader } from '../../data/store/runStore.js';
import { systemClock } from '../../rollout/clock.js';
import { Scheduler, trainingSampling } from '../../rollout/scheduler.js';
import { heldoutSeed, trainSeed } from '../../tasks/suites/desk/index.js';
import { thisBundle } from '../engines.js';
import { settleOf } from '../desktops.js';
import { startEngine } from '../engine.js';
import { evaluateNow, type EvalPoint } from '../evaluation.js';
import { numberOption, type Options } from '../options.js';
import { dataConfig, openTasks, type Tasks } from '../mapping.js';
import { lastCheckpoint } from '../resume.js';
import { runFolder } from '../runFolders.js';
import { rateText } from '../stats.js';

/** `evaluate RUN`: greedy episodes of one checkpoint; the run itself is only read. */
export async function evaluate(name: string, o: Options): Promise<number> {
  const dir = runFolder(String(o['runs'] ?? 'runs'), name);
  const meta = JSON.parse(await readFile(join(dir, 'run.json'), 'utf8')) as { id: string; config: RunFile };
  const config = parseRunFile(meta.config, { ...(o['provider'] ? { desktops: { provider: o['provider'] as 'auto' } } : {}) });
  const episodes = numberOption(o, 'episodes') ?? Math.max(1, config.evaluation.episodes);
  const tasks = ofSplit(await openTasks(config), String(o['split'] ?? 'heldout'));
  const reader = await RunReader.open(dir, { index: 'local' });
  const version = numberOption(o, 'checkpoint', 0);
  const checkpoint = await lastCheckpoint(reader, version).finally(() => reader.close());
  if (!checkpoint && config.policy.kind === 'embedded') throw new StudioError('trainer.invalid', version === undefined ? `${meta.id} has no checkpoint yet.` : `${meta.id} has no checkpoint of version ${version}.`, 'Checkpoints that are there: see its folder checkpoints/.');
  const scratch = await mkdtemp(join(tmpdir(), 'dart-studio-eval-'));
  const abort = new AbortController();
  process.once('SIGINT', () => abort.abort());
  const data = await DataManager.open({ dir: scratch, config: dataConfig(config), families: tasks.families, taskOf: tasks.taskOf, store: { index: 'local', create: { id: id<RunId>(`eval-${meta.id}`), createdAt: Date.now() } } });
  let engine: Awaited<ReturnType<typeof startEngine>> | undefined;
  try {
    engine = await startEngine({ config, dir: scratch, run: meta.id, entry: thisBundle(), frames: data.frames, ...(checkpoint ? { checkpoint } : {}) });
    const scheduler = new Scheduler({
      pool: engine.pool, clock: systemClock, next: () => undefined, admit: () => 0,
      episode: { policy: engine.policy, tasks: tasks.engine, frames: engine.observations, clock: systemClock, settle: settleOf(config.desktops) },
      taskOf: (order) => tasks.source.task(order.family, order.seed), sampling: trainingSampling(config.seed, 1),
    }, { slots: config.desktops.count });
    let done = 0;
    scheduler.onEvent((e) => {
      if (e.type !== 'ended') return;
      void data.record(e.trajectory);
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${++done} of ${episodes} episodes`);
    });
    scheduler.start();
    const point = await evaluateNow({ data, scheduler, tasks, episodes, label: String(o['split'] ?? 'heldout'), version: checkpoint?.version ?? 0, maxSteps: config.rollout.maxSteps, signal: abort.signal });
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
    print(point, o['json'] === true);
    await scheduler.stop({ graceMs: 0 });
    return 0;
  } finally {
    await engine?.close();
    await data.close('finished');
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Which tasks: training seeds, held-out seeds of the same templates, or templates never trained on. */
function ofSplit(t: Tasks, split: string): Tasks {
  if (split === 'heldout') return t;
  const cycle = (families: readonly FamilyId[], seed: (i: number) => number) => (n: number): { family: FamilyId; seed: number }[] =>
    Array.from({ length: n }, (_, i) => ({ family: families[i % families.length]!, seed: seed(Math.floor(i / families.length)) }));
  if (split === 'train') return { ...t, probes: cycle(t.families.map((f) => f.id), trainSeed) };
  if (split === 'templates') {
    const held = t.source.families.filter((f) => f.split === 'heldout').map((f) => f.id);
    if (held.length === 0) throw new StudioError('config.invalid', 'This task source has no held-out templates.', 'Use --split heldout (held-out seeds) or --split train.');
    return { ...t, probes: cycle(held, heldoutSeed) };
  }
  throw new StudioError('config.invalid', `--split ${split}: unknown`, 'Use train, heldout or templates.');
}

function print(p: EvalPoint, json: boolean): void {
  if (json) { process.stdout.write(JSON.stringify(p, null, 2) + '\n'); return; }
  process.stdout.write(`success ${rateText(p.successes, p.episodes)} of ${p.episodes} episodes, v${p.version}${p.errors ? `, ${p.errors} errors` : ''}\n`);
  if (p.infeasible.episodes > 0) process.stdout.write(`infeasible tasks ${rateText(p.infeasible.successes, p.infeasible.episodes)} of ${p.infeasible.episodes}\n`);
  for (const [f, x] of Object.entries(p.perFamily)) process.stdout.write(`  ${f.padEnd(24)} ${rateText(x.successes, x.episodes)}\n`);
}
