import type { EvalPoint, RunSummary } from '../../protocol/types.js';
import { percent } from '../../domain/stats.js';
import type { OutgoingAlert } from './alertSender.js';

/** "finished, 40 rollouts, evaluation 90 %": what the alert at the end of a run says. */
export function endWords(
  r: Pick<RunSummary, 'state' | 'rollouts'> & {
    readonly lastEval?: Pick<EvalPoint, 'successes' | 'episodes'> | undefined;
  },
  error?: { readonly message: string; readonly remedy: string },
): string {
  const e = r.lastEval;
  return [
    r.state,
    `${r.rollouts} ${r.rollouts === 1 ? 'rollout' : 'rollouts'}`,
    ...(e && e.episodes > 0 ? [`evaluation ${percent(e.successes / e.episodes)}`] : []),
    ...(error ? [`${error.message} ${error.remedy}`.trim()] : []),
  ].join(', ');
}

export const endAlert = (r: RunSummary, error?: Parameters<typeof endWords>[1]): OutgoingAlert => ({
  id: r.id,
  name: r.name,
  kind: 'finished',
  message: endWords(r, error),
  at: r.endedAt ?? Date.now(),
});
