import type { Action, Step } from '../domain/index.js';
import type { Decision } from '../policy/types.js';

/** A step as a person did it; the rollout numbers it. It has no tokens and no version: nothing was sampled. */
export type HumanStep = Omit<Step, 'index' | 'origin' | 'tokens' | 'version'>;

interface Moment {
  /** Number of the step to come. */
  readonly index: number;
  /** Turns the policy has left: the cap counts the policy's turns alone, so a person's steps use none up. */
  readonly left: number;
  /**
   * Fires when the rollout is stopped; the pending `act` or `consent` must then settle as soon as nothing runs on the
   * desktop.
   */
  readonly signal: AbortSignal;
}
/** The person controls the desktop until `act` resolves. */
export interface Turn extends Moment {
  /** A step that is complete. */
  record(step: HumanStep): void;
}
/**
 * - policy: the policy continues, and the person is asked again at its next decision if they still hold it
 * - propose: the policy decides and asks for consent
 * - end: as if the policy had ended the episode with `last`; the verifier judges
 */
export type TurnEnd = { readonly next: 'policy' | 'propose' } | { readonly next: 'end'; readonly last: Action };
/** What the policy would do; `actions` is empty when it gave two invalid answers. */
export interface Proposed extends Moment {
  readonly decision: Partial<Decision> & Pick<Decision, 'actions'>;
}

/** Who steers a rollout. A rejection becomes the rollout's outcome. */
export interface Person {
  /**
   * Called whenever the rollout needs a decision. Nothing else runs on its desktop meanwhile, and its time limit is
   * suspended.
   */
  act(turn: Turn): Promise<TurnEnd>;
  /**
   * True: exactly this decision is carried out, as the policy's own step. False: the person declined it, or `unseen`: they
   * act before it was shown to them; it is discarded, and `act` is called.
   */
  consent(p: Proposed): Promise<boolean | 'unseen'>;
}

/** Who steers one rollout: a person set here acts from the next decision on, until removed. */
export class Steering {
  person: Person | undefined;
}
