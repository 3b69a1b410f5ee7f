import { dirname, join, resolve } from 'node:path';
import type { RunConfig } from '../config/index.js';
import type { DataManager } from '../data/dataManager.js';
import { toRunError } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { EventFile, scalarsOf } from './tensorBoard.js';

/**
 * Also writes scalars of the journal for TensorBoard, where the run file asks for it. Returns a function that ends it.
 * A failing disk is reported once and does not disturb the run.
 */
export function watchBoard(
  data: Pick<DataManager, 'noted' | 'store'>,
  o: {
    readonly config: RunConfig;
    readonly dir: string;
    readonly run: string;
    readonly reporter: { note(text: string): void };
  },
): () => Promise<void> {
  const { tensorboard } = o.config.store;
  if (!tensorboard.enabled) return () => Promise.resolve();
  const file =
    tensorboard.dir === undefined
      ? new EventFile(join(o.dir, 'tensorboard'), o.dir)
      : new EventFile(resolve(dirname(resolve(o.dir)), tensorboard.dir, o.run));
  let said = false;
  const off = data.noted.add((e) => {
    const s = scalarsOf(e, Date.now(), data.store.meta.createdAt);
    if (!s) return;
    file.write(s).catch((x: unknown) => {
      if (!said) o.reporter.note(`Event files for TensorBoard cannot be written: ${toRunError(x).message}`);
      said = true;
    });
  });
  return async () => {
    off();
    await orUndefined(file.close(), 'the run has ended without it');
  };
}
