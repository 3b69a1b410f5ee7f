import { Worker } from 'node:worker_threads';
import { StudioError, toRunError } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import type {
  FromInterchange,
  InterchangeAnswers,
  InterchangeJob,
  InterchangeWorkerData,
  Progress,
} from './interchangeWorker.js';

/**
 * Runs one job in a worker thread. Its signal is the request's: a cancelled import answers with what came in,
 * everything else rejects with `cancelled`.
 */
export function runInterchangeJob<K extends InterchangeJob['do']>(
  entry: ProcessEntry,
  job: Extract<InterchangeJob, { do: K }>,
  o: { readonly signal: AbortSignal; readonly onProgress: (p: Progress) => void },
): Promise<InterchangeAnswers[K]> {
  const { signal } = o;
  return new Promise((resolve, reject) => {
    const worker = new Worker(entry.file, {
      workerData: { role: '__interchange', entry, job } satisfies InterchangeWorkerData,
      resourceLimits: { maxOldGenerationSizeMb: job.do === 'table' ? TABLE_HEAP_MB : HEAP_MB },
    });
    const stop = (): void => {
      worker.postMessage('stop');
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    let settled = false;
    const end = (f: () => void): void => {
      if (settled) return;
      settled = true;
      signal.removeEventListener('abort', stop);
      f();
    };
    const fail = (why: string): void => {
      end(() => {
        reject(
          new StudioError(
            'internal',
            `The worker that ${job.do === 'import' || job.do === 'preview' ? 'imports' : 'exports'} ended: ${why}.`,
            'Try again: an import continues after what was already imported. If it happens again, please report it with the log.',
          ),
        );
      });
    };
    worker.on('message', (msg: FromInterchange) => {
      if ('progress' in msg) o.onProgress(msg.progress);
      else if ('done' in msg)
        end(() => {
          resolve(msg.done as InterchangeAnswers[K]);
        });
      else
        end(() => {
          const { kind, message, remedy, details } = msg.error;
          reject(new StudioError(kind, message, remedy, details ? { details: { ...details } } : {}));
        });
    });
    worker.on('error', (e) => {
      fail(toRunError(e).message);
    });
    worker.on('exit', (code) => {
      fail(`exit code ${code}`);
    });
  });
}
/** Heap of the worker: several times what the largest line of a file takes; pictures lie outside it. */
const HEAP_MB = 192,
  /** A table is written as a whole, and 100,000 rollouts are some hundred MB of rows. */
  TABLE_HEAP_MB = 1024;
