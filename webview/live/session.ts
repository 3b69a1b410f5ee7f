/** A person at the desktop: what the session is, what can be done in it, and in which words the page says so. Pure. */
import type { ControlState, ControlStep } from '../../runtime/protocol/types.js';
import type { DaemonState } from '../protocol.js';
import { actionsWords } from '../ui/actions.js';
import { percent } from '../ui/format.js';
import { t, whole } from '../ui/words.js';
import type { State, Words } from './state.js';

/** What the page knows beside the state itself. `discarded`: by this page; the state does not say it. */
export interface Standing {
  readonly daemon: DaemonState;
  readonly discarded?: boolean;
  /** The runtime does not know the session any more. */
  readonly forgotten?: boolean;
}
export interface SessionWords extends Words {
  readonly tone: 'good' | 'bad' | 'plain';
}

const words = (
  icon: string,
  word: string,
  says: string,
  tone: SessionWords['tone'] = 'plain',
  still = false,
): SessionWords => ({ icon, word, says, tone, still });

/** Which state it is in, and what happens next. */
export function sessionWords(c: ControlState, s: Standing): SessionWords {
  const record = c.purpose === 'record';
  if (c.mode !== 'ended' && !s.forgotten) {
    if (s.daemon === 'reconnecting' || s.daemon === 'starting' || s.daemon === 'attaching')
      return words(
        'sync',
        t('Connection lost'),
        record
          ? t('Trying again. The desktop is kept for a minute; then the recording is given up.')
          : t('Trying again. The desktop is kept for a minute; then the policy goes on.'),
        'bad',
        true,
      );
    if (s.daemon !== 'ready')
      return words(
        'debug-disconnect',
        t('Runtime stopped'),
        record
          ? t('The desktop is gone, and the recording with it. Start the runtime and record again.')
          : t('The desktop is gone. The rollout is tried again when the run is resumed.'),
        'bad',
        true,
      );
  }
  if (s.forgotten)
    return words(
      'debug-stop',
      t('Over'),
      record
        ? t(
            'The runtime does not know this recording any more. What was kept is in the run; everything else is gone. Record again.',
          )
        : t('The runtime does not know this session any more: the rollout went on or ended without you.'),
      'bad',
      true,
    );
  switch (c.mode) {
    case 'starting':
      return words(
        'loading',
        t('Getting ready'),
        record
          ? t('A fresh desktop is set up for the task. It is yours as soon as its screen is at rest.')
          : t('The rollout comes to a stop before its next step. Then the desktop is yours.'),
      );
    case 'human':
      return words(
        'person',
        t('You are in control'),
        record
          ? t(
              'Do the task on the picture, then press Finish: the verifier judges, and a success joins the experience pool.',
            )
          : t('The rollout waits for you. Act on the picture; Hand Back lets the policy go on from there.'),
        'good',
      );
    case 'policy':
      return words(
        'hubot',
        t('The policy acts'),
        t('It goes on by itself. Pause gives you the desktop before its next step.'),
      );
    case 'step':
      return c.proposal
        ? words(
            'question',
            t('The policy asks'),
            t('Enter carries out what is drawn on the screen. Whatever you do on the picture is done instead.'),
            'good',
          )
        : c.doing !== undefined
          ? words(
              'person',
              t('You act instead'),
              t('When your action is complete the policy proposes the next one.'),
              'good',
            )
          : words(
              'lightbulb',
              t('The policy decides'),
              t('What it would do next will be drawn on the screen and wait for you.'),
            );
    case 'verifying':
      return words(
        'checklist',
        t('Verifying'),
        t('The verifier looks whether the task is done. Its report comes next.'),
      );
    case 'ended':
      return endWords(c, s, record);
  }
}
function endWords(c: ControlState, s: Standing, record: boolean): SessionWords {
  const v = c.verdict;
  if (s.discarded || c.kept?.why === 'discarded')
    return words(
      'trash',
      t('Discarded'),
      c.kept ? t('It left the experience pool and is tagged “discarded”.') : t('Nothing was kept.'),
      'plain',
      true,
    );
  if (c.error && (!v || v.outcome === 'error'))
    return words(
      'warning',
      c.error.kind === 'desktop.lost' ? t('Desktop lost') : t('Ended by a fault'),
      [
        c.error.message,
        c.error.remedy,
        record ? t('Nothing of it was kept. Record again.') : t('The rollout is tried again; a fault has no reward.'),
      ]
        .filter(Boolean)
        .join(' '),
      'bad',
      true,
    );
  if (c.abandonedAt !== undefined && !v)
    return words(
      'debug-disconnect',
      t('Given up'),
      record
        ? t('No window showed it for a minute, so the recording was discarded. Record again.')
        : t('No window showed it for a minute, so the policy went on.'),
      'bad',
      true,
    );
  if (!v)
    return record
      ? words('trash', t('Ended'), t('Nothing was kept.'), 'plain', true)
      : words('debug-stop', t('Ended'), t('The rollout is over, or the policy goes on without you.'), 'plain', true);
  if (v.outcome === 'error')
    return words(
      'warning',
      t('Could not be judged'),
      [
        v.error?.message,
        v.error?.remedy,
        t('A fault has no reward.'),
        record ? t('Nothing of it was kept. Record again.') : '',
      ]
        .filter(Boolean)
        .join(' '),
      'bad',
      true,
    );
  const success = v.outcome === 'success',
    word = success ? t('Success') : t('Not solved'),
    icon = success ? 'pass-filled' : 'error',
    tone = success ? ('good' as const) : ('bad' as const);
  if (!record)
    return words(
      icon,
      word,
      t('The rollout is recorded. Your steps are only ever imitated; those of the policy are trained as usual.'),
      tone,
      true,
    );
  if (c.error)
    return words(
      icon,
      word,
      t('It could not be written down: {0} {1} Keep tries again.', c.error.message, c.error.remedy),
      'bad',
      true,
    );
  if (!c.kept)
    return words(
      icon,
      word,
      success
        ? t('It is not kept.')
        : t('Choose what becomes of it: keep it out of the pool, add it all the same with a reason, or discard it.'),
      tone,
      true,
    );
  const why = c.kept.why?.replace(/\.$/, '');
  return words(
    icon,
    word,
    c.kept.pooled
      ? success
        ? t('Kept, and in the experience pool: training may learn from it.')
        : why
          ? t('Kept, and in the experience pool: {0}.', why)
          : t('Kept, and in the experience pool with your reason.')
      : why
        ? t('Kept, not in the experience pool: {0}.', why)
        : t('Kept, not in the experience pool.'),
    tone,
    true,
  );
}

/** Why a person cannot take this desktop now; undefined when it can be. */
export function whyNotTakeOver(s: State): string | undefined {
  if (s.daemon !== 'ready') return t('The runtime cannot be reached');
  if (s.gone) return t('The desktop is gone');
  const r = s.row;
  if (!r) return t('Nothing is known of the desktop yet');
  if (r.state === 'broken' || r.state === 'stopped') return t('The desktop has stopped');
  if (!r.rollout || r.state === 'idle') return t('No rollout is under way on it');
  if (r.state === 'starting' || r.state === 'resetting') return t('The desktop is still being prepared');
  return r.state === 'verify' ? t('The rollout is over: its verifier is at work') : undefined;
}

/** It cannot be taken now, and will be: rollouts are short, and nobody can wait with a finger on the key. */
export const takesOverSoon = (s: State): boolean =>
  s.daemon === 'ready' &&
  !s.gone &&
  s.row !== undefined &&
  s.row.state !== 'broken' &&
  s.row.state !== 'stopped' &&
  whyNotTakeOver(s) !== undefined;

/** Whether the picture is a person's to work on. */
export const mayAct = (c: ControlState | undefined, s: Standing): boolean =>
  c !== undefined && !s.forgotten && !s.discarded && s.daemon === 'ready' && (c.mode === 'human' || c.mode === 'step');

export type Deed =
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
  | 'accept';
/**
 * What the panel offers; a value says why it cannot be done now, undefined that it can. Deeds that make no sense are
 * absent.
 */
export function deeds(c: ControlState, s: Standing): ReadonlyMap<Deed, string | undefined> {
  const out = new Map<Deed, string | undefined>();
  if (s.forgotten || s.discarded || c.mode === 'ended') return out;
  const off = s.daemon === 'ready' ? undefined : t('The runtime cannot be reached');
  const person =
    off ??
    (
      {
        starting: t('The desktop is not ready yet'),
        verifying: t('The verifier is at work'),
        policy: t('The policy acts'),
        step: undefined,
        human: undefined,
      } as const
    )[c.mode];
  if (c.purpose === 'takeOver') {
    const free = off ?? (c.mode === 'verifying' ? t('The verifier is at work') : undefined);
    if (c.mode === 'policy') out.set('pause', free);
    else if (c.mode === 'step') out.set('actYourself', free);
    if (c.mode !== 'policy') out.set('handBack', free);
    if (c.mode !== 'step') out.set('stepMode', free);
  }
  if (c.mode === 'step') out.set('accept', off ?? (c.proposal ? undefined : t('There is no proposal yet')));
  if (c.mode === 'policy') return out;
  out.set('finish', person);
  out.set('wait', person);
  out.set('cannot', person);
  out.set('answer', person);
  if (c.purpose !== 'record') return out;
  out.set('drop', person ?? (c.steps.length ? undefined : t('No step is recorded yet')));
  out.set('discard', off ?? (c.mode === 'verifying' ? t('The verifier is at work') : undefined));
  return out;
}

export const originWords: Readonly<Record<ControlStep['origin'], string>> = { human: t('human'), policy: t('policy') };
export const originIcons: Readonly<Record<ControlStep['origin'], string>> = { human: 'person', policy: 'hubot' };
export const recordedWords = (s: ControlStep): string =>
  t('Step {0}, {1}: {2}', s.index + 1, originWords[s.origin], actionsWords(s.actions));
/** "click at 194,154 · 78 %" */
export const proposalWords = (p: NonNullable<ControlState['proposal']>): string =>
  [actionsWords(p.actions), p.probability === undefined ? '' : percent(p.probability)].filter(Boolean).join(' · ');
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
  /** It is on the screen since `now`, on the page's clock. */
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
