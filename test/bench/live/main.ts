// npm run bench:live [-- --quick] [-- --json FILE] [-- --out DIR] [-- --work DIR] [-- --turns N] [-- --minutes M] [--
// --regimes a,d] [-- --provider docker] [-- --report]: the four scheduling regimes on real desktops, in turn.
// npm run bench:live -- --vlm [...]: the same with a vision-language model as slow as one of 7 B, regimes a and d.
import { join, resolve } from 'node:path';
import { session, sessionArgs } from '../lib/session.js';
import { environment, seeingModel, startEngine } from '../vlm/servers.js';
import { livePlan } from './plan.js';
import { liveReport } from './report.js';
import { slowEngine } from './slow.js';
import { DECODE_SECONDS, REPLICAS, slowPlan, UPDATE_SECONDS } from './vlmPlan.js';

const args = sessionArgs(),
  { quick } = args,
  vlm = args.flag('--vlm'),
  // Sixteen pairs resolve a ratio of 1.2 where one run differs from the next by a quarter (t = 2.13, 0.25 * sqrt(2 / 16) * 2.13).
  turns = args.numbers('--turns', [quick ? 1 : vlm ? 8 : 16])[0]!,
  minutes = Number(args.option('--minutes') ?? (vlm ? (quick ? 0.4 : 3.5) : quick ? 0.15 : 1.4)),
  seed = args.numbers('--seeds', [1])[0]!,
  regimes = args.list('--regimes') ?? (vlm && quick ? ['d'] : vlm || quick ? ['a', 'd'] : ['a', 'b', 'c', 'd']),
  plan = { regimes, turns, minutes, seed, quick };
if (vlm && args.flag('--report')) {
  // Names and order of the runs alone: nothing is started.
  const engine = { url: 'http://127.0.0.1', model: '', imageToken: 0 };
  await session('live-vlm', args, slowPlan({ ...plan, engine, slow: [] }), (results, failed) =>
    liveReport(results, failed, { quick, turns, minutes, vlm }),
  );
} else if (vlm) await slowly();
else
  await session('live', args, livePlan(plan), (results, failed) =>
    liveReport(results, failed, { quick, turns, minutes, vlm }),
  );

async function slowly(): Promise<void> {
  // What is started is ended with this process however it ends.
  const stops: (() => Promise<void>)[] = [],
    port = Number(args.option('--port') ?? 18_477),
    work = resolve(args.option('--work') ?? join('.cache/bench', quick ? 'live-vlm-quick' : 'live-vlm'));
  try {
    const python = await environment(),
      seeing = seeingModel(python, join(work, 'models')),
      { stop, ...engine } = await startEngine(python, { model: seeing, state: join(work, 'engine'), port }),
      acting = { now: false },
      slow: string[] = [];
    stops.push(stop);
    for (let k = 0; k <= REPLICAS; k++) {
      const s = await slowEngine({
        acting,
        engine: engine.url,
        port: port + 1 + k,
        replica: `.replica-${k}`,
        // A short look is ten times as fast.
        decode: quick ? [DECODE_SECONDS[0] / 10, DECODE_SECONDS[1] / 10] : DECODE_SECONDS,
        update: quick ? UPDATE_SECONDS / 10 : UPDATE_SECONDS,
      });
      stops.unshift(s.stop);
      slow.push(s.url);
    }
    await session('live-vlm', args, slowPlan({ ...plan, engine, slow }), (results, failed) =>
      liveReport(results, failed, { quick, turns, minutes, vlm }),
    );
  } finally {
    for (const stop of stops) await stop();
  }
}
