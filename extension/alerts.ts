/**
 * Alerts of runs in this window: a notification. The runtime passes them on to where the settings of this machine say,
 * whichever windows are open; each window that attaches tells it these.
 */
import * as methods from '../runtime/protocol/methods.js';
import type { Notifications } from '../runtime/protocol/notifications.js';
import { settings } from './settings.js';
import type { StudioContext } from './studioContext.js';
import { showInformationMessage, showWarningMessage } from './toasts.js';
import { t } from './words.js';

export function sayAlert(s: StudioContext, a: Notifications['run/alert']): void {
  s.log.info(`run ${a.id}: ${a.kind}: ${a.message}`);
  if (!settings.notifyAlerts) return;
  const open = t('Open Dashboard'),
    words = t('{0}: {1}', a.name, a.message),
    say = a.kind === 'target' ? showInformationMessage : showWarningMessage;
  void say(words, open).then((picked) => {
    if (picked === open) s.panels.show({ kind: 'dashboard', run: a.run });
  });
}

/** The targets' scope is the machine: VS Code takes none of them from a workspace. */
const targets = (): { readonly command: string; readonly webhook: string; readonly desktop: boolean } => ({
  command: settings.alertCommand,
  webhook: settings.alertWebhook,
  desktop: settings.alertDesktop,
});
/**
 * The environment a runtime starts with, so that what it finds wrong before a window has attached is passed on, too.
 */
export function alertEnvironment(): Readonly<Record<string, string>> {
  const { command, webhook, desktop } = targets();
  return {
    ...(command === '' ? {} : { DART_STUDIO_ALERT_COMMAND: command }),
    ...(webhook === '' ? {} : { DART_STUDIO_ALERT_WEBHOOK: webhook }),
    ...(desktop ? { DART_STUDIO_ALERT_DESKTOP: '1' } : {}),
  };
}
/** Tells this machine's runtime: programs and addresses of this machine are nothing for one elsewhere. */
export function tellTargets({ client, log }: Pick<StudioContext, 'client' | 'log'>): void {
  if (client.state !== 'ready' || client.remote) return;
  client
    .request(methods.setAlerts, targets())
    .catch((e: unknown) =>
      log.warn(`the runtime does not pass on alerts: ${e instanceof Error ? e.message : String(e)}`),
    );
}
