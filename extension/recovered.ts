/** The toast about a run that was active when the runtime ended. */
import { window } from 'vscode';
import type { Recovered } from '../runtime/protocol/activeRuns.js';
import { stored } from './ids.js';
import type { StudioContext } from './studioContext.js';
import { t } from './words.js';

/** Says once, in whichever window hears of it first. */
export function sayRecovered(s: StudioContext, r: Recovered): void {
  const { globalState } = s.extension;
  s.log.info(`run ${r.id}: ${r.message}`);
  if (r.at <= globalState.get<number>(stored.saidRecovered, 0)) return;
  void globalState.update(stored.saidRecovered, r.at);
  const openPage = t('Open'),
    say = r.outcome === 'resumed' ? window.showInformationMessage : window.showWarningMessage;
  void say(t('Training run {0}: {1}', r.name, r.message), openPage).then((picked) => {
    if (picked === openPage) s.panels.show({ kind: 'dashboard', run: r.run });
  });
}
