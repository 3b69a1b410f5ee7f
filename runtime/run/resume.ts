import { readdir, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { StudioError, checkpointName, id, type RolloutId, type Trajectory } from '../domain/index.js';
import { checkpointOf } from '../data/events.js';
import type { RecoveryReport } from '../data/recover.js';
import type { Recovery } from '../data/store/journal.js';
import type { RunReader } from '../data/store/runStore.js';
import { damageOf } from '../trainer/checkpoint.js';
import type { EvalPoint } from './evaluation.js';

/** How far an earlier part of the same run got. */
export interface Progress {
  readonly elapsedMs: number;
  /** The version that the completed warm start made; undefined before it. */
  readonly warmStartVersion: number | undefined;
  /** The weights know nothing, whatever their version: every checkpoint of the run was damaged. */
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

/** Weights of version `base` that took the place of those of version `of`, which are damaged; base 0: of none. */
export interface StandIn {
  readonly of: number;
  readonly base: number;
}
/** A stand-in's record is a `checkpoint` with this as what it learned. */
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

/** A checkpoint of a run; its folder may have moved with the run. */
export interface RunCheckpoint {
  readonly version: number;
  readonly dir: string;
}
/** The checkpoints that the journal tells of, newest first, whether they are still there or not. */
async function* checkpointsOf(run: RunReader): AsyncGenerator<RunCheckpoint> {
  const rows = await run.index.query(
    "SELECT position FROM events WHERE type IN ('checkpoint', 'batch.trained') ORDER BY seq DESC",
    [],
  );
  for (const row of rows) {
    const e = await run.at(Number(row['position'])),
      written = e && checkpointOf(e),
      // A journal may be a stranger's: what it names is beside the others or not at all.
      name = written?.dir.split(/[\\/]/).at(-1) ?? '';
    if (written && checkpointName.test(name))
      yield { version: written.version, dir: join(run.dir, 'checkpoints', name) };
  }
}
async function newestVersion(run: RunReader): Promise<number> {
  for await (const c of checkpointsOf(run)) return c.version;
  return 0;
}

/** The newest checkpoint in the journal, or that of a version, if its folder is there. */
export async function lastCheckpoint(run: RunReader, version?: number): Promise<RunCheckpoint | undefined> {
  for await (const c of checkpointsOf(run))
    if ((version === undefined || c.version === version) && existsSync(c.dir)) return c;
  return undefined;
}

/** The checkpoint that a run can go on from. */
export interface SoundCheckpoint {
  /** The newest checkpoint that is whole. */
  readonly checkpoint: RunCheckpoint | undefined;
  /** The newest version there was, where that is a newer one, and what became of it. */
  readonly damaged?: { readonly version: number; readonly why: string };
}
export async function soundCheckpoint(run: RunReader): Promise<SoundCheckpoint> {
  let damaged: SoundCheckpoint['damaged'];
  for await (const c of checkpointsOf(run)) {
    const why = existsSync(c.dir) ? (await damageOf(c.dir))?.message : `The checkpoint ${c.dir} is gone.`;
    if (why === undefined) return { checkpoint: c, ...(damaged ? { damaged } : {}) };
    damaged ??= { version: c.version, why };
  }
  return { checkpoint: undefined, ...(damaged ? { damaged } : {}) };
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
        .filter((n) => checkpointName.test(n))
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
 * Successes of demonstrations and of the policy's newest rollouts that kept their screens, for imitation; relabelled ones
 * come from the pool. One that cannot be read back is left out: damage to it costs that demonstration and not the run.
 */
export async function loadSuccesses(
  run: Pick<RunReader, 'index' | 'readTrajectory'>,
  newest = 600,
): Promise<Trajectory[]> {
  const rows = await run.index.query(
    "SELECT id FROM rollouts WHERE outcome = 'success' AND provenance NOT IN ('rollout', 'probe', 'hindsight') UNION ALL SELECT id FROM (SELECT id FROM rollouts WHERE outcome = 'success' AND provenance = 'rollout' AND bare IS NULL ORDER BY ended_at DESC LIMIT ?)",
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
  const names = (await readdir(dir).catch((): string[] => [])).filter((n) => checkpointName.test(n)).sort();
  await Promise.all(
    names.slice(0, Math.max(0, names.length - keep)).map((n) => rm(join(dir, n), { recursive: true, force: true })),
  );
}
