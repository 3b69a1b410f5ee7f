import { z } from 'zod';
import type { Trajectory } from '../domain/index.js';
import { Unusable, limits } from './types.js';

const origin = z.enum(['policy', 'human', 'oracle']);
const schema = z.object({
  family: z.string().min(1).max(limits.id),
  task: z.string().min(1).max(limits.id),
  instruction: z.string().max(limits.instruction),
  reward: z.number().min(0).max(1),
  truncated: z.boolean(),
  cap: z.number().int().min(0).max(100_000),
  startedAt: z.number().min(0),
  endedAt: z.number().min(0),
  origins: z.array(origin).max(limits.steps),
  /** When each step was over. */
  times: z.array(z.number().min(0)).max(limits.steps).optional(),
  /** File of the screen after the last action, relative to what names it. */
  last: z.string().max(300).optional(),
  /** Instruction of a failure that was relabelled with what it did. */
  relabelledFrom: z.string().max(limits.instruction).optional(),
});
/** Fields that foreign layouts have no place for, kept beside them under `dart_studio`; other programs pass it over. */
export type Own = z.infer<typeof schema>;
export const ownKey = 'dart_studio';

export function ownOf(t: Trajectory, last?: string): Own {
  const times = t.steps.flatMap((s) => (s.at === undefined ? [] : [s.at]));
  return {
    family: t.family,
    task: t.task,
    instruction: t.instruction,
    reward: t.outcome.kind === 'error' ? 0 : t.outcome.reward,
    truncated: t.outcome.kind !== 'error' && t.outcome.truncated,
    cap: t.cap,
    startedAt: t.startedAt,
    endedAt: t.endedAt,
    origins: t.steps.map((s) => s.origin),
    times: times.length === t.steps.length ? times : undefined,
    last,
    relabelledFrom: t.provenance.kind === 'hindsight' ? t.provenance.instruction : undefined,
  };
}

/** Undefined when the field is absent; Unusable when it is there and wrong. */
export function parseOwn(value: unknown): Own | undefined {
  if (value === undefined) return undefined;
  const r = schema.safeParse(value);
  if (!r.success)
    throw new Unusable(
      `${ownKey}: ${r.error.issues[0]?.path.join('.') ?? ''} ${r.error.issues[0]?.message ?? 'cannot be read'}`.trim(),
    );
  return r.data;
}
