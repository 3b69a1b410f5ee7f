/** Where two trajectories part, step by step; pure. */
import { isObject } from '../../runtime/protocol/shared.js';
import type { StepView } from '../../runtime/protocol/types.js';
import { actionsWords } from '../ui/actions.js';
import { t } from '../ui/words.js';

export type Difference = 'action' | 'screen' | 'both' | 'length';
/**
 * First position whose action or screen differs; `length`: one of them ended before. `screen` and `action`: the first
 * of each kind alone.
 */
export interface Divergence {
  readonly at: number;
  readonly what: Difference;
  readonly screen?: number;
  readonly action?: number;
}

const canonical = (x: unknown): string =>
  JSON.stringify(x, (_k, v: unknown) =>
    isObject(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))) : v,
  );
export const sameActions = (a: StepView, b: StepView): boolean => canonical(a.actions) === canonical(b.actions);
/** Frames are named by their pixels: the same hash is the same screen. */
export const sameScreen = (a: StepView, b: StepView): boolean => a.frame.hash === b.frame.hash;

/** The difference at one position; undefined where there is none. */
export function differenceAt(
  left: readonly StepView[],
  right: readonly StepView[],
  at: number,
): Difference | undefined {
  const a = left[at],
    b = right[at];
  if (!a && !b) return undefined;
  if (!a || !b) return 'length';
  const action = !sameActions(a, b),
    screen = !sameScreen(a, b);
  return action && screen ? 'both' : action ? 'action' : screen ? 'screen' : undefined;
}
export function differences(left: readonly StepView[], right: readonly StepView[]): ReadonlyMap<number, Difference> {
  const out = new Map<number, Difference>();
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const d = differenceAt(left, right, i);
    if (d) out.set(i, d);
  }
  return out;
}
export function diverge(left: readonly StepView[], right: readonly StepView[]): Divergence | undefined {
  let first: { at: number; what: Difference } | undefined, screen: number | undefined, action: number | undefined;
  for (const [at, what] of differences(left, right)) {
    first ??= { at, what };
    if (what !== 'length') {
      if (screen === undefined && what !== 'action') screen = at;
      if (action === undefined && what !== 'screen') action = at;
    }
    if (screen !== undefined && action !== undefined) break;
  }
  return first && { ...first, screen, action };
}

/** One or two sentences for people on where the trajectories part. */
export function divergenceWords(left: readonly StepView[], right: readonly StepView[]): string {
  const d = diverge(left, right);
  if (!d)
    return left.length
      ? t('The same actions on the same screens, from the first step to the last.')
      : t('Neither has a step yet.');
  const a = left[d.at],
    b = right[d.at],
    until = d.at === 0 ? '' : `${t('The same until step {0}.', d.at)} `,
    n = d.at + 1;
  switch (d.what) {
    case 'length':
      return (
        until +
        (a
          ? t('The right one has no step {0}; the left one continues.', n)
          : t('The left one has no step {0}; the right one continues.', n))
      );
    case 'screen':
      return (
        until +
        (d.action === undefined
          ? t('At step {0} the screens differ; the actions never do.', n)
          : t('At step {0} the screens differ; the actions from step {1} on.', n, d.action + 1))
      );
    case 'action':
      return (
        until +
        t(
          'At step {0}, on the same screen, left: {1}; right: {2}.',
          n,
          actionsWords(a!.actions),
          actionsWords(b!.actions),
        )
      );
    case 'both':
      return (
        until +
        t(
          'At step {0} screen and action differ; left: {1}; right: {2}.',
          n,
          actionsWords(a!.actions),
          actionsWords(b!.actions),
        )
      );
  }
}
/** Next or previous position that differs. */
export function nextDifference(
  all: ReadonlyMap<number, Difference>,
  from: number,
  direction: 1 | -1,
): number | undefined {
  const at = [...all.keys()].sort((a, b) => a - b);
  return direction > 0 ? at.find((i) => i > from) : at.reverse().find((i) => i < from);
}
export const differenceWords: Readonly<Record<Difference, string>> = {
  action: t('another action on the same screen'),
  screen: t('the same action on another screen'),
  both: t('another action on another screen'),
  length: t('only here'),
};
