/** The refusals in Restricted Mode and virtual workspaces, with the remedy. */
import { workspace } from 'vscode';
import { Refused } from './refused.js';
import type { RunFolders } from './runFolders.js';
import type { StudioContext } from './studioContext.js';
import { t } from './words.js';

export function requireTrust(): void {
  if (!workspace.isTrusted)
    throw new Refused(
      'untrusted',
      t('This workspace is not trusted; in Restricted Mode trajectories can be opened, and nothing is started.'),
      t('Trust the workspace to train.'),
    );
}
function requireEditing(): void {
  if (!workspace.isTrusted)
    throw new Refused(
      'untrusted',
      t('This workspace is not trusted; in Restricted Mode trajectories can be viewed, not changed.'),
      t('Trust the workspace to annotate and to record.'),
    );
}
export const trustOf = (
  folders: RunFolders,
): Pick<StudioContext, 'requireTrust' | 'requireEditing' | 'requireTraining'> => ({
  requireTrust,
  requireEditing,
  requireTraining() {
    requireTrust();
    if (workspace.workspaceFolders?.length && folders.workspaceFolders().length === 0)
      throw new Refused(
        'virtual',
        t('The files of this workspace are not on a disk of this machine.'),
        t('Open a folder on disk to train; trajectories can be opened here.'),
      );
  },
});
