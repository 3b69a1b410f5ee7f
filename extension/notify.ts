/** The toast at the end of a run: a failure always, anything else only where the run is not visible and the settings want it. */
import { window } from 'vscode';
import type { RunSummary } from '../runtime/protocol/types.js';
import { commands } from './ids.js';
import { muteRunFinished, settings } from './settings.js';
import type { StudioContext } from './studioContext.js';
import { showErrorMessage, showInformationMessage } from './toasts.js';
import { successWords } from './views/runRows.js';
import { rollouts, t } from './words.js';

export function sayEnded(s: StudioContext, r: RunSummary): void {
  s.log.info(`run ${r.id}: ${r.state}`);
  if (s.cancelled.delete(r.run)) return;
  // An interrupted one goes on with the next runtime; where it does not, that one says so (recovered.ts).
  if (r.state === 'interrupted') return;
  const seen = s.panels.visible.some((i) => i.kind === 'dashboard' && i.run === r.run) && window.state.focused;
  const open = t('Open'),
    mute = t("Don't Show Again"),
    log = t('Show Log');
  const show = (): void => s.panels.show({ kind: 'dashboard', run: r.run });
  if (r.state === 'failed' || r.damaged) {
    const e = r.status?.error ?? r.damaged;
    void showErrorMessage(
      t('Training run {0} failed. {1} {2}', r.name, e?.message ?? '', e?.remedy ?? '').trim(),
      open,
      log,
    ).then((p) => {
      if (p === open) show();
      else if (p === log) s.run(commands.showRuntimeLog);
    });
    return;
  }
  if (!settings.notifyRunFinished || seen || (r.state !== 'finished' && r.state !== 'stopped')) return;
  const success = successWords(r),
    words = success === '' ? rollouts(r.rollouts) : t('{0}, {1}', rollouts(r.rollouts), success);
  void showInformationMessage(
    r.state === 'finished'
      ? t('Training run {0} is finished: {1}.', r.name, words)
      : t('Training run {0} is stopped: {1}.', r.name, words),
    open,
    mute,
  ).then((p) => {
    if (p === open) show();
    else if (p === mute) s.report.background(muteRunFinished(), t('change the setting'));
  });
}
