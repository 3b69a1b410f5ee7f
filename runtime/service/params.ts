import {
  EVALUATION_SPLITS,
  IMAGE_NAME,
  PRESET_NAMES,
  PROVENANCE_KINDS,
  PROVIDER_CHOICES,
  ServiceError,
} from '../domain/index.js';
import { z } from 'zod';
import type { RequestType } from 'vscode-jsonrpc';
import type * as m from '../protocol/methods.js';
import type { Handler, ServiceContext } from './types.js';

/** The boundary: what a client sends is checked here, once, before anything acts on it. */

/** A run, an id, a hash: never empty, never of a size that could only be an attack or an accident. */
const text = z
  .string()
  .min(1)
  .max(4096)
  .refine((s) => !s.includes('\0'), 'must not contain NUL');
const run = text.refine((s) => /^(\/|[a-z]:[\\/])/i.test(s), 'must be an absolute path of a run folder');
const count = z.int().positive();
const provider = z.enum(PROVIDER_CHOICES);
const preset = z.enum(PRESET_NAMES);
const points = z.int().min(2).max(2000).optional();
const time = z.number().nonnegative();
const outcome = z.enum(['success', 'failure', 'error', 'running']);
const provenance = z.enum(PROVENANCE_KINDS);
/** Fields for schemas that stand with their handlers. */
export const fields = { text, run };

export const schemas = {
  startRun: z.strictObject({
    text: z
      .string()
      .max(1 << 20)
      .optional(),
    file: text.optional(),
    preset: preset.optional(),
    base: text,
    seed: z.int().nonnegative().optional(),
    minutes: z.number().positive().optional(),
    provider: provider.optional(),
    desktops: count.max(1024).optional(),
  }),
  resumeRun: z
    .strictObject({ run, minutes: z.number().positive().optional(), more: z.number().positive().optional() })
    .refine((p) => p.minutes === undefined || p.more === undefined, 'Give either minutes or more.'),
  stopRun: z.strictObject({ run, now: z.boolean().optional() }),
  run: z.strictObject({ run }),
  evaluate: z.strictObject({
    run,
    version: z.int().nonnegative().optional(),
    episodes: count.max(100_000).optional(),
    split: z.enum(EVALUATION_SPLITS).optional(),
    provider: provider.optional(),
  }),
  listRuns: z.strictObject({ roots: z.array(text).max(64) }),
  series: z.strictObject({ run, names: z.array(text).min(1).max(64), maxPoints: points }),
  curves: z.strictObject({ run, window: count.max(10_000).optional(), maxPoints: points }),
  compareRuns: z.strictObject({
    runs: z.array(run).min(1).max(64),
    window: count.max(10_000).optional(),
    maxPoints: points,
  }),
  lanes: z.strictObject({ run, from: time.optional(), to: time.optional(), width: z.int().min(16).max(20_000) }),
  listTrajectories: z.strictObject({
    run,
    sort: z.enum(['newest', 'oldest', 'longest', 'entropy', 'reward']).optional(),
    cursor: text.optional(),
    limit: z.int().min(1).max(1000).optional(),
    filter: z
      .strictObject({
        outcome: z.array(outcome).max(4).optional(),
        family: text.optional(),
        task: text.optional(),
        group: text.optional(),
        provenance: z.array(provenance).max(PROVENANCE_KINDS.length).optional(),
        version: z.strictObject({ min: z.number().optional(), max: z.number().optional() }).optional(),
        tag: text.optional(),
        annotated: z.boolean().optional(),
        reviewed: z.boolean().optional(),
        assisted: z.boolean().optional(),
        text: z.string().max(500).optional(),
      })
      .optional(),
  }),
  strips: z.strictObject({ run, rollouts: z.array(text).max(40) }),
  failures: z.strictObject({
    run,
    family: text.optional(),
    version: z.strictObject({ min: time.optional(), max: time.optional() }).optional(),
  }),
  columns: z.strictObject({ run, before: time.optional(), limit: z.int().min(1).max(10_000) }),
  lastFrames: z.strictObject({ run, rollouts: z.array(text).max(200) }),
  trajectory: z.strictObject({ run, rollout: text }),
  group: z.strictObject({ run, group: text }),
  exportTrajectory: z.strictObject({ run, rollout: text, file: text.optional() }),
  thumbnails: z.strictObject({
    run,
    hashes: z.array(z.string().regex(/^[0-9a-f]{64}$/, 'must be the hash of a frame')).max(1000),
    width: z.int().min(16).max(1024).or(z.literal(0)),
  }),
  listTasks: z.strictObject({ run: run.optional(), runnable: z.boolean().optional() }),
  empty: z.strictObject({}),
  desktop: z.strictObject({ desktop: text }),
  buildDesktop: z.strictObject({
    provider: provider.optional(),
    // A name alone: a layer of somebody's own is built from the command line.
    image: z.string().regex(IMAGE_NAME, 'must be the name of an image').optional(),
    force: z.boolean().optional(),
  }),
  template: z.strictObject({ preset }),
  checkConfig: z.strictObject({ text: z.string().max(1 << 20), file: text.optional() }),
};

/** Parameters as the method wants them, or `params.invalid` with the path of what is wrong. */
export function parse<P>(method: string, schema: z.ZodType<P>, params: unknown): P {
  const r = schema.safeParse(params);
  if (r.success) return r.data;
  const why = r.error.issues
    .map((i) => `${i.path.length > 0 ? i.path.map(String).join('.') : 'parameters'}: ${i.message}`)
    .join('; ');
  throw new ServiceError(
    'params.invalid',
    `${method}: ${why}`,
    'This is a fault of the caller: update extension and runtime to the same version.',
  );
}

/** Collects handlers under their wire names; the method's types hold schema and handler together. */
export class Handlers {
  readonly map = new Map<string, Handler>();
  on<P, R>(
    method: RequestType<P, R, m.ErrorData>,
    schema: z.ZodType<P>,
    handle: (p: P, c: ServiceContext) => Promise<R> | R,
  ): void {
    this.map.set(method.method, async (params, c) => handle(parse(method.method, schema, params ?? {}), c));
  }
}
