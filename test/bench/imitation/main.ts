// npm run bench:imitation [-- --quick] [-- --seeds 1,2,3] [-- --steps 3000] [-- --json FILE] [-- --work DIR]
// [-- --provider docker]: the quick start's imitation alone, for five times as many updates as the quick start has, beside
// the quick start's own results. Goes on where it was stopped.
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Interrupted, Lab, StatusLine, interruptSignal } from '../lib/experiments.js';
import { finish } from '../lib/report.js';
import { sessionArgs } from '../lib/session.js';
import { imitationPlan } from './plan.js';
import { imitationReport, type Imitated, type QuickstartFile } from './report.js';

const args = sessionArgs(),
  { quick, json } = args,
  seeds = args.numbers('--seeds', quick ? [1] : [1, 2, 3]),
  [steps] = args.numbers('--steps', [quick ? 3 : 3000]),
  provider = (args.option('--provider') ?? 'local') as 'docker' | 'local',
  work = resolve(args.option('--work') ?? join('.cache/bench', quick ? 'imitation-quick' : 'imitation')),
  runtime = resolve('dist/runtime.js'),
  results = 'test/bench/results/quickstart',
  log = new StatusLine(),
  signal = interruptSignal();
mkdirSync(work, { recursive: true });

// A short look teaches nothing: held against recorded runs, it would only repeat their figures.
const quickstart = (existsSync(results) && !quick ? readdirSync(results) : [])
  .filter((f) => /^seed-\d+\.json$/.test(f))
  .map((f) => JSON.parse(readFileSync(join(results, f), 'utf8')) as QuickstartFile);
const lab = new Lab({ bench: 'imitation', dir: work, runtime, provider, signal, log });
const imitated: Imitated[] = [];
try {
  for (const e of imitationPlan({ seeds, steps: steps!, quick })) {
    const { measure, wallSeconds, splits } = await lab.run(e, `seed ${e.seed},`),
      tuned = measure.evals.findLast((p) => p.label === 'warm start');
    if (!tuned || !splits) throw new Error(`${e.name} was not evaluated`);
    const { episodes, successes } = tuned;
    imitated.push({
      seed: e.seed,
      steps: steps!,
      seconds: wallSeconds,
      tuned: { episodes, successes },
      reported: splits,
    });
  }
  const { rows, bars, markdown } = imitationReport(imitated, quickstart);
  console.log(markdown);
  finish('imitation', rows, bars, json);
} catch (e) {
  if (!(e instanceof Interrupted)) throw e;
  process.exitCode = 130;
}
