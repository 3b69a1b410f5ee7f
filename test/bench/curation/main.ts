// npm run bench:curation [-- --quick] [-- --seeds 1,2,3] [-- --variants all,none,...] [-- --budget ROLLOUTS] [--
// --probe EPISODES] [-- --out DIR] [-- --work DIR] [-- --provider docker] [-- --report]: what each curation mechanism
// does to learning; goes on where it was stopped.
import { session, sessionArgs } from '../lib/session.js';
import { VARIANTS } from './mechanisms.js';
import { curationPlan } from './plan.js';
import { curationReport } from './report.js';

const args = sessionArgs(),
  { quick } = args;
const seeds = args.numbers('--seeds', quick ? [1] : [1, 2, 3]),
  budget = args.numbers('--budget', [quick ? 32 : 400])[0]!,
  probe = args.numbers('--probe', [quick ? 8 : 96])[0]!;
const variants = args.list('--variants') ?? (quick ? ['all', 'none'] : VARIANTS.map((v) => v.name));
await session('curation', args, curationPlan({ seeds, variants, budget, probe, quick }), (results, failed) =>
  curationReport(results, failed, { quick, budget, probe }),
);
