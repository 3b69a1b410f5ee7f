import {
  message,
  rewardOf,
  type FamilyId,
  type PolicyVersion,
  type RolloutId,
  type TaskId,
  type ProvenanceKind,
} from '../../domain/index.js';
import type { PoolConfig } from '../config.js';
import { numbers, type Mechanism } from './mechanism.js';

/** A stored success as the selection sees it. */
export interface PoolEntry {
  readonly id: RolloutId;
  readonly task: TaskId;
  readonly family: FamilyId;
  readonly steps: number;
  readonly provenance: ProvenanceKind;
  /** Version that acted, for policy successes. */
  readonly version?: PolicyVersion;
  /** Action types in order, e.g. ['click', 'type', 'finished']: what novelty compares. */
  readonly signature: readonly string[];
  /** Hash of what it does (experiencePool.ts); entries of older versions get it from their trajectories. */
  readonly content?: string;
  /** Rank of addition, growing. */
  readonly added: number;
  readonly uses: number;
  /** Rank of the last injection; 0 = never. */
  readonly lastUsed: number;
  /** A person may disable an entry without losing it. */
  readonly enabled: boolean;
  /** A person added it against the verifier, for this reason; it counts as a success. */
  readonly override?: string;
}

/** Whether it has been injected as often as allowed. */
export const atReuseCap = (e: Pick<PoolEntry, 'uses'>, c: Pick<PoolConfig, 'reuseCap'>): boolean =>
  c.reuseCap > 0 && e.uses >= c.reuseCap;

/**
 * Why an entry may not be injected now: disabled, a relabelled success, which is imitated alone (hindsight.ts), at the
 * reuse cap, or, for policy successes, made by a policy that is too old. Undefined when it may.
 */
export function unusable(
  e: Pick<PoolEntry, 'enabled' | 'uses' | 'version' | 'provenance'>,
  version: PolicyVersion,
  c: Pick<PoolConfig, 'reuseCap' | 'maxAge'>,
): 'off' | 'imitated' | 'used up' | 'aged' | undefined {
  if (!e.enabled) return 'off';
  if (e.provenance === 'hindsight') return 'imitated';
  if (atReuseCap(e, c)) return 'used up';
  return c.maxAge > 0 && e.version !== undefined && version - e.version > c.maxAge ? 'aged' : undefined;
}
export const usable = (e: PoolEntry, version: PolicyVersion, c: PoolConfig): boolean =>
  unusable(e, version, c) === undefined;

/**
 * The pool success for an all-failed group (runtime/data/README.md#experience-pool): one of the same task if there is
 * any, else of the same family; then by the configured preference. Undefined when there is no usable entry.
 */
export function choosePoolEntry(
  entries: readonly PoolEntry[],
  task: TaskId,
  family: FamilyId,
  version: PolicyVersion,
  c: PoolConfig,
): PoolEntry | undefined {
  if (!c.enabled) return undefined;
  const ready = entries.filter((e) => e.family === family && usable(e, version, c));
  const sameTask = ready.filter((e) => e.task === task);
  const from = sameTask.length > 0 ? sameTask : ready;
  // The family's latest injections: novelty is distance to them.
  const recent = entries
    .filter((e) => e.family === family && e.lastUsed > 0)
    .sort((a, b) => b.lastUsed - a.lastUsed)
    .slice(0, 4);
  const score = (e: PoolEntry): readonly number[] => {
    switch (c.selection) {
      case 'shortest':
        return [-e.steps, -e.uses, e.added];
      case 'newest':
        return [e.added];
      case 'novelty':
        return [
          recent.length === 0 ? 1 : Math.min(...recent.map((r) => distance(e.signature, r.signature))),
          -e.uses,
          -e.steps,
          e.added,
        ];
    }
  };
  return from.map((e) => ({ e, s: score(e) })).sort((a, b) => compare(b.s, a.s))[0]?.e;
}

const compare = (a: readonly number[], b: readonly number[]): number => {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return 0;
};

/** Edit distance of two action sequences, divided by the longer length: 0 equal, 1 nothing in common. */
export function distance(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 && b.length === 0) return 0;
  let row = b.map((_, j) => j + 1);
  row.unshift(0);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]! / Math.max(a.length, b.length);
}

/** Index of the member that an injection replaces: the failure that ended first. -1 when there is no member. */
export function oldestFailure(members: readonly { readonly success: boolean; readonly endedAt: number }[]): number {
  let best = -1;
  members.forEach((m, i) => {
    if (!m.success && (best < 0 || m.endedAt < members[best]!.endedAt)) best = i;
  });
  return best;
}

/** One pool success joins a group of failures and replaces the oldest of them. */
export const poolInjection: Mechanism<'pool'> = {
  curate: (group, options, { inject }) => {
    const { members } = group;
    if (!options.enabled || members.some((m) => m.trajectory.outcome.kind === 'success')) return group;
    const trajectory = inject();
    if (!trajectory) return group;
    // A lone failure stays: without it the success would have no baseline, and branches are none for it.
    const whole = members.filter((m) => !m.trajectory.branch),
      replaceable = whole.length > 1 ? whole : members.filter((m) => m.trajectory.branch),
      out = replaceable[oldestFailure(replaceable.map((m) => ({ success: false, endedAt: m.trajectory.endedAt })))],
      joined = { trajectory, injected: true, reward: rewardOf(trajectory), keep: trajectory.steps.map(() => true) };
    return {
      ...group,
      members: [...members.filter((m) => m !== out), joined],
      retired: out ? [...group.retired, { rollout: out.trajectory.id, reason: 'replaced' }] : group.retired,
    };
  },
  charts: [
    {
      name: 'injections',
      unit: 'count',
      words: {
        title: message('Pool injections'),
        says: message('Groups in which every rollout failed and an earlier success was added, running sum.'),
        label: message('successes added'),
        empty: message('No group in which every rollout failed needed a success from the pool.'),
        summary: message(
          'Pool injections: {0} times every rollout of a group failed and an earlier success was added.',
        ),
      },
      read: async (run) => {
        const [[at, injected], [before]] = await Promise.all([
          run.index.columns('SELECT closed_at, injected FROM groups WHERE injected > 0 ORDER BY closed_at'),
          run.index.query('SELECT SUM(injected) AS n, MAX(opened_at) AS at FROM past_groups', []),
        ]);
        const times = numbers(at),
          first = Number(before?.['n'] ?? 0),
          // Injections of trimmed groups, which are only counted, are one point.
          past = first > 0 ? [Math.min(Number(before?.['at'] ?? 0), times[0] ?? Infinity)] : [];
        let sum = first;
        return {
          form: 'series',
          at: [...past, ...times],
          value: [...past.map(() => first), ...numbers(injected).map((n) => (sum += n))],
          sum: true,
        };
      },
    },
  ],
};
