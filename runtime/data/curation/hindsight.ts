import { message, relabelledId, type Trajectory } from '../../domain/index.js';
import { numbers, type Mechanism } from './mechanism.js';

/** Figures of hindsight over a run so far, including its earlier parts. */
export interface HindsightTally {
  /** Failures that were looked back on. */
  failures: number;
  /** Verdicts that this took. */
  asked: number;
  /** Failures that were a success of another task. */
  held: number;
  /** Relabelled successes that the pool did not have already: they are or were imitated. */
  relabelled: number;
  /** Time on desktops. */
  ms: number;
}

/** Counts a trajectory that has ended. Entries from pools of other runs were counted there. */
export function tallyHindsight(
  tally: HindsightTally,
  { id, provenance: p, hindsight: h }: Pick<Trajectory, 'id' | 'provenance' | 'hindsight'>,
): void {
  if (p.kind === 'hindsight' && id === relabelledId(p.of)) tally.relabelled++;
  if (!h || p.kind !== 'rollout') return;
  tally.failures++;
  tally.asked += h.asked;
  if (h.held) tally.held++;
  tally.ms += h.ms;
}

/**
 * The successes that are imitated (runtime/data/README.md#hindsight): at most this share of a family's are relabelled
 * ones, the newest. A family that has no others keeps all of them.
 */
export function withinShare(successes: readonly Trajectory[], share: number): Trajectory[] {
  const others = new Map<string, number>(),
    relabelled = new Map<string, Trajectory[]>();
  for (const t of successes)
    if (t.provenance.kind === 'hindsight') relabelled.set(t.family, [...(relabelled.get(t.family) ?? []), t]);
    else others.set(t.family, (others.get(t.family) ?? 0) + 1);
  const kept = new Set(
    [...relabelled].flatMap(([family, mine]) => {
      const beside = others.get(family) ?? 0,
        most = beside === 0 || share >= 1 ? mine.length : Math.floor((beside * share) / (1 - share));
      return [...mine].sort((a, b) => b.endedAt - a.endedAt || (a.id < b.id ? -1 : 1)).slice(0, most);
    }),
  );
  return successes.filter((t) => t.provenance.kind !== 'hindsight' || kept.has(t));
}

/** Acts when a rollout has ended (rollout/hindsight.ts) and where successes are imitated. */
export const hindsight: Mechanism<'hindsight'> = {
  charts: [
    {
      name: 'relabelled',
      onlyWhere: (o) => o.enabled,
      unit: 'count',
      words: {
        title: message('Relabelled failures'),
        says: message(
          'Failed rollouts that did what another task of their screen asks for, running sum. They are imitated as successes of that task, join no group and count in no success rate.',
        ),
        label: message('relabelled failures'),
        empty: message('No failed rollout did what another task of its screen asks for.'),
        summary: message('Relabelled failures: {0} so far.'),
      },
      read: async (run) => {
        const [at, value] = await run.index.columns(
          "SELECT at, value FROM metrics WHERE name = 'hindsight.relabelled' AND value > 0 ORDER BY seq",
        );
        return { form: 'series', at: numbers(at), value: numbers(value), sum: true };
      },
    },
  ],
};
