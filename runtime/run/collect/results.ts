import { RunReader } from '../../data/store/runStore.js';
import { hierarchicalBootstrap, outcomesOf, type SeedOutcomes } from '../../domain/bootstrap.js';
import { id, type TaskId } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { wilson } from '../../domain/stats.js';
import type { AttemptRow } from './attempts.js';

/** An episode with a verdict. */
export interface Judged {
  readonly task: TaskId;
  /** 0 to 1. */
  readonly score: number;
}
export interface Tally {
  /** Episodes with a verdict, and those that ended in an error for good. */
  readonly episodes: number;
  readonly successes: number;
  readonly errors: number;
  /** Mean over the episodes; undefined where there are none. One without a verdict scores 0, and is among `errors`. */
  readonly score: number | undefined;
}
/** Results of a policy on tasks. Tasks that cannot be done are counted apart. */
export interface Results extends Tally {
  /**
   * 95 % interval of the share of successes: Wilson where each task was tried once, else a bootstrap over tasks, since
   * attempts at one task are alike.
   */
  readonly low: number;
  readonly high: number;
  /** Tally per heading of the results: applications. */
  readonly domains: Readonly<Record<string, Tally>>;
  readonly infeasible: Tally;
  /** Episodes that an error of the environment cut short and that were tried again. */
  readonly retried: number;
  /** Tasks that were given up. */
  readonly givenUp: number;
  /** Episodes still to come: it was stopped. */
  readonly open: number;
}

/** The episodes of a collection that have a verdict, in the order they began. */
export async function judgedEpisodes(dir: string, entry: ProcessEntry): Promise<readonly Judged[]> {
  const run = await RunReader.open(dir, { index: entry });
  try {
    const rows = await run.index.query(
      "SELECT task, reward FROM rollouts WHERE outcome IN ('success', 'failure') ORDER BY born",
      [],
    );
    return rows.map((r) => ({ task: id<TaskId>(String(r['task'])), score: Number(r['reward'] ?? 0) }));
  } finally {
    await run.close();
  }
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
    domains = new Map<string, Sum>(),
    outcomes: SeedOutcomes[] = [];
  let open = 0;
  for (const row of rows) {
    const left = Math.max(0, attempts - row.successes - row.failures - row.unsolved),
      errors = row.unsolved + (row.givenUp ? left : 0),
      episodes = row.successes + row.failures + errors,
      name = row.domain ?? row.family,
      domain = domains.get(name) ?? none();
    if (!row.givenUp) open += left;
    for (const s of row.infeasible ? [infeasible] : [all, domain]) {
      s.episodes += episodes;
      s.successes += row.successes;
      s.errors += errors;
      s.score += scores.get(row.task) ?? 0;
    }
    if (row.infeasible) continue;
    domains.set(name, domain);
    if (episodes > 0) outcomes.push(outcomesOf(row.successes, episodes));
  }
  const { low, high } = attempts === 1 ? wilson(all.successes, all.episodes) : hierarchicalBootstrap(outcomes);
  return {
    ...tallied(all),
    low,
    high,
    domains: Object.fromEntries([...domains].sort(([a], [b]) => (a < b ? -1 : 1)).map(([n, s]) => [n, tallied(s)])),
    infeasible: tallied(infeasible),
    retried: rows.reduce((n, r) => n + r.retried, 0),
    givenUp: rows.filter((r) => r.givenUp).length,
    open,
  };
}
