/** A control session, a person at the desktop: what is known of it, and what can be done in it. Pure. */
import type { ControlState, ControlStep } from '../../runtime/protocol/types.js';
import type { DaemonState } from '../protocol.js';
import { actionsWords } from '../ui/actions.js';
import { percent } from '../ui/format.js';
import { steps, t, whole } from '../ui/words.js';
import type { State } from './state.js';

/** The page's knowledge besides the session's state. `discarded`: by this page, which the state does not tell. */
export interface PageKnowledge {
  readonly daemon: DaemonState;
  readonly discarded?: boolean;
  /** The runtime no longer knows the session. */
  readonly forgotten?: boolean;
}
/** Why a person cannot take this desktop now; undefined when it can be. */
export function takeOverRefusal(s: State): string | undefined {
  if (s.daemon !== 'ready') return t('The runtime cannot be reached');
  if (s.gone) return t('The desktop is gone');
  const r = s.row;
  if (!r) return t('Nothing is known about the desktop yet');
  if (r.state === 'broken' || r.state === 'stopped') return t('The desktop has stopped');
  if (!r.rollout || r.state === 'idle') return t('No rollout is running on it');
  if (r.state === 'starting' || r.state === 'resetting') return t('The desktop is still being prepared');
  return r.state === 'verify' ? t('The rollout has ended: its verifier is running') : undefined;
}

/** Whether a take-over must wait but comes soon: rollouts are short, so the request is kept until it can be granted. */
export const takesOverSoon = (s: State): boolean =>
  s.daemon === 'ready' &&
  !s.gone &&
  s.row !== undefined &&
  s.row.state !== 'broken' &&
  s.row.state !== 'stopped' &&
  takeOverRefusal(s) !== undefined;

/** Whether the picture is a person's to work on. */
export const mayAct = (c: ControlState | undefined, s: PageKnowledge): boolean =>
  c !== undefined && !s.forgotten && !s.discarded && s.daemon === 'ready' && (c.mode === 'human' || c.mode === 'step');

export type SessionAction =
  | 'finish'
  | 'wait'
  | 'cannot'
  | 'answer'
  | 'drop'
  | 'discard'
  | 'handBack'
  | 'pause'
  | 'stepMode'
  | 'actYourself'
  | 'accept'
  | 'stop';
/**
 * The panel's actions; a value says why one cannot be done now, undefined that it can. Actions that make no sense are
 * absent.
 */
export function sessionActions(c: ControlState, s: PageKnowledge): ReadonlyMap<SessionAction, string | undefined> {
  const out = new Map<SessionAction, string | undefined>();
  if (s.forgotten || s.discarded || c.mode === 'ended') return out;
  const off = s.daemon === 'ready' ? undefined : t('The runtime cannot be reached');
  const person =
    off ??
    (
      {
        starting: t('The desktop is not ready yet'),
        verifying: t('The verifier is running'),
        policy: t('The policy acts'),
        step: undefined,
        human: undefined,
      } as const
    )[c.mode];
  if (c.purpose !== 'record') {
    const free = off ?? (c.mode === 'verifying' ? t('The verifier is running') : undefined);
    if (c.mode === 'policy') out.set('pause', free);
    else if (c.mode === 'step') out.set('actYourself', free);
    if (c.mode !== 'policy') out.set('handBack', free);
    if (c.mode !== 'step') out.set('stepMode', free ?? (c.left === 0 ? t('The policy has no steps left') : undefined));
  }
  if (c.mode === 'step') out.set('accept', off ?? (c.proposal ? undefined : t('There is no proposal yet')));
  if (c.purpose === 'try') out.set('stop', off);
  if (c.mode === 'policy') return out;
  // Without a verifier nobody would judge the end: the session is stopped instead.
  const judged = c.trial?.verified !== false;
  if (judged) out.set('finish', person);
  out.set('wait', person);
  if (judged) {
    out.set('cannot', person);
    out.set('answer', person);
  }
  if (c.purpose !== 'record') return out;
  out.set('drop', person ?? (c.steps.length ? undefined : t('No step is recorded yet')));
  out.set('discard', off ?? (c.mode === 'verifying' ? t('The verifier is running') : undefined));
  return out;
}

export const originWords: Readonly<Record<ControlStep['origin'], string>> = { human: t('human'), policy: t('policy') };
export const originIcons: Readonly<Record<ControlStep['origin'], string>> = { human: 'person', policy: 'hubot' };
export const recordedWords = (s: ControlStep): string =>
  t('Step {0}, {1}: {2}', s.index + 1, originWords[s.origin], actionsWords(s.actions));
/** "click at 194,154 · 78 %" */
export const proposalWords = (p: NonNullable<ControlState['proposal']>): string =>
  [actionsWords(p.actions), p.probability === undefined ? '' : percent(p.probability)].filter(Boolean).join(' · ');
/** How many steps a session has: none may still come, or not. */
export const stepCount = (n: number, c: ControlState): string =>
  n > 0 ? steps(n) : c.mode === 'ended' ? t('No steps') : t('No step yet');
export const leftWords = (left: number): string => (left === 1 ? t('1 step left') : t('{0} steps left', whole(left)));

/**
 * When an Enter may accept: the proposal was on the screen long enough for eyes to have seen it; one pressed for the
 * last accepts nothing.
 */
export const seenAfterMs = 250;
export class ProposalWatch {
  #id: number | undefined;
  #since = Infinity;
  #answer: { readonly id: number; readonly how: 'accepted' | 'overridden' } | undefined;
  /** The state has this proposal; true when it is another one. */
  has(id: number | undefined): boolean {
    if (id === this.#id) return false;
    this.#id = id;
    this.#since = Infinity;
    return true;
  }
  /** Notes that the picture has been on the screen since `now`, on the page's clock. */
  drawn(now: number): void {
    if (this.#id !== undefined && this.#since === Infinity) this.#since = now;
  }
  answer(how: 'accepted' | 'overridden'): void {
    if (this.#id !== undefined && this.state === 'open') this.#answer = { id: this.#id, how };
  }
  /** An acceptance that failed: it may be tried again. */
  reopen(id: number): void {
    if (this.#answer?.id === id) this.#answer = undefined;
  }
  get state(): 'none' | 'open' | 'accepted' | 'overridden' {
    return this.#id === undefined ? 'none' : this.#answer?.id === this.#id ? this.#answer.how : 'open';
  }
  /**
   * Id to accept at `now`. `deliberate`: the button that says Accept, which may go back on an override that came to
   * nothing; the runtime knows.
   */
  acceptable(now: number, deliberate = false): number | undefined {
    const open = this.state === 'open' || (deliberate && this.state === 'overridden');
    return open && now - this.#since >= seenAfterMs ? this.#id : undefined;
  }
}
