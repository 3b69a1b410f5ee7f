// npm run bench:pool [-- --quick] [-- --seeds 1,2,3] [-- --variants without,pool,...] [-- --budget ROLLOUTS] [--
// --probe EPISODES] [-- --out DIR] [-- --work DIR] [-- --provider docker] [-- --report]: what demonstrations do for
// tasks the policy never solves; goes on where it was stopped.
import { session, sessionArgs } from '../lib/session.js';
import { POOL_VARIANTS, poolPlan } from './plan.js';
import { poolReport } from './report.js';

const args = sessionArgs(),
  { quick } = args;
const seeds = args.numbers('--seeds', quick ? [1] : [1, 2, 3]),
  budget = args.numbers('--budget', [quick ? 112 : 480])[0]!,
  probe = args.numbers('--probe', [quick ? 8 : 60])[0]!;
const variants = args.list('--variants') ?? (quick ? ['without', 'pool'] : POOL_VARIANTS.map((v) => v.name));
await session('pool', args, poolPlan({ seeds, variants, budget, probe, quick }), (results, failed) =>
  poolReport(results, failed, { quick, budget, probe }),
);
