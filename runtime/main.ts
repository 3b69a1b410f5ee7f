#!/usr/bin/env node
/**
 * The only process entry: hidden roles for child processes and workers, else the command line. The build makes a bundle
 * of each module that is named here (scripts/build.mjs), so that a worker or child reads its own part and not
 * everything.
 */
import { isMainThread, workerData } from 'node:worker_threads';
import { background } from './concurrency/process.js';
import { lowerPriority } from './cli/lowerPriority.js';

// Ctrl-C in a terminal reaches the whole process group; children leave when the daemon tells them to or is gone, never
// by themselves.
if (isMainThread && process.argv[2]?.startsWith('__'))
  for (const s of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(s, () => {});
if (isMainThread && process.argv[3] === background) lowerPriority();

const role = isMainThread ? process.argv[2] : (workerData as { role?: string } | null)?.role;
switch (role) {
  case '__replica':
    await (await import('./policy/embedded/replicaProcess.js')).runReplicaProcess();
    break;
  case '__trainer':
    await (await import('./trainer/native/trainerProcess.js')).runTrainerProcess();
    break;
  case '__perception':
    (await import('./trainer/native/perceptionWorker.js')).runPerceptionWorker();
    break;
  case '__index':
    await (await import('./data/store/indexWorker.js')).runIndexWorker();
    break;
  case '__screens':
    (await import('./data/store/screenWorker.js')).runScreenWorker();
    break;
  case '__framebuffers':
    (await import('./cluster/drivers/framebufferWorker.js')).runFramebufferWorker();
    break;
  case '__models':
    (await import('./run/backends/modelWorker.js')).runModelWorker();
    break;
  case '__thumbnails':
    (await import('./service/thumbnailWorker.js')).runThumbnailWorker();
    break;
  case '__interchange':
    await (await import('./service/interchangeWorker.js')).runInterchangeWorker();
    break;
  case '__jpeg':
    (await import('./interchange/jpegWorker.js')).runJpegWorker();
    break;
  case '__metrics':
    (await import('./tasks/metrics/metricWorker.js')).runMetricWorker();
    break;
  default:
    process.exitCode = await (await import('./cli/commandLine.js')).commandLine(process.argv.slice(2));
}
