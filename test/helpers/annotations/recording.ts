import type { Action } from '../../../runtime/domain/index.js';
import type { StepView, TrajectoryView } from '../../../runtime/protocol/types.js';

/** A recorded trajectory as the annotator gets it; `actions[i]` are those of step i. */
export function recording(
  actions: readonly (readonly Action[])[],
  o: { readonly rollout?: string; readonly outcome?: 'success' | 'failure' } = {},
): TrajectoryView {
  const hash = (i: number): string => i.toString(16).padStart(64, '0'),
    size = { width: 640, height: 400 };
  const steps = actions.map((a, index): StepView => ({
    index,
    at: 1000 + index,
    frame: { hash: hash(index), ...size },
    after: { hash: hash(index + 1), ...size },
    thought: `thought ${index}`,
    actions: a,
    origin: 'policy',
    settled: true,
    version: 3,
    kept: true,
    entropy: 0.5,
    advantage: 1,
    weight: 1,
    tokens: [{ label: 'click', logprob: -0.1, entropy: 0.5 }],
    timings: { observe: 1, queue: 1, decide: 1, perform: 1, settle: 1 },
  }));
  const won = (o.outcome ?? 'failure') === 'success';
  return {
    row: {
      rollout: o.rollout ?? 'r000001',
      task: 'desk/a#1',
      family: 'desk/a',
      instruction: 'do it',
      outcome: o.outcome ?? 'failure',
      reward: won ? 1 : 0,
      truncated: !won,
      provenance: 'rollout',
      group: 'g1',
      steps: steps.length,
      cap: 12,
      startedAt: 900,
      endedAt: 2000,
    },
    steps,
    report: { checks: [{ what: 'w', expected: 'e', found: 'f', score: won ? 1 : 0 }] },
    advantage: 1,
    framesDir: '/frames',
    live: false,
    seq: 7,
  };
}
export const click = (x: number, y: number): Action => ({ type: 'click', at: { x, y } });
