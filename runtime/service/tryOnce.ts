import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runPaths, RunReader } from '../data/store/runStore.js';
import type { Outcome, StepView } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { PersonalDesktops } from '../human/personalDesktops.js';
import { TryRollout } from '../human/tryRollout.js';
import { actorOf } from '../run/collect/policy.js';
import type { TryParams } from '../protocol/try.js';
import { tryStepView } from './tryViews.js';
import { prepareTry } from './tryPolicy.js';

export interface TryOnceRequest extends Omit<TryParams, 'policy' | 'base' | 'mode'> {
  /** Run folder, checkpoint folder, run file, or address of a model server. */
  readonly policy: string;
  /** For a run: version of the checkpoint. */
  readonly version?: number | undefined;
  /** For a server: the model, and how it writes coordinates. */
  readonly model?: string | undefined;
  readonly coordinates?: string | undefined;
  readonly entry: ProcessEntry;
  readonly signal: AbortSignal;
  readonly onStarted: (about: {
    readonly policy: string;
    readonly task: string;
    readonly instruction: string;
    readonly notes: readonly string[];
  }) => void;
  readonly onStep: (step: StepView) => void;
}

/** Runs one episode of a policy without a daemon and keeps nothing of it. `verified`: a verifier judged. */
export async function tryOnce(r: TryOnceRequest): Promise<{ readonly outcome: Outcome; readonly verified: boolean }> {
  const { entry, signal } = r,
    own = new PersonalDesktops(),
    dir = await mkdtemp(join(tmpdir(), 'dart-studio-try-'));
  try {
    const t = await prepareTry(
      {
        entry,
        own,
        read: async (run, f) => {
          const reader = await RunReader.open(run, { index: entry });
          try {
            return await f(reader);
          } finally {
            await reader.close();
          }
        },
      },
      {
        ...r,
        actor: (over) => actorOf(r.policy, { ...r, over }),
        run: dir,
        name: 'once',
        dir,
        frames: runPaths(dir).frames,
      },
    );
    try {
      const { task } = t.rollout.request,
        rollout = new TryRollout({ ...t.rollout, onPhase: () => undefined }),
        stop = (): void => {
          rollout.stop();
        };
      r.onStarted({ policy: t.actor.name, task: task.id, instruction: task.instruction, notes: t.notes });
      rollout.onEvent((e) => {
        if (e.type === 'step') r.onStep(tryStepView(e, task.instruction));
      });
      signal.addEventListener('abort', stop, { once: true });
      if (signal.aborted) stop();
      const { outcome } = await rollout.run();
      signal.removeEventListener('abort', stop);
      return { outcome, verified: t.verified };
    } finally {
      await t.close();
    }
  } finally {
    await own.close();
    await rm(dir, { recursive: true, force: true });
  }
}
