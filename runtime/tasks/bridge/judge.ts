import type { TaskContext } from '../context.js';
import type { Value } from '../values.js';
import { isDict, isFile, isList } from '../values.js';
import { answersOf } from './answers.js';
import { evaluatorFault } from './environment.js';
import type { Evaluators } from './evaluators.js';
import type { BridgeEnd } from './said.js';
import { executesCandidate, type BridgeJob, type Source } from './workers.js';

/** The value of a getter of ours, or the configuration of one that only the evaluators have. */
export type Given =
  | {
      readonly value: Value;
      /** The value was read from the desktop, where the policy may have changed it. */
      readonly desktop?: boolean;
    }
  | { readonly getter: Readonly<Record<string, unknown>> };

export interface Bridged {
  readonly score: number;
  readonly expected: string;
  readonly found: string;
}

/** Exceptions that say nothing about what the policy left behind. */
const OURS = new Set(['ImportError', 'ModuleNotFoundError', 'NotImplementedError', 'SyntaxError']);

/**
 * Judges one metric by OSWorld's evaluators. A fault on our side throws, whatever they made of it. When they raise or
 * hang on what the policy left behind, the task is judged 0: where there is a gold file they must first succeed on that
 * in its place, so that a broken evaluator is told from a broken file. A gold file of the desktop may itself be what
 * the policy broke: then what they raise is 0 too.
 */
export async function judgeBridged(
  e: Evaluators,
  ctx: TaskContext,
  func: string,
  result: Given,
  expected: Given | undefined,
  options: Readonly<Record<string, unknown>>,
): Promise<Bridged> {
  const job: BridgeJob = {
      func,
      result: sourceOf(result),
      expected: expected && sourceOf(expected),
      options,
      files: ctx.cache,
    },
    run = (j: BridgeJob): Promise<BridgeEnd> => e.workers.run(j, answersOf(ctx), ctx.signal);
  const end = await run(job);
  if (end.kind === 'done')
    return { score: Math.min(1, Math.max(0, end.score)), expected: end.expected, found: end.found };
  await checkBlame(end, job, result, expected, run);
  const found =
    end.kind === 'timeout'
      ? 'something that cannot be judged in time'
      : end.kind === 'lost'
        ? `something with which the evaluators ${end.text}`
        : `${end.type}: ${end.text}`;
  return { score: 0, expected: '', found };
}

/** Throws unless what the policy left behind is to blame. */
async function checkBlame(
  end: Exclude<BridgeEnd, { kind: 'done' }>,
  job: BridgeJob,
  result: Given,
  expected: Given | undefined,
  run: (j: BridgeJob) => Promise<BridgeEnd>,
): Promise<void> {
  // The metric ran the policy's own code, which may raise, end or say what it likes.
  if (executesCandidate(job.func) && end.stage === 'metric') return;
  const said =
      end.kind === 'timeout'
        ? 'did not come to an end'
        : end.kind === 'lost'
          ? end.text
          : `raised ${end.type}: ${end.text}`,
    fault = (): never => {
      throw evaluatorFault(`cannot judge ${job.func}: they ${said}`);
    };
  if (end.kind === 'raised' && OURS.has(end.type)) fault();
  if (end.stage === 'expected') return ofTheDesktop(expected) ? undefined : fault();
  if (end.stage === 'result') return end.kind === 'raised' ? undefined : fault();
  const gold = expected && 'value' in expected && hasFiles(expected.value) ? expected.value : undefined;
  if (gold === undefined) return end.kind === 'raised' ? undefined : fault();
  if (!('value' in result) || !hasFiles(result.value)) return;
  const again = await run({ ...job, result: sourceOf({ value: gold }) });
  if (again.kind !== 'done' && !(ofTheDesktop(expected) && end.kind === 'raised')) fault();
}

const ofTheDesktop = (g: Given | undefined): boolean =>
  g !== undefined && ('getter' in g ? String(g.getter['type']).startsWith('vm_') : g.desktop === true);

const hasFiles = (v: Value): boolean => isFile(v) || (isList(v) && v.length > 0 && v.every(isFile));

const sourceOf = (g: Given): Source => ('getter' in g ? g : { value: packed(g.value) });

/** Files become their names in the job's folder. */
function packed(v: Value): unknown {
  if (isFile(v)) return { $file: v.name };
  if (isList(v)) return v.map(packed);
  if (isDict(v)) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, packed(x)]));
  return v;
}

/** A configuration whose files are saved under plain names; a path would leave the job's folder. */
export function checkedGetter(config: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  for (const d of [config['dest']].flat())
    if (typeof d === 'string' && /[/\\\0]|^\.\.?$/.test(d))
      throw new TypeError(`"dest" is ${d}, which is no plain file name`);
  return config;
}
