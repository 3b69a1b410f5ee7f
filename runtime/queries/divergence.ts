/** Failures in clusters by where they part from successes of the same task. Pure. */
import type { Action, FrameLink, Point } from '../domain/index.js';
import type { DivergenceKind, FailureCluster, FailureExemplar, Side } from '../protocol/types.js';

export interface EpisodeStep {
  readonly frame: FrameLink;
  readonly actions: readonly Action[];
}
/** The parts of an episode that show where it went wrong. */
export interface Episode {
  readonly rollout: string;
  readonly task: string;
  readonly family: string;
  readonly success: boolean;
  readonly truncated: boolean;
  readonly version?: number | undefined;
  /** ms since the epoch. */
  readonly at: number;
  readonly steps: readonly EpisodeStep[];
}

/** Places so near to one another, in pixels, mean the same thing; those less than `besideWithin` away missed it. */
const sameWithin = 14,
  besideWithin = 64;
const shown = 4;

/** Place of an action; for a drag, its beginning. */
function placeOf(a: Action): Point | undefined {
  return 'at' in a ? a.at : 'from' in a ? a.from : undefined;
}
const apart = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y);

/** How an action differs from what a success does there; undefined where it does not. */
export function differenceOf(a: Action, b: Action): 'instead' | 'beside' | 'elsewhere' | 'other' | undefined {
  if (a.type !== b.type) return 'instead';
  const [p, q] = [placeOf(a), placeOf(b)];
  if (p && q) {
    const d = apart(p, q);
    if (d > sameWithin) return d <= besideWithin ? 'beside' : 'elsewhere';
  }
  switch (a.type) {
    case 'type':
      return b.type === 'type' && a.text === b.text ? undefined : 'other';
    case 'hotkey':
      return b.type === 'hotkey' && a.keys.join('+') === b.keys.join('+') ? undefined : 'other';
    case 'scroll':
      return b.type === 'scroll' && a.direction === b.direction ? undefined : 'other';
    case 'drag':
      return b.type === 'drag' && apart(a.to, b.to) <= sameWithin ? undefined : 'elsewhere';
    default:
      return undefined;
  }
}
/** A step that says what it is about: waiting is not. */
const acting = (e: Episode): { readonly at: number; readonly actions: readonly Action[] }[] =>
  e.steps.flatMap((s, at) => {
    const actions = s.actions.filter((a) => a.type !== 'wait');
    return actions.length > 0 ? [{ at, actions }] : [];
  });

export interface Divergence {
  readonly kind: DivergenceKind;
  /** Position among the failure's steps; of one that had ended, its last. */
  readonly step: number;
  readonly did?: Action | undefined;
  readonly expected?: Action | undefined;
  readonly success?: Episode | undefined;
  /** Steps that agree before it. */
  readonly shared: number;
}

/**
 * Where a failure parts from one success. Steps that only wait are left out on both sides. `kinds`: only the kinds of
 * actions are compared, because places and texts of another task of the family say nothing.
 */
export function partsFrom(failure: Episode, success: Episode, kinds = false): Divergence {
  const mine = acting(failure),
    theirs = acting(success),
    last = Math.max(0, failure.steps.length - 1),
    ends = (a: Action): boolean => a.type === 'finished' || a.type === 'fail';
  for (let i = 0; ; i++) {
    const a = mine[i]?.actions,
      b = theirs[i]?.actions;
    if (!a && !b) return { kind: 'same', step: last, success, shared: i };
    if (!a) return { kind: 'early', step: last, expected: b![0], success, shared: i };
    if (!b) return { kind: 'late', step: mine[i]!.at, did: a[0], success, shared: i };
    for (let k = 0; k < Math.max(a.length, b.length); k++) {
      const [did, expected] = [a[k], b[k]],
        kind =
          did && expected
            ? kinds
              ? did.type === expected.type
                ? undefined
                : 'instead'
              : differenceOf(did, expected)
            : 'instead';
      if (kind === undefined) continue;
      return {
        kind:
          kind === 'instead' && did && expected && ends(did) && !ends(expected)
            ? 'early'
            : kind === 'instead' && expected && ends(expected)
              ? 'late'
              : kind,
        step: mine[i]!.at,
        did,
        expected,
        success,
        shared: i,
      };
    }
  }
}

/**
 * Where a failure parts from the success that it was like for longest: one of the same task, else one of the family by
 * kinds of actions alone.
 */
export function divergenceOf(failure: Episode, sameTask: readonly Episode[], family: readonly Episode[]): Divergence {
  const kinds = sameTask.length === 0,
    all = (kinds ? family : sameTask).map((s) => partsFrom(failure, s, kinds));
  const best = all.reduce<Divergence | undefined>(
    (a, b) =>
      a === undefined ||
      b.shared > a.shared ||
      (b.shared === a.shared && b.success!.steps.length < a.success!.steps.length)
        ? b
        : a,
    undefined,
  );
  return (
    best ?? {
      kind: 'alone',
      step: Math.max(0, failure.steps.length - 1),
      did: failure.steps.at(-1)?.actions.at(-1),
      shared: 0,
    }
  );
}

function sideOf(d: Divergence): Side | undefined {
  const [p, q] = [d.did && placeOf(d.did), d.expected && placeOf(d.expected)];
  if (d.kind !== 'beside' || !p || !q) return undefined;
  const [dx, dy] = [p.x - q.x, p.y - q.y];
  return Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? 'right' : 'left') : dy > 0 ? 'below' : 'above';
}
function endOf(e: Episode): FailureCluster['ended'] {
  const last = e.steps.at(-1)?.actions.at(-1)?.type;
  return e.truncated ? 'step cap' : last === 'fail' ? 'gave up' : 'finished';
}

interface Found {
  readonly episode: Episode;
  readonly divergence: Divergence;
  readonly side: Side | undefined;
}

/** Every failure is in exactly one cluster; largest first, and within one newest first. */
export function clusterFailures(episodes: readonly Episode[]): FailureCluster[] {
  // When a failure was like several successes for equally long, the oldest counts: later ones move no failure
  // elsewhere.
  const successes = episodes.filter((e) => e.success).sort((a, b) => newestFirst(b, a)),
    byTask = groupBy(successes, (e) => e.task),
    byFamily = groupBy(successes, (e) => e.family),
    clusters = new Map<string, Found[]>();
  for (const episode of episodes) {
    if (episode.success) continue;
    const divergence = divergenceOf(episode, byTask.get(episode.task) ?? [], byFamily.get(episode.family) ?? []),
      side = sideOf(divergence),
      key = JSON.stringify([
        episode.family,
        divergence.kind,
        divergence.did?.type,
        divergence.expected?.type,
        side,
        divergence.kind === 'alone' || divergence.kind === 'same' ? endOf(episode) : '',
      ]),
      mine = clusters.get(key);
    if (mine) mine.push({ episode, divergence, side });
    else clusters.set(key, [{ episode, divergence, side }]);
  }
  return [...clusters.values()]
    .map(clusterOf)
    .sort((a, b) => b.rollouts.length - a.rollouts.length || (a.family < b.family ? -1 : 1));
}

const newestFirst = (a: Episode, b: Episode): number => b.at - a.at || (a.rollout < b.rollout ? -1 : 1);

function clusterOf(found: readonly Found[]): FailureCluster {
  const all = [...found].sort((a, b) => newestFirst(a.episode, b.episode)),
    { episode, divergence, side } = all[0]!,
    distances = all.flatMap(({ divergence: d }) => {
      const [p, q] = [d.did && placeOf(d.did), d.expected && placeOf(d.expected)];
      return p && q && (d.kind === 'beside' || d.kind === 'elsewhere') ? [apart(p, q)] : [];
    }),
    versions = all.flatMap((f) => (f.episode.version === undefined ? [] : [f.episode.version])),
    ended = all.map((f) => endOf(f.episode));
  return {
    family: episode.family,
    kind: divergence.kind,
    ...(divergence.did ? { did: divergence.did.type } : {}),
    ...(divergence.expected ? { expected: divergence.expected.type } : {}),
    ...(side ? { side } : {}),
    ...(distances.length > 0 ? { distance: Math.round(median(distances)) } : {}),
    ended: mostOf(ended),
    step: Math.round(median(all.map((f) => f.divergence.step))),
    ...(versions.length > 0 ? { versions: [Math.min(...versions), Math.max(...versions)] as const } : {}),
    rollouts: all.map((f) => f.episode.rollout),
    exemplars: exemplarsOf(all),
  };
}
/** The newest, of as many tasks as there are. */
function exemplarsOf(all: readonly Found[]): FailureExemplar[] {
  const tasks = new Set<string>(),
    first = all.filter((f) => !tasks.has(f.episode.task) && tasks.add(f.episode.task)),
    rest = all.filter((f) => !first.includes(f));
  return [...first, ...rest].slice(0, shown).flatMap(({ episode, divergence: d }): FailureExemplar[] => {
    const step = episode.steps[d.step];
    return step
      ? [
          {
            rollout: episode.rollout,
            task: episode.task,
            step: d.step,
            frame: step.frame,
            ...(d.did ? { action: d.did } : {}),
            ...(d.success ? { success: d.success.rollout } : {}),
            ...(d.expected ? { expected: d.expected } : {}),
          },
        ]
      : [];
  });
}
function groupBy<T>(all: readonly T[], key: (x: T) => string): Map<string, T[]> {
  const out = new Map<string, T[]>();
  for (const x of all) {
    const mine = out.get(key(x));
    if (mine) mine.push(x);
    else out.set(key(x), [x]);
  }
  return out;
}
function median(xs: readonly number[]): number {
  const sorted = [...xs].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)]!;
}
function mostOf<T>(xs: readonly T[]): T {
  return [...groupBy(xs, String).values()].reduce((a, b) => (b.length > a.length ? b : a))[0]!;
}
