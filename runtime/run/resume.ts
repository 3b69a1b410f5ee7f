import type { RecoveryReport } from '../data/recover.js';
import type { Recovery } from '../data/store/journal.js';
import type { RunReader } from '../data/store/runStore.js';
import { newestVersion } from './checkpoints.js';
import type { EvalPoint } from './evaluateEpisodes.js';

/** How far an earlier part of the same run got. */
export interface Progress {
  readonly elapsedMs: number;
  /** The version that the completed warm start made; undefined before it. */
  readonly warmStartVersion: number | undefined;
  /** The weights are untrained, whatever their version: every checkpoint of the run was damaged. */
  readonly untaught: boolean;
  /** Steps already learned of reading lessons, and of a warm start, that were interrupted. */
  readonly readingSteps: number;
  readonly imitationSteps: number;
  /** Pools of other folders have joined (`curation.pool.from`). */
  readonly pooled: boolean;
  readonly points: readonly EvalPoint[];
}

/** Most trajectories that a line of the log names. */
const NAMED = 10;
/** A sentence for the log of a resumed run: what was found, and what damage on disk has cost. */
export function resumedNote(found: RecoveryReport, { damage }: Pick<Recovery, 'damage'>): string {
  const { events, lost, corrupt, released, unreadable } = found,
    stretches = damage.filter((d) => !d.tail),
    bytes = stretches.reduce((sum, d) => sum + d.to - d.from, 0),
    named = (of: readonly string[]): string => [...of.slice(0, NAMED), ...(of.length > NAMED ? ['…'] : [])].join(', ');
  return [
    `Resumed: ${events} events read, ${lost.length} unfinished rollouts handed out again, ${released} claimed batches freed.`,
    ...(stretches.length > 0 ? [`Its journal is damaged in ${stretches.length} places (${bytes} bytes).`] : []),
    ...(corrupt.length > 0
      ? [`The ends of these rollouts are in what is damaged: ${named(corrupt)}. They are retired as lost (corrupt).`]
      : []),
    ...(unreadable.length > 0
      ? [
          `These trajectories cannot be read back: ${named(unreadable)}. They, and groups that waited with them, are retired as lost (corrupt).`,
        ]
      : []),
  ].join(' ');
}

/** Weights of version `base` replaced those of version `of`, which are damaged; base 0: untrained weights. */
export interface StandIn {
  readonly of: number;
  readonly base: number;
}
/** The value of `learned` in the `checkpoint` record of a stand-in. */
export const STAND_IN = 'stand-in';

/**
 * `elapsedMs`: of the journal's own records of time, which version 0.1 did not write. `standIn`: one that the journal
 * does not have yet.
 */
export async function progressOf(run: RunReader, elapsedMs = 0, standIn?: StandIn): Promise<Progress> {
  const standIns = [...(await standInsOf(run)), ...(standIn ? [standIn] : [])],
    rows = async (name: string): Promise<{ readonly version: number; readonly value: number }[]> =>
      (await run.index.query('SELECT version, value FROM metrics WHERE name = ?', [name]))
        .map((r) => ({ version: Number(r['version'] ?? 0), value: Number(r['value']) }))
        // Values of versions whose weights were damaged do not count: what they had learned is lost.
        .filter((r) => !standIns.some((s) => s.base < r.version && r.version <= s.of)),
    most = (values: readonly number[]): number | undefined => (values.length > 0 ? Math.max(...values) : undefined);
  const partOf = async (lesson: string): Promise<number> =>
    (await rows(`${lesson}.loss`)).length > 0
      ? 0
      : (await rows(`${lesson}.part.steps`)).reduce((sum, r) => sum + r.value, 0);
  const last = standIns.at(-1),
    elapsed = (await run.index.query("SELECT max(value) AS v FROM metrics WHERE name = 'run.elapsedMs'", []))[0]?.['v'];
  return {
    elapsedMs: Math.max(elapsedMs, Number(elapsed ?? 0)),
    warmStartVersion: most((await rows('warm-start.loss')).map((r) => r.version)),
    untaught: last?.base === 0 && (await newestVersion(run)) <= last.of + 1,
    readingSteps: await partOf('reading'),
    imitationSteps: await partOf('warm-start'),
    pooled: (await rows('pool-from.entries')).length > 0,
    points: await evaluationsOf(run),
  };
}

async function standInsOf(run: RunReader): Promise<StandIn[]> {
  const values = async (name: string): Promise<number[]> =>
      (await run.index.query('SELECT value FROM metrics WHERE name = ? ORDER BY seq', [`${STAND_IN}.${name}`])).map(
        (r) => Number(r['value']),
      ),
    base = await values('base');
  return (await values('of')).map((of, i) => ({ of, base: base[i] ?? 0 }));
}

async function evaluationsOf(run: RunReader): Promise<EvalPoint[]> {
  const evals = await run.index.query("SELECT position FROM events WHERE type = 'eval' ORDER BY seq", []);
  const points: EvalPoint[] = [];
  for (const row of evals) {
    const e = await run.at(Number(row['position']));
    if (e?.type === 'eval')
      points.push({
        label: e.label ?? '',
        version: e.version,
        episodes: e.episodes,
        successes: e.successes,
        errors: e.errors,
        low: e.low,
        high: e.high,
        perFamily: e.perFamily ?? {},
        infeasible: e.infeasible ?? { episodes: 0, successes: 0 },
      });
  }
  return points;
}
