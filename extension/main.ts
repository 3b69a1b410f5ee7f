/**
 * Entry of the extension. Activation makes objects and registers them; no file, no socket, no process is touched before
 * it has returned.
 */
import { join } from 'node:path';
import { l10n, workspace, type ExtensionContext } from 'vscode';
import { createStudioContext } from './context.js';
import { sweepFetched } from './panels/remotePictures.js';
import { settings } from './settings.js';
import type { StudioContext } from './studioContext.js';
import { offerCommand } from './terminalCommand.js';
import { setTranslator, t } from './words.js';

export function activate(extension: ExtensionContext): void {
  const began = performance.now();
  setTranslator((message, ...args) => l10n.t(message, ...args));
  const studio = createStudioContext(extension);
  extension.subscriptions.push(studio);
  studio.log.info(`activated in ${(performance.now() - began).toFixed(1)} ms`);
  // A runtime that runs already (another window, or this one before a reload) is found again; none is started.
  setImmediate(() => {
    void studio.attach();
    void sweepFetched(join(studio.storage, 'cache'));
    commandInTerminals(extension, studio);
  });
}
/**
 * Offers the extension's command line in terminals, under the name that messages use; not in Restricted Mode, where
 * nothing is started.
 */
function commandInTerminals(extension: ExtensionContext, { storage, report }: StudioContext): void {
  const offer = (): void =>
    report.background(
      offerCommand(
        {
          storage,
          runtime: join(extension.extensionPath, 'dist', 'runtime.js'),
          node: settings.nodePath || process.execPath,
          windows: process.platform === 'win32',
        },
        extension.environmentVariableCollection,
      ),
      t('offer the command in terminals'),
    );
  if (workspace.isTrusted) offer();
  else extension.subscriptions.push(workspace.onDidGrantWorkspaceTrust(offer));
}
/** The runtime outlives the window on purpose; what belongs to the window is ended through `subscriptions`. */
export function deactivate(): void {
  /* subscriptions are disposed by VS Code */
}
