import type { PolicyKind, PolicyTraits } from '../../domain/index.js';
import { RunFileSchema, type RunConfig } from '../schema.js';
import { EMBEDDED } from './embedded.js';
import { OPENAI } from './openai.js';
import type { PolicyDeclaration } from './types.js';
import { VLM } from './vlm.js';

export type { PolicyDeclaration, Rule, Violation } from './types.js';
export { startsEngine } from './vlm.js';

/** The kinds whose sections schema.ts types, in the order of the reference; a backend's registration adds its own. */
export const SHIPPED = { embedded: EMBEDDED, vlm: VLM, openai: OPENAI } as const;
const ofEveryPolicy = RunFileSchema.shape.policy.unwrap().shape;
let declared: readonly PolicyDeclaration[] = Object.values(SHIPPED);

/** Another array after each declaration. */
export const declaredPolicies = (): readonly PolicyDeclaration[] => declared;

/** Run files may have this kind of policy from now on, until what is returned is called. */
export function declarePolicy(d: PolicyDeclaration): () => void {
  if (!/^[a-z][a-zA-Z0-9]{1,31}$/.test(d.kind)) throw new RangeError(`"${d.kind}" is no name of a kind of policy`);
  if (d.kind in ofEveryPolicy || declared.some((x) => x.kind === d.kind))
    throw new RangeError(`"${d.kind}" is taken: there is such a kind of policy, or an option \`policy.${d.kind}\``);
  declared = [...declared, d];
  return () => {
    declared = declared.filter((x) => x !== d);
  };
}

/** Throws RangeError for a kind that nobody declared, which no configuration has. */
export function traitsOf(kind: PolicyKind): PolicyTraits {
  const found = declared.find((d) => d.kind === kind);
  if (!found) throw new RangeError(`there is no policy of kind "${kind}"`);
  return found.traits;
}

/** The section `policy.KIND` of a kind that schema.ts does not type, as the schema it was declared with gives it. */
export const optionsOf = <T>(c: Pick<RunConfig, 'policy'>, kind: PolicyKind): T | undefined =>
  (c.policy as Readonly<Record<string, unknown>>)[kind] as T | undefined;
