// npm run bench:vlm [-- --quick] [-- --json FILE] [-- --seeds 1,2,3] [-- --minutes M] [-- --lessons N] [-- --probe
// EPISODES] [-- --arms random,blind] [-- --port P] [-- --out DIR] [-- --work DIR] [-- --report]: a tiny vision-language
// model learns to click by imitation and then by RL, on real desktops, trained and sampled by the engine over HTTP.
import { join, resolve } from 'node:path';
import { session, sessionArgs } from '../lib/session.js';
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
  minutes: number('--minutes', quick ? 0.15 : 7),
  parts: quick ? 1 : 2,
  demonstrating: quick ? 0.1 : 0.5,
  lessons: number('--lessons', quick ? 12 : 280),
  demonstrations: number('--demonstrations', quick ? 4 : 48),
  probe: number('--probe', quick ? 4 : 128),
};

// Threads of the engine that wait must not take the cores from the desktops.
process.env['OMP_WAIT_POLICY'] ??= 'PASSIVE';
// The random clicks come from this process; engines are ended with it however it ends.
const stops: (() => Promise<void>)[] = [];
try {
  const plan: VlmPlan = { ...size, ...(await serve()) };
  await session('vlm', args, vlmPlan(plan), (results, failed) => vlmReport(results, failed, { quick, ...size }));
} finally {
  await Promise.all(stops.map((stop) => stop()));
}

async function serve(): Promise<Pick<VlmPlan, 'seeing' | 'blind' | 'random'>> {
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
