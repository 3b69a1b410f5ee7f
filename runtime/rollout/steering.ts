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
   * Fires when the rollout is stopped; what was asked must then answer as soon as nothing runs on the desktop any more.
   */
  readonly signal: AbortSignal;
}
/** The desktop is the person's until `act` resolves. */
export interface Turn extends Moment {
  /** A step that is complete. */
  record(step: HumanStep): void;
}
/**
 * - policy: it goes on by itself, and asks again at its next decision if the person still holds it
 * - propose: it decides and asks for consent
 * - end: as if the policy had ended it with `last`; the verifier judges
 */
export type TurnEnd = { readonly next: 'policy' | 'propose' } | { readonly next: 'end'; readonly last: Action };
/** What the policy would do; without actions when its answer was none, twice. */
export interface Proposed extends Moment {
  readonly decision: Partial<Decision> & Pick<Decision, 'actions'>;
}

/** Who steers a rollout. What it rejects with is the rollout's outcome. */
export interface Person {
  /**
   * Asked whenever the rollout comes to a decision. Nothing else runs on its desktop meanwhile, and its time limit
   * stands still.
   */
  act(turn: Turn): Promise<TurnEnd>;
  /**
   * True: exactly this decision is carried out, as the policy's own step. False: it is forgotten, and `act` is asked.
   */
  consent(p: Proposed): Promise<boolean>;
}

/** Who steers one rollout: a person set here acts from its next decision on, until removed. */
export class Steering {
  person: Person | undefined;
}
