import type { TaskId } from '../../domain/index.js';
import { wilson } from '../../domain/stats.js';
import type { AttemptRow } from './attempts.js';

/** An episode with a verdict. */
export interface Judged {
  readonly task: TaskId;
  /** 0 to 1. */
  readonly score: number;
}
export interface Tally {
  /** Those with a verdict, and those that ended in an error. */
  readonly episodes: number;
  readonly successes: number;
  readonly errors: number;
  /** Mean over the episodes; undefined where there are none. One without a verdict scores 0, and is among `errors`. */
  readonly score: number | undefined;
}
/** What a policy did on tasks. Tasks that cannot be done stand apart. */
export interface Results extends Tally {
  /** Wilson, 95 %, of the share of successes. */
  readonly low: number;
  readonly high: number;
  /** By what results list tasks under: applications. */
  readonly domains: Readonly<Record<string, Tally>>;
  readonly infeasible: Tally;
  /** Episodes still to come: it was stopped. */
  readonly open: number;
}

interface Sum {
  episodes: number;
  successes: number;
  errors: number;
  score: number;
}
const none = (): Sum => ({ episodes: 0, successes: 0, errors: 0, score: 0 });
const tallied = ({ score, ...s }: Sum): Tally => ({ ...s, score: s.episodes > 0 ? score / s.episodes : undefined });

/** Counts episodes: `attempts` of each task. Pure. */
export function resultsOf(rows: readonly AttemptRow[], judged: readonly Judged[], attempts: number): Results {
  const scores = new Map<TaskId, number>();
  for (const j of judged) scores.set(j.task, (scores.get(j.task) ?? 0) + j.score);
  const all = none(),
    infeasible = none(),
    domains = new Map<string, Sum>();
  let open = 0;
  for (const row of rows) {
    const verdicts = row.successes + row.failures,
      left = attempts - verdicts,
      errors = row.givenUp ? left : 0,
      name = row.domain ?? row.family,
      domain = domains.get(name) ?? none();
    if (!row.givenUp) open += left;
    for (const s of row.infeasible ? [infeasible] : [all, domain]) {
      s.episodes += verdicts + errors;
      s.successes += row.successes;
      s.errors += errors;
      s.score += scores.get(row.task) ?? 0;
    }
    if (!row.infeasible) domains.set(name, domain);
  }
  const { low, high } = wilson(all.successes, all.episodes);
  return {
    ...tallied(all),
    low,
    high,
    domains: Object.fromEntries([...domains].sort(([a], [b]) => (a < b ? -1 : 1)).map(([n, s]) => [n, tallied(s)])),
    infeasible: tallied(infeasible),
    open,
  };
}
