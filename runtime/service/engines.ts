import { realpathSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { READER_SPEC } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { parseRunFile } from '../config/index.js';
import { trainerOptions } from '../trainer/native/options.js';
import { createTrainer } from '../trainer/native/engine.js';

/**
 * The entry bundle (runtime/main.ts) that this process was started with and child processes are started with; this
 * module may be in another bundle.
 */
export const thisBundle = (): ProcessEntry => ({ file: realpathSync(process.argv[1]!) });

/** Starts a trainer process and ends it again: proves that ONNX Runtime loads. Throws `engine.unavailable`. */
export async function probeEngine(entry: ProcessEntry = thisBundle()): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-studio-'));
  const t0 = Date.now();
  try {
    const trainer = await createTrainer({
      entry,
      spec: READER_SPEC,
      dir,
      seed: 1,
      options: trainerOptions(parseRunFile({}), join(dir, 'weights')),
    });
    await trainer.close();
    return `works (trainer process ready in ${Date.now() - t0} ms)`;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
