import { readdir, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { StudioError, id, type RolloutId, type Trajectory } from '../domain/index.js';
import { checkpointOf } from '../data/events.js';
import type { RunReader } from '../data/store/runStore.js';
import type { EvalPoint } from './evaluation.js';

/** How far an earlier part of the same run got. */
export interface Progress {
  readonly elapsedMs: number;
  /** The version that the completed warm start made; undefined before it. */
  readonly warmStartVersion: number | undefined;
  /** Steps already learned of reading lessons, and of a warm start, that were interrupted. */
  readonly readingSteps: number;
  readonly imitationSteps: number;
  /** Pools of other folders have joined (`curation.pool.from`). */
  readonly pooled: boolean;
  readonly points: readonly EvalPoint[];
}

/** `elapsedMs`: of the journal's own records of time, which version 0.1 did not write. */
export async function progressOf(run: RunReader, elapsedMs = 0): Promise<Progress> {
  const metric = async (name: string, what: string): Promise<number | undefined> => {
    const [row] = await run.index.query(`SELECT ${what} AS v FROM metrics WHERE name = ?`, [name]);
    const v = row?.['v'] ?? undefined;
    return v === undefined ? undefined : Number(v);
  };
  const partOf = async (lesson: string): Promise<number> =>
    (await metric(`${lesson}.loss`, 'count(*)')) === 0
      ? ((await metric(`${lesson}.part.steps`, 'sum(value)')) ?? 0)
      : 0;
  return {
    elapsedMs: Math.max(elapsedMs, (await metric('run.elapsedMs', 'max(value)')) ?? 0),
    warmStartVersion: await metric('warm-start.loss', 'max(version)'),
    readingSteps: await partOf('reading'),
    imitationSteps: await partOf('warm-start'),
    pooled: (await metric('pool-from.entries', 'count(*)')) !== 0,
    points: await evaluationsOf(run),
  };
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

/** The newest checkpoint in the journal; its folder may have moved with the run. */
export async function lastCheckpoint(
  run: RunReader,
  version?: number,
): Promise<{ version: number; dir: string } | undefined> {
  const rows = await run.index.query(
    "SELECT position FROM events WHERE type IN ('checkpoint', 'batch.trained') ORDER BY seq DESC",
    [],
  );
  for (const row of rows) {
    const e = await run.at(Number(row['position'])),
      written = e && checkpointOf(e);
    if (written === undefined || (version !== undefined && written.version !== version)) continue;
    const dir = join(run.dir, 'checkpoints', written.dir.split(/[\\/]/).at(-1)!);
    if (existsSync(dir)) return { version: written.version, dir };
  }
  return undefined;
}

/**
 * The checkpoint that `warmStart.from` names: the folder itself, or the newest one of a run folder. Rejects with
 * `config.invalid`.
 */
export async function startingPoint(from: string): Promise<{ version: number; dir: string }> {
  const isCheckpoint = (dir: string): boolean => existsSync(join(dir, 'manifest.json'));
  const folder = resolve(from),
    checkpoints = join(folder, 'checkpoints');
  const dirs = isCheckpoint(folder)
    ? [folder]
    : (await readdir(checkpoints).catch((): string[] => []))
        .filter((n) => /^v\d+$/.test(n))
        .sort()
        .map((n) => join(checkpoints, n))
        .filter(isCheckpoint);
  const dir = dirs.at(-1),
    version = Number(/^v(\d+)$/.exec(basename(dir ?? ''))?.[1]);
  if (dir === undefined || !Number.isInteger(version))
    throw new StudioError(
      'config.invalid',
      `warmStart.from: there is no checkpoint in ${folder}.`,
      'Set it to a run folder that has checkpoints, or to one of the folders under its checkpoints/.',
    );
  return { version, dir };
}

/**
 * Successes of demonstrations and of the policy's newest rollouts, for imitation. One that cannot be read back is left
 * out: damage to it costs that demonstration and not the run.
 */
export async function loadSuccesses(
  run: Pick<RunReader, 'index' | 'readTrajectory'>,
  newest = 600,
): Promise<Trajectory[]> {
  const rows = await run.index.query(
    "SELECT id FROM rollouts WHERE outcome = 'success' AND (provenance != 'rollout' AND provenance != 'probe') UNION ALL SELECT id FROM (SELECT id FROM rollouts WHERE outcome = 'success' AND provenance = 'rollout' ORDER BY ended_at DESC LIMIT ?)",
    [newest],
  );
  const out: Trajectory[] = [];
  for (const r of rows) {
    const t = await run.readTrajectory(id<RolloutId>(String(r['id']))).catch(undamaged);
    if (t) out.push(t);
  }
  return out;
}
function undamaged(e: unknown): undefined {
  if (!(e instanceof StudioError && e.kind === 'store.damaged')) throw e;
}

/** Keeps the newest `keep` checkpoint folders. */
export async function pruneCheckpoints(dir: string, keep: number): Promise<void> {
  const names = (await readdir(dir).catch((): string[] => [])).filter((n) => /^v\d+$/.test(n)).sort();
  await Promise.all(
    names.slice(0, Math.max(0, names.length - keep)).map((n) => rm(join(dir, n), { recursive: true, force: true })),
  );
}
