// npm run bench:imitation [-- --quick] [-- --seeds 1,2,3] [-- --steps 3000] [-- --json FILE] [-- --work DIR]
// [-- --provider docker]: the quick start's imitation alone, for five times as many updates as the quick start has, beside
// the quick start's own results. Goes on where it was stopped.
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { evaluated, type Count } from '../lib/evaluated.js';
import { Interrupted, Lab, StatusLine, interruptSignal } from '../lib/experiments.js';
import { finish } from '../lib/report.js';
import { sessionArgs } from '../lib/session.js';
import { SPLITS, episodesOf, imitationPlan, type Split } from './plan.js';
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

const quickstart = (existsSync(results) ? readdirSync(results) : [])
  .filter((f) => /^seed-\d+\.json$/.test(f))
  .map((f) => JSON.parse(readFileSync(join(results, f), 'utf8')) as QuickstartFile);
const lab = new Lab({ bench: 'imitation', dir: work, runtime, provider, signal, log });
const imitated: Imitated[] = [];
try {
  for (const e of imitationPlan({ seeds, steps: steps!, quick })) {
    const { measure, wallSeconds, fingerprint } = await lab.run(e, `seed ${e.seed},`),
      tuned = measure.evals.findLast((p) => p.label === 'warm start');
    if (!tuned) throw new Error(`${e.name} was not evaluated after imitation`);
    const reported: Partial<Record<Split, Count>> = {};
    for (const split of quick ? SPLITS.slice(0, 1) : SPLITS) {
      if (signal.aborted) throw new Interrupted();
      log.note(`      ${split}`);
      const file = join(work, `${e.name}-${split}-${fingerprint}.json`),
        how = ['--split', split, '--episodes', String(episodesOf({ quick })), '--provider', provider],
        { episodes, successes } = evaluated(runtime, file, [lab.runFolder(e.name)!, ...how]);
      reported[split] = { episodes, successes };
    }
    const { episodes, successes } = tuned;
    imitated.push({ seed: e.seed, steps: steps!, seconds: wallSeconds, tuned: { episodes, successes }, reported });
  }
  const { rows, bars, markdown } = imitationReport(imitated, quickstart);
  console.log(markdown);
  finish('imitation', rows, bars, json);
} catch (e) {
  if (!(e instanceof Interrupted)) throw e;
  process.exitCode = 130;
}
