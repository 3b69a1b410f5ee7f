import { z } from 'zod';
import { PROVIDER_CHOICES } from '../domain/index.js';
import { actionSchema } from '../annotations/schema.js';
import { fields } from './params.js';
import { MOST_INSTRUCTION } from './tryPolicy.js';

const { run, text } = fields,
  session = z.string().regex(/^[0-9a-f]{12}$/, 'must be the id of a session'),
  provider = z.enum(PROVIDER_CHOICES);
const at = z.number().finite(),
  place = z.number().finite().min(-100_000).max(100_000),
  point = { at, x: place, y: place },
  key = z.string().min(1).max(32);
const event = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('move'), ...point }),
  z.strictObject({
    type: z.literal('button'),
    ...point,
    button: z.enum(['left', 'middle', 'right']),
    down: z.boolean(),
  }),
  z.strictObject({ type: z.literal('wheel'), ...point, dx: place, dy: place }),
  z.strictObject({ type: z.literal('key'), at, key, down: z.boolean() }),
  z.strictObject({ type: z.literal('text'), at, text: z.string().max(10_000) }),
]);
/** Events of one request: more than a second of the quickest mouse. */
const MOST_EVENTS = 2000;
/** Parameters of control/*. */
export const schemas = {
  record: z.strictObject({
    run: run.optional(),
    base: run.optional(),
    family: text,
    seed: z.int().nonnegative().optional(),
    provider: provider.optional(),
  }),
  takeOver: z.strictObject({ desktop: text, mode: z.enum(['human', 'step']) }),
  empty: z.strictObject({}),
  session: z.strictObject({ session }),
  input: z.strictObject({ session, events: z.array(event).max(MOST_EVENTS) }),
  act: z.strictObject({ session, action: actionSchema }),
  mode: z.strictObject({ session, mode: z.enum(['human', 'policy', 'step']) }),
  accept: z.strictObject({ session, proposal: z.int().nonnegative() }),
  finish: z.strictObject({ session, failed: z.boolean().optional() }),
  keep: z.strictObject({
    session,
    pool: z.enum(['auto', 'never', 'override']),
    reason: z.string().max(2000).optional(),
    note: z.string().max(20_000).optional(),
    tags: z.array(text).max(100).optional(),
    verdict: z.enum(['success', 'failure']).optional(),
  }),
  policies: z.strictObject({ roots: z.array(text).max(64), files: z.array(text).max(256) }),
  try: z.strictObject({
    policy: z.union([
      z.strictObject({ run, version: z.int().nonnegative().optional() }),
      z.strictObject({ file: run }),
    ]),
    base: run,
    image: z.string().min(1).max(64).optional(),
    provider: provider.optional(),
    family: text.optional(),
    seed: z.int().nonnegative().optional(),
    instruction: z.string().max(MOST_INSTRUCTION).optional(),
    sampled: z.boolean().optional(),
    mode: z.enum(['policy', 'step']),
    maxSteps: z.int().positive().max(1000).optional(),
  }),
  steps: z.strictObject({ session, from: z.int().nonnegative() }),
};
