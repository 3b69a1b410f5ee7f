/**
 * The commands' actions: read and compiled when first used, not at activation (scripts/build.mjs makes a file of its
 * own of it).
 */
import type { StudioContext } from '../studioContext.js';
import type { Actions } from './action.js';
import { annotateCommands } from './annotate.js';
import { attachCommands } from './attach.js';
import { desktopCommands } from './desktops.js';
import { helpCommands } from './help.js';
import { interchangeCommands } from './interchange.js';
import { poolCommands } from './pool.js';
import { recordCommands } from './record.js';
import { runCommands } from './runs.js';
import { tableCommands } from './table.js';
import { runLabelCommands } from './runLabels.js';
import { queueCommands } from './queue.js';
import { shareCommands } from './share.js';
import { runtimeCommands } from './runtime.js';
import { startCommands } from './startTraining.js';
import { trainingCommands } from './training.js';
import { trajectoryCommands } from './trajectories.js';
import { tryCommands } from './tryPolicy.js';

export { carryOut } from '../panels/pageActions.js';
export { setPool } from './pool.js';
export { openLink } from './share.js';
export { sayAbandoned } from './record.js';

export const actionsOf = (s: StudioContext): Actions => ({
  ...startCommands(s),
  ...trainingCommands(s),
  ...runCommands(s),
  ...trajectoryCommands(s),
  ...tableCommands(s),
  ...queueCommands(s),
  ...runLabelCommands(s),
  ...desktopCommands(s),
  ...recordCommands(s),
  ...tryCommands(s),
  ...annotateCommands(s),
  ...poolCommands(s),
  ...interchangeCommands(s),
  ...shareCommands(s),
  ...runtimeCommands(s),
  ...attachCommands(s),
  ...helpCommands(s),
});
