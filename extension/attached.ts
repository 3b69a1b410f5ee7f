/** The actions that a window cannot do while it is attached to a runtime elsewhere. */
import type { RemoteRuntime } from './daemon/remote.js';
import { commands, type CommandId } from './ids.js';
import { Refused } from './refused.js';
import { t } from './words.js';

/** Commands that start or end this machine's runtime, or hand the runtime a path of this machine. */
export const ofThisMachine: ReadonlySet<CommandId> = new Set([
  commands.startTraining,
  commands.startTrainingWithFile,
  commands.addToQueue,
  commands.recordDemonstration,
  commands.tryPolicy,
  commands.buildDesktop,
  commands.checkMachine,
  commands.stopRuntime,
  commands.restartRuntime,
  commands.showRuntimeLog,
  commands.deleteAllData,
  commands.openSample,
  commands.openRunFolder,
  commands.forgetRunFolder,
  commands.openRunFile,
  commands.revealRun,
  commands.renameRun,
  commands.editRunNotes,
  commands.tagRun,
  commands.groupRun,
  commands.pinRun,
  commands.archiveRun,
  commands.deleteRun,
  commands.exportPage,
  commands.exportTable,
  commands.exportTrajectory,
  commands.exportTrajectories,
  commands.importTrajectories,
  commands.saveScreenshot,
]);

export function requireHere(remote: RemoteRuntime | undefined): void {
  if (remote)
    throw new Refused(
      'attached',
      t('This window is attached to {0}, and this needs the runtime and the files of this machine.', remote.name),
      t('Choose Detach from Runtime first.'),
    );
}
