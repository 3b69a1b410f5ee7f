// npm run bench:imitation [-- --quick] [-- --seeds 1,2,3] [-- --steps 600,3000,8000] [-- --rates 0.002] [-- --json FILE]
// [-- --work DIR] [-- --provider docker] [-- --with FILE] [-- --quickstart DIR]: the quick start's imitation alone, for as
// many updates as the quick start has and for more, beside the quick start's own results (seed-N.json in DIR). Goes on
// where it was stopped.
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Interrupted, Lab, StatusLine, interruptSignal, type RunResult } from '../lib/experiments.js';
import { finish, madeOf } from '../lib/report.js';
import { sessionArgs } from '../lib/session.js';
import { RATES, STEPS, imitationPlan } from './plan.js';
import { imitationReport, needNoEyes, recordedIn, type Imitated, type QuickstartFile } from './report.js';

const args = sessionArgs(),
  { quick, json } = args,
  seeds = args.numbers('--seeds', quick ? [1] : [1, 2, 3]),
  steps = args.numbers('--steps', quick ? [3] : STEPS),
  rates = args.list('--rates')?.map(Number) ?? RATES,
  provider = (args.option('--provider') ?? 'local') as 'docker' | 'local',
  work = resolve(args.option('--work') ?? join('.cache/bench', quick ? 'imitation-quick' : 'imitation')),
  runtime = resolve('dist/runtime.js'),
  named = args.option('--quickstart'),
  results = named ?? 'test/bench/results/quickstart',
  blind = 'test/bench/results/blind/blind.json',
  log = new StatusLine(),
  signal = interruptSignal(),
  read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
mkdirSync(work, { recursive: true });

// A short look teaches nothing: held against recorded runs, it would only repeat their figures.
const quickstart = ((named !== undefined || existsSync(results)) && !quick ? readdirSync(results) : [])
    .filter((f) => /^seed-\d+\.json$/.test(f))
    .map((f) => read(join(results, f)) as QuickstartFile),
  keys = existsSync(blind) ? needNoEyes(read(blind)) : [];
const lab = new Lab({ bench: 'imitation', dir: work, runtime, provider, signal, log });
/** Other seeds, lengths or rates, as an earlier session recorded them (`--with FILE`). */
const earlier = args.option('--with'),
  imitated: Imitated[] = earlier === undefined ? [] : recordedIn(read(earlier)),
  made: RunResult[] = [],
  twice = imitated.find((i) => seeds.includes(i.seed) && steps.includes(i.steps) && rates.includes(i.lr));
if (twice)
  throw new Error(
    `--with: ${earlier} has seed ${twice.seed} with ${twice.steps} updates at ${twice.lr}; name others (--seeds, --steps, --rates)`,
  );
try {
  for (const e of imitationPlan({ seeds, steps, rates, quick })) {
    const run = await lab.run(e, `seed ${e.seed},`),
      { measure, wallSeconds, splits } = run,
      tuned = measure.evals.findLast((p) => p.label === 'warm start'),
      { steps: updates, lr } = e.file.warmStart!;
    if (!tuned || !splits) throw new Error(`${e.name} was not evaluated`);
    const { episodes, successes } = tuned;
    made.push(run);
    imitated.push({
      seed: e.seed,
      steps: updates!,
      lr: lr!,
      seconds: wallSeconds,
      tuned: { episodes, successes },
      reported: splits,
      commit: run.commit,
      cpu: String(run.machine['cpu']),
    });
  }
  const { rows, bars, markdown } = imitationReport(imitated, quickstart, keys);
  console.log(markdown);
  finish('imitation', rows, bars, json, undefined, madeOf(made));
} catch (e) {
  if (!(e instanceof Interrupted)) throw e;
  process.exitCode = 130;
}
