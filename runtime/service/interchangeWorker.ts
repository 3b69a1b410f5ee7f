import { workerData } from 'node:worker_threads';
import { toRunError, type RunError } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { exportRun, type ExportReport, type ExportRequest } from '../interchange/exporter.js';
import { importInto, preview, type ImportSource } from '../interchange/importer.js';
import type { ImportReport, Preview } from '../interchange/importReport.js';
import type { ImportTarget } from '../interchange/importTarget.js';
import type { InterchangeProgress } from '../protocol/types.js';
import { writeShared, type Shared, type ShareJob } from '../share/write.js';
import { exportTable, type TableKind } from './exportTable.js';
import { recordedView } from './recordedView.js';
import { fileJob } from './sharedFile.js';
import { portOf } from '../concurrency/workerPort.js';

/**
 * Import and export in a thread of their own: strangers' files are read, checked and hashed there, and the daemon goes
 * on answering.
 */
export type InterchangeJob =
  | { readonly do: 'preview'; readonly source: ImportSource; readonly run?: string }
  | {
      readonly do: 'import';
      readonly source: ImportSource;
      readonly target: Omit<ImportTarget, 'index'>;
      readonly pool: boolean;
    }
  | { readonly do: 'share'; readonly share: ShareJob | { readonly file: string; readonly to: string } }
  | { readonly do: 'table'; readonly run: string; readonly to: string; readonly what: TableKind }
  | { readonly do: 'export'; readonly request: Omit<ExportRequest, 'signal' | 'onProgress' | 'index'> };
export interface InterchangeAnswers {
  readonly preview: Preview;
  readonly import: ImportReport;
  readonly export: ExportReport;
  readonly share: Shared;
  readonly table: number;
}
export interface InterchangeWorkerData {
  readonly role: '__interchange';
  readonly entry: ProcessEntry;
  readonly job: InterchangeJob;
}
export type FromInterchange =
  | { readonly progress: InterchangeProgress }
  /** It has read the request to stop, and stops after the trajectory under way. */
  | { readonly stopping: true }
  | { readonly done: unknown }
  | { readonly error: RunError };

/** Shortest time between two reports of progress. */
const TELL_MS = 100;
/** A thread that is stopping says this often that it is still alive. */
const STOPPING_MS = 1000;

/**
 * Body of the worker: one job; any message means "stop after the trajectory under way". Until it has stopped it reports
 * that it is alive: a worker that is silent is ended.
 */
export async function runInterchangeWorker(): Promise<void> {
  const port = portOf('interchange');
  const { job } = workerData as InterchangeWorkerData,
    stop = new AbortController(),
    say = (m: FromInterchange): void => {
      port.postMessage(m);
    };
  let told = 0,
    stopping: NodeJS.Timeout | undefined;
  port.once('message', () => {
    stop.abort();
    stopping = setInterval(() => {
      say({ stopping: true });
    }, STOPPING_MS);
  });
  const progress = (p: InterchangeProgress): void => {
    const now = performance.now();
    if (now - told < TELL_MS && p.done !== p.of) return;
    told = now;
    say({ progress: p });
  };
  try {
    say({ done: await work(job, stop.signal, progress) });
  } catch (e) {
    say({ error: toRunError(e) });
  } finally {
    clearInterval(stopping);
    port.close();
  }
}

async function work(
  job: InterchangeJob,
  signal: AbortSignal,
  tell: (p: InterchangeProgress) => void,
): Promise<unknown> {
  switch (job.do) {
    case 'preview':
      return preview(job.source, job.run, signal);
    case 'import': {
      // Counted first, so that progress has an end; nothing is decoded for it.
      const { trajectories, problemCount } = await preview(job.source, undefined, signal),
        of = trajectories + problemCount;
      return importInto(
        job.source,
        { ...job.target, index: 'local' },
        {
          pool: job.pool,
          of,
          signal,
          onProgress: (p) => {
            tell({ done: p.done, of, imported: p.imported, problems: p.problems });
          },
        },
      );
    }
    case 'share':
      // A stranger's file is parsed here, not where others wait.
      return writeShared('file' in job.share ? await fileJob(job.share.file, job.share.to) : job.share);
    case 'table':
      return exportTable(job.run, job.to, job.what);
    case 'export':
      return exportRun(
        {
          ...job.request,
          signal,
          onProgress: (done, of) => {
            tell({ done, of });
          },
        },
        recordedView,
      );
  }
}
