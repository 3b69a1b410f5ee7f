import type { FrameRef } from '../domain/index.js';
import type { StepEvent } from '../human/tryRollout.js';
import type { ProposedStep, TrySession } from '../human/trySession.js';
import { choiceNames } from '../policy/embedded/choiceNames.js';
import type { StepView, TrySteps } from '../protocol/types.js';
import { stepView } from '../queries/steps.js';
import { stepExtra } from '../run/stepExtra.js';

/** The parts of a step that are kept for people; a person's own step has none. */
export const tryExtra = (e: StepEvent): ReturnType<typeof stepExtra> | undefined =>
  e.step.origin === 'policy' ? stepExtra(e.desktop, e.alternatives, e.about) : undefined;

/** A step for people. `after`: the screen that it led to. */
export const tryStepView = (e: StepEvent, instruction: string, after?: FrameRef): StepView =>
  stepView({ step: e.step, at: e.at, desktop: e.desktop, instruction, after, extra: tryExtra(e) }, { choiceNames });

/** Steps of a session from the first one asked for on, and what is proposed. */
export function stepsOf(x: TrySession, from: number): TrySteps {
  const said = x.said(from),
    { instruction } = x.facts,
    asked = x.asked();
  return {
    steps: said.map((e, i) => tryStepView(e, instruction, said[i + 1]?.step.frame ?? x.last(e))),
    ...(asked ? { proposal: { id: asked.id, step: proposalView(x, asked) } } : {}),
  };
}
/** The view of a proposal. Its screen is the desktop's present one, which is stored with the step once there is one. */
function proposalView(x: TrySession, { decision: d }: ProposedStep): StepView {
  const { screen, desktop, instruction } = x.facts;
  return stepView(
    {
      step: {
        index: x.said(0).length,
        frame: { hash: '', ...screen },
        actions: d.actions,
        origin: 'policy',
        settled: true,
        timings: { observe: 0, decide: d.computeMs ?? 0, queue: d.queueMs ?? 0, perform: 0, settle: 0 },
        thought: d.thought,
        tokens: d.tokens,
        version: d.version,
      },
      at: Date.now(),
      instruction,
      extra: stepExtra(desktop, d.alternatives, { labels: d.labels, places: d.places, replica: d.replica }),
    },
    { choiceNames },
  );
}
