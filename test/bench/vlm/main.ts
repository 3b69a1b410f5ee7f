// npm run bench:vlm [-- --quick] [-- --json FILE] [-- --seeds 1,2,3] [-- --minutes M] [-- --lessons N] [-- --probe
// EPISODES] [-- --arms random,blind] [-- --port P] [-- --out DIR] [-- --work DIR] [-- --report] [-- --only ARM,ARM]: a
// tiny vision-language model learns to click by imitation and then by RL, on real desktops, trained and sampled by the
// engine over HTTP. `--only blind --out test/bench/results/vlm` adds one arm to what is recorded there.
// npm run bench:vlm -- --kills N [--reference]: instead, N times kill -9 of runtime or engine at random moments of runs
// with an engine of their own (the reference server in its place), half of them while a daemon holds the run, which is
// then killed; writes kills.json, which the report then holds.
// npm run bench:vlm -- --probes: instead, the conformance probe on the engine itself, in float32 and bfloat16, also with 36
// layers, an adapter and all weights; writes probes.json, which the report then holds.
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { machine, stamp } from '../lib/report.js';
import { session, sessionArgs } from '../lib/session.js';
import {
  engineFigures,
  figureBars,
  gpuFigures,
  killsFigures,
  peerFigures,
  probeFigures,
  probesFigures,
} from './figures.js';
import { killAtRandom } from './kills.js';
import { vlmPlan, type VlmPlan } from './plan.js';
import { DEEP, probedEngines } from './probes.js';
import { vlmReport } from './report.js';
import { deepModel, engineAt, environment, randomClicks, seeingModel, startEngine, versionsOf } from './servers.js';

const args = sessionArgs(),
  { quick } = args;
const seeds = args.numbers('--seeds', quick ? [1] : [1, 2, 3]),
  number = (name: string, otherwise: number): number => Number(args.option(name) ?? otherwise),
  only = args.list('--only'),
  arms = args.list('--arms') ?? (quick && only === undefined ? [] : ['random', 'blind']),
  port = number('--port', 18_377),
  work = resolve(args.option('--work') ?? join('.cache/bench', quick ? 'vlm-quick' : 'vlm'));
const size = {
  seeds,
  minutes: number('--minutes', quick ? 0.15 : 15),
  parts: quick ? 1 : 2,
  demonstrating: quick ? 0.1 : 1,
  lessons: number('--lessons', quick ? 12 : 800),
  learning: quick ? 0.3 : 5,
  demonstrations: number('--demonstrations', quick ? 4 : 128),
  probe: number('--probe', quick ? 4 : 128),
};

const out = resolve(args.option('--out') ?? join('dist/bench', quick ? 'vlm-quick' : 'vlm'));
if (args.option('--kills') !== undefined) await kill(number('--kills', 20));
else if (args.flag('--probes')) await probe();
else await learn();

/** Our engine before the probe: it must refuse nothing. */
async function probe(): Promise<void> {
  const python = await environment(),
    made = { ...stamp(), machine: machine() },
    seeing = seeingModel(python, join(work, 'models')),
    deep = deepModel(python, join(work, 'models', 'deep'), DEEP),
    probed = await probedEngines(python, { tiny: seeing, deep, state: join(work, 'probed'), port: port + 3 }),
    result = { ...made, versions: await versionsOf(python), ...probed };
  await mkdir(out, { recursive: true });
  await writeFile(join(out, 'probes.json'), `${JSON.stringify(result, null, 2)}\n`);
  console.log(JSON.stringify(result, null, 2));
  if (probed.probe_false_refusals > 0) process.exitCode = 1;
}
async function kill(kills: number): Promise<void> {
  const model = args.flag('--reference') ? undefined : await tinyModel(),
    say = (text: string): void => console.error(text),
    made = { ...stamp(), machine: machine() },
    counted = await killAtRandom({ kills, seed: seeds[0]!, dir: join(work, 'kills'), model, say }),
    result = { ...made, ...(model ? { versions: await versionsOf(await environment()) } : {}), ...counted };
  await mkdir(out, { recursive: true });
  await writeFile(join(out, 'kills.json'), `${JSON.stringify(result, null, 2)}\n`);
  console.log(JSON.stringify(result, null, 2));
  if (result.batches_twice + result.batches_skipped > 0 || result.optimizer_steps !== result.batches)
    process.exitCode = 1;
}
async function tinyModel(): Promise<{ folder: string; imageToken: number }> {
  const seeing = seeingModel(await environment(), join(work, 'models')),
    config = JSON.parse(readFileSync(join(seeing, 'config.json'), 'utf8')) as { image_token_id: number };
  return { folder: resolve(seeing), imageToken: config.image_token_id };
}

async function learn(): Promise<void> {
  // Engines are ended with this process however it ends.
  const stops: (() => Promise<void>)[] = [];
  try {
    // A quick look has no time for the probe's 30 servers.
    const probe = quick ? undefined : await probeFigures(),
      recorded = {
        ...peerFigures(),
        engine: engineFigures(),
        kills: killsFigures(out),
        probes: probesFigures(out),
        gpu: gpuFigures(),
      },
      bars = figureBars({ ...recorded, probe }),
      plan: VlmPlan = { ...size, ...(await serve(stops)) };
    await session('vlm', args, vlmPlan(plan), (results, failed) =>
      vlmReport(results, failed, { quick, ...size, bars, missed: probe?.missed ?? [] }),
    );
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
}

/** Whether one of these arms is run now, and not read from what is recorded. */
function runs(...of: readonly string[]): boolean {
  return !args.flag('--report') && (only === undefined || of.some((a) => only.includes(a)));
}

/** What the plan names; of it, started what an arm that is run needs. */
async function serve(stops: (() => Promise<void>)[]): Promise<Pick<VlmPlan, 'seeing' | 'blind' | 'random'>> {
  const dir = join(work, 'models'),
    made = runs('base', 'rl', 'imitation', 'blind') ? await environment() : undefined,
    model = made ? seeingModel(made, dir) : join(dir, 'model'),
    seeing = engineAt(model, port),
    blind = arms.includes('blind');
  if (made) stops.push((await startEngine(made, { model, state: join(work, 'engine-0'), port })).stop);
  if (!arms.includes('random')) return { seeing, blind, random: undefined };
  if (runs('random')) stops.push((await randomClicks(port + 2)).stop);
  return { seeing, blind, random: `http://127.0.0.1:${port + 2}/v1` };
}
