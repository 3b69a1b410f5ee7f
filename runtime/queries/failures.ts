/** The failures of a run in clusters, and where its episodes clicked. */
import type { Row } from '../data/store/runIndex.js';
import type { RunReader } from '../data/store/runStore.js';
import { stepPlaces } from '../data/store/stepPlaces.js';
import type { ClickPlaces, EpisodeStrip, FailuresView } from '../protocol/types.js';
import { clusterFailures, type Episode, type EpisodeStep } from './divergence.js';
import { older } from '../data/store/totals.js';
import { frameLink } from './steps.js';

/**
 * Newest failures that are looked at, of one family or of all; successes to compare with, for each task and for each
 * family without one of the same task.
 */
const mostFailures = 400,
  successesOfTask = 3,
  successesOfFamily = 6;
/** Steps of one episode, and records read at a time. */
const mostSteps = 100,
  readAtOnce = 32;

export interface FailuresQuery {
  readonly family?: string | undefined;
  readonly version?: { readonly min?: number | undefined; readonly max?: number | undefined } | undefined;
}
/** The policy's own: a person's steps say nothing of it, and an error is no failure. */
const OWN = "r.human = 0 AND r.provenance IN ('rollout', 'probe')";
const COLUMNS = 'r.id, r.task, r.family, r.outcome, r.truncated, r.version_max, r.ended_at';

export async function failuresView(run: RunReader, q: FailuresQuery): Promise<FailuresView> {
  const where = [
      OWN,
      ...(q.version?.min === undefined ? [] : ['r.version_max >= ?']),
      ...(q.version?.max === undefined ? [] : ['r.version_min <= ?']),
    ].join(' AND '),
    versions = [q.version?.min, q.version?.max].filter((v): v is number => v !== undefined);
  const families = await run.index.query(
    `SELECT r.family, SUM(r.outcome = 'failure') AS failures, SUM(r.outcome = 'success') AS successes FROM rollouts r WHERE ${where} AND r.origin IS NULL AND r.outcome IN ('failure', 'success') GROUP BY r.family HAVING failures > 0 ORDER BY failures DESC, r.family`,
    versions,
  );
  const chosen = q.family === undefined ? { sql: '', params: [] } : { sql: ' AND r.family = ?', params: [q.family] },
    failed = await run.index.query(
      `SELECT ${COLUMNS} FROM rollouts r WHERE ${where}${chosen.sql} AND r.outcome = 'failure' ORDER BY r.born DESC LIMIT ?`,
      [...versions, ...chosen.params, mostFailures],
    ),
    rows = [...failed, ...(await successesFor(run, failed))],
    episodes = await episodesOf(run, rows);
  const all = families.filter((f) => q.family === undefined || f['family'] === q.family);
  return {
    families: families.map((f) => ({
      family: String(f['family']),
      failures: Number(f['failures']),
      successes: Number(f['successes']),
    })),
    clusters: clusterFailures(episodes),
    looked: failed.length,
    failures: all.reduce((a, f) => a + Number(f['failures']), 0),
    ...(await older(run)),
    ...(q.family === undefined ? {} : { clicks: clicksOf(episodes) }),
  };
}

/** Successes of any version count: what is right does not depend on who did it. */
async function successesFor(run: RunReader, failed: readonly Row[]): Promise<Row[]> {
  const names = (key: string): string => JSON.stringify([...new Set(failed.map((r) => String(r[key])))]);
  const newest = (by: string, most: number, of: string): Promise<Row[]> =>
    run.index.query(
      `SELECT * FROM (SELECT ${COLUMNS}, ROW_NUMBER() OVER (PARTITION BY r.${by} ORDER BY r.born DESC) AS place FROM rollouts r WHERE r.human = 0 AND r.outcome = 'success' AND r.provenance <> 'hindsight' AND r.${by} IN (SELECT value FROM json_each(?))) WHERE place <= ${most}`,
      [of],
    );
  const [ofTask, ofFamily] = await Promise.all([
    newest('task', successesOfTask, names('task')),
    newest('family', successesOfFamily, names('family')),
  ]);
  return [...new Map([...ofTask, ...ofFamily].map((r) => [String(r['id']), r])).values()];
}

/** Steps of each; of one with a damaged record none. */
async function stepsOf(run: RunReader, ids: readonly string[]): Promise<ReadonlyMap<string, readonly EpisodeStep[]>> {
  const places = await stepPlaces(run.index, ids),
    found = [...places].flatMap(([id, at]) =>
      at.flatMap(({ index, position }) => (index < mostSteps ? [{ id, position }] : [])),
    ),
    steps = new Map<string, EpisodeStep[]>(),
    damaged = new Set<string>();
  for (let i = 0; i < found.length; i += readAtOnce) {
    const part = found.slice(i, i + readAtOnce),
      read = await Promise.all(part.map((r) => run.at(r.position)));
    part.forEach(({ id }, k) => {
      const e = read[k],
        mine = steps.get(id) ?? [];
      if (e?.type === 'rollout.step') mine.push({ frame: frameLink(e.step.frame), actions: e.step.actions });
      else damaged.add(id);
      steps.set(id, mine);
    });
  }
  for (const id of damaged) steps.delete(id);
  return steps;
}

async function episodesOf(run: RunReader, rows: readonly Row[]): Promise<Episode[]> {
  const steps = await stepsOf(
    run,
    rows.map((r) => String(r['id'])),
  );
  return rows.flatMap((r): Episode[] => {
    const mine = steps.get(String(r['id']));
    if (!mine) return [];
    return [
      {
        rollout: String(r['id']),
        task: String(r['task']),
        family: String(r['family']),
        success: r['outcome'] === 'success',
        truncated: r['truncated'] === 1,
        version: typeof r['version_max'] === 'number' ? r['version_max'] : undefined,
        at: Number(r['ended_at'] ?? 0),
        steps: mine,
      },
    ];
  });
}

/** Screens and actions of a few episodes, in the order they are asked for. */
export async function strips(run: RunReader, ids: readonly string[]): Promise<EpisodeStrip[]> {
  const [steps, heads] = await Promise.all([
      stepsOf(run, ids),
      run.index.query(
        'SELECT id, head_position FROM rollouts WHERE id IN (SELECT value FROM json_each(?)) AND head_position IS NOT NULL',
        [JSON.stringify(ids)],
      ),
    ]),
    last = new Map<string, EpisodeStrip['last']>();
  for (const r of heads) {
    const e = await run.at(Number(r['head_position']));
    if (e?.type === 'trajectory.recorded' && e.head.last) last.set(String(r['id']), frameLink(e.head.last));
  }
  return ids.flatMap((rollout) => {
    const mine = steps.get(rollout),
      end = last.get(rollout);
    return mine ? [{ rollout, steps: mine, ...(end ? { last: end } : {}) }] : [];
  });
}

function clicksOf(episodes: readonly Episode[]): ClickPlaces {
  const x: number[] = [],
    y: number[] = [],
    success: boolean[] = [],
    version: number[] = [],
    rollout: number[] = [],
    step: number[] = [];
  episodes.forEach((e, who) => {
    e.steps.forEach((s, at) => {
      for (const a of s.actions)
        if ('at' in a && a.type !== 'scroll') {
          x.push(Math.round(a.at.x));
          y.push(Math.round(a.at.y));
          success.push(e.success);
          version.push(e.version ?? -1);
          rollout.push(who);
          step.push(at);
        }
    });
  });
  const frame = episodes.find((e) => !e.success)?.steps[0]?.frame ?? episodes[0]?.steps[0]?.frame;
  return {
    x,
    y,
    success,
    version,
    rollout,
    step,
    rollouts: episodes.map((e) => e.rollout),
    ...(frame ? { frame } : {}),
  };
}
