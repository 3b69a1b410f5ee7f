// npm run bench:vlm [-- --quick] [-- --json FILE] [-- --seeds 1,2,3] [-- --minutes M] [-- --lessons N] [-- --probe
// EPISODES] [-- --arms random,blind] [-- --port P] [-- --out DIR] [-- --work DIR] [-- --report]: a tiny vision-language
// model learns to click by imitation and then by RL, on real desktops, trained and sampled by the engine over HTTP.
// npm run bench:vlm -- --kills N [--reference]: instead, N times kill -9 of runtime or engine at random moments of a run
// with an engine of its own (the reference server in its place); writes kills.json, which the report then holds.
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { session, sessionArgs } from '../lib/session.js';
import { engineFigures, figureBars, killsFigures, probeFigures } from './figures.js';
import { killAtRandom } from './kills.js';
import { vlmPlan, type VlmPlan } from './plan.js';
import { vlmReport } from './report.js';
import { environment, models, randomClicks, startEngine } from './servers.js';

const args = sessionArgs(),
  { quick } = args;
const seeds = args.numbers('--seeds', quick ? [1] : [1, 2, 3]),
  number = (name: string, otherwise: number): number => Number(args.option(name) ?? otherwise),
  arms = args.list('--arms') ?? (quick ? [] : ['random', 'blind']),
  port = number('--port', 18_377),
  work = resolve(args.option('--work') ?? join('.cache/bench', quick ? 'vlm-quick' : 'vlm'));
const size = {
  seeds,
  minutes: number('--minutes', quick ? 0.15 : 10),
  parts: quick ? 1 : 2,
  demonstrating: quick ? 0.1 : 0.5,
  lessons: number('--lessons', quick ? 12 : 800),
  learning: quick ? 0.3 : 4.5,
  demonstrations: number('--demonstrations', quick ? 4 : 48),
  probe: number('--probe', quick ? 4 : 128),
};

const out = resolve(args.option('--out') ?? join('dist/bench', quick ? 'vlm-quick' : 'vlm'));
if (args.option('--kills') !== undefined) await kill(number('--kills', 20));
else await learn();
async function kill(kills: number): Promise<void> {
  const model = args.flag('--reference') ? undefined : await tinyModel(),
    say = (text: string): void => console.error(text),
    result = await killAtRandom({ kills, seed: seeds[0]!, dir: join(work, 'kills'), model, say });
  await mkdir(out, { recursive: true });
  await writeFile(join(out, 'kills.json'), `${JSON.stringify(result, null, 2)}\n`);
  console.log(JSON.stringify(result, null, 2));
  if (result.batches_twice + result.batches_skipped > 0 || result.optimizer_steps !== result.batches)
    process.exitCode = 1;
}
async function tinyModel(): Promise<{ folder: string; imageToken: number }> {
  const { seeing } = await models(await environment(), join(work, 'models')),
    config = JSON.parse(readFileSync(join(seeing, 'config.json'), 'utf8')) as { image_token_id: number };
  return { folder: resolve(seeing), imageToken: config.image_token_id };
}

async function learn(): Promise<void> {
  // Engines are ended with this process however it ends.
  const stops: (() => Promise<void>)[] = [];
  try {
    // A quick look has no time for the probe's 27 servers.
    const probe = quick ? undefined : await probeFigures(),
      bars = figureBars(probe, engineFigures(), killsFigures(out)),
      plan: VlmPlan = { ...size, ...(await serve(stops)) };
    await session('vlm', args, vlmPlan(plan), (results, failed) =>
      vlmReport(results, failed, { quick, ...size, bars, missed: probe?.missed ?? [] }),
    );
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
}

async function serve(stops: (() => Promise<void>)[]): Promise<Pick<VlmPlan, 'seeing' | 'blind' | 'random'>> {
  const python = await environment(),
    made = await models(python, join(work, 'models'));
  const engine = async (model: string, offset: number): Promise<VlmPlan['seeing']> => {
    const { stop, ...started } = await startEngine(python, {
      model,
      state: join(work, `engine-${offset}`),
      port: port + offset,
    });
    stops.push(stop);
    return started;
  };
  const seeing = await engine(made.seeing, 0),
    blind = arms.includes('blind') ? await engine(made.blind, 1) : undefined;
  if (!arms.includes('random')) return { seeing, blind, random: undefined };
  const random = await randomClicks(port + 2);
  stops.push(random.stop);
  return { seeing, blind, random: random.url };
}
