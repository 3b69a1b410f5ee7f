import { StudioError } from '../domain/index.js';
import type { Violation } from './policies/types.js';
import type { RunConfig } from './schema.js';

/** The rule that holds for training alone: a collection and an evaluation may break it. */
export const notTrainable = (c: RunConfig): Violation | undefined =>
  c.policy.kind === 'vlm' && c.policy.temperature !== 1
    ? {
        key: 'policy.temperature',
        what: `it is ${c.policy.temperature}, and training servers compute at 1: what is trained would not be what was sampled`,
        remedy: 'Set policy.temperature to 1, or leave it out. A collection and an evaluation may have another one.',
      }
    : undefined;

/** Throws `config.invalid` where a run cannot be trained as it would be rolled out. */
export function mustBeTrainable(c: RunConfig): void {
  const why = notTrainable(c);
  if (why) throw new StudioError('config.invalid', `${why.key}: ${why.what}.`, why.remedy);
}
