/** Why a rollout left the ledger without being trained. */
export const RETIRE_REASONS = [
  'error', // environment, policy or verifier fault; retried as a new rollout
  'stopped', // the run was stopped while it ran
  'lost', // the daemon died while it ran
  'diverged', // a branch whose screens differed from those that it was to act out again
  'no-variance', // its group's rewards were all equal and nothing could be injected
  'replaced', // an experience-pool success took its place
  'trimmed', // the group had more rollouts than a batch takes
  'masked', // none of its steps was kept
  'stale', // beyond the staleness bound; admission should make this 0
] as const;
export type RetireReason = (typeof RETIRE_REASONS)[number];

/** Reasons that say how a rollout ended; the others are decisions of curation about one that ended well. */
const ENDINGS: ReadonlySet<RetireReason> = new Set(['error', 'stopped', 'lost', 'diverged']);
export const CURATION_REASONS: readonly RetireReason[] = RETIRE_REASONS.filter((r) => !ENDINGS.has(r));
