/** The actions of a control session's buttons, and the questions before them. */
import type { Host } from '../ui/host.js';
import { t } from '../ui/words.js';
import { ask } from './ask.js';
import type { Controller } from './controller.js';
import type { PanelActions } from './panel.js';
import { mayAct, type SessionAction } from './session.js';

export interface PanelActionsOptions {
  readonly host: Pick<Host, 'act'>;
  readonly control: Controller;
  desktop(): string;
  refused(why: string): void;
  openRollout(): void;
  /** The picture gets the focus. */
  focus(): void;
}

function sessionActionsOf(o: PanelActionsOptions): Record<SessionAction, () => void> {
  const { control: c } = o;
  return {
    accept: () => {
      if (!c.accept(performance.now(), true)) o.refused(t('This proposal is new: look at it first'));
    },
    handBack: () => void c.mode('policy'),
    pause: () => void c.mode('human'),
    actYourself: () => void c.mode('human'),
    stepMode: () => void c.mode('step'),
    finish: () => void c.finish(),
    wait: () => void c.act({ type: 'wait' }),
    drop: () => void c.drop(),
    answer: () =>
      void finishWith(
        c,
        {
          title: t('Answer'),
          says: t('It ends with this answer, and the verifier judges it.'),
          yes: t('Answer and Finish'),
          icon: 'comment',
          field: { label: t('Answer'), required: t('Enter an answer, or press Finish to end without one.') },
        },
        (answer) => ({ type: 'finished', answer }),
      ),
    cannot: () =>
      void finishWith(
        c,
        {
          title: t('This cannot be done'),
          says: t('It ends by saying that the task is impossible. The verifier knows whether that is right.'),
          yes: t('Cannot Be Done'),
          icon: 'circle-slash',
          field: { label: t('Reason (may be empty)') },
        },
        (reason) => ({ type: 'fail', reason: reason || undefined }),
      ),
    discard: () => void discard(c),
    // Only a policy that is tried is stopped; its page says how.
    stop: () => undefined,
  };
}
export function panelActions(o: PanelActionsOptions): PanelActions {
  const { control: c, host } = o;
  return {
    does: sessionActionsOf(o),
    refused: (why) => o.refused(why),
    discard: () => void discard(c),
    openRollout: () => o.openRollout(),
    keep: (pool, note, tags) => void c.keep({ pool, note: note || undefined, tags: tags.length ? tags : undefined }),
    override: (note, tags) =>
      void ask({
        title: t('Add to the pool anyway'),
        says: t('The verifier did not confirm it. Training will imitate it anyway; the reason is kept with it.'),
        yes: t('Add to Pool'),
        icon: 'database',
        field: { label: t('Reason'), required: t('Enter a reason.') },
      }).then((reason) => {
        if (reason)
          void c.keep({ pool: 'override', reason, note: note || undefined, tags: tags.length ? tags : undefined });
      }),
    open: (rollout) => {
      if (c.state) host.act({ action: 'openTrajectory', run: c.state.run, rollout, beside: true });
    },
    annotate: (rollout) => {
      if (c.state) host.act({ action: 'annotate', run: c.state.run, rollout });
    },
    again: () => host.act({ action: 'command', command: 'recordDemonstration', argument: c.state?.run }),
    watchOn: () => {
      c.show(o.desktop(), undefined);
      o.focus();
    },
  };
}
/** An action that ends it; Finish follows where the runtime does not end it by itself. */
async function finishWith(
  control: Controller,
  q: Parameters<typeof ask>[0],
  action: (said: string) => Parameters<Controller['act']>[0],
): Promise<void> {
  const said = await ask(q);
  if (said !== undefined && (await control.act(action(said))) && mayAct(control.state, control.knowledge))
    await control.finish();
}
async function discard(control: Controller): Promise<void> {
  const c = control.state;
  if (!c) return;
  const sure = c.kept
    ? t('It is removed from the experience pool and tagged “discarded”.')
    : c.steps.length || c.verdict
      ? c.steps.length === 1
        ? t('1 recorded step is discarded.')
        : t('{0} recorded steps are discarded.', c.steps.length)
      : undefined;
  if (
    sure === undefined ||
    (await ask({ title: t('Discard this demonstration?'), says: sure, yes: t('Discard'), icon: 'trash' })) !== undefined
  )
    await control.discard();
}
