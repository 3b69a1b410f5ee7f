import { spansIn } from '../../../runtime/queries/lanes.js';
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
export function utilisations(r: Replay, places: number): (readonly [counted: number, lanes: number])[] {
  const from = r.of('training.began').at(-1)!.at,
    to = r.of('training.ended').at(-1)!.at,
    counted = r.of('metrics').findLast((e) => 'desktopUtilisation' in e.values)!.values,
    spans = r.of('spans').flatMap((e) => spansIn(e).map((s) => ({ ...s, kind: e.kind })));
  return (['desktop', 'replica', 'trainer'] as const).map((kind) => {
    const busy = spans
      .filter((x) => x.kind === kind && x.what !== 'sync')
      .reduce((ms, x) => ms + Math.max(0, Math.min(to, x.start + x.ms) - Math.max(from, x.start)), 0);
    return [counted[`${kind}Utilisation`]!, busy / (to - from) / (kind === 'trainer' ? 1 : places)];
  });
}
