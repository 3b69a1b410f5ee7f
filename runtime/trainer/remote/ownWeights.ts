import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { orUndefined } from '../../domain/index.js';
import { weightsIn } from './savedState.js';

/**
 * Weights that this trainer saved on its server, and which of them nothing needs any more. Each update saves some, and of
 * a large model they fill a disk. What another run saved is never in here, even where this one starts from it.
 */
export class OwnWeights {
  readonly #dir: string;
  readonly #saved = new Set<string>();

  /** `dir`: this run's checkpoints. */
  constructor(dir: string) {
    this.#dir = dir;
  }
  add(uri: string): void {
    this.#saved.add(uri);
  }

  /** Takes out and answers those that neither a checkpoint here nor `inUse` names. */
  async surplus(inUse: readonly (string | null)[]): Promise<string[]> {
    const names = (await orUndefined(readdir(this.#dir), 'without checkpoints there is none to keep')) ?? [],
      kept = new Set<string | null>(inUse);
    for (const name of names) {
      const named = await orUndefined(weightsIn(join(this.#dir, name)), 'one that is being deleted needs nothing');
      for (const uri of named ?? []) kept.add(uri);
    }
    const gone = [...this.#saved].filter((uri) => !kept.has(uri));
    for (const uri of gone) this.#saved.delete(uri);
    return gone;
  }
}
