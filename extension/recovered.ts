/** The toast about a run that was active when the runtime ended. */
import type { Recovered } from '../runtime/protocol/activeRuns.js';
import { commands, stored } from './ids.js';
import type { StudioContext } from './studioContext.js';
import { showInformationMessage, showWarningMessage } from './toasts.js';
import { t } from './words.js';

/** Says once, in whichever window hears of it first. */
export function sayRecovered(s: StudioContext, r: Recovered): void {
  const { globalState } = s.extension;
  s.log.info(`run ${r.id}: ${r.message}`);
  if (r.at <= globalState.get<number>(stored.saidRecovered, 0)) return;
  void globalState.update(stored.saidRecovered, r.at);
  const openPage = t('Open'),
    resume = t('Resume Run…'),
    log = t('Show Runtime Log'),
    say = r.outcome === 'resumed' ? showInformationMessage : showWarningMessage,
    // A run that could not be resumed is tried again at the next start, and may have lost its folder.
    buttons = { resumed: [openPage], left: [resume, log, openPage], failed: [log, openPage] }[r.outcome];
  void say(t('Training run {0}: {1}', r.name, r.message), ...buttons).then((picked) => {
    if (picked === openPage) s.panels.show({ kind: 'dashboard', run: r.run });
    else if (picked === resume) s.run(commands.resumeRun, r.run);
    else if (picked === log) s.run(commands.showRuntimeLog);
  });
}
