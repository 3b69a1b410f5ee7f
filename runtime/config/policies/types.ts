import type { z } from 'zod';
import type { PolicyKind, PolicyTraits } from '../../domain/index.js';
import type { RunConfig, RunFile } from '../schema.js';

export interface Violation {
  /** Path in the run file, with dots. */
  readonly key: string;
  readonly what: string;
  readonly remedy: string;
}
export interface Rule extends Violation {
  readonly broken: (c: RunConfig) => boolean;
}

/** One kind of policy in a run file. */
export interface PolicyDeclaration {
  /** `policy.kind`; also the name of its section, `policy.KIND`. */
  readonly kind: PolicyKind;
  /** What it is, for the description of `policy.kind`. */
  readonly says: string;
  readonly traits: PolicyTraits;
  /** Its section, which a run file may leave out; absent where it has none. */
  readonly options?: z.ZodType;
  /** Defaults in place of the schema's, which are for the embedded policy. */
  readonly defaults?: RunFile;
  /** Rules for run files with this kind of policy. */
  readonly rules?: readonly Rule[];
  /**
   * Rules for run files with another kind, which refuse options that it has no use for: otherwise a run would train
   * something else than was meant.
   */
  readonly elsewhere?: readonly Rule[];
}
