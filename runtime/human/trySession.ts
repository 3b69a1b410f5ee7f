import {
  ServiceError,
  messageOf,
  type ControlVerdict,
  type FrameRef,
  type Outcome,
  type Step,
  type Trajectory,
  type ControlState,
  type Trial,
} from '../domain/index.js';
import type { Proposed } from '../rollout/steering.js';
import type { SessionFacts, SessionHost } from './controlSession.js';
import { Keeping, type KeepingDeps, type KeepRequest } from './keeping.js';
import type { SegmentOptions } from './segment.js';
import { TakeOverSession } from './takeOver.js';
import { sound, type StepEvent, type TryRollout } from './tryRollout.js';

/** A session in which nobody does anything gives its desktop back after this long. */
export const IDLE_MS = 10 * 60_000;

export interface TryDeps {
  readonly trial: Omit<Trial, 'stopped'>;
  readonly segment: SegmentOptions;
  /** `policy`: it begins by itself. `step`: it asks before each step. */
  readonly mode: 'policy' | 'step';
  readonly keeping: KeepingDeps;
  /** The row of the desktop: `left` steps have been made. */
  readonly onSteps: (made: number) => void;
  /** Desktop and policy end. */
  readonly close: () => Promise<void>;
  /** Called when nobody can look at its screens any more. */
  readonly forget: () => void;
}
/** A decision that also says how the try ended, where no verifier does. */
export interface TryKeepRequest extends KeepRequest {
  readonly verdict?: 'success' | 'failure' | undefined;
}
/** The policy's next actions, not yet a step. */
export interface ProposedStep {
  readonly id: number;
  readonly decision: Proposed['decision'];
}

/**
 * A person tries a policy: it acts on a desktop of its own, waits, is taken over and goes on like a rollout of a run,
 * belongs to none, and is recorded when the person says so.
 */
export class TrySession extends TakeOverSession {
  override readonly purpose = 'try' as const;
  readonly #r: TryRollout;
  readonly #d: TryDeps;
  readonly #keeping: Keeping;
  #trajectory: Trajectory | undefined;
  #running: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #decision: Proposed['decision'] = { actions: [] };
  #stopIdle: () => void = () => undefined;

  constructor(host: SessionHost, facts: SessionFacts, r: TryRollout, d: TryDeps) {
    super(host, facts, r, { mode: d.mode, segment: d.segment });
    this.#r = r;
    this.#d = d;
    this.#keeping = new Keeping(d.keeping);
    r.onEvent((e) => {
      if (e.type !== 'step') return;
      d.onSteps(this.steps.length);
      this.#awake();
    });
  }

  /** Begins the episode; returns at once. */
  begin(): void {
    this.#awake();
    this.#running ??= this.#r
      .run()
      .then((t) => {
        this.#trajectory = t;
      })
      .catch((e: unknown) => {
        this.host.log('warn', `An episode of a policy that is tried failed: ${messageOf(e)}`);
      })
      .finally(() => this.#close());
  }
  /** Resolves when its desktop is gone. */
  async closed(): Promise<void> {
    await this.#running;
    await this.#close();
  }

  override state(): ControlState {
    return { ...super.state(), trial: { ...this.#d.trial, stopped: this.#r.stopped } };
  }
  /** Steps from `from` on, with what the policy said of them. */
  said(from: number): readonly StepEvent[] {
    return this.#r.said(from);
  }
  /** The screen after its last step, where one was taken. */
  last(e: StepEvent): FrameRef | undefined {
    return e.step.index === (this.#trajectory?.steps.length ?? 0) - 1 ? this.#trajectory?.last : undefined;
  }
  /** The proposal that waits for consent; undefined when there is none. */
  asked(): ProposedStep | undefined {
    return this.proposal && { id: this.proposal.id, decision: this.#decision };
  }

  override touch(): void {
    super.touch();
    this.#awake();
  }
  /** Restarts the time until the desktop is given back. */
  #awake(): void {
    this.#stopIdle();
    if (this.over || this.#closing) return;
    this.#stopIdle = this.host.clock.after(IDLE_MS, () => {
      this.error ??= {
        kind: 'timeout',
        message: `Nothing was done for ${IDLE_MS / 60_000} minutes, so the desktop was released.`,
        remedy: 'What was recorded can be kept; try the policy again to continue.',
      };
      this.#r.stop();
    });
  }

  /** Ends it now. No verifier looks: whoever watched says how it went. */
  async stop(): Promise<void> {
    if (this.over) return;
    this.#r.stop();
    await this.closed();
  }

  /** Once it is over. */
  async keep(p: TryKeepRequest): Promise<void> {
    Keeping.check(p);
    const t = this.#trajectory;
    if (!t || !this.over)
      throw new ServiceError('params.invalid', 'The policy is still acting.', 'Stop it first, or wait until it ends.');
    if (!sound(t) || t.steps.length === 0)
      throw new ServiceError(
        'params.invalid',
        t.steps.length === 0
          ? 'There is nothing to keep: no step was taken.'
          : 'There is nothing to keep: it ended with an error, which says nothing about the policy.',
        'Try the policy again.',
      );
    const judged = this.#judged(p);
    try {
      await this.#keeping.keep({ ...t, outcome: outcomeOf(t, judged) }, p);
    } finally {
      this.kept = this.#keeping.kept;
      // Until the try is recorded the person may choose another verdict.
      if (this.kept) this.verdict = judged;
      this.changed();
    }
  }
  /** The verifier's or what is recorded, else what the person says. */
  #judged({ verdict }: TryKeepRequest): KeptVerdict {
    const judged = this.verdict ?? personSays(verdict);
    if (judged === undefined || judged.outcome === 'error' || judged.reward === undefined)
      throw new ServiceError(
        'params.invalid',
        'Nobody has said whether it succeeded.',
        'Say whether it did what was asked, then keep it.',
      );
    return { ...judged, outcome: judged.outcome, reward: judged.reward };
  }

  override async discard(): Promise<void> {
    this.#r.stop();
    await this.closed();
    await this.#keeping.discard();
    this.kept = this.#keeping.kept;
    this.end();
    this.#forget();
  }
  protected override async abandoned(): Promise<void> {
    this.#r.stop();
    await this.closed();
    this.end();
    this.#forget();
  }
  #forget(): void {
    this.host.forget(this);
    this.#d.forget();
  }
  #close(): Promise<void> {
    this.#stopIdle();
    return (this.#closing ??= this.#d.close().catch((e: unknown) => {
      this.host.log('warn', `A desktop on which a policy was tried did not end: ${messageOf(e)}`);
    }));
  }

  protected override verdictOn(t: Trajectory): ControlVerdict | undefined {
    if (this.#r.stopped || (t.outcome.kind !== 'error' && !this.#d.trial.verified && !invalid(t))) return undefined;
    return super.verdictOn(t);
  }
  protected override proposed(p: Proposed): void {
    this.#decision = p.decision;
  }
}

type KeptVerdict = ControlVerdict & { readonly outcome: 'success' | 'failure'; readonly reward: number };
const outcomeOf = (t: Trajectory, { outcome, reward, report }: KeptVerdict): Outcome => ({
  kind: outcome,
  reward,
  truncated: t.outcome.kind === 'error' ? false : t.outcome.truncated,
  report,
});

/** The policy failed by itself, whatever was asked: twice in a row its answer held no action. */
const invalid = (t: Trajectory): boolean => {
  const last: Step | undefined = t.steps.at(-1);
  return last?.origin === 'policy' && last.actions.length === 0;
};
const personSays = (verdict: 'success' | 'failure' | undefined): ControlVerdict | undefined =>
  verdict && {
    outcome: verdict,
    reward: verdict === 'success' ? 1 : 0,
    report: {
      checks: [
        {
          what: 'the person who tried it',
          expected: 'says that it did what was asked',
          found: verdict === 'success' ? 'says so' : 'says that it did not',
          score: verdict === 'success' ? 1 : 0,
        },
      ],
    },
  };
