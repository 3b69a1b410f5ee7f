import { message, type PolicyVersion } from '../../domain/index.js';
import type { Mechanism } from './mechanism.js';

export interface AdmissionInput {
  readonly maxConcurrent: number;
  /** Rollouts queued or running. */
  readonly running: number;
  /** Trajectories accepted since the start: trained plus buffered. Retired ones are not accepted. */
  readonly accepted: number;
  readonly version: PolicyVersion;
  readonly eta: number;
  /** B: trajectories per update. */
  readonly perUpdate: number;
}

/**
 * Rollouts that may start now so that none lags more than `eta` updates when it is trained
 * (runtime/data/README.md#staleness-bound; rule of AReaL's staleness manager): min(maxConcurrent - running, (eta + v +
 * 1) B - (accepted + running)). Negative means that the bound is already exceeded.
 */
export const admissionCapacity = (i: AdmissionInput): number =>
  Math.min(i.maxConcurrent - i.running, (i.eta + i.version + 1) * i.perUpdate - (i.accepted + i.running));

/**
 * The same bound in groups: how many may be opened while `pending` are open, waiting or claimed and one update takes
 * `perUpdate` of them, (eta + 1) perUpdate - pending. Groups are trained in the order in which they open, so each waits
 * for at most eta updates.
 */
export const groupCapacity = (i: {
  readonly pending: number;
  readonly eta: number;
  readonly perUpdate: number;
}): number => (i.eta + 1) * i.perUpdate - i.pending;

/** Oldest version among steps; Infinity when none has one (demonstrations). */
export const oldestVersion = (versions: readonly (PolicyVersion | undefined)[]): PolicyVersion =>
  versions.reduce<number>((a, v) => Math.min(a, v ?? Infinity), Infinity);

/**
 * Whether groups with these oldest versions can all be trained within the bound when the next update goes from
 * `version` and each update takes `perUpdate` of them, oldest first: the k-th oldest (from 0) is trained after floor(k
 * / perUpdate) updates, so it must still be at most `eta` behind then (earliest deadline first; if this order fails,
 * every order does).
 */
export function leavesRoom(
  oldest: readonly PolicyVersion[],
  o: { readonly version: PolicyVersion; readonly eta: number; readonly perUpdate: number },
): boolean {
  return [...oldest].sort((a, b) => a - b).every((v, k) => v + o.eta >= o.version + Math.floor(k / o.perUpdate));
}

/** Batches whose rollouts the chart counts, newest first. */
const SHOWN_BATCHES = 200;

/** Acts on admission and on claims (DataManager.capacity, ages.ts). */
export const staleness: Mechanism<'staleness'> = {
  charts: [
    {
      name: 'lag',
      unit: 'count',
      words: {
        title: message('Staleness'),
        says: message(
          'How many updates behind a rollout was when it was trained, or one of the policy’s own earlier successes when it was added from the pool. Admission keeps rollouts within the bound; a success older than that is trained like a demonstration.',
        ),
        label: message('updates behind when trained'),
        empty: message('Nothing was trained.'),
        summary: message('Staleness of {0} trained rollouts: mean {1}, at most {2} updates behind.'),
      },
      read: async (run) => {
        const rows = await run.index.query(
            `SELECT position FROM events WHERE type = 'batch.claimed' ORDER BY seq DESC LIMIT ${SHOWN_BATCHES}`,
            [],
          ),
          claimed = await Promise.all(rows.map((r) => run.at(Number(r['position'])))),
          lags = claimed.flatMap((e) => e?.lags ?? []),
          poolLags = claimed.flatMap((e) => e?.poolLags ?? []),
          most = [...lags, ...poolLags].reduce((a, b) => Math.max(a, b), -1);
        const oldest = rows.length === SHOWN_BATCHES ? claimed.at(-1)?.version : undefined;
        return {
          form: 'bars',
          counts: countsOf(lags, most),
          ...(poolLags.length > 0
            ? {
                onTop: {
                  counts: countsOf(poolLags, most),
                  label: message('with successes added from the pool'),
                  summary: message('{0} successes added from the pool, at most {1} updates behind.'),
                },
              }
            : {}),
          behind: { by: 'lag', ...(oldest === undefined ? {} : { fromUpdate: oldest + 1 }) },
        };
      },
    },
  ],
};

function countsOf(lags: readonly number[], most: number): number[] {
  const counts = new Array<number>(most + 1).fill(0);
  for (const lag of lags) counts[lag]!++;
  return counts;
}
