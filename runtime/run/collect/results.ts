import { RunReader } from '../../data/store/runStore.js';
import { templateBootstrap } from '../../domain/bootstrap.js';
import { standForOthers } from '../../domain/evaluationInterval.js';
import { id, type EvaluationSplit, type TaskId } from '../../domain/index.js';
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
  /**
   * 95 % interval of the share of successes: Wilson's where each task was tried once, else one over tasks, since attempts
   * at one task are alike; of templates never trained on over templates.
   */
  readonly low: number;
  readonly high: number;
}
/** Results of a policy on tasks. Tasks that cannot be done are counted apart. */
export interface Results extends Tally {
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

/** Episodes of tasks that are counted together. */
class Sum {
  #episodes = 0;
  #successes = 0;
  #errors = 0;
  #score = 0;
  /** Those whose episodes end alike, by name: attempts at one task, tasks of one template. */
  readonly #alike = new Map<string, { episodes: number; successes: number }>();

  add(alike: string, e: { episodes: number; successes: number; errors: number; score: number }): void {
    this.#episodes += e.episodes;
    this.#successes += e.successes;
    this.#errors += e.errors;
    this.#score += e.score;
    const c = this.#alike.get(alike) ?? { episodes: 0, successes: 0 };
    this.#alike.set(alike, { episodes: c.episodes + e.episodes, successes: c.successes + e.successes });
  }
  tally(): Tally {
    const n = this.#episodes,
      apart = [...this.#alike.values()].every((c) => c.episodes <= 1),
      counts = Object.fromEntries([...this.#alike].filter(([, c]) => c.episodes > 0)),
      { low, high } = apart ? wilson(this.#successes, n) : templateBootstrap([counts]);
    return {
      episodes: n,
      successes: this.#successes,
      errors: this.#errors,
      score: n > 0 ? this.#score / n : undefined,
      low,
      high,
    };
  }
}

/** Of `attempts` of a task: those that have ended, errors among them, and those still to come. Pure. */
export function endedOf(
  row: AttemptRow,
  attempts: number,
): { readonly episodes: number; readonly errors: number; readonly open: number } {
  const left = Math.max(0, attempts - row.successes - row.failures - row.unsolved),
    errors = row.unsolved + (row.givenUp ? left : 0);
  return { episodes: row.successes + row.failures + errors, errors, open: row.givenUp ? 0 : left };
}

/** Counts episodes: `attempts` of each task. `split`: of a suite, what was held out. Pure. */
export function resultsOf(
  rows: readonly AttemptRow[],
  judged: readonly Judged[],
  attempts: number,
  split?: EvaluationSplit,
): Results {
  const scores = new Map<TaskId, number>();
  for (const j of judged) scores.set(j.task, (scores.get(j.task) ?? 0) + j.score);
  const all = new Sum(),
    infeasible = new Sum(),
    domains = new Map<string, Sum>(),
    ofTemplates = split !== undefined && standForOthers(split);
  let open = 0;
  for (const row of rows) {
    const ended = endedOf(row, attempts),
      name = row.domain ?? row.family,
      domain = domains.get(name) ?? new Sum();
    open += ended.open;
    for (const s of row.infeasible ? [infeasible] : [all, domain])
      s.add(ofTemplates && s === all ? row.family : row.task, {
        ...ended,
        successes: row.successes,
        score: scores.get(row.task) ?? 0,
      });
    if (!row.infeasible) domains.set(name, domain);
  }
  return {
    ...all.tally(),
    domains: Object.fromEntries([...domains].sort(([a], [b]) => (a < b ? -1 : 1)).map(([n, s]) => [n, s.tally()])),
    infeasible: infeasible.tally(),
    retried: rows.reduce((n, r) => n + r.retried, 0),
    givenUp: rows.filter((r) => r.givenUp).length,
    open,
  };
}
