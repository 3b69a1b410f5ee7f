import { expect, it } from 'vitest';
import { annotatedOf } from '../../../runtime/annotations/facts.js';
import { applyRecord, emptyLine } from '../../../runtime/annotations/line.js';
import { revisedTrajectory } from '../../../runtime/annotations/revise.js';
import { validOps } from '../../../runtime/annotations/validate.js';
import { id, sequencesOf, type Action, type RolloutId, type Trajectory } from '../../../runtime/domain/index.js';
import type { AnnotationOp } from '../../../runtime/protocol/types.js';
import { click, recording } from '../../helpers/annotations/recording.js';
import { remoteEpisode } from '../../helpers/policy/remoteEpisode.js';

const R = 'r000001',
  actions: Action[][] = [
    [click(10, 10)],
    [{ type: 'type', text: 'helo' }],
    [click(20, 20)],
    [{ type: 'wait' }],
    [{ type: 'finished' }],
  ],
  rec = recording(actions);
const recorded: Trajectory = {
  id: id<RolloutId>(R),
  task: 'desk/a#1' as never,
  family: 'desk/a' as never,
  instruction: 'do it',
  provenance: { kind: 'rollout' },
  outcome: { kind: 'failure', reward: 0, truncated: true },
  cap: 12,
  startedAt: 1,
  endedAt: 2,
  resetMs: 1,
  verifyMs: 1,
  steps: remoteEpisode(
    rec.steps.map((s) => ({
      frame: s.frame,
      actions: s.actions,
      text: `Thought: ${s.thought ?? 'I go on.'}`,
      rejected: s.index === 3 ? [{ text: 'no', reason: 'no action' }] : undefined,
    })),
  ).steps,
};
const revised = (...ops: AnnotationOp[]): Trajectory => {
  const line = applyRecord(emptyLine, {
    type: 'edit',
    rollout: R,
    part: 0,
    revision: 1,
    base: 0,
    at: 5000,
    ops: validOps(rec.steps, R, emptyLine, 0, ops),
  });
  return revisedTrajectory(recorded, annotatedOf(R, line)[0]!);
};
/** Steps whose prompts can be read, rejected answers among them. */
const read = (now: Trajectory): number[] => sequencesOf(now).map((s) => s.step.index);

it('prompts are told by what was sampled before them: behind a change there are none, and the rest can be read', () => {
  expect(read(recorded)).toEqual([0, 1, 2, 3, 3, 4]);
  expect(read(revised({ op: 'delete', steps: [2] }))).toEqual([0, 1]);
  expect(read(revised({ op: 'delete', steps: [0] }))).toEqual([]);
  expect(read(revised({ op: 'outcome', value: 'success', reason: 'seen' }))).toEqual(read(recorded));
});
it('an edited step has nothing that was sampled; steps behind it keep their tokens', () => {
  const now = revised({ op: 'action', step: 1, action: 0, value: { type: 'type', text: 'hello' } });
  expect(read(now)).toEqual([0]);
  for (const key of ['prompt', 'rejected', 'tokens', 'version']) expect(now.steps[1]).not.toHaveProperty(key);
  expect(now.steps[3]!.rejected).toEqual([expect.objectContaining({ text: 'no', reason: 'no action' })]);
  expect(now.steps[3]!.tokens).toBe(recorded.steps[3]!.tokens);
});
