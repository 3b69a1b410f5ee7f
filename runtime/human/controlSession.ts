import { randomBytes } from 'node:crypto';
import { traitsOf } from '../config/index.js';
import {
  type Action,
  type RunError,
  type Size,
  type Step,
  type ControlMode,
  type ControlState,
  type ControlStep,
  type ControlVerdict,
  type InputEvent,
  type Proposal,
  type PolicyKind,
  type RunPath,
  ServiceError,
  messageOf,
} from '../domain/index.js';
import type { Clock } from '../rollout/clock.js';
import type { SegmentOptions } from './segment.js';

/** How long a session is kept after its last window has gone. */
export const ABANDON_MS = 60_000;

export interface SessionHost {
  readonly clock: Clock;
  /** Sends the whole state to the windows that show it. */
  broadcast(s: ControlState): void;
  log(level: 'info' | 'warn' | 'error', message: string): void;
  /** Called when nothing runs for the session any more; it can still be looked at, and kept. */
  ended(s: ControlSession): void;
  /** Called when no window shows the session any more, and it can be dropped. */
  forget(s: ControlSession): void;
}
export interface SessionFacts {
  readonly run: RunPath;
  readonly desktop: string;
  readonly screen: Size;
  readonly family: string;
  readonly task: string;
  readonly seed: number;
  readonly instruction: string;
}

/** The common part of a recording and a take-over: its windows, its state, and when it counts as abandoned. */
export abstract class ControlSession {
  readonly id = randomBytes(6).toString('hex');
  abstract readonly purpose: ControlState['purpose'];
  #facts: SessionFacts;
  protected readonly host: SessionHost;
  protected mode: ControlMode = 'starting';
  protected steps: Step[] = [];
  protected doing: string | undefined;
  protected proposal: Proposal | undefined;
  protected verdict: ControlVerdict | undefined;
  protected kept: ControlState['kept'];
  protected error: RunError | undefined;
  protected rollout: string | undefined;
  /** Windows by what ends with them; a window may show it more than once. */
  readonly #viewers = new Map<object, { n: number; readonly off: () => void }>();
  #abandonedAt: number | undefined;
  #stopTimer: () => void = () => undefined;
  #told = false;
  #over = false;

  constructor(host: SessionHost, facts: SessionFacts) {
    this.host = host;
    this.#facts = facts;
  }

  /** Events of a person in control, in order. */
  abstract input(events: readonly InputEvent[]): Promise<void>;
  abstract act(action: Action): Promise<void>;
  abstract setMode(mode: 'human' | 'policy' | 'step'): Promise<void>;
  abstract finish(how: { readonly failed?: boolean | undefined; readonly action?: Action }): Promise<void>;
  abstract discard(): Promise<void>;
  /** The last window is gone: nothing stays pressed. */
  protected abstract letGo(): Promise<void>;
  /** The session was abandoned: ends the recording, or hands the rollout back. */
  protected abstract abandoned(): Promise<void>;
  /** Steps the policy may still make; undefined when that is of no interest now. */
  protected left(): number | undefined {
    return undefined;
  }

  get facts(): SessionFacts {
    return this.#facts;
  }
  /** What the task asks for, where that is known only once it is set up on its desktop. */
  asks(instruction: string): void {
    this.#facts = { ...this.#facts, instruction };
  }

  get over(): boolean {
    return this.#over;
  }

  state(): ControlState {
    const { facts: f } = this,
      left = this.left();
    return {
      session: this.id,
      purpose: this.purpose,
      mode: this.mode,
      ...f,
      steps: this.steps.map(shown),
      rollout: this.rollout,
      doing: this.doing,
      proposal: this.proposal,
      left,
      verdict: this.verdict,
      kept: this.kept,
      ...(this.#abandonedAt === undefined ? {} : { abandonedAt: this.#abandonedAt }),
      error: this.error,
    };
  }

  /**
   * `client` fires when the window is gone for good. Any other request of a window says that somebody is there, too.
   */
  attach(client: AbortSignal | undefined): void {
    const key = client ?? this,
      there = this.#viewers.get(key);
    if (there) there.n++;
    else {
      const gone = (): void => {
        this.#drop(key);
      };
      client?.addEventListener('abort', gone, { once: true });
      this.#viewers.set(key, { n: 1, off: () => client?.removeEventListener('abort', gone) });
      if (client?.aborted) gone();
    }
    this.#count();
  }
  detach(client: AbortSignal | undefined): void {
    const key = client ?? this,
      there = this.#viewers.get(key);
    if (there && --there.n <= 0) this.#drop(key);
  }
  #drop(key: object): void {
    const there = this.#viewers.get(key);
    if (!there) return;
    there.off();
    this.#viewers.delete(key);
    if (this.#viewers.size === 0)
      this.letGo().catch((e: unknown) => {
        this.host.log('warn', `Keys could not be released: ${messageOf(e)}`);
      });
    this.#count();
  }
  /** A request of the person: without a window, the time until the session is abandoned starts again. */
  touch(): void {
    if (this.#viewers.size === 0) this.#count();
  }
  #count(): void {
    this.#stopTimer();
    this.#abandonedAt = undefined;
    if (this.#viewers.size === 0) {
      this.#abandonedAt = Math.round(this.host.clock.now() + ABANDON_MS);
      this.#stopTimer = this.host.clock.after(ABANDON_MS, () => {
        this.abandoned().catch((e: unknown) => {
          this.host.log('warn', `An abandoned session did not end: ${messageOf(e)}`);
        });
      });
    }
    this.changed();
  }

  /** Broadcasts the whole state, at most once a turn of the event loop. */
  protected changed(): void {
    if (this.#told) return;
    this.#told = true;
    setImmediate(() => {
      this.#told = false;
      this.host.broadcast(this.state());
    });
  }
  /** Ends the session; windows may go on showing it. */
  protected end(): void {
    if (this.#over) return;
    this.#over = true;
    this.mode = 'ended';
    this.doing = undefined;
    this.proposal = undefined;
    this.host.ended(this);
    this.#count();
  }
  /** Throws an error for the person unless the session is in one of these modes. */
  protected inControl(...modes: readonly ControlMode[]): void {
    if (!modes.includes(this.mode))
      throw new ServiceError(
        'params.invalid',
        `You are not in control of this desktop now (${this.mode}).`,
        this.purpose === 'record' ? 'Record another demonstration.' : 'Take over first.',
      );
  }
  /** The daemon stops: ends the session as if it had been abandoned. */
  shutdown(): Promise<void> {
    return this.abandoned();
  }
  close(): void {
    this.#stopTimer();
    for (const v of this.#viewers.values()) v.off();
    this.#viewers.clear();
  }
}

const shown = (s: Step): ControlStep => ({
  index: s.index,
  origin: s.origin === 'policy' ? 'policy' : 'human',
  thought: s.thought,
  actions: s.actions,
  frame: s.frame,
});

/** Limits of the policy's own `type`, for the recorder of a person's input. */
export const segmentOptions = (policy: PolicyKind): SegmentOptions =>
  traitsOf(policy).types === 'line' ? { enter: 'end', tab: 'own' } : {};
