import type { RunConfig } from '../config/index.js';
import { StudioError } from '../domain/index.js';
import { untrained } from '../queries/untrained.js';

/** Throws `config.invalid` for a folder in which nothing was ever trained: its run file is a preset that nobody chose. */
export async function mustTrain(dir: string, { curation }: RunConfig): Promise<void> {
  const what = await untrained(dir, { joined: curation.pool.from.length > 0 });
  if (what !== undefined)
    throw new StudioError(
      'config.invalid',
      `${dir} holds ${what}: there is no training that could go on.`,
      'Name it in curation.pool.from of a run file: a new run then learns from it.',
    );
}
