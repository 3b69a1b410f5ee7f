import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { StudioError, isRunName, toRunError, ServiceError } from '../domain/index.js';
import * as m from '../protocol/humanMethods.js';
import type {
  ExportResult,
  ImportOptions,
  ImportPreview,
  ImportResult,
  InterchangeProgress,
  RunPath,
} from '../protocol/types.js';
import { newTarget } from '../interchange/importer.js';
import type {
  FromInterchange,
  InterchangeAnswers,
  InterchangeJob,
  InterchangeWorkerData,
} from './interchangeWorker.js';
import type { ReadOptions } from '../interchange/types.js';
import { fields, type Handlers } from './params.js';
import type { Studio } from './studio.js';
import type { ServiceContext } from './types.js';

const { run, text } = fields,
  format = z.enum(['osworld', 'agentnet', 'dart', 'ui-tars', 'traj']).optional(),
  path = text.refine((p) => /^(\/|[a-z]:[\\/]|\\\\)/i.test(p), 'must be an absolute path');
const options = z
  .strictObject({
    tasks: path.optional(),
    verdict: z.enum(['success', 'failure']).optional(),
    coordinates: z.enum(['qwen25', 'relative1000', 'relative999', 'relative1', 'absolute']).optional(),
  })
  .optional();
const schemas = {
  preview: z.strictObject({ path, format, options, run: run.optional() }),
  import: z.strictObject({
    path,
    format,
    options,
    run: run.optional(),
    base: path.optional(),
    name: z.string().optional(),
    pool: z.boolean().optional(),
  }),
  export: z.strictObject({
    run,
    to: path,
    format: z.enum(['osworld', 'agentnet', 'openai', 'traj']),
    outcome: z.enum(['success', 'failure']).optional(),
    family: text.optional(),
    rollouts: z.array(text).min(1).max(100_000).optional(),
    split: z.strictObject({ share: z.number().gt(0).lt(1), seed: z.int().nonnegative() }).optional(),
    annotations: z
      .strictObject({
        tags: z.array(text).max(100).optional(),
        reviewed: z.boolean().optional(),
        revised: z.boolean().optional(),
        without: z
          .array(z.enum(['redundant', 'wrong']))
          .max(2)
          .optional(),
      })
      .optional(),
  }),
};

/** interchange/*: import and export, each in a worker thread. */
export function interchangeHandlers(h: Handlers, s: Studio): void {
  const sourceOf = (p: {
    path: string;
    format?: ImportPreviewFormat | undefined;
    options?: ImportOptions | undefined;
  }): { path: string; format: ImportPreviewFormat | 'auto'; options: ReadOptions } => ({
    path: resolve(p.path),
    format: p.format ?? 'auto',
    options: p.options ?? {},
  });
  h.on(m.previewImport, schemas.preview, (p, c) =>
    s.job('An import is being looked at.', c.signal, async (signal): Promise<ImportPreview> =>
      answer(
        s,
        { do: 'preview', source: sourceOf(p), ...(p.run === undefined ? {} : { run: await runAt(s, p.run) }) },
        c,
        signal,
      ),
    ),
  );
  h.on(m.importTrajectories, schemas.import, (p, c) =>
    s.job('Trajectories are being imported.', c.signal, async (signal): Promise<ImportResult> => {
      const dir = await targetOf(s, p),
        target = existsSync(join(dir, 'run.json')) ? { dir } : newTarget(dir, p.name ?? '');
      idle(s, dir);
      if (target.create)
        await mkdir(resolve(dir, '..'), { recursive: true }).catch((e: unknown) => {
          throw new StudioError(
            'store.io',
            `The folder of runs cannot be made: ${(e as Error).message}.`,
            'Choose another folder for runs.',
            { cause: e },
          );
        });
      await s.writers.closed(dir);
      s.readers.forget(dir);
      try {
        const r = await answer(
          s,
          { do: 'import', source: sourceOf(p), target: { ...target, entry: s.entry }, pool: p.pool ?? true },
          c,
          signal,
        );
        return {
          run: r.run,
          imported: r.imported,
          successes: r.successes,
          steps: r.steps,
          pooled: r.pooled,
          notPooled: r.notPooled,
          already: r.already,
          duplicateCount: r.duplicateCount,
          problems: r.problems,
          problemCount: r.problemCount,
          notes: r.notes,
          stopped: r.stopped,
        };
      } finally {
        s.readers.forget(dir);
        if (existsSync(join(dir, 'run.json'))) {
          await s.told(dir);
          s.broadcast({ method: 'pool/changed', params: { run: dir } });
        }
      }
    }),
  );
  h.on(m.exportTrajectories, schemas.export, (p, c) =>
    s.job('Trajectories are being exported.', c.signal, async (signal): Promise<ExportResult> => {
      const { run: from, ...request } = p,
        dir = await runAt(s, from);
      const r = await answer(
        s,
        {
          do: 'export',
          request: { ...request, run: dir, options: { coordinates: 'qwen25' } } as Extract<
            InterchangeJob,
            { do: 'export' }
          >['request'],
        },
        c,
        signal,
      );
      return { to: r.to, trajectories: r.trajectories, steps: r.steps, parts: r.parts, problems: r.problems };
    }),
  );
}
type ImportPreviewFormat = NonNullable<z.infer<typeof format>>;

/** The folder of a run that is there; else `not.found`. */
async function runAt(s: Studio, at: RunPath): Promise<RunPath> {
  await s.mustExist(at);
  return resolve(at);
}

/** An import that was stopped goes on with the same request: a run it made is there by then. */
async function targetOf(
  s: Studio,
  p: { readonly run?: string | undefined; readonly base?: string | undefined; readonly name?: string | undefined },
): Promise<RunPath> {
  if (p.run !== undefined) return runAt(s, p.run);
  if (p.base === undefined || p.name === undefined)
    throw new ServiceError(
      'params.invalid',
      'interchange/import: either a run, or base and name of a new one, is needed',
      'Choose where the trajectories go.',
    );
  if (!isRunName(p.name))
    throw new ServiceError(
      'params.invalid',
      `interchange/import: ${p.name}: a name is letters, digits, spaces, '.', '_' and '-'`,
      'Choose another name.',
    );
  return resolve(p.base, p.name);
}
function idle(s: Studio, dir: RunPath): void {
  if (s.session?.run === dir)
    throw new ServiceError(
      'busy',
      'The run is active; trajectories are imported into runs that are not.',
      'Stop it first, or import into a run of its own and name that in curation.pool.from.',
    );
}

/**
 * One job in a worker thread. Its stop is the request's: an import then answers with what came in, everything else
 * rejects with `cancelled`.
 */
function answer<K extends InterchangeJob['do']>(
  s: Studio,
  job: Extract<InterchangeJob, { do: K }>,
  c: ServiceContext,
  signal: AbortSignal,
): Promise<InterchangeAnswers[K]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(s.entry.file, {
      workerData: { role: '__interchange', entry: s.entry, job } satisfies InterchangeWorkerData,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
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
            `The worker that ${job.do === 'export' ? 'exports' : 'imports'} ended: ${why}.`,
            'Try again: an import goes on behind what was imported. If it happens again, please report it with the log.',
          ),
        );
      });
    };
    worker.on('message', (msg: FromInterchange) => {
      if ('progress' in msg) c.notify(m.interchangeProgress.method, msg.progress satisfies InterchangeProgress);
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
const HEAP_MB = 192;
