import { judgedBy, type Asked, type Check, type Instance } from './kit.js';

/**
 * A task of `own` and its siblings, of `others`, all of them said and judged in one way
 * (runtime/tasks/README.md#siblings). `task` draws nothing: it is called again for a failure that is looked back on.
 */
export function asking<T>(
  task: (x: T) => readonly [instruction: string, ...checks: Check[]],
  own: T,
  others: readonly T[],
): Asked & Required<Pick<Instance, 'siblings'>> {
  const asked = (x: T): Asked => {
    const [instruction, ...checks] = task(x);
    return { instruction, evaluator: judgedBy(...checks) };
  };
  return { ...asked(own), siblings: () => others.map(asked) };
}

/** The whole numbers under n, without i. */
export const others = (n: number, i: number): number[] => upTo(n).filter((k) => k !== i);
/** All pairs of different numbers under n, the smaller first, without this one. */
export const otherPairs = (n: number, [i, j]: readonly [number, number]): [number, number][] =>
  upTo(n)
    .flatMap((a) => upTo(n).map((b): [number, number] => [a, b]))
    .filter(([a, b]) => a < b && !(a === Math.min(i, j) && b === Math.max(i, j)));
/** All ways to choose one of each list, without this one. */
export const otherChoices = <T>(lists: readonly (readonly T[])[], own: readonly T[]): T[][] =>
  lists
    .reduce<T[][]>((all, list) => all.flatMap((a) => list.map((x) => [...a, x])), [[]])
    .filter((chosen) => chosen.some((x, k) => x !== own[k]));

const upTo = (n: number): number[] => Array.from({ length: n }, (_, k) => k);
