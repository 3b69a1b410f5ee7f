import { join } from 'node:path';
import { parseRunFile, type RunFile } from '../../../runtime/config/index.js';
import { poolConfigOf } from '../../../runtime/data/collections.js';
import { RunAppender } from '../../../runtime/data/runAppender.js';
import { READER_SPEC, id, type RunId } from '../../../runtime/domain/index.js';
import type { ProcessEntry } from '../../../runtime/concurrency/process.js';
import { createTrainer } from '../../../runtime/trainer/native/engine.js';
import { trainerOptions } from '../../../runtime/trainer/native/options.js';

/** With these untaught weights the policy begins with a click. */
const CLICKS = 5;

/** A finished run `untaught` with one real checkpoint, v0, of weights that learned nothing. */
export async function untaughtRun(dir: string, entry: ProcessEntry, file: RunFile = {}): Promise<void> {
  const config = parseRunFile({ preset: 'quickstart', tasks: { families: ['desk/term-touch'] }, ...file }),
    made = await RunAppender.open(dir, {
      index: 'local',
      create: { id: id<RunId>('untaught'), createdAt: 1, name: 'untaught', config },
      pool: poolConfigOf,
    }),
    trainer = await createTrainer({
      entry,
      spec: READER_SPEC,
      dir: join(dir, 'checkpoints'),
      seed: CLICKS,
      options: trainerOptions(config, join(dir, '.weights')),
    });
  try {
    await made.store.append({ type: 'checkpoint', ...(await trainer.checkpoint()) });
    await made.store.append({ type: 'run.closed', reason: 'finished' });
  } finally {
    await trainer.close();
    await made.close();
  }
}
