// npm run bench:live [-- --quick] [-- --json FILE] [-- --out DIR] [-- --work DIR] [-- --turns N] [-- --minutes M] [--
// --regimes a,d] [-- --provider docker] [-- --report]: the four scheduling regimes on real desktops, in turn.
import { session, sessionArgs } from '../lib/session.js';
import { livePlan } from './plan.js';
import { liveReport } from './report.js';

const args = sessionArgs(),
  { quick } = args;
// Sixteen pairs resolve a ratio of 1.2 where one run differs from the next by a quarter (t = 2.13, 0.25 * sqrt(2 / 16) * 2.13).
const turns = args.numbers('--turns', [quick ? 1 : 16])[0]!,
  minutes = Number(args.option('--minutes') ?? (quick ? 0.15 : 1.4)),
  seed = args.numbers('--seeds', [1])[0]!;
const regimes = args.list('--regimes') ?? (quick ? ['a', 'd'] : ['a', 'b', 'c', 'd']);
await session('live', args, livePlan({ regimes, turns, minutes, seed, quick }), (results, failed) =>
  liveReport(results, failed, { quick, turns, minutes }),
);
