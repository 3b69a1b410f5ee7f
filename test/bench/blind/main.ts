// npm run bench:blind [-- --quick] [-- --parts N] [-- --minutes M] [-- --seeds 1] [-- --out DIR] [-- --work DIR] [-- --provider docker]
// [-- --report]: which templates a policy learns that never sees anything; goes on where it was stopped. The first part is the
// quick start's templates.
import { session, sessionArgs } from '../lib/session.js';
import { blindPlan } from './plan.js';
import { blindReport } from './report.js';

const args = sessionArgs(),
  { quick } = args;
const seeds = args.numbers('--seeds', [1]),
  minutes = Number(args.option('--minutes') ?? (quick ? 1 : 20)),
  parts = Number(args.option('--parts') ?? (quick ? 1 : Infinity));
await session('blind', args, blindPlan({ seeds, minutes, parts, quick }), (results, failed) =>
  blindReport(results, failed, { quick, minutes }),
);
