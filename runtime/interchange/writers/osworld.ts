import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isTerminal } from '../../domain/index.js';
import type { Action, Size, Step, Trajectory } from '../../domain/index.js';
import { formatAnswer } from '../../policy/actions/uiTars.js';
import { actionsCode } from '../../domain/pyautogui/write.js';
import { ownKey, ownOf } from '../own.js';
import type { CoordinateMode } from '../types.js';
import { copyFrame, fileName } from './write.js';
import type { DomainOf, WriteContext, Writer } from './write.js';

/**
 * OSWorld's results layout: pyautogui/screenshot/<model>/<domain>/<task>/. The first screen is kept too, as step_0.png.
 * Layouts have one result per task and model: a second attempt at a task goes under `<run>.2`, and so on.
 */
export function osworldWriter({ run, dir, options, domainOf = suiteOf }: WriteContext): Writer {
  const attempts = new Map<string, number>(),
    args = new Set<string>(),
    name = fileName(run.meta.id);
  return {
    async add(t) {
      const attempt = (attempts.get(t.task) ?? 0) + 1,
        model = attempt === 1 ? name : `${name}.${attempt}`,
        domain = fileName(domainOf(t) ?? 'dart-studio');
      const models = join(dir, 'pyautogui', 'screenshot', model),
        folder = join(models, domain, fileName(t.task));
      await mkdir(folder, { recursive: true });
      try {
        await writeTask(t, { run, folder, coordinates: options.coordinates });
      } catch (e) {
        await rm(folder, { recursive: true, force: true });
        throw e;
      }
      attempts.set(t.task, attempt);
      if (args.has(model)) return;
      args.add(model);
      const { width, height } = t.steps[0]!.frame;
      await writeFile(
        join(models, 'args.json'),
        `${JSON.stringify({ action_space: 'pyautogui', observation_type: 'screenshot', model: basename(model), screen_width: width, screen_height: height, max_steps: t.cap }, null, 2)}\n`,
      );
    },
    close: () => Promise.resolve(),
  };
}

/** `desk` of `desk/calc-sum`. */
const suiteOf: DomainOf = ({ family }) => (family.includes('/') ? family.split('/')[0] : undefined);

interface TaskFolder {
  readonly run: WriteContext['run'];
  readonly folder: string;
  readonly coordinates: CoordinateMode;
}

/** Writes one trajectory as a task folder of the results. */
async function writeTask(t: Trajectory, { run, folder, coordinates }: TaskFolder): Promise<void> {
  const log: string[] = [];
  await copyFrame(run, t.steps[0]!.frame, join(folder, 'step_0.png'));
  for (const [i, s] of t.steps.entries()) {
    const done = s.actions.some(isTerminal),
      after = t.steps[i + 1]?.frame ?? (done ? s.frame : t.last),
      stamp = clock(s.at ?? t.startedAt + ((t.endedAt - t.startedAt) * (i + 1)) / t.steps.length),
      shot = `step_${i + 1}_${stamp}.png`,
      end = i === t.steps.length - 1;
    if (after) await copyFrame(run, after, join(folder, shot));
    log.push(
      JSON.stringify({
        step_num: i + 1,
        action_timestamp: stamp,
        action: code(s.actions, s.frame),
        response: response(s, coordinates),
        reward: end && t.outcome.kind !== 'error' ? t.outcome.reward : 0,
        done: done || end,
        info: done ? { [s.actions.some((a) => a.type === 'finished') ? 'done' : 'fail']: true } : {},
        screenshot_file: after ? shot : undefined,
      }),
    );
  }
  await writeFile(join(folder, 'traj.jsonl'), `${log.join('\n')}\n`);
  await writeFile(join(folder, 'dart-studio.json'), `${JSON.stringify({ [ownKey]: ownOf(t) }, null, 2)}\n`);
  // Last: a folder with a result is whole.
  await writeFile(join(folder, 'result.txt'), `${t.outcome.kind === 'error' ? 0 : t.outcome.reward}\n`);
}

/** The answer that a model would have given to act so. */
function response({ thought, actions, frame }: Step, mode: CoordinateMode): string {
  if (actions.length > 0) return formatAnswer({ thought: thought || undefined, actions }, { mode, screen: frame });
  return thought ? `Thought: ${thought}` : '';
}

/** OSWorld's words for what is no code, where an action stands alone. */
function code(actions: readonly Action[], screen: Size): string {
  const [a, more] = actions;
  if (a && !more) {
    if (a.type === 'finished') return 'DONE';
    if (a.type === 'fail') return 'FAIL';
    if (a.type === 'wait' && a.ms === undefined) return 'WAIT';
  }
  return actionsCode(actions, 'absolute', screen);
}

/** `20250713@161226123456`, UTC. */
const clock = (ms: number): string => {
  const d = new Date(Math.max(0, ms)).toISOString();
  return `${d.slice(0, 10).replace(/-/g, '')}@${d.slice(11, 19).replace(/:/g, '')}${d.slice(20, 23)}000`;
};
