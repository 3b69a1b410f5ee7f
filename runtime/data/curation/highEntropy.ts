import {
  entropyCeilings,
  message,
  ownFrom,
  quantile,
  type Step,
  type TokenTrace,
  type Trajectory,
} from '../../domain/index.js';
import type { HighEntropyConfig } from '../config.js';
import { unpackSteps } from '../store/stepPack.js';
import { numbers, type CuratedMember, type Mechanism } from './mechanism.js';

type Sampled = Pick<Step, 'tokens' | 'prompt' | 'rejected' | 'declined'> & Partial<Pick<Step, 'origin'>>;

/**
 * H_t: mean entropy of the step's real tokens; undefined where the policy did not act, which leaves no tokens
 * (runtime/data/README.md#high-entropy-steps). Where a policy's choices have ceilings of their own, each counts as its
 * share, 0 to 1, of its ceiling; tokens that all come from one vocabulary count in nats.
 */
export function stepEntropy(step: Sampled): number | undefined {
  return entropyOf(step)?.value;
}

/** Interpolating between equal values can land a rounding error above them; ties are kept. */
const atLeast = (v: number, threshold: number): boolean => v >= threshold - 1e-9 * Math.max(1, Math.abs(threshold));

export interface EntropySelection {
  /** Per trajectory, per step: trained or not. */
  readonly keep: readonly (readonly boolean[])[];
  /** The group's threshold; undefined when off or when no step of its own rollouts has a trace. */
  readonly threshold: number | undefined;
}

type EntropyMember = Pick<CuratedMember, 'injected'> & {
  readonly trajectory: { readonly steps: readonly Sampled[] } & Pick<Trajectory, 'branch'>;
};

/**
 * The unit of an entropy: a share of its maximum, or nats, exact or as a lower bound. Units are never compared with one
 * another.
 */
type EntropyKind = 'share' | 'exact' | NonNullable<TokenTrace['bound']>;
interface StepEntropy {
  readonly value: number;
  readonly kind: EntropyKind;
}

/**
 * Keeps the steps whose entropy is at or above the quantile of the group's own rollouts (0.2 keeps the top 80 %),
 * including ties and a single step; and steps of which nothing is known that could be compared: those without tokens,
 * and those whose entropy is of the other kind. What an injected trajectory of another policy was sure of does not move
 * the quantile.
 */
export function selectHighEntropy(members: readonly EntropyMember[], c: HighEntropyConfig): EntropySelection {
  // Steps that a branch only replayed belong to another rollout, and a person's steps are not trained.
  const entropies = members.map((m) =>
      m.trajectory.steps.map((s, i) =>
        s.declined || (!m.injected && i < ownFrom(m.trajectory)) ? undefined : entropyOf(s),
      ),
    ),
    own = entropies.filter((_, i) => !members[i]!.injected).flatMap((hs) => hs.filter((h) => h !== undefined)),
    kind = kindOf(own);
  const threshold = c.enabled
    ? quantile(
        own.filter((h) => h.kind === kind).map((h) => h.value),
        1 - c.keep,
      )
    : undefined;
  const kept = (h: StepEntropy | undefined): boolean =>
    h === undefined || threshold === undefined || h.kind !== kind || atLeast(h.value, threshold);
  return { keep: entropies.map((hs) => hs.map(kept)), threshold };
}

function entropyOf(step: Sampled): StepEntropy | undefined {
  const tokens = step.origin === 'human' ? undefined : step.tokens,
    h = tokens?.entropies;
  if (!h || h.length === 0) return undefined;
  const most = entropyCeilings(step);
  let sum = 0;
  for (const [t, x] of h.entries()) sum += most ? (most[t]! > 0 ? Math.min(1, x / most[t]!) : 0) : x;
  return { value: sum / h.length, kind: most ? 'share' : (tokens.bound ?? 'exact') };
}
/** The kind that most of these steps have; a run's policy gives all of one kind, unless its server changed. */
function kindOf(own: readonly StepEntropy[]): EntropyKind {
  const count = (k: EntropyKind): number => own.filter((h) => h.kind === k).length;
  return KINDS.reduce((a, b) => (count(b) > count(a) ? b : a));
}
const KINDS: readonly EntropyKind[] = ['share', 'exact', 'lower'];

/** Steps of a row that a branch, whose origin is ROLLOUT@STEP, took from another. */
const ACTED_OUT =
  "CASE WHEN r.provenance = 'rollout' AND r.origin IS NOT NULL THEN CAST(substr(r.origin, instr(r.origin, '@') + 1) AS INTEGER) ELSE 0 END";
/** Rollouts whose steps the entropy chart shows, newest first. */
const SHOWN_ROLLOUTS = 200;

export const highEntropy: Mechanism<'highEntropy'> = {
  curate: (group, options) => {
    const { keep, threshold } = selectHighEntropy(group.members, options);
    return {
      ...group,
      members: group.members.map((m, i) => ({ ...m, keep: m.keep.map((k, j) => k && keep[i]![j]!) })),
      threshold,
    };
  },
  charts: [
    {
      name: 'entropy',
      unit: 'decimal',
      words: {
        title: message('Step entropy'),
        says: message(
          'Mean token entropy of each step of the newest rollouts. Steps below the threshold of their group are not trained (curation.highEntropy): there the policy did not hesitate. Bars count steps; bins vary in width, as their edges show. For the embedded policy, the entropy of a choice is a share, 0 to 1, of the maximum of its head; for a language model it is in nats.',
        ),
        label: message('mean token entropy of a step'),
        empty: message('No step was decided.'),
        summary: message('Entropy of {0} steps of the newest rollouts, from {1} to {2}.'),
      },
      read: async (run) => {
        const [[tracks = []], [last]] = await Promise.all([
          run.index.columns(
            `SELECT steps FROM tracks WHERE rollout IN (SELECT id FROM rollouts WHERE provenance = 'rollout' AND origin IS NULL AND outcome IS NOT NULL ORDER BY ended_at DESC LIMIT ${SHOWN_ROLLOUTS})`,
          ),
          run.index.query(
            'SELECT threshold FROM groups WHERE threshold IS NOT NULL ORDER BY closed_at DESC LIMIT 1',
            [],
          ),
        ]);
        const threshold = last?.['threshold'];
        return {
          form: 'values',
          values: tracks.flatMap((t) => unpackSteps(t).flatMap((s) => s.entropy ?? [])),
          mark:
            typeof threshold === 'number'
              ? {
                  at: threshold,
                  label: message('threshold {0}'),
                  summary: message(
                    'Threshold of the last group: {0}; about {1} of these steps are below it and would be dropped.',
                  ),
                }
              : undefined,
        };
      },
    },
    {
      name: 'kept',
      unit: 'share',
      words: {
        title: message('Share of steps kept'),
        says: message('Of the steps that the policy sampled in the groups formed, those that are trained.'),
        label: message('mean of 20 groups'),
        empty: message('No group was formed.'),
        summary: message('Share of steps kept: {0} now.'),
      },
      read: async (run, { keep }) => {
        const [at, kept, seen] = await run.index.columns(
          `SELECT g.closed_at, SUM(r.kept), SUM(r.steps - r.human - ${ACTED_OUT}) FROM rollouts r JOIN groups g ON g.id = r.grp WHERE r.kept IS NOT NULL GROUP BY g.id ORDER BY g.closed_at`,
        );
        const all = numbers(seen);
        return {
          form: 'series',
          at: numbers(at),
          value: numbers(kept).map((k, i) => k / Math.max(1, all[i]!)),
          meanOf: 20,
          ceil: 1,
          mark: { at: keep, label: message('kept by entropy: {0}') },
        };
      },
    },
  ],
};
