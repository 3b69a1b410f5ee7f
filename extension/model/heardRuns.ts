/** The runs that a window heard to be active: they stay listed when they are over, wherever their folders are. */
import type { RunPath } from '../../runtime/protocol/types.js';
import { isListed } from './roots.js';

export class HeardRuns {
  readonly #runs = new Set<RunPath>();

  /** The one that was heard of last is the last. */
  get all(): readonly RunPath[] {
    return [...this.#runs];
  }
  add(run: RunPath): void {
    this.#runs.delete(run);
    this.#runs.add(run);
  }
  /** `root`: a run, or a folder of runs. Those that are active are still known. */
  forget(root: string, isActive: (run: RunPath) => boolean): void {
    for (const run of this.#runs) if (isListed([root], run) && !isActive(run)) this.#runs.delete(run);
  }
  clear(): void {
    this.#runs.clear();
  }
}
