import {
  StudioError,
  isTerminal,
  toRunError,
  type Action,
  type TokenTrace,
  type ControlState,
  type ControlVerdict,
  type InputEvent,
  type Trajectory,
  ServiceError,
} from '../domain/index.js';
import { deferred, type Deferred } from '../concurrency/deferred.js';
import type { SchedulerEvent } from '../rollout/types.js';
import type { HumanStep, Person, Proposed, Turn, TurnEnd } from '../rollout/steering.js';
import type { HeldRollout } from '../run/runAccess.js';
import { HumanInputRecorder } from './humanInputRecorder.js';
import type { SegmentOptions } from './segment.js';
import { ControlSession, type SessionFacts, type SessionHost } from './controlSession.js';

/** A person steers a rollout: it waits for them at each of its decisions. */
export class TakeOverSession extends ControlSession {
  readonly purpose: ControlState['purpose'] = 'takeOver';
  readonly #r: HeldRollout;
  readonly #recorder: HumanInputRecorder;
  readonly #unsubscribe: (() => void)[];
  readonly #ended = deferred<void>();
  /** The mode that the person wants from the next decision on. */
  #wantedMode: 'human' | 'step' | 'policy';
  /** The present turn of the person, how it will end, and who waits for one to begin. */
  #turn: { readonly t: Turn; readonly end: Deferred<TurnEnd> } | undefined;
  #begun = deferred<void>();
  readonly #hasTurn = deferred<boolean>();
  #consent: Deferred<boolean> | undefined;
  /** The policy carries out what was accepted, or acts by itself: no input. */
  #policyActs = true;
  /** The person does something instead of what is proposed, or about to be. */
  #overriding = false;
  /** Done before the turn it belongs to began. */
  #earlySteps: HumanStep[] = [];
  #proposals = 0;
  #turnsLeft: number;
  #finishing: Promise<void> | undefined;
  #fault: { readonly error: unknown } | undefined;

  constructor(
    host: SessionHost,
    facts: SessionFacts,
    r: HeldRollout,
    o: { readonly mode: 'human' | 'step' | 'policy'; readonly segment: SegmentOptions },
  ) {
    super(host, facts);
    this.#r = r;
    this.#wantedMode = o.mode;
    this.rollout = r.order.rollout;
    this.steps = [...r.steps];
    this.#turnsLeft = r.order.cap - r.steps.filter((s) => s.origin === 'policy').length;
    this.#recorder = new HumanInputRecorder({
      desktop: r.desktop,
      frames: r.frames,
      clock: host.clock,
      settle: r.settle,
      segment: o.segment,
      onStep: (s) => {
        if (this.#turn && !this.#turn.end.settled) this.#turn.t.record(s);
        else this.#earlySteps.push(s);
      },
      onDoing: (what) => {
        if (this.doing !== what) {
          this.doing = what;
          this.changed();
        }
      },
      onBegin: () => {
        this.#overridden();
      },
      onFault: (e) => {
        this.#failed(e);
      },
    });
    this.#unsubscribe = [
      r.onEvent((e) => {
        this.#onRollout(e);
      }),
      r.desktop.onEvent((e) => {
        if (e.type === 'lost') this.#failed(new StudioError(e.error.kind, e.error.message, e.error.remedy));
      }),
    ];
    if (o.mode === 'policy') return;
    r.steering.person = this.#person;
    r.hold(true);
  }

  /** True as soon as the person has a turn, false when the rollout was over or anybody else's before. */
  get taken(): Promise<boolean> {
    return this.#hasTurn.promise;
  }

  // what the rollout asks

  readonly #person: Person = { act: (t) => this.#act(t), consent: (p) => this.#propose(p) };

  async #act(t: Turn): Promise<TurnEnd> {
    this.#policyActs = false;
    this.#turnsLeft = t.left;
    this.#clearProposal();
    const turn = (this.#turn = { t, end: deferred<TurnEnd>() }),
      stopped = (): void => {
        turn.end.resolve({ next: 'policy' });
      };
    t.signal.addEventListener('abort', stopped, { once: true });
    try {
      if (this.#fault) throw this.#fault.error;
      // The person wants to step through proposals, but the policy has no turn left here: wait for the next rollout.
      if (this.#wantedMode === 'step' && t.left <= 0 && !this.#hasTurn.settled) {
        this.#leave();
        return await turn.end.promise;
      }
      for (const s of this.#earlySteps.splice(0)) t.record(s);
      await this.#recorder.begin();
      if (this.#wantedMode === 'step' && t.left <= 0) this.#wantedMode = 'human';
      if (this.#wantedMode !== 'policy') this.mode = this.#wantedMode;
      this.changed();
      this.#begun.resolve();
      this.#hasTurn.resolve(true);
      void this.#goOn(turn.end);
      const end = await turn.end.promise;
      if (end.next !== 'propose') {
        // What the person has begun becomes a step, and keys and buttons are released before somebody else acts.
        await this.#recorder.complete();
        this.#policyActs = true;
      }
      return end;
    } finally {
      t.signal.removeEventListener('abort', stopped);
      this.#begun = deferred();
      this.#overriding = false;
      for (const s of this.#earlySteps.splice(0)) t.record(s);
      this.#turn = undefined;
    }
  }

  /** Ends a turn that needs no further input: the policy continues, or is to propose. */
  async #goOn(end: Deferred<TurnEnd>): Promise<void> {
    if (this.#finishing) return;
    if (this.#wantedMode === 'policy') end.resolve({ next: 'policy' });
    else if (this.#wantedMode === 'step') {
      // The person's own actions are done first.
      try {
        await this.#recorder.idle();
      } catch (e) {
        end.reject(e);
        return;
      }
      if (!end.settled && !this.#finishing && this.#turn?.end === end) {
        if (this.#wantedMode === 'step') end.resolve({ next: 'propose' });
        else await this.#goOn(end);
      }
    }
  }

  async #propose(p: Proposed): Promise<boolean | 'unseen'> {
    if (this.#wantedMode === 'policy') {
      this.#policyActs = true;
      return true;
    }
    if (this.#overriding || this.#finishing || this.#wantedMode === 'human') return 'unseen';
    const { decision: d } = p,
      probability = d.tokens && probabilityOf(d.tokens),
      answer = (this.#consent = deferred<boolean>()),
      stopped = (): void => {
        answer.resolve(false);
      };
    this.proposal = {
      id: ++this.#proposals,
      actions: d.actions,
      thought: d.thought,
      probability,
      labels: d.labels,
    };
    this.#turnsLeft = p.left;
    this.proposed(p);
    this.changed();
    p.signal.addEventListener('abort', stopped, { once: true });
    try {
      const yes = await answer.promise;
      if (yes) {
        this.#policyActs = true;
        await this.#recorder.complete();
      }
      return yes;
    } finally {
      p.signal.removeEventListener('abort', stopped);
      this.#consent = undefined;
      this.#clearProposal();
      this.changed();
    }
  }

  // what the person asks

  async input(events: readonly InputEvent[]): Promise<void> {
    this.inControl('human', 'step');
    // While the policy carries out an accepted proposal, input waits: it takes a moment.
    if (this.#policyActs) await Promise.race([this.#begun.promise, this.#ended.promise]);
    this.inControl('human', 'step');
    await this.#recorder.input(events);
  }
  async act(action: Action): Promise<void> {
    this.inControl('human', 'step');
    if (isTerminal(action)) return this.finish({ action });
    if (this.#policyActs) await Promise.race([this.#begun.promise, this.#ended.promise]);
    this.inControl('human', 'step');
    await this.#recorder.act(action);
  }

  setMode(mode: 'human' | 'policy' | 'step'): Promise<void> {
    this.inControl('human', 'step', 'policy', 'starting');
    if (this.#finishing) this.inControl();
    if (mode === 'step' && this.#turn && this.#turn.t.left <= 0) return Promise.reject(noTurnLeft());
    this.#wantedMode = mode;
    if (mode === 'policy') {
      this.mode = 'policy';
      this.#r.steering.person = undefined;
      this.#r.hold(false);
      this.#consent?.resolve(true);
      this.#turn?.end.resolve({ next: 'policy' });
    } else {
      this.#r.steering.person = this.#person;
      this.#r.hold(true);
      if (this.#turn && !this.#turn.end.settled) {
        this.mode = mode;
        void this.#goOn(this.#turn.end);
      } else if (this.mode === 'policy') this.mode = 'starting';
      else if (this.mode === 'step' && mode === 'human') {
        this.#consent?.resolve(false);
        this.mode = 'human';
      }
    }
    this.changed();
    return Promise.resolve();
  }

  accept(proposal: number): Promise<void> {
    this.inControl('step');
    if (!this.#consent || this.proposal?.id !== proposal)
      return Promise.reject(
        new ServiceError('params.invalid', 'This proposal is no longer open.', 'Answer the one that is shown now.'),
      );
    this.#clearProposal();
    this.#consent.resolve(true);
    this.changed();
    return Promise.resolve();
  }

  finish(how: { readonly failed?: boolean | undefined; readonly action?: Action }): Promise<void> {
    this.inControl('human', 'step');
    return (this.#finishing ??= (async () => {
      const last = how.action ?? (how.failed ? { type: 'fail' as const } : { type: 'finished' as const });
      this.#consent?.resolve(false);
      await Promise.race([this.#turn ? undefined : this.#begun.promise, this.#ended.promise]);
      const turn = this.#turn;
      if (turn && !turn.end.settled) {
        try {
          await this.#recorder.act(last);
        } catch (e) {
          turn.end.reject(e);
        }
        this.mode = 'verifying';
        this.changed();
        turn.end.resolve({ next: 'end', last });
      }
      await this.#ended.promise;
    })());
  }
  async discard(): Promise<void> {
    if (!this.over) {
      if (!this.#finishing) await this.#handBack();
      else await this.#finishing;
    }
    this.#leave();
    this.host.forget(this);
  }

  protected override left(): number | undefined {
    if (this.mode === 'ended' || this.mode === 'verifying') return undefined;
    return this.mode === 'human' && this.#turnsLeft > 0 ? undefined : this.#turnsLeft;
  }
  protected async letGo(): Promise<void> {
    if (!this.#policyActs && !this.over) await this.#recorder.complete();
  }
  protected async abandoned(): Promise<void> {
    if (!this.over && !this.#finishing) await this.#handBack();
    this.#leave();
    this.host.forget(this);
  }

  async #handBack(): Promise<void> {
    if (this.mode !== 'policy' && this.mode !== 'verifying' && this.mode !== 'ended') await this.setMode('policy');
  }

  /** Something was begun by hand: what is proposed, or being decided, is not what happens. */
  #overridden(): void {
    if (this.#turn && !this.#turn.end.settled) return;
    this.#overriding = true;
    this.#consent?.resolve(false);
    this.#clearProposal();
    this.changed();
  }
  #clearProposal(): void {
    this.proposal = undefined;
  }

  #onRollout(e: SchedulerEvent): void {
    if (e.type === 'step' && e.rollout === this.rollout) {
      this.steps = [...this.steps, e.step];
      if (e.step.origin === 'policy') this.#turnsLeft--;
      this.changed();
    } else if (e.type === 'lane' && e.rollout === this.rollout) {
      if (e.phase === 'verify') this.mode = 'verifying';
      // Nobody was waited for: the desktop is prepared, and the policy acts.
      else if (e.phase === 'observe' && this.mode === 'starting' && this.#wantedMode === 'policy') this.mode = 'policy';
      else return;
      this.changed();
    } else if (e.type === 'ended' && e.trajectory.id === this.rollout) {
      this.verdict = this.verdictOn(e.trajectory);
      this.steps = [...e.trajectory.steps];
      this.#leave();
    }
  }
  /** The verdict on a trajectory; undefined where nobody has judged yet. */
  protected verdictOn({ outcome: o }: Trajectory): ControlVerdict | undefined {
    return o.kind === 'error'
      ? { outcome: 'error', error: o.error }
      : { outcome: o.kind, reward: o.reward, report: o.report };
  }
  /** The policy would do this next, with the person's consent. */
  protected proposed(_: Proposed): void {
    // The proposal itself is all that is told.
  }
  #failed(error: unknown): void {
    // A look may fail when the session has ended: its desktop may be gone by now.
    if (this.over) return;
    this.#fault ??= { error };
    this.error ??= toRunError(error);
    this.#turn?.end.reject(error);
    this.#consent?.resolve(false);
    this.changed();
  }
  /** Lets go of the rollout, when it is over or handed back. */
  #leave(): void {
    if (this.#r.steering.person === this.#person) this.#r.steering.person = undefined;
    for (const off of this.#unsubscribe.splice(0)) off();
    this.#r.hold(false);
    this.#turn?.end.resolve({ next: 'policy' });
    this.#ended.resolve();
    this.#hasTurn.resolve(false);
    void this.#recorder.close();
    this.end();
  }
}

/** The error for a policy without turns: a proposal needs one, and the rollout would end at its cap. */
const noTurnLeft = (): ServiceError =>
  new ServiceError(
    'params.invalid',
    'The policy has no steps left in this rollout.',
    'Finish it yourself, or hand it back: then it is judged as it is.',
  );

/** Probability of a sampled decision, token by token: exp of the sum of its log-probs. */
export const probabilityOf = (t: TokenTrace): number => Math.min(1, Math.exp(t.logprobs.reduce((a, b) => a + b, 0)));
