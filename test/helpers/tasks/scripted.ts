import type { Desktop } from '../../../runtime/cluster/types.js';
import type { Action, VerifierReport } from '../../../runtime/domain/index.js';
import { isTerminal } from '../../../runtime/domain/index.js';
import { lastRest } from '../../../runtime/rollout/rest.js';
import type { Oracle, Task, TaskEngine } from '../../../runtime/tasks/types.js';

/** What one scripted run of a task on a fresh desktop gave. */
export interface ScriptedRun {
  readonly reward: number;
  readonly actions: readonly Action[];
  readonly setupMs: number;
  readonly stepMs: number;
  readonly verifyMs: number;
  readonly settled: boolean;
  readonly found: string;
  readonly report: VerifierReport | undefined;
}

/** Set up, act until the script ends the episode, judge. The desktop must have been reset. */
export async function runScripted(
  engine: TaskEngine,
  task: Task,
  desktop: Desktop,
  oracle: Oracle,
  o: { most?: number; onStep?: (i: number) => Promise<void> } = {},
): Promise<ScriptedRun> {
  const signal = new AbortController().signal,
    actions: Action[] = [];
  const t0 = performance.now();
  await engine.setup(task, desktop, signal);
  let settled = await atRest(desktop);
  const t1 = performance.now();
  for (;;) {
    await o.onStep?.(actions.length);
    const a = await oracle.next(desktop);
    actions.push(a);
    if (isTerminal(a)) break;
    if (actions.length >= (o.most ?? 40)) throw new Error(`the script of ${task.id} does not end`);
    await desktop.perform(a);
    settled = (await atRest(desktop)) && settled;
  }
  await lastRest(desktop);
  const t2 = performance.now();
  const outcome = await engine.verify(task, desktop, actions.at(-1), signal);
  const found =
    outcome.report?.checks
      .map((c) => `${c.what}: ${JSON.stringify(c.found)} for ${JSON.stringify(c.expected)}`)
      .join('; ') ?? '';
  return {
    reward: outcome.reward,
    actions,
    setupMs: t1 - t0,
    stepMs: (t2 - t1) / actions.length,
    verifyMs: performance.now() - t2,
    settled,
    found,
    report: outcome.report,
  };
}

/** However busy the machine is: a script shows what a task asks for, and not how fast it is done. */
async function atRest(desktop: Desktop): Promise<boolean> {
  for (let asks = 1; asks <= ASKS; asks++) if ((await desktop.settle()).settled) return true;
  return false;
}
const ASKS = 5;

/** A script that does nothing. */
export const doNothing: Oracle = { next: () => Promise.resolve({ type: 'finished' }) };

export const describeAction = (a: Action): string =>
  a.type === 'click' || a.type === 'left_double' || a.type === 'right_single'
    ? `${a.type} ${a.at.x},${a.at.y}`
    : a.type === 'hotkey'
      ? a.keys.join('+')
      : a.type === 'type'
        ? JSON.stringify(a.text)
        : a.type === 'drag'
          ? `drag ${a.from.x},${a.from.y} ${a.to.x},${a.to.y}`
          : a.type;
