import { id, isTerminal, toRunError, StudioError } from '../domain/index.js';
import type { FamilyId, RolloutId, Step, Trajectory } from '../domain/index.js';
import type { Desktop, DesktopPool, SettleOptions } from '../cluster/types.js';
import type { FrameStore } from '../data/types.js';
import type { DesktopRegistry } from '../rollout/desktopRegistry.js';
import type { Oracle, OracleSource, Task, TaskEngine, TaskSource } from '../tasks/types.js';

export interface DemonstrateDeps {
  /** Desktops on which widgets can be found (DesktopSpec.a11y). */
  readonly pool: DesktopPool;
  readonly source: TaskSource & OracleSource;
  readonly tasks: TaskEngine;
  readonly frames: FrameStore;
  readonly settle?: SettleOptions;
  readonly now: () => number;
  /** Told what happens on which desktop. */
  readonly desktops?: DesktopRegistry;
}
export interface DemonstrateRequest {
  readonly families: readonly FamilyId[];
  /** Seeds to demonstrate of every family, in order; the first `count` that succeed are kept. */
  readonly seeds: readonly number[];
  readonly count: number;
  readonly parallel: number;
  readonly maxSteps: number;
  readonly signal: AbortSignal;
  readonly onTrajectory: (t: Trajectory) => Promise<void>;
  readonly onProgress: (done: number, of: number) => void;
}

/**
 * Pre-collected successes: the suite's scripted solutions, run and judged on real desktops like any rollout. Only
 * verified successes are kept. Steps have no tokens: a demonstration has no behaviour log-probs (dart-algorithm.md 3b).
 */
export async function demonstrate(
  d: DemonstrateDeps,
  r: DemonstrateRequest,
): Promise<{ made: number; failed: number }> {
  const todo = r.families.map((family) => ({ family, seeds: [...r.seeds], left: r.count }));
  const total = r.families.length * r.count;
  let made = 0,
    failed = 0,
    cursor = 0;
  const next = (): { family: FamilyId; seed: number; state: { left: number } } | undefined => {
    for (let i = 0; i < todo.length; i++) {
      const f = todo[(cursor + i) % todo.length]!;
      const seed = f.left > 0 ? f.seeds.shift() : undefined;
      if (seed === undefined) continue;
      cursor = (cursor + i + 1) % todo.length;
      f.left--;
      return { family: f.family, seed, state: f };
    }
    return undefined;
  };
  const worker = async (): Promise<void> => {
    for (let job = next(); job && !r.signal.aborted; job = next()) {
      const t = await one(d, job.family, job.seed, r);
      if (t.outcome.kind === 'success') {
        await r.onTrajectory(t);
        made++;
      } else {
        failed++;
        job.state.left++;
      }
      r.onProgress(made, total);
    }
  };
  await Promise.all(Array.from({ length: Math.min(r.parallel, total) }, worker));
  if (r.signal.aborted)
    throw new StudioError(
      'cancelled',
      'The demonstrations were stopped.',
      'Those already made are kept; start again for the rest.',
    );
  return { made, failed };
}

async function one(d: DemonstrateDeps, family: FamilyId, seed: number, r: DemonstrateRequest): Promise<Trajectory> {
  const task = d.source.task(family, seed);
  const lease = await d.pool.lease({ signal: r.signal });
  const startedAt = d.now();
  const steps: Step[] = [];
  let outcome: Trajectory['outcome'];
  let broken = false;
  let verifyMs = 0,
    setupMs = 0;
  d.desktops?.begin(lease.desktop.id, {
    rollout: `demo/${task.id}`,
    task: task.id,
    instruction: task.instruction,
    cap: r.maxSteps,
    version: 0,
    since: startedAt,
  });
  try {
    await d.tasks.setup(task, lease.desktop, r.signal);
    await lease.desktop.settle(d.settle);
    setupMs = d.now() - startedAt;
    const last = await act(d, lease.desktop, d.source.oracle(task), task, r.maxSteps, steps);
    const t0 = d.now();
    outcome = await d.tasks.verify(task, lease.desktop, last, r.signal);
    verifyMs = d.now() - t0;
  } catch (e) {
    outcome = { kind: 'error', error: toRunError(e) };
    broken = outcome.error.kind.startsWith('desktop.');
  } finally {
    d.desktops?.end(lease.desktop.id);
    lease.release(broken ? { broken } : undefined);
  }
  return {
    id: id<RolloutId>(`demo/${task.id}`),
    task: task.id,
    family,
    instruction: task.instruction,
    provenance: { kind: 'oracle' },
    steps,
    outcome,
    cap: r.maxSteps,
    startedAt,
    endedAt: d.now(),
    resetMs: lease.resetMs + setupMs,
    verifyMs,
  };
}

async function act(
  d: DemonstrateDeps,
  desktop: Desktop,
  oracle: Oracle,
  task: Task,
  maxSteps: number,
  steps: Step[],
): Promise<Step['actions'][number] | undefined> {
  for (let index = 0; index < maxSteps; index++) {
    const t0 = d.now();
    d.desktops?.phase(desktop.id, 'act');
    const frame = await desktop.observe();
    const ref = await d.frames.put(frame);
    const t1 = d.now();
    const action = await oracle.next(desktop);
    const t2 = d.now();
    const terminal = isTerminal(action);
    if (!terminal) await desktop.perform(action);
    const t3 = d.now();
    const settled = terminal ? true : (await desktop.settle(d.settle)).settled;
    d.desktops?.progress(desktop.id, index + 1);
    steps.push({
      index,
      frame: ref,
      actions: [action],
      origin: 'oracle',
      settled,
      timings: { observe: t1 - t0, decide: t2 - t1, queue: 0, perform: t3 - t2, settle: d.now() - t3 },
    });
    if (terminal) return action;
  }
  throw new StudioError(
    'internal',
    `The scripted solution of ${task.id} did not end within ${maxSteps} steps.`,
    'This is a fault of the suite: please report the task.',
  );
}
