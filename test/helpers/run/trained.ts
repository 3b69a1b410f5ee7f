import { activities } from '../../../runtime/domain/index.js';
import type { TrainResult } from '../../../runtime/run/trainRun.js';
import type { Command, Replay } from './cli.js';

/** The last line of `train --json`. */
export type Result = TrainResult & { readonly type: 'result'; readonly run: string; readonly dir: string };
export const resultOf = (c: Command): Result => c.said.find((l) => l['type'] === 'result') as unknown as Result;
/** Rollouts that were judged. */
export const recorded = (r: Replay) =>
  r
    .of('trajectory.recorded')
    .filter((e) => e.head.provenance.kind === 'rollout' && e.head.outcome.kind !== 'error')
    .map((e) => e.head);

/**
 * How busy desktops, replicas and trainer were since the newest process began to learn and until that was over: as it
 * counted them, and by the lanes of its journal. `places`: desktops, and replicas.
 */
export function busyShares(r: Replay, places: number): (readonly [counted: number, lanes: number])[] {
  const from = r.of('training.began').at(-1)!.at,
    to = r.of('training.ended').at(-1)!.at,
    counted = r.of('metrics').findLast((e) => 'desktopUtilisation' in e.values)!.values,
    spans = r
      .of('spans')
      .flatMap((e) => [...e.start].map((s, i) => ({ ...e, s: e.t0 + s, what: activities[e.what[i]!], ms: e.ms[i]! })));
  return (['desktop', 'replica', 'trainer'] as const).map((kind) => {
    const busy = spans
      .filter((x) => x.kind === kind && x.what !== 'sync')
      .reduce((ms, x) => ms + Math.max(0, Math.min(to, x.s + x.ms) - Math.max(from, x.s)), 0);
    return [counted[`${kind}Utilisation`]!, busy / (to - from) / (kind === 'trainer' ? 1 : places)];
  });
}
