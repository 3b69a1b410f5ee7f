import type { VerifierReport } from '../domain/index.js';
import type { Evaluator, Task } from './types.js';
import { brief, isDict } from './values.js';

/**
 * Whether a desktop that was judged a failure of `task` may be a success of `sibling`, by what its verifier found: where
 * both look at one thing and want it word for word, that has to be what the sibling wants. Says yes where it cannot
 * know, so whoever asks the verifier of those that are left alone misses none.
 */
export function mayHold(task: Task, report: VerifierReport | undefined, sibling: Task): boolean {
  const own = exactChecks(task.evaluator),
    theirs = exactChecks(sibling.evaluator);
  return (report?.checks ?? []).every((found, k) => {
    const [a, b] = [own[k], theirs[k]];
    return !a || !b || a.looksAt !== b.looksAt || brief(b.wants) === found.found;
  });
}

/** The checks that compare the output of a command, by their titles: a suite's commands may wait for what they want. */
function exactChecks({ func, result, expected }: Evaluator): ({ looksAt: string; wants: unknown } | undefined)[] {
  const at = (v: unknown, k: number): unknown => (Array.isArray(func) ? (Array.isArray(v) ? v[k] : undefined) : v);
  return [func].flat().map((name, k) => {
    const [looked, rule] = [at(result, k), at(expected, k)];
    if (name !== 'exact_match' || !isDict(looked) || !isDict(rule) || !isDict(rule['rules'])) return undefined;
    const { title } = looked;
    return typeof title === 'string' ? { looksAt: title, wants: rule['rules']['expected'] } : undefined;
  });
}
