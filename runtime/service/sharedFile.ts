import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  ServiceError,
  StudioError,
  messageOf,
  parseTrajectory,
  parseTrajectoryStep,
  type StepView,
} from '../domain/index.js';
import { lines } from '../interchange/folder.js';
import { limits } from '../interchange/types.js';
import type { ShareJob } from '../share/write.js';

/** Most bytes of the lines of a `.traj.jsonl` file, and most lines, empty ones among them. */
const MOST_BYTES = 256 << 20,
  MOST_LINES = 4 * limits.steps;

type Trajectory = Extract<ShareJob, { readonly trajectory: unknown }>['trajectory'];

/** The page of a trajectory file, whose frames lie beside it. */
export async function fileJob(file: string, to: string): Promise<ShareJob> {
  try {
    const trajectory = await trajectoryIn(file);
    return { to, framesDir: join(dirname(file), trajectory.framesDir), trajectory };
  } catch (e) {
    if (e instanceof StudioError) throw e;
    throw new ServiceError('not.found', `${file} cannot be read: ${messageOf(e)}.`, 'Choose another file.');
  }
}

/** One line is in memory at a time: a large file whole, or as a list of its lines, would end the process. */
async function trajectoryIn(file: string): Promise<Trajectory> {
  const steps: StepView[] = [];
  let head: Trajectory | undefined,
    bytes = 0;
  for await (const { line, text } of lines(await realpath(file))) {
    if (line > MOST_LINES) throw invalid(file, line, `it has more than ${MOST_LINES} lines`);
    if (text === undefined) throw invalid(file, line, `it is longer than ${limits.line >> 20} MB`);
    if ((bytes += text.length) > MOST_BYTES)
      throw invalid(file, line, `the file is larger than ${MOST_BYTES >> 20} MB`);
    if (head === undefined) head = headOf(file, text);
    else if (text.trim() !== '') {
      if (steps.length >= limits.steps) throw invalid(file, line, `it has more than ${limits.steps} steps`);
      const read = parseTrajectoryStep(text);
      if (read.ok) steps.push(read.step);
    }
  }
  head ??= headOf(file, '');
  return { ...head, steps: steps.sort((a, b) => a.index - b.index) };
}

function headOf(file: string, text: string): Trajectory {
  const r = parseTrajectory(text);
  if (!r.ok) throw invalid(file, r.line, r.why);
  return r.trajectory;
}

const invalid = (file: string, line: number, why: string): StudioError =>
  new StudioError(
    'config.invalid',
    `${file} is not a trajectory: line ${line}: ${why}.`,
    'Choose a file that DART Studio exported.',
  );
