import { z } from 'zod';
import { declaredPolicies, type PolicyDeclaration } from './policies/index.js';
import { RunFileSchema } from './schema.js';

let made: { readonly of: readonly PolicyDeclaration[]; readonly schema: typeof RunFileSchema } | undefined;

/** The schema of run files with every kind of policy that is declared; the same object until another one is. */
export function runFileSchema(): typeof RunFileSchema {
  const of = declaredPolicies();
  if (made?.of !== of) made = { of, schema: schemaWith(of) };
  return made.schema;
}

function schemaWith(policies: readonly PolicyDeclaration[]): typeof RunFileSchema {
  const { policy } = RunFileSchema.shape;
  const kind = z
    .enum(policies.map((d) => d.kind))
    .default('embedded')
    .describe(`${policies.map((d) => `\`${d.kind}\`: ${d.says}`).join('; ')}.`);
  const sections = policies.flatMap((d) => (d.options ? [[d.kind, d.options.optional()] as const] : [])),
    whole = policy
      .unwrap()
      .extend({ kind, ...Object.fromEntries(sections) })
      .prefault({} as never);
  return RunFileSchema.extend({
    policy: whole.describe(policy.description ?? ''),
  }) as unknown as typeof RunFileSchema;
}
