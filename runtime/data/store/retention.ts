/**
 * Which screens of a run are kept (`store.keep`; runtime/data/README.md#retention). Only screens go: the journal, and with
 * it every figure of the ledger, stays.
 */
import { type RolloutId } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import type { EventOf } from '../events.js';
import { storedEvent } from './follow.js';
import type { RunReader } from './runStore.js';
import { stepPlaces } from './stepPlaces.js';

export interface KeepRules {
  readonly retiredHours?: number | undefined;
  readonly failureHours?: number | undefined;
  readonly successHours?: number | undefined;
  readonly gigabytes?: number | undefined;
}
export interface RetentionOptions {
  readonly rules: KeepRules;
  /** The newest successes of a family that stay whatever the rules say: they may be imitated. */
  readonly successes: number;
  /** Trajectories of which nothing goes: people worked on them. */
  readonly annotated: ReadonlySet<string>;
  /** Changes nothing: only says which screens would be removed. */
  readonly dry: boolean;
  readonly now: number;
  readonly signal?: AbortSignal;
}
/** The screens that were removed, or would be; one record of the journal each. */
export type Removed = EventOf<'frames.removed'>;

export const keepsAll = ({ retiredHours, failureHours, successHours, gigabytes }: KeepRules): boolean =>
  [retiredHours, failureHours, successHours, gigabytes].every((x) => x === undefined);

type Class = 'retired' | 'failure' | 'success';
interface Candidate {
  readonly id: RolloutId;
  readonly class: Class;
  /** By the clock on the wall, as `now`: the clock that `endedAt` is of stands still while the machine sleeps. */
  readonly recordedAt: number;
}
const CLASSES: readonly Class[] = ['retired', 'failure', 'success'];
/** Trajectories looked at together: the hashes of their screens are held in memory, some kilobytes each. */
const AT_ONCE = 2000;
const HOUR_MS = 3_600_000,
  GB = 1e9;

/**
 * Removes the screens that the rules no longer keep, those of retired rollouts first. `removed` is told of each part when
 * it is gone and the disk has what room it can have back, and journals it. Reads the journal once for every `AT_ONCE`
 * trajectories.
 */
export async function retain(
  run: RunReader,
  o: RetentionOptions,
  removed: (r: Removed) => Promise<unknown>,
): Promise<readonly Removed[]> {
  const { gigabytes } = o.rules,
    compacting = { tight: gigabytes !== undefined, signal: o.signal },
    out: Removed[] = [],
    { all, gone } = await candidates(run, o),
    old = all.filter((c) => tooOld(c, o));
  const remove = async (some: readonly Candidate[], why: Removed['why']): Promise<Removed> => {
    const ids = some.map((c) => c.id),
      r: Removed = { type: 'frames.removed', why, ...(await removeScreens(run, ids, gone, o)) };
    if (o.signal?.aborted || r.rollouts.length === 0) return r;
    for (const id of r.rollouts) gone.add(id);
    if (!o.dry) {
      // On a full disk the journal waits for room, and this compaction makes some.
      await orUndefined(run.frames.compact(compacting), 'the one at the end says why');
      await removed(r);
    }
    out.push(r);
    return r;
  };
  for (let i = 0; i < old.length && !o.signal?.aborted; i += AT_ONCE) await remove(old.slice(i, i + AT_ONCE), 'age');
  if (gigabytes !== undefined) {
    let excess = (await run.frames.totalBytes()) - gigabytes * GB;
    if (o.dry) excess -= out.reduce((n, r) => n + r.bytes, 0);
    const rest = all.filter((c) => !tooOld(c, o));
    while (excess > 0 && rest.length > 0 && !o.signal?.aborted)
      excess -= (await remove(await enough(run, rest, excess, o.now), 'size')).bytes;
  }
  if (!o.dry) await run.frames.compact(compacting);
  return out;
}

const tooOld = (c: Candidate, { rules, now }: RetentionOptions): boolean => {
  const hours = { retired: rules.retiredHours, failure: rules.failureHours, success: rules.successHours }[c.class];
  return hours !== undefined && now - c.recordedAt > hours * HOUR_MS;
};

/** A relabelled success goes as the failure that it was, once it has left the pool. */
const OWN = "provenance <> 'hindsight'";
/** SQL: the policy's own successes that may be imitated, as `Successes` counts them. */
export const IMITABLE = "(provenance = 'rollout' AND outcome = 'success' AND (truncated = 0 OR steps = 1))";
/**
 * Trajectories that may go, in the order in which they do: not those of people, imports, demonstrations, what is in the
 * pool, and what may be imitated. `gone`: those that went before.
 */
async function candidates(
  run: RunReader,
  o: RetentionOptions,
): Promise<{ readonly all: readonly Candidate[]; readonly gone: Set<string> }> {
  const gone = await removedBefore(run, o),
    rows = await run.index.query(
      `SELECT id, recorded_at AS at, class FROM (
         SELECT id, recorded_at, origin, human, provenance,
           CASE WHEN state = 'retired' OR outcome = 'error' THEN 'retired' WHEN outcome = 'success' AND ${OWN} THEN 'success' ELSE 'failure' END AS class,
           CASE WHEN ${IMITABLE} THEN ROW_NUMBER() OVER (PARTITION BY family, ${IMITABLE} ORDER BY ended_at DESC) ELSE NULL END AS newest
         FROM rollouts WHERE recorded_at IS NOT NULL AND state IN ('retired', 'trained', 'kept'))
       WHERE provenance IN ('rollout', 'probe', 'hindsight') AND human = 0
         AND (newest IS NULL OR newest > ?) AND id NOT IN (SELECT rollout FROM pool)
       ORDER BY recorded_at, id`,
      [o.successes],
    );
  const all = rows
    .map((r): Candidate => ({ id: r['id'] as RolloutId, class: r['class'] as Class, recordedAt: Number(r['at']) }))
    .filter((c) => !gone.has(c.id) && !o.annotated.has(c.id))
    .sort((a, b) => CLASSES.indexOf(a.class) - CLASSES.indexOf(b.class));
  return { all, gone };
}

/**
 * Trajectories that lost their screens. What others showed of them is still there: it stays for those that people
 * annotated or added to the pool since, and for an evaluation's episode that was made again.
 */
async function removedBefore(run: RunReader, o: RetentionOptions): Promise<Set<string>> {
  const events = await run.index.query("SELECT seq, position FROM events WHERE type = 'frames.removed'", []),
    removed = new Map<string, number>();
  for (const r of events) {
    const e = await run.at(Number(r['position']));
    if (e?.type === 'frames.removed') for (const id of e.rollouts) removed.set(id, Number(r['seq']));
  }
  const pool = await run.index.query('SELECT rollout AS id FROM pool', []),
    probes = await run.index.query(
      "SELECT id, recorded, state FROM rollouts WHERE bare = 1 AND provenance = 'probe'",
      [],
    ),
    again = probes.filter((r) => r['state'] === 'running' || Number(r['recorded']) > removed.get(String(r['id']))!);
  for (const id of [...o.annotated, ...[...pool, ...again].map((r) => String(r['id']))]) removed.delete(id);
  return new Set(removed.keys());
}

/** Takes the first of `rest` whose screens are so many bytes, or all; screens that stay are none. */
async function enough(run: RunReader, rest: Candidate[], bytes: number, now: number): Promise<readonly Candidate[]> {
  const seen = new Set<string>();
  let n = 0,
    sum = 0;
  while (n < rest.length && n < AT_ONCE && sum < bytes)
    for (const hash of await screensOf(run, rest[n++]!.id)) {
      if (seen.has(hash)) continue;
      seen.add(hash);
      if (!run.frames.stays(hash, now)) sum += (await run.frames.bytesOf(hash)) ?? 0;
    }
  return rest.splice(0, n);
}

async function screensOf(run: RunReader, id: RolloutId): Promise<readonly string[]> {
  const steps = (await stepPlaces(run.index, [id])).get(id) ?? [],
    [head] = await run.index.query('SELECT head_position AS p FROM rollouts WHERE id = ?', [id]),
    out: string[] = [];
  for (const p of [...steps.map((s) => s.position), head?.['p']]) {
    const e = typeof p === 'number' ? await run.at(p).catch(() => undefined) : undefined; // a record that is damaged names none
    if (e?.type === 'rollout.step') out.push(e.step.frame.hash);
    else if (e?.type === 'trajectory.recorded' && e.head.last) out.push(e.head.last.hash);
  }
  return out;
}

/**
 * Screens of these trajectories that no other one shows but those that are `gone`. A trajectory of which a screen may not
 * go yet, and that no other one shows, keeps all of them: once it counted as gone, nobody would remove that one.
 */
async function removeScreens(
  run: RunReader,
  ids: readonly RolloutId[],
  gone: ReadonlySet<string>,
  o: RetentionOptions,
): Promise<Pick<Removed, 'rollouts' | 'frames' | 'bytes'>> {
  const { frames } = run,
    screens = new Map<string, readonly string[]>(),
    /** Each of their screens, and whether another trajectory shows it. */
    shared = new Map<string, boolean>(),
    shown = (by: string, hash: string): void => {
      if (screens.has(by) || gone.has(by) || !shared.has(hash)) return;
      shared.set(hash, true);
      frames.unmark(hash);
    };
  for (const id of ids) {
    const own = await screensOf(run, id);
    screens.set(id, own);
    for (const hash of own) shared.set(hash, false);
    frames.mark(own, o.now);
  }
  for await (const batch of run.records()) {
    if (o.signal?.aborted) {
      frames.unmarkAll();
      return { rollouts: [], frames: 0, bytes: 0 };
    }
    for (const entry of batch) {
      const type = entry.type();
      if (type !== 'rollout.step' && type !== 'trajectory.recorded') continue;
      const e = storedEvent(entry);
      if (e.type === 'rollout.step') shown(e.rollout, e.step.frame.hash);
      if (e.type === 'trajectory.recorded' && e.head.last) shown(e.head.id, e.head.last.hash);
    }
  }
  const goes = (id: RolloutId): boolean => screens.get(id)!.every((h) => frames.marked(h) || shared.get(h) === true),
    rollouts = ids.filter(goes),
    kept = ids.filter((id) => !goes(id));
  for (const id of kept) for (const hash of screens.get(id)!) frames.unmark(hash);
  return { rollouts, ...(await frames.removeMarked(o)) };
}

/** For people: `removed 412 screens (61 MB) of 20 trajectories, by age`. */
export const removedText = (r: Pick<Removed, 'rollouts' | 'frames' | 'bytes' | 'why'>, dry = false): string =>
  `${dry ? 'would remove' : 'removed'} ${r.frames} screens (${bytesText(r.bytes)}) of ${r.rollouts.length} trajectories, by ${r.why}`;
export const bytesText = (n: number): string => (n >= GB ? `${(n / GB).toFixed(1)} GB` : `${Math.ceil(n / 1e6)} MB`);
