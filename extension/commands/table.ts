/** The table of a run's trajectories. */
import type { TableFilter } from '../../runtime/protocol/types.js';
import type { TableView } from '../../webview/protocol.js';
import { commands } from '../ids.js';
import type { StudioContext } from '../studioContext.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { pickRun, runOf } from './ask.js';

export const tableCommands = (s: StudioContext): Actions<typeof commands.openTable> => ({
  [commands.openTable]: { doing: t('open the table of trajectories'), run: (arg) => open(s, arg) },
});

async function open(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  if (runOf(arg) === undefined) await s.ensureRuntime();
  await s.model.loading;
  const run = runOf(arg) ?? s.model.selected ?? (await pickRun(s, t('Open Trajectory Table')));
  if (run === undefined) return;
  showTable(s, run);
  await s.ensureRuntime();
}
export function showTable(s: StudioContext, run: string, filter?: TableFilter, view?: TableView): void {
  s.panels.show({ kind: 'table', run, ...(filter ? { filter } : {}), ...(view ? { view } : {}) });
}
