import {
  id,
  StudioError,
  isTerminal,
  toRunError,
  type Action,
  type RolloutId,
  type Step,
  type Trajectory,
  type ControlState,
  type InputEvent,
  ServiceError,
  messageOf,
} from '../domain/index.js';
import { lastRest } from '../rollout/rest.js';
import type { HumanStep } from '../rollout/steering.js';
import type { FrameStore, HeldFrames, PoolWish } from '../data/types.js';
import type { Task, TaskEngine } from '../tasks/types.js';
import type { PersonalDesktop } from './personalDesktops.js';
import { HumanInputRecorder } from './humanInputRecorder.js';
import type { SegmentOptions } from './segment.js';
import { ControlSession, type SessionFacts, type SessionHost } from './controlSession.js';
import { Keeping, type KeepingDeps, type KeepRequest } from './keeping.js';

export interface RecordDeps {
  readonly task: Task;
  readonly seed: number;
  readonly tasks: TaskEngine;
  readonly own: Pick<PersonalDesktop, 'desktop' | 'registry' | 'settle' | 'close'> & { readonly resetMs: number };
  readonly frames: Pick<FrameStore, 'put' | 'hold'>;
  readonly segment: SegmentOptions;
  readonly keeping: KeepingDeps;
}
/** A demonstration has no cap of its own; it is said to have had this many turns. */
const CAP = 1000;

/** A person does a task on a fresh desktop, and the verifier judges. */
export class RecordSession extends ControlSession {
  readonly purpose = 'record' as const;
  readonly #d: RecordDeps;
  readonly #recorder: HumanInputRecorder;
  readonly #keeping: Keeping;
  /** Its screens stay until it is recorded, or given up. */
  readonly #held: HeldFrames | undefined;
  readonly #stop = new AbortController();
  #startedAt = 0;
  #setupMs = 0;
  #trajectory: Trajectory | undefined;
  #closing: Promise<void> | undefined;
  #finishing: Promise<void> | undefined;

  constructor(host: SessionHost, facts: SessionFacts, d: RecordDeps) {
    super(host, facts);
    this.#d = d;
    this.#keeping = new Keeping(d.keeping);
    this.#held = d.frames.hold?.();
    const { desktop } = d.own;
    this.#recorder = new HumanInputRecorder({
      desktop,
      frames: this.#held ?? d.frames,
      clock: host.clock,
      settle: d.own.settle,
      segment: d.segment,
      onStep: (s) => {
        this.#step(s);
      },
      onDoing: (what) => {
        if (this.doing !== what) {
          this.doing = what;
          this.changed();
        }
      },
      onFault: (e) => {
        this.#failed(e);
      },
    });
    desktop.onEvent((e) => {
      if (e.type === 'lost') this.#failed(new StudioError(e.error.kind, e.error.message, e.error.remedy));
    });
  }

  /** Sets the task up and gives the desktop into the person's hands. */
  async begin(signal: AbortSignal): Promise<void> {
    const { task, own, tasks } = this.#d,
      { clock } = this.host,
      { desktop, registry } = own;
    this.#startedAt = clock.now();
    const any = AbortSignal.any([signal, this.#stop.signal]);
    registry.begin(desktop.id, {
      rollout: `human/${task.id}`,
      task: task.id,
      instruction: task.instruction,
      cap: CAP,
      version: 0,
      since: this.#startedAt,
    });
    await tasks.setup(task, desktop, any);
    const instruction = tasks.instruction?.(task, desktop) ?? task.instruction;
    this.asks(instruction);
    registry.asks(desktop.id, instruction);
    await desktop.settle(own.settle);
    this.#setupMs = clock.now() - this.#startedAt;
    await this.#recorder.begin();
    any.throwIfAborted();
    registry.phase(desktop.id, 'act');
    this.mode = 'human';
    this.changed();
  }

  async input(events: readonly InputEvent[]): Promise<void> {
    this.inControl('human');
    await this.#recorder.input(events);
  }
  async act(action: Action): Promise<void> {
    this.inControl('human');
    if (isTerminal(action)) return this.finish({ action });
    await this.#recorder.act(action);
  }
  setMode(mode: 'human' | 'policy' | 'step'): Promise<void> {
    if (mode !== 'human')
      return Promise.reject(
        new ServiceError('params.invalid', 'A demonstration has no policy to hand back to.', 'Finish or discard it.'),
      );
    return Promise.resolve();
  }
  async dropStep(): Promise<void> {
    this.inControl('human');
    await this.#recorder.complete();
    this.steps.pop();
    this.changed();
  }

  /** The verifier judges; a success is kept at once. */
  finish(how: { readonly failed?: boolean | undefined; readonly action?: Action }): Promise<void> {
    this.inControl('human');
    return (this.#finishing ??= this.#judge(how.action ?? (how.failed ? { type: 'fail' } : { type: 'finished' })));
  }
  async #judge(last: Action): Promise<void> {
    const { task, tasks, own } = this.#d,
      { clock } = this.host;
    this.mode = 'verifying';
    this.changed();
    try {
      await this.#recorder.act(last);
      own.registry.phase(own.desktop.id, 'verify');
      this.changed();
      const t0 = clock.now();
      await lastRest(own.desktop, this.#stop.signal);
      const outcome = await tasks.verify(task, own.desktop, last, this.#stop.signal),
        verifyMs = clock.now() - t0;
      this.verdict = {
        outcome: outcome.kind,
        reward: outcome.reward,
        report: outcome.report,
      };
      this.#trajectory = {
        id: id<RolloutId>(`human/${task.id}/${this.id}`),
        task: task.id,
        family: task.family,
        instruction: this.facts.instruction,
        provenance: { kind: 'human' },
        steps: this.steps,
        outcome,
        cap: CAP,
        startedAt: this.#startedAt,
        endedAt: clock.now(),
        resetMs: own.resetMs + this.#setupMs,
        verifyMs,
      };
      if (outcome.kind === 'success') await this.#record('auto');
    } catch (e) {
      this.#failed(e);
    } finally {
      await this.#close();
      this.end();
    }
  }

  /** Once it is judged. */
  async keep(p: KeepRequest): Promise<void> {
    Keeping.check(p);
    if (!this.#trajectory || !this.over)
      throw new ServiceError(
        'params.invalid',
        this.verdict?.outcome === 'error'
          ? 'There is nothing to keep: the demonstration ended with an error, not with a verdict.'
          : 'The demonstration has not been judged yet.',
        'Finish it first, or record another one.',
      );
    try {
      await this.#keeping.keep(this.#trajectory, p);
    } finally {
      this.#tellKept();
    }
  }
  async #record(pool: PoolWish): Promise<void> {
    await this.#keeping.record(this.#trajectory!, pool);
    this.#tellKept();
  }
  #tellKept(): void {
    this.kept = this.#keeping.kept;
    if (this.kept) this.#held?.end();
    this.rollout = this.kept?.rollout;
    this.changed();
  }

  async discard(): Promise<void> {
    this.#stop.abort();
    await this.#finishing;
    await this.#close();
    await this.#keeping.discard();
    this.#held?.end();
    this.kept = this.#keeping.kept;
    this.end();
    this.host.forget(this);
  }

  protected async letGo(): Promise<void> {
    if (this.mode === 'human') await this.#recorder.complete();
  }
  /** An abandoned recording that was finished stays as it is; otherwise nothing is recorded. */
  protected async abandoned(): Promise<void> {
    if (this.#finishing) await this.#finishing;
    else if (!this.over) {
      this.#stop.abort();
      await this.#close();
    }
    this.#held?.end();
    this.end();
    this.host.forget(this);
  }
  #step(s: HumanStep): void {
    this.steps = [...this.steps, { ...s, index: this.steps.length, origin: 'human' } satisfies Step];
    this.#d.own.registry.progress(this.#d.own.desktop.id, this.steps.length);
    this.changed();
  }
  /** The desktop, the verifier or the disk failed: an error, never a failure of the person. */
  #failed(e: unknown): void {
    if (this.over || this.#stop.signal.aborted) return;
    const error = errorOf(e);
    this.error ??= error;
    // An existing verdict stays; an error of writing it down is shown beside it.
    this.verdict ??= { outcome: 'error', error };
    this.changed();
    if (this.#finishing) return;
    this.#stop.abort();
    void this.#close().then(() => {
      this.end();
    });
  }
  #close(): Promise<void> {
    return (this.#closing ??= (async () => {
      await this.#recorder.close();
      const { own } = this.#d;
      own.registry.end(own.desktop.id);
      await own.close().catch((e: unknown) => {
        this.host.log('warn', `A desktop of a demonstration did not end: ${messageOf(e)}`);
      });
    })());
  }
}
const errorOf = (e: unknown): NonNullable<ControlState['error']> =>
  e instanceof ServiceError ? { kind: 'internal', message: e.message, remedy: e.remedy } : toRunError(e);
