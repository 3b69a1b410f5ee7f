import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { StudioError, isRunName, ServiceError, messageOf } from '../domain/index.js';
import * as m from '../protocol/methods.js';
import type { ExportResult, ImportPreview, ImportResult, InterchangeProgress, RunPath } from '../protocol/types.js';
import type { ImportSource } from '../interchange/importer.js';
import { newTarget } from '../interchange/importTarget.js';
import type { ExportRequest } from '../interchange/exporter.js';
import { runInterchangeJob } from './interchangeJob.js';
import { exportFormats, type ReadOptions } from '../interchange/types.js';
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
    format: z.enum(exportFormats),
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

type Params<K extends keyof typeof schemas> = z.infer<(typeof schemas)[K]>;
type ExportParams = Omit<ExportRequest, 'options' | 'index' | 'signal' | 'onProgress'>;
/** A request under way: it can be stopped, and hears of its progress. */
interface Ask {
  readonly signal: AbortSignal;
  readonly onProgress: (p: InterchangeProgress) => void;
}

/** interchange/*: import and export, each in a worker thread. */
export function interchangeHandlers(h: Handlers, s: Studio): void {
  const ask = (c: ServiceContext, signal: AbortSignal): Ask => ({
    signal,
    onProgress: (p) => {
      c.notify(m.interchangeProgress.method, p);
    },
  });
  h.on(m.previewImport, schemas.preview, (p, c) =>
    s.job('An import is being previewed.', c.signal, (signal) => preview(s, p, ask(c, signal))),
  );
  h.on(m.importTrajectories, schemas.import, (p, c) =>
    s.job('Trajectories are being imported.', c.signal, (signal) => importTrajectories(s, p, ask(c, signal))),
  );
  h.on(m.exportTrajectories, schemas.export, (p, c) =>
    s.job('Trajectories are being exported.', c.signal, (signal) => exportTrajectories(s, p, ask(c, signal))),
  );
}

const sourceOf = (p: Pick<Params<'preview'>, 'path' | 'format' | 'options'>): ImportSource => ({
  path: resolve(p.path),
  format: p.format ?? 'auto',
  options: (p.options ?? {}) as ReadOptions,
});

async function preview(s: Studio, p: Params<'preview'>, ask: Ask): Promise<ImportPreview> {
  const run = p.run === undefined ? undefined : await runAt(s, p.run);
  return runInterchangeJob(s.entry, { do: 'preview', source: sourceOf(p), run }, ask);
}

async function importTrajectories(s: Studio, p: Params<'import'>, ask: Ask): Promise<ImportResult> {
  const dir = await targetOf(s, p),
    target = existsSync(join(dir, 'run.json')) ? { dir } : newTarget(dir, p.name ?? '');
  mustNotBeActive(s, dir);
  if (target.create) await makeParent(dir);
  await s.writers.closed(dir);
  s.readers.forget(dir);
  try {
    const job = {
        do: 'import',
        source: sourceOf(p),
        target: { ...target, entry: s.entry },
        pool: p.pool ?? true,
      } as const,
      { path: _p, formats: _f, duplicates: _d, ...result } = await runInterchangeJob(s.entry, job, ask);
    return result;
  } finally {
    s.readers.forget(dir);
    if (existsSync(join(dir, 'run.json'))) {
      await s.announce(dir);
      s.broadcast({ method: 'pool/changed', params: { run: dir } });
    }
  }
}
async function makeParent(dir: RunPath): Promise<void> {
  await mkdir(resolve(dir, '..'), { recursive: true }).catch((e: unknown) => {
    throw new StudioError(
      'store.io',
      `The folder of runs cannot be created: ${messageOf(e)}.`,
      'Choose another folder for runs.',
      { cause: e },
    );
  });
}

async function exportTrajectories(s: Studio, p: ExportParams, ask: Ask): Promise<ExportResult> {
  const { run: from, ...wanted } = p,
    request = { ...wanted, run: await runAt(s, from), options: { coordinates: 'qwen25' } } as ExportRequest,
    r = await runInterchangeJob(s.entry, { do: 'export', request }, ask);
  return {
    to: r.to,
    trajectories: r.trajectories,
    steps: r.steps,
    parts: r.parts,
    problems: r.problems,
    notes: r.notes,
  };
}

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
function mustNotBeActive(s: Studio, dir: RunPath): void {
  if (s.session?.run === dir)
    throw new ServiceError(
      'busy',
      "You can't import into an active run.",
      'Stop it first, or import into a new run and name that in curation.pool.from.',
    );
}
