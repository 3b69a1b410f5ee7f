import { build } from 'esbuild';
import { rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ProcessEntry } from '../../../runtime/concurrency/process.js';

/**
 * Bundles the trainer's roles alone, so that these tests stand on this room only; the shipped bundle starts it the same
 * way (runtime/main.ts).
 */
export async function trainerEntry(): Promise<ProcessEntry> {
  // Its own of each process: several layers of tests run at once.
  const file = resolve(`dist/test/trainer-${process.pid}.mjs`);
  process.once('exit', () => rmSync(file, { force: true }));
  await mkdir(resolve('dist/test'), { recursive: true });
  await build({
    stdin: {
      contents: `
import { workerData } from 'node:worker_threads';
import { runPerceptionWorker } from './runtime/trainer/native/perceptionWorker.js';
import { runTrainerProcess } from './runtime/trainer/native/trainerProcess.js';
if (workerData?.role === '__perception') runPerceptionWorker();
else if (process.argv[2] === '__trainer') await runTrainerProcess();`,
      resolveDir: resolve('.'),
      loader: 'ts',
    },
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    external: ['onnxruntime-node'],
    logLevel: 'warning',
  });
  return { file };
}
