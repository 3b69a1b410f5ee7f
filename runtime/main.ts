#!/usr/bin/env node
/** The only process entry: hidden roles for child processes and workers, else the command line. */
import { isMainThread, workerData } from 'node:worker_threads';

// Ctrl-C in a terminal reaches the whole process group; children leave when the daemon tells them to or is gone, never by themselves.
if (isMainThread && process.argv[2]?.startsWith('__')) for (const s of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(s, () => {});

const role = isMainThread ? process.argv[2] : (workerData as { role?: string } | null)?.role;
switch (role) {
  case '__replica': await (await import('./policy/embedded/replicaProcess.js')).runReplicaProcess(); break;
  case '__trainer': await (await import('./trainer/native/trainerProcess.js')).runTrainerProcess(); break;
  case '__index': await (await import('./data/store/indexWorker.js')).runIndexWorker(); break;
  default: process.exitCode = await (await import('./run/cli.js')).main(process.argv.slice(2));
}
