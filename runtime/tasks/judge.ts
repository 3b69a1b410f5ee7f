import type { Action, Judge, JudgedOutcome, VerifierCheck } from '../domain/index.js';
import { checkedGetter, judgeBridged, type Given } from './bridge/judge.js';
import type { Evaluators } from './bridge/evaluators.js';
import { checkName, subject } from './checkName.js';
import type { TaskContext } from './context.js';
import { checkCancelled } from './context.js';
import { MissingFile } from './getters/files.js';
import type { GetterConfig } from './getters/types.js';
import { getters } from './getters/index.js';
import { pack } from './metrics/job.js';
import { readsPicture } from './metrics/media.js';
import type { MetricRunner } from './metrics/job.js';
import { hasGetter, isNative } from './needs.js';
import { OURSELVES } from './judgeName.js';
import { runSteps } from './setup/index.js';
import { Spoiled } from './spoiled.js';
import type { Task } from './types.js';
import type { Dict, Value } from './values.js';
import { isDict, isFile } from './values.js';

/** The judges of checks: our own metrics, and OSWorld's evaluators for what we lack, where they are installed. */
export interface Judges {
  readonly metrics: MetricRunner;
  readonly evaluators?: Evaluators | undefined;
}
type Who = Pick<Judge, 'name' | 'version'>;

/**
 * OSWorld's evaluate(), in its order: postconfig; `infeasible` is 1 exactly when the agent ended with FAIL; any other
 * task that ended with FAIL is 0; then the metrics. A list with `and`: 0 as soon as one is 0, else the mean; with `or`:
 * 1 as soon as one is 1, else the best. What the programs of the desktop can have spoilt (a full disk, a pipe instead of
 * a file, no process left) is 0; anything else that a step, getter or metric throws is a fault of the verifier.
 */
export async function judge(
  task: Task,
  ctx: TaskContext,
  lastAction: Action | undefined,
  judges: Judges,
): Promise<JudgedOutcome> {
  const e = task.evaluator,
    began = performance.now(),
    /** A check without getters and metrics. */
    ours = (check: VerifierCheck): JudgedOutcome =>
      outcome(check.score, [{ ...check, judge: signed(OURSELVES, began) }]);
  try {
    await runSteps(ctx, e.postconfig ?? []);
  } catch (x) {
    if (!(x instanceof Spoiled)) throw x;
    return ours({ what: 'what is done before judging', expected: 'every step works', found: x.message, score: 0 });
  }
  const failed = lastAction?.type === 'fail';
  if (task.infeasible || failed) {
    return ours({
      what: 'the last action',
      expected: task.infeasible ? 'fail: the task cannot be done' : 'anything but fail: the task can be done',
      found: lastAction?.type ?? 'none',
      score: task.infeasible && failed ? 1 : 0,
    });
  }
  const checks: VerifierCheck[] = [];
  for await (const check of checksOf(e, ctx, judges)) {
    checks.push(check);
    if (e.conj === 'or' ? check.score === 1 : check.score === 0) return outcome(check.score, checks);
  }
  const scores = checks.map((c) => c.score);
  return outcome(e.conj === 'or' ? Math.max(...scores) : mean(scores), checks);
}

/** Whether a task can be checked mid-episode: nothing is done before judging, and every check counts. */
export const hasProgress = ({ infeasible, evaluator: e }: Task): boolean =>
  !infeasible && (e.postconfig ?? []).length === 0 && e.func !== 'infeasible' && e.func.length > 0 && e.conj !== 'or';

/** Mean score of all checks as things are now, those behind one that fails too. Throws as `judge` does. */
export async function progressOf(task: Task, ctx: TaskContext, judges: Judges): Promise<number> {
  const scores: number[] = [];
  for await (const { score } of checksOf(task.evaluator, ctx, judges)) scores.push(score);
  return mean(scores);
}

/** The checks of an evaluator, one made after the other: who has heard enough asks for no more. */
async function* checksOf(
  e: Task['evaluator'],
  ctx: TaskContext,
  judges: Judges,
): AsyncGenerator<VerifierCheck, void, undefined> {
  if (typeof e.func === 'string') yield await one(ctx, judges, e.func, e.result, e.expected, e.options);
  else
    for (const [i, func] of e.func.entries())
      yield await one(ctx, judges, func, at(e.result, i), at(e.expected, i), at(e.options, i));
}
const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;

/** Paths of a check that are kept, and characters of each. */
const MOST_FILES = 100,
  MOST_PATH = 4096;
function signed({ name, version }: Who, began: number, looked: Iterable<string> = []): Judge {
  const files = [...looked].slice(0, MOST_FILES).map((path) => path.slice(0, MOST_PATH));
  return { name, version, ms: performance.now() - began, files };
}

const at = (v: unknown, i: number): unknown => (Array.isArray(v) ? v[i] : undefined);

function outcome(reward: number, checks: VerifierCheck[]): JudgedOutcome {
  return { kind: reward === 1 ? 'success' : 'failure', reward, truncated: false, report: { checks } };
}

/**
 * Getters whose answer the task alone decides; the answers of all others come from the desktop, which the agent could
 * change.
 */
const OF_THE_TASK = new Set(['rule', 'cloud_file']);
const ofTheDesktop = (config: unknown): boolean => isDict(config) && !OF_THE_TASK.has(String(config['type']));

/**
 * Judges one metric on what its getters find. A missing result file scores 0, and so does one that cannot be judged.
 */
async function one(
  task: TaskContext,
  judges: Judges,
  func: string,
  result: unknown,
  expected: unknown,
  options: unknown,
): Promise<VerifierCheck> {
  const began = performance.now(),
    looked = new Set<string>(),
    ctx = { ...task, looked },
    rules = isDict(options) ? options : {},
    name = checkName(func, result);
  let by: Who = OURSELVES,
    found: Pick<VerifierCheck, 'expected' | 'found' | 'score'>;
  try {
    const values =
      isNative(func, rules) && hasGetter(result) && hasGetter(expected) && (await got(ctx, result, expected));
    if (values && !(judges.evaluators?.metrics.has(func) && isTheirs(func, values)))
      found = await natively(ctx, judges.metrics, func, values, expected, rules);
    else {
      if (!judges.evaluators) throw new Error(`${func} needs OSWorld's evaluators, which are not installed`);
      const given = await givenTo(ctx, result, expected);
      by = judges.evaluators.place;
      found = await judgeBridged(judges.evaluators, ctx, func, given.result, given.expected, rules);
    }
  } catch (e) {
    if (!(e instanceof MissingFile || e instanceof Spoiled)) throw e;
    found = { expected: subject(expected), found: e.message, score: 0 };
  }
  return { ...name, ...found, judge: signed(by, began, looked) };
}

/** The getters' values of one metric. */
interface Values {
  readonly found: Value;
  readonly want: Value | undefined;
}
async function got(ctx: TaskContext, result: unknown, expected: unknown): Promise<Values> {
  const found = (await get(ctx, result)) ?? null,
    want = await goldOf(ctx, expected);
  checkCancelled(ctx.signal);
  return { found, want };
}

/** Pictures of kinds that ours does not read are judged by OSWorld's own, where that is installed. */
const isTheirs = (func: string, { found, want }: Values): boolean =>
  func === 'check_image_size' && isFile(found) && isDict(want) && !readsPicture(found.data, want as Dict);

async function natively(
  ctx: TaskContext,
  metrics: MetricRunner,
  func: string,
  { found, want }: Values,
  expected: unknown,
  options: Readonly<Record<string, unknown>>,
): Promise<Pick<VerifierCheck, 'expected' | 'found' | 'score'>> {
  const done = await metrics.run(
    {
      func,
      result: pack(found, func),
      expected: want === undefined ? undefined : pack(want, func),
      options,
      desktopGold: ofTheDesktop(expected),
    },
    ctx.signal,
  );
  if ('fault' in done) throw new Error(`${func}: ${done.fault}`);
  return done;
}

/** The inputs of OSWorld's evaluators: getters that we have are ours all the same. */
async function givenTo(
  ctx: TaskContext,
  result: unknown,
  expected: unknown,
): Promise<{ readonly result: Given; readonly expected: Given | undefined }> {
  const given = async (config: unknown, gold: boolean): Promise<Given | undefined> => {
    if (isDict(config) && !hasGetter(config)) return { getter: checkedGetter(config) };
    const value = gold ? await goldOf(ctx, config) : await get(ctx, config);
    return value === undefined ? undefined : { value, desktop: ofTheDesktop(config) };
  };
  const found = (await given(result, false)) ?? { value: null },
    want = await given(expected, true);
  checkCancelled(ctx.signal);
  return { result: found, expected: want };
}

/** The expected value. Throws a plain Error, no fault of ours, for a missing file of the desktop. */
async function goldOf(ctx: TaskContext, expected: unknown): Promise<Value | undefined> {
  try {
    return await get(ctx, expected);
  } catch (e) {
    if (e instanceof MissingFile) throw new Error(e.message, { cause: e });
    throw e;
  }
}

/** Null and {} mean "no getter here". */
async function get(ctx: TaskContext, config: unknown): Promise<Value | undefined> {
  checkCancelled(ctx.signal);
  if (!isDict(config) || Object.keys(config).length === 0) return undefined;
  const type = String((config as GetterConfig)['type']);
  try {
    return await getters[type]!(ctx, config as GetterConfig);
  } catch (e) {
    if (e instanceof MissingFile || e instanceof Spoiled || !(e instanceof Error) || e.name === 'StudioError') throw e;
    throw new Error(`${type}: ${e.message}`, { cause: e });
  }
}
