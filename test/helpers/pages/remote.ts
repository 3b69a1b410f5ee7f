/** A vision-language model's rollout as the inspector gets it, made from recorded steps as a run records them. */
import { SequenceReader, type Step } from '../../../runtime/domain/index.js';
import { formatAnswer } from '../../../runtime/policy/actions/uiTars.js';
import type { TrajectoryView } from '../../../runtime/protocol/types.js';
import { stepView } from '../../../runtime/queries/steps.js';
import { remoteEpisode } from '../policy/remoteEpisode.js';
import { t0, view, type Plan } from './trajectories.js';

/** Thoughts of a model that was taught to say what it sees. */
const thoughts = [
  'The list shows six fruits, and none of them is selected yet. I need “Melon”, the fourth entry, so I click on it.',
  'The entry is highlighted now. I open it with a double click to see its details.',
  'The form is below the fold. I scroll down in the list to get there.',
  'The Code field is empty. I click into it before I type.',
];

/** `plans` with answers of a language model; the second step has a rejected answer, the third an unknown log-prob, the fourth was cut off. */
export function remoteView(plans: readonly Plan[], framesDir: string): TrajectoryView {
  const base = view(plans, framesDir),
    { steps, extras } = remoteEpisode(
      plans.map((p, i) => ({
        frame: p.frame,
        actions: [p.action],
        text: formatAnswer(
          { thought: thoughts[i] ?? p.thought ?? 'I go on.', actions: [p.action] },
          { mode: 'absolute', screen: p.frame },
        ),
        ...(i === 1
          ? {
              rejected: [
                {
                  text: "Thought: I should look at it more closely.\nAction: zoom_in(start_box='(190,183)')",
                  reason: 'The answer holds no action: zoom_in is none of the calls that are known.',
                },
              ],
            }
          : {}),
        ...(i === 2 ? { unknown: [4] } : {}),
        ...(i === 3 ? { finish: 'length' } : {}),
      })),
      { instruction: base.row.instruction, version: 12 },
    ),
    reader = new SequenceReader();
  const shown = steps.map((step: Step, i) =>
    stepView(
      {
        step,
        at: t0 + i * 2400,
        extra: extras[i],
        instruction: base.row.instruction,
        after: steps[i + 1]?.frame,
        kept: i !== 3,
        advantage: 0.866,
        weight: 0.94,
        tokenWeights: Float32Array.from(step.tokens!.ids!, (id) => 0.6 + ((id * 31) % 97) / 120),
        sequence: reader.read(step).find((s) => !s.rejected),
      },
      { choiceNames: () => undefined },
    ),
  );
  // As JSON, which is how it comes to a page.
  return JSON.parse(
    JSON.stringify({ ...base, row: { ...base.row, steps: shown.length }, steps: shown, threshold: 0.12 }),
  ) as TrajectoryView;
}
