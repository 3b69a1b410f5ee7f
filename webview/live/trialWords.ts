/** Words for a policy that is tried: which state it is in, and what happens next. Pure. */
import type { ControlState } from '../../runtime/protocol/types.js';
import { t } from '../ui/words.js';
import type { PageKnowledge } from './session.js';
import { words, type SessionWords } from './saying.js';

export function trialWords(c: ControlState, s: PageKnowledge): SessionWords {
  if (s.discarded) return words('trash', t('Discarded'), t('Nothing was kept.'), 'plain', true);
  if (s.forgotten)
    return words(
      'debug-stop',
      t('Ended'),
      t('The runtime no longer has this session: its desktop is gone. Try again.'),
      'bad',
      true,
    );
  if (c.mode === 'ended') return endWords(c);
  if (s.daemon === 'ready') return modeWords(c, c.mode);
  return s.daemon === 'reconnecting' || s.daemon === 'starting' || s.daemon === 'attaching'
    ? words(
        'sync',
        t('Connection lost'),
        t('Reconnecting. The desktop is kept for a minute; then the session ends.'),
        'bad',
        true,
      )
    : words(
        'debug-disconnect',
        t('Runtime stopped'),
        t('The desktop is gone. Start the runtime and try again.'),
        'bad',
        true,
      );
}

function modeWords(c: ControlState, mode: Exclude<ControlState['mode'], 'ended'>): SessionWords {
  switch (mode) {
    case 'starting':
      return words(
        'loading',
        t('Preparing'),
        t('The desktop is being set up; it is ready once its screen is at rest.'),
      );
    case 'human':
      return words(
        'person',
        t('You are in control'),
        t('The policy waits. Act on the picture, or just look. Choose Hand Back to let it continue from there.'),
        'good',
      );
    case 'policy':
      return words(
        'hubot',
        t('The policy acts'),
        t('Choose Pause to make it wait before its next step and take the desktop.'),
      );
    case 'step':
      return c.proposal
        ? words(
            'question',
            t('The policy asks'),
            t('Press Enter to execute the proposed action. Anything you do on the picture is done instead.'),
            'good',
          )
        : words(
            'lightbulb',
            t('The policy decides'),
            t('The next action it proposes will be drawn on the screen and wait for you.'),
          );
    case 'verifying':
      return words(
        'checklist',
        t('Verifying'),
        c.trial?.verified === false
          ? t('The policy is done. The desktop is being released.')
          : t('The verifier checks whether the task is done. Its report comes next.'),
      );
  }
}

function endWords(c: ControlState): SessionWords {
  const v = c.verdict;
  if (c.kept?.why === 'discarded')
    return words(
      'trash',
      t('Discarded'),
      t('It was removed from the experience pool and tagged “discarded”.'),
      'plain',
      true,
    );
  const fault = v?.outcome === 'error' ? (v.error ?? c.error) : v ? undefined : c.error;
  if (fault)
    return words(
      'warning',
      fault.kind === 'timeout' ? t('Out of time') : t('Ended with an error'),
      [fault.message, fault.remedy].filter(Boolean).join(' '),
      'bad',
      true,
    );
  if (c.steps.length === 0)
    return words('debug-stop', t('Ended'), t('No step was taken, so there is nothing to keep.'), 'plain', true);
  if (!v)
    return words(
      c.trial?.stopped ? 'debug-stop' : 'pass',
      c.trial?.stopped ? t('Stopped') : t('The policy is done'),
      t('No verifier judged it. To keep it, say whether it did what was asked.'),
      'plain',
      true,
    );
  return words(
    v.outcome === 'success' ? 'pass-filled' : 'error',
    v.outcome === 'success' ? t('Success') : t('Not solved'),
    keptWords(c),
    v.outcome === 'success' ? 'good' : 'bad',
    true,
  );
}
function keptWords({ kept, trial }: ControlState): string {
  if (kept?.pooled)
    return t('Kept, and in the experience pool of its collection: runs that name it may learn from it.');
  if (kept)
    return kept.why
      ? t('Kept, not in the experience pool: {0}.', kept.why.replace(/\.$/, ''))
      : t('Kept, not in the experience pool.');
  return trial?.heldOut
    ? t('It is not kept. Its task is for evaluation only: even if kept, it would not be trained on.')
    : t('It is not kept.');
}
