import { Worker } from 'node:worker_threads';
import { StudioError, cancelled, toRunError } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { timeLimit } from '../concurrency/timeLimit.js';
import type { InterchangeProgress } from '../protocol/types.js';
import type {
  FromInterchange,
  InterchangeAnswers,
  InterchangeJob,
  InterchangeWorkerData,
} from './interchangeWorker.js';

/** A thread that is stopping says every second that it is alive; one that is silent this long, ms, is ended. */
const SILENT_MS = 10_000;

/**
 * Runs one job in a worker thread. Its signal is the request's: a cancelled import answers with what came in,
 * everything else rejects with `cancelled`, as does an import whose thread hears nothing any more.
 */
export function runInterchangeJob<K extends InterchangeJob['do']>(
  entry: ProcessEntry,
  job: Extract<InterchangeJob, { do: K }>,
  o: {
    readonly signal: AbortSignal;
    readonly onProgress: (p: InterchangeProgress) => void;
    /** The clock's limit. */
    readonly limit?: typeof timeLimit;
  },
): Promise<InterchangeAnswers[K]> {
  const { signal, limit = timeLimit } = o,
    imports = job.do === 'import' || job.do === 'preview';
  return new Promise((resolve, reject) => {
    const worker = new Worker(entry.file, {
      workerData: { role: '__interchange', entry, job } satisfies InterchangeWorkerData,
      resourceLimits: { maxOldGenerationSizeMb: job.do === 'table' ? TABLE_HEAP_MB : HEAP_MB },
    });
    let settled = false,
      clearLimit: (() => void) | undefined;
    const end = (f: () => void): void => {
      if (settled) return;
      settled = true;
      signal.removeEventListener('abort', stop);
      clearLimit?.();
      f();
    };
    const listen = (): void => {
      clearLimit?.();
      clearLimit = limit(SILENT_MS, () => {
        end(() => {
          reject(unheard(imports));
        });
        void worker.terminate();
      });
    };
    const stop = (): void => {
      worker.postMessage('stop');
      listen();
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    const fail = (why: string): void => {
      end(() => {
        reject(
          new StudioError(
            'internal',
            `The worker that ${imports ? 'imports' : 'exports'} ended: ${why}.`,
            'Try again: an import continues after what was already imported. If it happens again, please report it with the log.',
          ),
        );
      });
    };
    worker.on('message', (msg: FromInterchange) => {
      if ('progress' in msg) o.onProgress(msg.progress);
      else if ('stopping' in msg) {
        if (!settled) listen();
      } else if ('done' in msg)
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

/** The thread was ended: how much of the job it had done is not known. */
const unheard = (imports: boolean): StudioError =>
  cancelled(imports ? 'The import' : 'The export', {
    cause: new Error(`its thread said nothing for ${SILENT_MS / 1000} s and was ended`),
    ...(imports ? { remedy: 'Start it again when you are ready: it continues after what was already imported.' } : {}),
  });
/** Heap of the worker: several times what the largest line of a file takes; pictures lie outside it. */
const HEAP_MB = 192,
  /** A table is written as a whole, and 100,000 rollouts are some hundred MB of rows. */
  TABLE_HEAP_MB = 1024;
