import { z } from 'zod';
import { foreignJson } from '../../foreign/json.js';
import type { Request } from '../http.js';

/** A request that does not say what its route needs; answered 400. */
export class BadRequest extends Error {}

const parsed = <T>(schema: z.ZodType<T>, value: unknown): T => {
  const r = schema.safeParse(value);
  if (r.success) return r.data;
  const issue = r.error.issues[0];
  throw new BadRequest(`${issue?.path.join('.') || 'The body'}: ${issue?.message ?? 'not understood'}`);
};

/** Bytes of a JSON body: a command, a script, a path. Files come as forms, which may be longer. */
const MOST_JSON = 4 << 20;
const BOUNDS = { depth: 64, values: 1 << 16 };

/** The JSON body; clients of old send it without a content type. */
export function jsonBody<T>(r: Request, schema: z.ZodType<T>): T {
  if (r.body.length > MOST_JSON) throw new BadRequest(`The body is longer than ${MOST_JSON >> 20} MiB.`);
  return parsed(
    schema,
    foreignJson(r.body.toString('utf8'), BOUNDS, (why) => new BadRequest(`The body ${why}.`)),
  );
}

/** Fields of a form, `multipart/form-data` or URL-encoded. */
export async function formBody(r: Request): Promise<FormData> {
  try {
    return await new Response(new Uint8Array(r.body), { headers: { 'content-type': r.contentType } }).formData();
  } catch {
    throw new BadRequest('The body is no form.');
  }
}

/** A text field of a form. */
export function field(form: FormData, name: string): string {
  const v = form.get(name);
  if (typeof v !== 'string' || v === '') throw new BadRequest(`${name} is missing.`);
  return v;
}

export const command = z.union([z.string(), z.array(z.string()).min(1)]);
export const commandBody = z.object({ command, shell: z.unknown().optional() });
export const windowBody = z.object({ window_name: z.string(), strict: z.unknown().optional(), by_class: z.unknown() });
export const pathBody = z.object({ path: z.string().min(1) });
export const downloadBody = z.object({ url: z.string().min(1), path: z.string().min(1) });
export const verifiedBody = z.object({
  command,
  shell: z.unknown().optional(),
  verification: z.object({ window_exists: z.string().optional(), command_success: z.string().optional() }).default({}),
  max_wait_time: z.number().min(0).max(120).default(10),
  check_interval: z.number().min(0.05).max(60).default(1),
});
export const settleBody = z.object({
  horizonMs: z.number().min(0).max(10_000).optional(),
  maxMs: z.number().min(0).max(120_000).optional(),
  terminalHoldMs: z.number().min(0).max(10_000).optional(),
});
export const pythonBody = z.object({ code: z.string() });
export const scriptBody = z.object({
  script: z.string(),
  timeout: z.number().positive().max(600).default(100),
  working_dir: z.string().nullish(),
});
