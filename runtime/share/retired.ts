import type { RetireReason } from '../domain/index.js';

/** Why a rollout was not trained, for a table. */
export const RETIRE_WORDS: Readonly<Record<string, string>> = {
  'no-variance': 'all rewards of its group equal',
  replaced: 'replaced from the experience pool',
  error: 'environment or engine fault',
  stopped: 'run was stopped',
  lost: 'runtime died',
  diverged: 'could not be branched off: a screen differed',
  trimmed: 'group larger than a batch takes',
  masked: 'no step kept',
  stale: 'too old',
} satisfies Record<RetireReason, string>;
