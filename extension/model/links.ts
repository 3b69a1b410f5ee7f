/**
 * Links that VS Code opens in this extension: a run's dashboard, or a trajectory of it at a step. A link may come from
 * anywhere: it names a run by its id, never by a path, and can only show what this window lists. Pure.
 */
export interface Link {
  /** Id of the run: the name of its folder. */
  readonly run: string;
  readonly rollout?: string;
  /** Number of the step, from 1, as the pages count. */
  readonly step?: number;
}
const openPath = '/open';
/** Longer than any id of a run or rollout. */
const mostId = 200,
  mostSteps = 100_000,
  mostLink = 2000;
/** Ids of runs are names of folders; those of rollouts have slashes and `#` in them. No white space, nothing invisible. */
const runId = /^[\p{L}\p{N}][\p{L}\p{N} ._-]*$/u,
  rolloutId = /^[\p{L}\p{N}][\p{L}\p{N} ._/#@:+-]*$/u;

export function linkText(scheme: string, extension: string, l: Link): string {
  const query = new URLSearchParams({
    run: l.run,
    ...(l.rollout === undefined ? {} : { rollout: l.rollout }),
    ...(l.step === undefined ? {} : { step: String(l.step) }),
  });
  return `${scheme}://${extension}${openPath}?${query.toString()}`;
}

/** Undefined for whatever is not exactly such a link. */
export function parseLink(path: string, query: string): Link | undefined {
  if (path !== openPath || query.length > mostLink) return undefined;
  const q = new URLSearchParams(query),
    names = [...q.keys()],
    run = q.get('run'),
    rollout = q.get('rollout'),
    step = q.get('step');
  if (names.some((n) => n !== 'run' && n !== 'rollout' && n !== 'step') || new Set(names).size < names.length)
    return undefined;
  if (run === null || run.length > mostId || !runId.test(run)) return undefined;
  if (rollout !== null && (rollout.length > mostId || !rolloutId.test(rollout))) return undefined;
  if (step !== null && (rollout === null || !/^[1-9]\d{0,5}$/.test(step) || Number(step) > mostSteps)) return undefined;
  return {
    run,
    ...(rollout === null ? {} : { rollout }),
    ...(step === null ? {} : { step: Number(step) }),
  };
}
