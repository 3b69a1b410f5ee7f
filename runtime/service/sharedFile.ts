import { dirname, join } from 'node:path';
import { ServiceError, StudioError, messageOf, parseTrajectory } from '../domain/index.js';
import { readForeignText } from '../files/foreignFile.js';
import type { ShareJob } from '../share/write.js';

/** Most bytes of a `.traj.jsonl` file. */
const MOST_BYTES = 256 << 20;
/** The page of a trajectory file, whose frames lie beside it. */
export async function fileJob(file: string, to: string): Promise<ShareJob> {
  const content = await readForeignText(file, MOST_BYTES).catch((e: unknown) => {
      throw new ServiceError('not.found', `${file} cannot be read: ${messageOf(e)}.`, 'Choose another file.');
    }),
    parsed = parseTrajectory(content);
  if (!parsed.ok)
    throw new StudioError(
      'config.invalid',
      `${file} is not a trajectory: line ${parsed.line}: ${parsed.why}.`,
      'Choose a file that DART Studio exported.',
    );
  const { trajectory } = parsed;
  return { to, framesDir: join(dirname(file), trajectory.framesDir), trajectory };
}
