import { groupSize } from '../data/curation/dynamicRollouts.js';
import type { DataStats } from '../data/dataStats.js';
import type { RunReader } from '../data/store/runStore.js';
import type { EvalPoint, TaskEvaluation, TaskRow } from '../protocol/types.js';
import { parseRunFile } from '../config/index.js';
import { probePrefix } from '../domain/probeNames.js';
import { wilson } from '../domain/stats.js';
import { outcomes, type Outcomes } from './outcomes.js';
import type { FamilyFacts, RunFacts } from './facts.js';
import { evalPoints } from './overview.js';

/** Places of a spark; characters of an instruction that names a task. */
const SPARK = 24,
  TITLE = 300;

/** Families that nobody has run yet. */
export const untriedTasks = (families: ReadonlyMap<string, FamilyFacts>): TaskRow[] =>
  [...families].map(([family, f]) => ({ family, ...describe(f), rollouts: 0, successes: 0, spark: [] }));

/**
 * A row a family; `live`: what the planner of an active run knows. An import or a collection has those of its
 * trajectories, unless those that can be rolled out are asked for (`runnable`): its run file, a preset, says nothing of
 * trajectories made elsewhere. `known`: what the caller has read already.
 */
export async function taskRows(
  run: RunReader,
  facts: RunFacts,
  live?: DataStats,
  runnable = false,
  known: { readonly outcomes?: Outcomes; readonly evals?: readonly EvalPoint[] } = {},
): Promise<TaskRow[]> {
  const external = live || runnable ? [] : await externalTasks(run, facts);
  if (external.length > 0) return external;
  const [o, evals, pool, opened] = await Promise.all([
    known.outcomes ?? outcomes(run),
    known.evals ?? evalPoints(run),
    run.index.query('SELECT family, COUNT(*) AS n FROM pool GROUP BY family', []),
    run.index.query(
      'SELECT family, cap, MAX(opened_at) AS at FROM (SELECT family, cap, opened_at FROM groups UNION ALL SELECT family, cap, opened_at FROM past_groups) GROUP BY family',
      [],
    ),
  ]);
  const of = (rows: readonly Readonly<Record<string, unknown>>[], key: string): Map<string, number> =>
    new Map(rows.map((r) => [String(r['family']), Number(r[key])]));
  const poolEntries = of(pool, 'n'),
    caps = of(opened, 'cap'),
    window = (facts.config ?? parseRunFile({})).curation.dynamicRollouts.window,
    rollouts = facts.config?.curation.dynamicRollouts,
    evaluations = evals.length > 0 ? await newestEvaluations(run, evals) : await measured(run);
  const byFamily = byFamilyOf(o),
    families = [
      ...new Set([
        ...facts.trained,
        ...byFamily.keys(),
        ...(live?.families.map((f) => f.family as string) ?? []),
        // A collection may measure held-out families: all of them are listed.
        ...(run.meta.collected === undefined ? [] : evaluations.keys()),
      ]),
    ].sort();
  return families.map((family): TaskRow => {
    const { won, steps, score } = byFamily.get(family) ?? { won: [], steps: 0, score: 0 },
      recent = won.slice(-window),
      wins = recent.filter(Boolean).length,
      now = live?.families.find((f) => f.family === family),
      w = wilson(wins, recent.length);
    const size =
        now?.size ??
        (rollouts &&
          groupSize({ n: recent.length, rate: recent.length > 0 ? wins / recent.length : undefined }, rollouts)),
      cap = now?.cap ?? caps.get(family),
      entries = poolEntries.get(family),
      known = facts.families.get(family);
    return {
      family,
      ...(known ? describe(known) : {}),
      rollouts: won.length,
      ...scored(won.length, won.filter(Boolean).length, score),
      ...(recent.length > 0 ? { rate: w.rate, low: w.low, high: w.high, recent: recent.length } : {}),
      evaluation: evaluations.get(family),
      groupSize: size,
      cap,
      meanSteps: won.length > 0 ? steps / won.length : undefined,
      poolEntries: entries,
      spark: spark(won, window),
    };
  });
}

/** Successes and, where one has a part, the mean of the rewards, whose sum is `score`. */
const scored = (episodes: number, successes: number, score: number): Pick<TaskRow, 'successes' | 'score'> => ({
  successes,
  ...(score > successes ? { score: score / episodes } : {}),
});

/** `score`: the sum of the rewards. */
const evaluationOf = (version: number, episodes: number, successes: number, score: number): TaskEvaluation => ({
  version,
  episodes,
  ...scored(episodes, successes, score),
  ...wilson(successes, episodes),
});

/** For each family, the newest evaluation that judged an episode of it. */
async function newestEvaluations(run: RunReader, evals: readonly EvalPoint[]): Promise<Map<string, TaskEvaluation>> {
  const newest = new Map<string, EvalPoint>();
  for (const e of evals)
    for (const [family, { episodes }] of Object.entries(e.perFamily)) if (episodes > 0) newest.set(family, e);
  const parts = new Map<EvalPoint, ReadonlyMap<string, number>>();
  for (const e of new Set(newest.values())) parts.set(e, await partsOf(run, e));
  return new Map(
    [...newest].map(([family, e]) => {
      const { episodes, successes } = e.perFamily[family]!,
        score = successes + (parts.get(e)?.get(family) ?? 0);
      return [family, evaluationOf(e.version, episodes, successes, score)];
    }),
  );
}
/** Rewards of its failures, by family: an evaluation's record counts successes alone. */
async function partsOf(run: RunReader, { label, version }: EvalPoint): Promise<ReadonlyMap<string, number>> {
  const prefix = `${probePrefix(label)}v${version}`,
    rows = await run.index.query(
      "SELECT family, SUM(reward) AS s FROM rollouts WHERE id > ? AND id < ? AND outcome = 'failure' AND reward > 0 AND human = 0 GROUP BY family",
      // '0' follows '/'.
      [`${prefix}/`, `${prefix}0`],
    );
  return new Map(rows.map((r) => [String(r['family']), Number(r['s'])]));
}
/**
 * The evaluation of a collection that measures a policy (`evaluate --policy`): it has no record of one, all of it is
 * one.
 */
async function measured(run: RunReader): Promise<Map<string, TaskEvaluation>> {
  if (run.meta.collected === undefined) return new Map();
  const rows = await run.index.query(
    `SELECT family, COUNT(*) AS n, SUM(outcome = 'success') AS won, SUM(COALESCE(reward, 0)) AS score, MAX(COALESCE(version_max, 0)) AS v FROM rollouts
    WHERE provenance = 'probe' AND (outcome IN ('success', 'failure') OR error_kind = 'timeout') GROUP BY family`,
    [],
  );
  return new Map(
    rows.map((r) => [
      String(r['family']),
      evaluationOf(Number(r['v']), Number(r['n']), Number(r['won']), Number(r['score'])),
    ]),
  );
}

/** The tasks of a run in which nothing was ever rolled out; else empty. */
async function externalTasks(run: RunReader, facts: RunFacts): Promise<TaskRow[]> {
  const rows = await run.index.query(
    `SELECT r.family AS family, COUNT(*) AS n, SUM(r.outcome = 'success') AS won, SUM(COALESCE(r.reward, r.outcome = 'success')) AS score, AVG(r.steps) AS m, MIN(r.instruction) AS says, COUNT(DISTINCT r.instruction) AS ways,
    (SELECT COUNT(*) FROM pool p WHERE p.family = r.family) AS pooled FROM rollouts r
    WHERE r.provenance IN ('imported', 'human', 'oracle') AND r.outcome IN ('success', 'failure') AND NOT EXISTS(SELECT 1 FROM groups) AND NOT EXISTS(SELECT 1 FROM past_groups) GROUP BY r.family ORDER BY r.family`,
    [],
  );
  return rows.map((r): TaskRow => {
    const family = String(r['family']),
      n = Number(r['n']),
      won = Number(r['won']),
      pooled = Number(r['pooled']),
      says = r['ways'] === 1 ? String(r['says'] ?? '').slice(0, TITLE) : '',
      known = facts.families.get(family);
    return {
      family,
      ...(known ? describe(known) : { title: says || undefined }),
      external: true,
      rollouts: n,
      ...scored(n, won, Number(r['score'])),
      rate: won / n,
      meanSteps: Number(r['m']),
      poolEntries: pooled > 0 ? pooled : undefined,
      spark: [],
    };
  });
}

const describe = (f: FamilyFacts): Pick<TaskRow, 'title' | 'apps' | 'domain' | 'heldOut' | 'infeasible'> => ({
  title: f.title || undefined,
  apps: f.apps,
  ...(f.domain === undefined ? {} : { domain: f.domain }),
  heldOut: f.heldOut,
  infeasible: f.infeasible,
});

interface FamilyEnds {
  readonly won: boolean[];
  steps: number;
  score: number;
}
/** Outcomes of each family's rollouts, oldest first, and the steps and rewards of all of them. */
function byFamilyOf(o: Outcomes): Map<string, FamilyEnds> {
  const out = new Map<string, FamilyEnds>();
  o.family.forEach((place, i) => {
    const f = o.families[place]!,
      of = out.get(f) ?? { won: [], steps: 0, score: 0 };
    out.set(f, of);
    of.won.push(o.success[i] === 1);
    of.steps += o.steps[i]!;
    of.score += o.score[i]!;
  });
  return out;
}

/** Rolling success at up to 24 places, oldest first. Pure. */
export function spark(won: readonly boolean[], window: number): number[] {
  const n = Math.min(SPARK, won.length);
  return Array.from({ length: n }, (_, k) => {
    const end = Math.ceil(((k + 1) * won.length) / n),
      of = won.slice(Math.max(0, end - window), end);
    return of.filter(Boolean).length / of.length;
  });
}
