import { join } from 'node:path';
import { formatAction } from '../../policy/actions/uiTars.js';
import { actionsCode } from '../../domain/pyautogui/write.js';
import { ownKey, ownOf } from '../own.js';
import { Images, Lines } from './write.js';
import type { WriteContext, Writer } from './write.js';

/** AgentNet (OpenCUA): trajectories.jsonl and images/. Scores of quality that we do not have are left out. */
export function agentnetWriter({ run, dir }: WriteContext): Writer {
  const out = new Lines(join(dir, 'trajectories.jsonl')),
    images = new Images(run, join(dir, 'images'));
  return {
    async add(t) {
      const traj: unknown[] = [];
      for (const s of t.steps) {
        traj.push({
          index: s.index,
          image: await images.put(s.frame),
          value: {
            code: actionsCode(s.actions, 'relative', s.frame),
            observation: '',
            thought: s.thought ?? '',
            action: s.actions.map((a) => formatAction(a, { mode: 'absolute', screen: s.frame })).join('; '),
            last_step_correct: null,
            last_step_redundant: null,
            reflection: '',
          },
        });
      }
      const last = t.last && (await images.put(t.last));
      await out.add({
        task_id: t.task,
        instruction: t.instruction,
        traj,
        task_completed: t.outcome.kind === 'success',
        natural_language_task: t.instruction,
        [ownKey]: ownOf(t, last),
      });
    },
    close: () => out.close(),
  };
}
