/** Totals of a run: of the rollouts in its index, and of older ones, which are only counted there (indexTrim.ts). */
import type { RunReader } from './runStore.js';

const OWN = "provenance = 'rollout'";
/** How a branch ends says nothing of how often its task is solved (indexTrim.ts counts old ones so, too). */
const WHOLE = 'origin IS NULL';

/** Rollouts that began, and the newest version; planned rollouts that never began do not count. */
export const BEGUN = `SELECT SUM(c) AS c, MAX(v) AS v FROM (
  SELECT COUNT(*) AS c, MAX(version_max) AS v FROM rollouts WHERE ${OWN} AND (started_at IS NOT NULL OR outcome IS NOT NULL)
  UNION ALL SELECT SUM(begun), MAX(version_max) FROM past)`;
export const STATES = `SELECT state, SUM(c) AS c FROM (
  SELECT state, COUNT(*) AS c FROM rollouts WHERE ${OWN} GROUP BY state UNION ALL SELECT state, n FROM past) GROUP BY state`;
export const REASONS = `SELECT reason, SUM(c) AS c FROM (
  SELECT reason, COUNT(*) AS c FROM rollouts WHERE ${OWN} AND state = 'retired' GROUP BY reason
  UNION ALL SELECT NULLIF(reason, ''), n FROM past WHERE state = 'retired') GROUP BY reason`;
/** SQL: judged rollouts by family and outcome: how many, their steps, and the instruction of one of them. */
export const JUDGED = `SELECT family, outcome, SUM(c) AS c, SUM(steps) AS steps, MIN(ask) AS ask FROM (
  SELECT family, outcome, COUNT(*) AS c, SUM(steps) AS steps, MIN(instruction) AS ask FROM rollouts WHERE ${OWN} AND outcome IN ('success', 'failure') AND ${WHOLE} GROUP BY family, outcome
  UNION ALL SELECT family, outcome, n, steps, instruction FROM past WHERE outcome IN ('success', 'failure')) GROUP BY family, outcome ORDER BY family`;

/** How many trajectories are only counted; a list says so. */
export async function older(run: RunReader): Promise<{ readonly older?: number }> {
  const [row] = await run.index.query('SELECT SUM(begun) AS c FROM past', []),
    n = Number(row?.['c'] ?? 0);
  return n > 0 ? { older: n } : {};
}
