/** The ledger as a flow: where every generated rollout went. Pure; the sum is checked here. */
import type { Ledger, RetireReason, TrajectoryRow } from '../../runtime/protocol/types.js';
import { t } from '../ui/words.js';

export type FlowKind = 'trained' | 'flight' | 'retired';
export interface FlowPart {
  readonly key: string;
  readonly kind: FlowKind;
  readonly label: string;
  readonly says: string;
  readonly n: number;
  readonly share: number;
}
export interface Flow {
  /** Every rollout that was ever planned (generated). */
  readonly planned: number;
  /** Rollouts that began on a desktop; unknown of older runtimes. */
  readonly begun?: number | undefined;
  readonly over: boolean;
  readonly trained: number;
  readonly inFlight: number;
  readonly retired: number;
  readonly parts: readonly FlowPart[];
  /** planned - (trained + in flight + retired). */
  readonly missing: number;
  readonly closes: boolean;
}

const flight: Readonly<Record<string, readonly [string, string]>> = {
  queued: [t('queued'), t('Planned, waiting for a desktop.')],
  running: [t('running'), t('Running on a desktop now.')],
  recorded: [t('waiting for its group'), t('Ended; its siblings are still running.')],
  grouped: [t('in a group, waiting for a batch'), t('Curated; the trainer takes it with the next batch.')],
  claimed: [t('in the batch being trained'), t('The trainer works on it now.')],
};
export const inFlightPlaces: readonly string[] = Object.keys(flight);
const reasons: Readonly<Record<RetireReason, readonly [string, string]>> = {
  'no-variance': [
    t('all rewards of its group equal'),
    t(
      'Every rollout of its group had the same reward, so there is no advantage to learn from, and the experience pool had nothing to add.',
    ),
  ],
  replaced: [
    t('replaced from the experience pool'),
    t('All rollouts of its group failed; an earlier success took the place of this one.'),
  ],
  error: [
    t('environment or engine fault'),
    t(
      'The desktop, the policy service or the verifier failed. It has no reward, is never trained on, and was retried.',
    ),
  ],
  stopped: [t('run was stopped'), t('It was running when the run was stopped.')],
  diverged: [
    t('branch differed'),
    t(
      'It was to begin in the middle of another rollout, and a screen on the way there was not the recorded one, so it was given up.',
    ),
  ],
  lost: [t('runtime died'), t('It was running when the runtime process died.')],
  trimmed: [t('group larger than a batch takes'), t('Its group had more rollouts than are trained at once.')],
  masked: [t('no step kept'), t('None of its steps is trained: each was below the entropy threshold, or a person’s.')],
  stale: [
    t('too old'),
    t('Its policy version is older than the staleness limit allows. Rare: rollouts are held back before that.'),
  ],
};

/** The same of a run that nobody works on: nothing goes on with them unless it is resumed. */
const waiting: typeof flight = {
  queued: [t('planned, never started'), t('The run ended before a desktop was free.')],
  running: [t('running when the run ended'), t('The run ended while it was on a desktop.')],
  recorded: [
    t('group incomplete when the run ended'),
    t('Ended; its siblings had not ended when the run did. Resuming the run continues them.'),
  ],
  grouped: [
    t('untrained when the run ended'),
    t('Curated; the run ended before the trainer took it. Resuming the run trains it.'),
  ],
  claimed: [
    t('untrained when the run ended'),
    t('The run ended while the trainer worked on it. Resuming the run trains it.'),
  ],
};

/** Words for a place of the ledger: `trained`, a state of what is in flight, `retired:` and a reason. `over`: of the run. */
export function placeWords(place: string, over = false): readonly [string, string] {
  const reason = place.startsWith('retired:') ? place.slice('retired:'.length) : undefined;
  if (place === 'trained') return [t('trained'), t('The policy was updated with it.')];
  if (reason === undefined) return (over ? waiting : flight)[place] ?? [place, ''];
  return (
    (reasons as Readonly<Record<string, readonly [string, string] | undefined>>)[reason] ?? [
      reason,
      t('Retired for this reason.'),
    ]
  );
}

/** The place of a rollout in the ledger, as `placeWords` takes it; empty where it never was in it. */
export function ledgerPlace(r: TrajectoryRow): string {
  if (r.provenance !== 'rollout') return '';
  return r.state === 'retired' ? `retired:${r.tags?.[0] ?? 'error'}` : (r.state ?? '');
}

/** `over`: nobody works on the run. */
export function ledgerFlow(l: Ledger, over = false): Flow {
  const share = (n: number): number => (l.generated > 0 ? n / l.generated : 0);
  const entry = (key: string, kind: FlowKind, [label, says]: readonly [string, string], n: number): FlowPart => ({
    key,
    kind,
    label,
    says,
    n,
    share: share(n),
  });
  const states = Object.keys(flight).filter((s) => (l.byState[s] ?? 0) > 0),
    known = states.reduce((a, s) => a + l.byState[s]!, 0),
    retired = Object.values(l.retired).reduce((a, b) => a + b, 0);
  const inFlight =
    known === l.inFlight
      ? states.map((s) => entry(s, 'flight', (over ? waiting : flight)[s]!, l.byState[s]!))
      : [
          entry(
            'flight',
            'flight',
            over
              ? [t('untrained when the run ended'), t('Resuming the run continues them.')]
              : [t('in flight'), t('Running or waiting to be trained.')],
            l.inFlight,
          ),
        ];
  const missing = l.generated - (l.trained + l.inFlight + retired);
  return {
    planned: l.generated,
    begun: l.begun,
    over,
    trained: l.trained,
    inFlight: l.inFlight,
    retired,
    missing,
    closes: missing === 0 && l.closes,
    parts: [
      entry('trained', 'trained', [t('trained'), t('The policy was updated with it.')], l.trained),
      ...inFlight,
      ...Object.entries(l.retired)
        .sort((a, b) => b[1] - a[1])
        .map(([r, n]) =>
          entry(
            r,
            'retired',
            (reasons as Readonly<Record<string, readonly [string, string] | undefined>>)[r] ?? [
              r,
              t('Retired for this reason.'),
            ],
            n,
          ),
        ),
    ].filter((p) => p.n > 0),
  };
}

export interface Ribbon {
  readonly fromY: number;
  readonly fromHeight: number;
  readonly toY: number;
  readonly toHeight: number;
  /** Room for the words beside it. */
  readonly slotY: number;
  readonly slotHeight: number;
}
/**
 * Bars left and right: left all parts stacked over `height`, right each in a slot of at least `slot`. Nothing that
 * exists is thinner than a pixel.
 */
export function layoutFlow(
  parts: readonly { readonly n: number }[],
  height: number,
  slot: number,
): { readonly ribbons: readonly Ribbon[]; readonly height: number } {
  const total = parts.reduce((a, p) => a + p.n, 0),
    spare = Math.max(0, height - parts.length);
  let fromY = 0,
    slotY = 0;
  const ribbons = parts.map((p) => {
    const thick = total > 0 ? Math.min(1, height / parts.length) + (p.n / total) * spare : 0,
      slotHeight = Math.max(slot, thick + 4);
    const r: Ribbon = {
      fromY,
      fromHeight: thick,
      toY: slotY + (slotHeight - thick) / 2,
      toHeight: thick,
      slotY,
      slotHeight,
    };
    fromY += thick;
    slotY += slotHeight;
    return r;
  });
  return { ribbons, height: Math.max(height, slotY) };
}
/** SVG path of a ribbon between x0 and x1. */
export function ribbonPath(r: Ribbon, x0: number, x1: number): string {
  const m = (x0 + x1) / 2;
  return `M${x0} ${r.fromY}C${m} ${r.fromY} ${m} ${r.toY} ${x1} ${r.toY}V${r.toY + r.toHeight}C${m} ${r.toY + r.toHeight} ${m} ${r.fromY + r.fromHeight} ${x0} ${r.fromY + r.fromHeight}Z`;
}
/** "3,787 planned = 2,088 trained + 39 in flight + 1,660 retired". */
export function flowSentence(f: Flow, count: (n: number) => string): string {
  const n = [count(f.planned), count(f.trained), count(f.inFlight), count(f.retired)];
  if (f.missing !== 0)
    return f.over
      ? t('{0} planned ≠ {1} trained + {2} waiting + {3} retired', ...n)
      : t('{0} planned ≠ {1} trained + {2} in flight + {3} retired', ...n);
  return f.over
    ? t('{0} planned = {1} trained + {2} waiting + {3} retired', ...n)
    : t('{0} planned = {1} trained + {2} in flight + {3} retired', ...n);
}
