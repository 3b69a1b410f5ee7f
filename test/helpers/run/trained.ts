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
