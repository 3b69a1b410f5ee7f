import { z } from 'zod';
import type { AnnotationOp } from '../domain/index.js';
import { actionSchemaOf } from './actionSchema.js';
import type { AnnotationRecord } from './line.js';

/** Bounds of what a person can say; far above use, below what could fill a disk. */
export const limits = {
  ops: 500,
  tags: 32,
  tag: 64,
  note: 20_000,
  thought: 20_000,
  reason: 2_000,
  text: 10_000,
  keys: 6,
  step: 1_000_000,
} as const;

/** No control characters: they cannot be shown. */
const line = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^[^\p{Cc}]*$/u, 'must not contain control characters');
const prose = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^[^\0]*$/, 'must not contain NUL');
const step = z.int().min(0).max(limits.step);

/** Shape alone; whether it fits its screen and step is said by validate.ts. */
export const actionSchema = actionSchemaOf({
  strict: true,
  place: z.strictObject({ x: z.number(), y: z.number() }),
  text: limits.text,
  emptyText: false,
  keys: limits.keys,
});

export const opSchema = z.discriminatedUnion('op', [
  z.strictObject({
    op: z.literal('outcome'),
    value: z.enum(['success', 'failure']).nullable(),
    reason: prose(limits.reason),
  }),
  z.strictObject({ op: z.literal('tags'), tags: z.array(line(limits.tag)).max(limits.tags) }),
  z.strictObject({ op: z.literal('note'), text: prose(limits.note) }),
  z.strictObject({ op: z.literal('mark'), step, mark: z.enum(['key', 'redundant', 'wrong']), on: z.boolean() }),
  z.strictObject({ op: z.literal('thought'), step, text: prose(limits.thought).nullable() }),
  z.strictObject({ op: z.literal('action'), step, action: z.int().min(0).max(1000), value: actionSchema }),
  z.strictObject({ op: z.literal('delete'), steps: z.array(step).min(1).max(10_000) }),
  z.strictObject({ op: z.literal('restore'), steps: z.array(step).min(1).max(10_000) }),
  z.strictObject({ op: z.literal('split'), step }),
  z.strictObject({ op: z.literal('reviewed'), value: z.boolean() }),
]) satisfies z.ZodType<AnnotationOp>;

const revision = z.int().min(0),
  name = z.string().min(1).max(4096),
  at = z.number().min(0);
const replay = z.looseObject({
  revision,
  at,
  rollout: name.optional(),
  outcome: z.enum(['success', 'failure', 'error']).optional(),
});
const record = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('edit'),
    rollout: name,
    part: step,
    revision: z.int().min(1),
    base: revision,
    at,
    ops: z.array(opSchema).max(limits.ops),
  }),
  z.object({ type: z.literal('head'), rollout: name, revision, at }),
  z.object({ type: z.literal('replay'), rollout: name, part: step, acted: z.string().max(200), replay }),
]);

/** A record as it was written, or undefined: a folder may come from anywhere. */
export function parseRecord(e: unknown): AnnotationRecord | undefined {
  const r = record.safeParse(e);
  return r.success ? (r.data as unknown as AnnotationRecord) : undefined;
}
