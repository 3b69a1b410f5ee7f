/** Words for a control session: which state it is in, how it ended, and what happens next. Pure. */
import type { ControlState } from '../../runtime/protocol/types.js';
import type { DaemonState } from '../protocol.js';
import { t } from '../ui/words.js';
import type { PageKnowledge } from './session.js';
import { words, type SessionWords } from './saying.js';
import { trialWords } from './trialWords.js';

type Verdict = NonNullable<ControlState['verdict']>;
type ErrorInfo = NonNullable<ControlState['error']>;

/** Which state it is in, and what happens next. */
export function sessionWords(c: ControlState, s: PageKnowledge): SessionWords {
  if (c.purpose === 'try') return trialWords(c, s);
  const record = c.purpose === 'record',
    ended = c.mode === 'ended';
  if (s.forgotten) return forgottenWords(record);
  if (!ended && s.daemon !== 'ready') return disconnectedWords(s.daemon, record);
  return ended ? endWords(c, s, record) : modeWords(c, c.mode, record);
}
const forgottenWords = (record: boolean): SessionWords =>
  words(
    'debug-stop',
    t('Ended'),
    record
      ? t(
          'The runtime no longer has this recording. What was kept is in the run; everything else is gone. Record again.',
        )
      : t('The runtime no longer has this session: the rollout continued or ended without you.'),
    'bad',
    true,
  );
const disconnectedWords = (daemon: Exclude<DaemonState, 'ready'>, record: boolean): SessionWords =>
  daemon === 'reconnecting' || daemon === 'starting' || daemon === 'attaching'
    ? words(
        'sync',
        t('Connection lost'),
        record
          ? t('Reconnecting. The desktop is kept for a minute; then the recording is discarded.')
          : t('Reconnecting. The desktop is kept for a minute; then the policy continues.'),
        'bad',
        true,
      )
    : words(
        'debug-disconnect',
        t('Runtime stopped'),
        record
          ? t('The desktop is gone, and the recording with it. Start the runtime and record again.')
          : t('The desktop is gone. The rollout is retried when the run is resumed.'),
        'bad',
        true,
      );
function modeWords(c: ControlState, mode: Exclude<ControlState['mode'], 'ended'>, record: boolean): SessionWords {
  switch (mode) {
    case 'starting':
      return words(
        'loading',
        t('Preparing'),
        record
          ? t('A fresh desktop is being set up for the task. You can act as soon as its screen is at rest.')
          : t('The rollout pauses before its next step. Then you have the desktop.'),
      );
    case 'human':
      return words(
        'person',
        t('You are in control'),
        record
          ? t(
              'Do the task on the picture, then press Finish: the verifier judges it, and a success is added to the experience pool.',
            )
          : t('The rollout waits for you. Act on the picture. Choose Hand Back to let the policy continue from there.'),
        'good',
      );
    case 'policy':
      return words(
        'hubot',
        t('The policy acts'),
        t('It runs on its own. Choose Pause to take the desktop before its next step.'),
      );
    case 'step':
      return stepModeWords(c);
    case 'verifying':
      return words(
        'checklist',
        t('Verifying'),
        t('The verifier checks whether the task is done. Its report comes next.'),
      );
  }
}
function stepModeWords(c: ControlState): SessionWords {
  if (c.proposal)
    return words(
      'question',
      t('The policy asks'),
      t('Press Enter to execute the proposed action. Anything you do on the picture is done instead.'),
      'good',
    );
  return c.doing !== undefined
    ? words(
        'person',
        t('You act instead'),
        t('When your action is complete, the policy proposes the next one.'),
        'good',
      )
    : words(
        'lightbulb',
        t('The policy decides'),
        t('The next action it proposes will be drawn on the screen and wait for you.'),
      );
}

/** How a session ended: discarded, by a fault, given up, or with a verdict. */
function endWords(c: ControlState, s: PageKnowledge, record: boolean): SessionWords {
  const v = c.verdict;
  if (s.discarded || c.kept?.why === 'discarded')
    return words(
      'trash',
      t('Discarded'),
      c.kept ? t('It was removed from the experience pool and tagged “discarded”.') : t('Nothing was kept.'),
      'plain',
      true,
    );
  if (c.error && (!v || v.outcome === 'error')) return faultWords(c.error, record);
  if (!v) return unjudgedWords(c, record);
  if (v.outcome === 'error') return verifierErrorWords(v, record);
  return record ? demonstrationWords(c, v.outcome === 'success') : takeOverWords(v.outcome === 'success');
}
const faultWords = (error: ErrorInfo, record: boolean): SessionWords =>
  words(
    'warning',
    error.kind === 'desktop.lost' ? t('Desktop lost') : t('Ended with an error'),
    [
      error.message,
      error.remedy,
      record ? t('Nothing was kept. Record again.') : t('The rollout is retried; an error has no reward.'),
    ]
      .filter(Boolean)
      .join(' '),
    'bad',
    true,
  );
function unjudgedWords(c: ControlState, record: boolean): SessionWords {
  if (c.abandonedAt !== undefined)
    return words(
      'debug-disconnect',
      t('Given up'),
      record
        ? t('No window showed it for a minute, so the recording was discarded. Record again.')
        : t('No window showed it for a minute, so the policy continued.'),
      'bad',
      true,
    );
  return record
    ? words('trash', t('Ended'), t('Nothing was kept.'), 'plain', true)
    : words('debug-stop', t('Ended'), t('The rollout has ended, or the policy continues without you.'), 'plain', true);
}
const verifierErrorWords = (v: Verdict, record: boolean): SessionWords =>
  words(
    'warning',
    t('Could not be judged'),
    [
      v.error?.message,
      v.error?.remedy,
      t('An error has no reward.'),
      record ? t('Nothing was kept. Record again.') : '',
    ]
      .filter(Boolean)
      .join(' '),
    'bad',
    true,
  );
/** A verdict of success or failure: icon, word and tone. */
const judgedWords = (
  success: boolean,
  says: string,
  tone = success ? ('good' as const) : ('bad' as const),
): SessionWords => words(success ? 'pass-filled' : 'error', success ? t('Success') : t('Not solved'), says, tone, true);
const takeOverWords = (success: boolean): SessionWords =>
  judgedWords(
    success,
    t('The rollout is recorded. Your steps are only ever imitated; those of the policy are trained as usual.'),
  );
function demonstrationWords(c: ControlState, success: boolean): SessionWords {
  if (c.error)
    return judgedWords(
      success,
      t('It could not be saved: {0} {1} Choose Keep to try again.', c.error.message, c.error.remedy),
      'bad',
    );
  if (!c.kept)
    return judgedWords(
      success,
      success
        ? t('It is not kept.')
        : t('Choose what to do with it: keep it out of the pool, add it anyway with a reason, or discard it.'),
    );
  return judgedWords(success, keptWords(c.kept.pooled, success, c.kept.why?.replace(/\.$/, '')));
}
function keptWords(pooled: boolean, success: boolean, why: string | undefined): string {
  if (!pooled) return why ? t('Kept, not in the experience pool: {0}.', why) : t('Kept, not in the experience pool.');
  if (success) return t('Kept, and in the experience pool: training may learn from it.');
  return why
    ? t('Kept, and in the experience pool: {0}.', why)
    : t('Kept, and in the experience pool with your reason.');
}
