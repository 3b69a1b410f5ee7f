import { withinShare } from '../data/curation/hindsight.js';
import type { DataManager } from '../data/dataManager.js';
import { IMITABLE } from '../data/store/retention.js';
import type { RunReader } from '../data/store/runStore.js';
import { StudioError, endedInSuccess, id, type RolloutId, type Trajectory } from '../domain/index.js';

/**
 * Successes that may be imitated: all demonstrations, the policy's newest up to a bound per family, and of those that
 * were relabelled a share (`curation.hindsight`); these are in the pool.
 */
export class Successes {
  readonly #data: DataManager;
  readonly #perFamily: number;
  readonly #relabelledShare: number;
  readonly #known = new Map<RolloutId, Trajectory>();
  readonly #unreadable = new Set<RolloutId>();

  private constructor(data: DataManager, perFamily: number, relabelledShare: number) {
    this.#data = data;
    this.#perFamily = perFamily;
    this.#relabelledShare = relabelledShare;
  }
  /** Begins with the successes of earlier parts of the run. */
  static async load(data: DataManager, perFamily: number, relabelledShare = 1): Promise<Successes> {
    const s = new Successes(data, perFamily, relabelledShare);
    const earlier = await loadSuccesses(data.store, perFamily);
    for (const t of earlier.sort((a, b) => a.endedAt - b.endedAt)) s.add(t);
    return s;
  }

  /**
   * Adds a success, unless its step cap ended it after several steps; when the policy has too many of a family, the oldest is dropped.
   */
  add(t: Trajectory): void {
    if (!endedInSuccess(t.outcome, t.steps.length)) return;
    this.#known.set(t.id, t);
    if (t.provenance.kind !== 'rollout') return;
    const own = [...this.#known.values()].filter((s) => s.family === t.family && s.provenance.kind === 'rollout');
    for (const s of own.slice(0, Math.max(0, own.length - this.#perFamily))) this.#known.delete(s.id);
  }
  /** Drops a success that cannot be read back, or that the trainer does not take: it is no longer imitated. */
  forget(rollout: RolloutId): void {
    this.#known.delete(rollout);
    this.#unreadable.add(rollout);
  }
  /** The successes of scripted solutions. */
  demonstrations(): Trajectory[] {
    return [...this.#known.values()].filter((t) => t.provenance.kind === 'oracle');
  }
  /**
   * The successes that may be imitated now: without those that a person disabled or removed in the pool, and with those
   * that people added.
   */
  imitable(): Trajectory[] {
    const all = new Map([...this.#known.values()].filter((t) => !this.#data.rejected(t.id)).map((t) => [t.id, t]));
    for (const t of this.#data.externalSuccesses()) if (!all.has(t.id) && !this.#unreadable.has(t.id)) all.set(t.id, t);
    // Sorted, so that the order does not depend on how they were loaded.
    return withinShare([...all.values()], this.#relabelledShare).sort((a, b) => (a.id < b.id ? -1 : 1));
  }
}

/**
 * Successes of demonstrations and of the policy's newest rollouts of each family that kept their screens, as many as a run
 * that was never interrupted would know, for imitation; relabelled ones
 * come from the pool. One that cannot be read back is left out: damage to it costs that demonstration and not the run.
 */
export async function loadSuccesses(
  run: Pick<RunReader, 'index' | 'readTrajectory'>,
  perFamily: number,
): Promise<Trajectory[]> {
  const rows = await run.index.query(
    `SELECT id FROM rollouts WHERE outcome = 'success' AND provenance NOT IN ('rollout', 'probe', 'hindsight')
     UNION ALL SELECT id FROM (
       SELECT id, ROW_NUMBER() OVER (PARTITION BY family ORDER BY ended_at DESC, id DESC) AS newest FROM rollouts
       WHERE ${IMITABLE} AND bare IS NULL)
     WHERE newest <= ?`,
    [perFamily],
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
