import { annotatedOf, type Annotated } from './facts.js';
import { readLog } from './log.js';
import { Turns } from '../concurrency/turns.js';

/**
 * The annotations of a run, by trajectory: those with any annotation, and the parts of those that were split. Reads the
 * log as it is on disk; a run without annotations gives an empty map. Apply it with `revisedTrajectory`.
 */
export async function readAnnotations(run: string): Promise<Map<string, Annotated>> {
  const { lines } = await readLog(run),
    out = new Map<string, Annotated>(),
    turns = new Turns();
  for (const [root, line] of lines) {
    for (const a of annotatedOf(root, line)) out.set(a.rollout, a);
    if (turns.over) await turns.next();
  }
  return out;
}
