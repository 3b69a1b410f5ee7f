import { resolve } from 'node:path';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { readFolder } from '../../../runtime/tasks/check.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import type { MetricRunner } from '../../../runtime/tasks/metrics/job.js';
import { messageOf } from '../../../runtime/domain/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { ReplayDesktop, type Contents, type RecordedState, type RecordedTask } from './recorded.js';
import type { MadeFiles } from './states.js';
import { allImages, never } from './world.js';

/** A recorded episode, judged again: whether it got the reward it had on its desktop. */
export interface ReplayedTask {
  readonly id: string;
  readonly folder: string;
  readonly what: 'nothing' | 'solved';
  readonly recorded: number;
  readonly reward?: number;
  readonly why?: string;
}

/** Judges what real desktops answered once more, without one. */
export async function replayStates(
  dir: string,
  recorded: { readonly tasks: readonly RecordedTask[]; readonly files: Contents },
  o: { evaluators: Evaluators; metrics: MetricRunner; made: MadeFiles; onTask: (t: ReplayedTask) => void },
): Promise<ReplayedTask[]> {
  const read = await readFolder(resolve(dir), { image: (await allImages())['osworld']!, assets: o.made.assets }),
    tasks = new Map<string, Task>(read.flatMap((t) => (t.task ? [[t.task.id, t.task]] : []))),
    out: ReplayedTask[] = [];
  for (const r of recorded.tasks)
    for (const what of ['nothing', 'solved'] as const) {
      const state = r[what],
        task = tasks.get(r.id);
      if (!state || !task) continue;
      const base = { id: r.id, folder: r.folder, what, recorded: state.reward },
        t = { ...base, ...(await judgedAgain(task, state.state, recorded.files, o)) };
      out.push(t);
      o.onTask(t);
    }
  return out;
}

async function judgedAgain(
  task: Task,
  state: RecordedState,
  files: Contents,
  o: { evaluators: Evaluators; metrics: MetricRunner; made: MadeFiles },
): Promise<Pick<ReplayedTask, 'reward' | 'why'>> {
  const engine = createTaskEngine({
      metrics: o.metrics,
      evaluators: o.evaluators,
      assets: o.made.assetsOf(task),
      settings: { sleepMode: 'settle' },
    }),
    d = new ReplayDesktop(state, files);
  try {
    await engine.setup(task, d, never);
    return { reward: (await engine.verify(task, d, { type: 'finished' }, never)).reward };
  } catch (e) {
    return { why: messageOf(e) };
  }
}
