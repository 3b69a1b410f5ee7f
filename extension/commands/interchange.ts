/** Import and export of trajectories, as commands. */
import { commands } from '../ids.js';
import type { StudioContext } from '../studioContext.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { exportTrajectories } from './exportTrajectories.js';
import { importTrajectories } from './importTrajectories.js';

export const interchangeCommands = (
  s: StudioContext,
): Actions<typeof commands.importTrajectories | typeof commands.exportTrajectories> => ({
  [commands.importTrajectories]: { doing: t('import the trajectories'), run: (arg) => importTrajectories(s, arg) },
  [commands.exportTrajectories]: {
    doing: t('export the trajectories'),
    run: (arg, selected) => exportTrajectories(s, arg, selected),
  },
});
