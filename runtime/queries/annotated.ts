import { readAnnotations } from '../annotations/read.js';

/** Recorded trajectories that people annotated: retention leaves their screens alone. */
export async function annotatedRollouts(run: string): Promise<ReadonlySet<string>> {
  return new Set([...(await readAnnotations(run)).values()].map((a) => a.root));
}
