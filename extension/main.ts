/**
 * Entry of the extension. Activation makes objects and registers them; no file, no socket, no process is touched before
 * it has returned.
 */
import { join } from 'node:path';
import { l10n, type ExtensionContext } from 'vscode';
import { createStudioContext } from './context.js';
import { sweepFetched } from './panels/remotePictures.js';
import { setTranslator } from './words.js';

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
  });
}
/** The runtime outlives the window on purpose; what belongs to the window is ended through `subscriptions`. */
export function deactivate(): void {
  /* subscriptions are disposed by VS Code */
}
