import { id, isTerminal, toRunError, StudioError, cancelled } from '../domain/index.js';
import type { Action, FamilyId, RolloutId, Step, Trajectory } from '../domain/index.js';
import { counted } from '../domain/counted.js';
import type { Desktop, DesktopPool, Lease, SettleOptions } from '../cluster/types.js';
import type { FrameStore } from '../data/types.js';
import { lastRest, rest, type RestOptions } from '../rollout/rest.js';
import type { DesktopRegistry } from '../rollout/desktopRegistry.js';
import type { OracleSource, Task, TaskEngine, TaskSource } from '../tasks/types.js';

export interface DemonstrateDeps {
  /** Desktops on which widgets can be found (DesktopSpec.a11y). */
  readonly pool: Pick<DesktopPool, 'lease'>;
  readonly source: TaskSource & OracleSource;
  readonly tasks: TaskEngine;
  readonly frames: FrameStore;
  readonly settle?: SettleOptions;
  /** See RestOptions. */
  readonly mustRest?: boolean;
  readonly now: () => number;
  /** Follows what happens on each desktop. */
  readonly desktops?: DesktopRegistry;
}
export interface DemonstrateRequest {
  readonly families: readonly FamilyId[];
  /** Seeds to try for every family, in order; the first `count` that succeed are kept. */
  readonly seeds: readonly number[];
  readonly count: number;
  readonly parallel: number;
  readonly maxSteps: number;
  readonly signal: AbortSignal;
  readonly onTrajectory: (t: Trajectory) => Promise<void>;
  /** A demonstration that its task's verifier refused, or that could not be given. */
  readonly onFailure?: (t: Trajectory) => void;
  readonly onProgress: (done: number, of: number) => void;
}

/**
 * Pre-collected successes: the suite's scripted solutions, run and judged on real desktops like any rollout. Only
 * verified successes are kept. Steps have no tokens: a demonstration has no behaviour log-probs
 * (runtime/data/README.md#experience-pool). When `signal` fires it resolves early with the demonstrations made so far;
 * unfinished ones are neither kept nor counted.
 */
export async function demonstrate(
  d: DemonstrateDeps,
  r: DemonstrateRequest,
): Promise<{ made: number; failed: number }> {
  const queue = new DemoQueue(r),
    total = r.families.length * r.count;
  let made = 0,
    failed = 0;
  const worker = async (): Promise<void> => {
    for (let job = queue.next(); job && !r.signal.aborted; job = queue.next()) {
      const t = await demonstrateOne(d, job.family, job.seed, r);
      if (!t) return;
      if (t.outcome.kind === 'success') {
        await r.onTrajectory(t);
        made++;
      } else {
        failed++;
        r.onFailure?.(t);
        job.replace();
      }
      r.onProgress(made, total);
    }
  };
  await Promise.all(Array.from({ length: Math.min(r.parallel, total) }, worker));
  return { made, failed };
}

interface DemoJob {
  readonly family: FamilyId;
  readonly seed: number;
  /** The demonstration failed: try another seed of the family. */
  replace(): void;
}

/** The tasks to demonstrate: families in turn, each until it has `count` demonstrations or no seed is left. Pure. */
class DemoQueue {
  readonly #families: { readonly family: FamilyId; readonly seeds: number[]; left: number }[];
  #cursor = 0;

  constructor(r: Pick<DemonstrateRequest, 'families' | 'seeds' | 'count'>) {
    this.#families = r.families.map((family) => ({ family, seeds: [...r.seeds], left: r.count }));
  }
  next(): DemoJob | undefined {
    const n = this.#families.length;
    for (let i = 0; i < n; i++) {
      const f = this.#families[(this.#cursor + i) % n]!;
      const seed = f.left > 0 ? f.seeds.shift() : undefined;
      if (seed === undefined) continue;
      this.#cursor = (this.#cursor + i + 1) % n;
      f.left--;
      return {
        family: f.family,
        seed,
        replace: () => {
          f.left++;
        },
      };
    }
    return undefined;
  }
}

/** Undefined when the signal cut it off. */
async function demonstrateOne(
  d: DemonstrateDeps,
  family: FamilyId,
  seed: number,
  r: DemonstrateRequest,
): Promise<Trajectory | undefined> {
  const lease = await d.pool.lease({ signal: r.signal }).catch((e: unknown) => {
    if (r.signal.aborted) return undefined;
    throw e;
  });
  const t = lease && (await perform(d, lease, d.source.task(family, seed), r));
  return r.signal.aborted && t?.outcome.kind === 'error' ? undefined : t;
}

/** A scripted solution is not in a hurry: on a machine that is very busy it waits for what it did, up to this long. */
const PATIENCE_MS = 10_000;
const patient = (d: DemonstrateDeps): RestOptions => ({
  settle: { ...d.settle, maxMs: Math.max(d.settle?.maxMs ?? 0, PATIENCE_MS) },
  mustRest: d.mustRest,
});

/** Runs the scripted solution on a leased desktop and releases it; what goes wrong becomes the outcome. */
async function perform(d: DemonstrateDeps, lease: Lease, task: Task, r: DemonstrateRequest): Promise<Trajectory> {
  const { desktop } = lease,
    startedAt = d.now(),
    steps: Step[] = [];
  let outcome: Trajectory['outcome'];
  let broken = false;
  let verifyMs = 0,
    setupMs = 0;
  d.desktops?.begin(desktop.id, {
    rollout: `demo/${task.id}`,
    task: task.id,
    instruction: task.instruction,
    cap: r.maxSteps,
    version: 0,
    since: startedAt,
  });
  try {
    await d.tasks.setup(task, desktop, r.signal);
    await rest(desktop, patient(d));
    setupMs = d.now() - startedAt;
    const last = await act(d, desktop, task, r, steps);
    const t0 = d.now();
    await lastRest(desktop, r.signal);
    outcome = await d.tasks.verify(task, desktop, last, r.signal);
    verifyMs = d.now() - t0;
  } catch (e) {
    outcome = { kind: 'error', error: toRunError(e) };
    broken = outcome.error.kind.startsWith('desktop.');
  } finally {
    d.desktops?.end(desktop.id);
    lease.release(broken ? { broken } : undefined);
  }
  return {
    id: id<RolloutId>(`demo/${task.id}`),
    task: task.id,
    family: task.family,
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
  task: Task,
  { maxSteps, signal }: DemonstrateRequest,
  steps: Step[],
): Promise<Action> {
  const oracle = d.source.oracle(task);
  for (let index = 0; index < maxSteps; index++) {
    if (signal.aborted) throw cancelled('The demonstration');
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
    const settled = terminal ? true : await rest(desktop, patient(d));
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
    `The scripted solution of ${task.id} did not end within ${counted(maxSteps, 'step')}.`,
    'This is a fault of the suite: please report the task.',
  );
}

/** For people: what went wrong in a demonstration, and its last action. */
export function whyLeftOut({ outcome, steps }: Trajectory): string {
  const last = steps
    .slice(-2)
    .map((s) => JSON.stringify(s.actions))
    .join(', then ');
  const where = steps.length > 0 ? `after ${counted(steps.length, 'step')}, at last ${last}` : 'before its first step';
  if (outcome.kind === 'error') return `${where}: ${outcome.error.message}`;
  const wrong = outcome.report?.checks.find((c) => c.score < 1);
  return `${where}: ${wrong ? `${wrong.what} is ${wrong.found}, not ${wrong.expected}.` : 'its task is not done.'}`;
}
