import type { RunIndex } from './runIndex.js';
import { unpackSteps } from './stepPack.js';

/** Where the records of a trajectory's steps lie in the journal. */
export interface StepPlace {
  readonly index: number;
  readonly position: number;
}

/** The places of the steps of every trajectory that has any, in order, whether it has ended or still runs. */
export async function stepPlaces(
  index: Pick<RunIndex, 'columns'>,
  rollouts: readonly string[],
): Promise<Map<string, StepPlace[]>> {
  const these = 'WHERE rollout IN (SELECT value FROM json_each(?))',
    ids = [JSON.stringify(rollouts)],
    out = new Map<string, StepPlace[]>();
  // Asked in this order: a rollout that ends between the two queries is found by both, and counts once.
  const [running, ended] = await Promise.all([
    index.columns(`SELECT rollout, idx, position FROM steps ${these} ORDER BY rollout, idx`, ids),
    index.columns(`SELECT rollout, steps FROM tracks ${these}`, ids),
  ]);
  const [who = [], at = [], position = []] = running;
  who.forEach((r, i) => {
    const mine = out.get(String(r)) ?? [];
    out.set(String(r), mine);
    mine.push({ index: Number(at[i]), position: Number(position[i]) });
  });
  const [done = [], packed = []] = ended;
  done.forEach((r, i) => out.set(String(r), unpackSteps(packed[i])));
  return out;
}
