/** Commands of the Runs view. */
import { basename, dirname } from 'node:path';
import { commands as vscodeCommands, env, UIKind, Uri, window, workspace } from 'vscode';
import { commands, stored } from '../ids.js';
import type { RunPath } from '../../runtime/protocol/types.js';
import { isListed } from '../model/roots.js';
import { isActive } from '../model/studioModel.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showWarningMessage } from '../toasts.js';
import { nodeOf } from '../views/nodes.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { chooseMany, pickRun, runItems, runOf } from './ask.js';

type Ids =
  | typeof commands.openDashboard
  | typeof commands.compareRuns
  | typeof commands.openRunFolder
  | typeof commands.forgetRunFolder
  | typeof commands.selectRun
  | typeof commands.copyRunPath
  | typeof commands.revealRun
  | typeof commands.refresh;

export const runCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.openDashboard]: { doing: t('open the dashboard'), run: (arg) => openDashboard(s, arg) },
  [commands.compareRuns]: { doing: t('compare the runs'), run: (arg, selected) => compareRuns(s, arg, selected) },
  [commands.openRunFolder]: { doing: t('open the run folder'), run: (arg) => openRunFolder(s, arg) },
  [commands.forgetRunFolder]: { doing: t('remove the run from the list'), run: (arg) => forget(s, arg) },
  [commands.selectRun]: {
    doing: t('select the run'),
    run: async (arg) => {
      const run = runOf(arg) ?? (await pickRun(s, t('Select Run')));
      if (run !== undefined) s.model.select(run);
    },
  },
  [commands.copyRunPath]: {
    doing: t('copy the path'),
    run: async (arg) => {
      const run = runOf(arg) ?? s.model.selected ?? (await pickRun(s, t('Copy Path')));
      if (run !== undefined) await env.clipboard.writeText(run);
    },
  },
  [commands.revealRun]: {
    doing: t('show the run folder'),
    run: async (arg) => {
      const run = runOf(arg) ?? s.model.selected ?? (await pickRun(s, t('Show Run Folder')));
      if (run !== undefined) await reveal(run);
    },
  },
  [commands.refresh]: {
    doing: t('refresh'),
    run: async () => {
      await s.attach();
      await Promise.all([s.model.reload(), s.list.reload()]);
    },
  },
});

export async function openDashboard(s: StudioContext, arg?: unknown): Promise<void> {
  s.requireTrust();
  if (runOf(arg) === undefined) await s.ensureRuntime();
  await s.model.loading;
  const run =
    runOf(arg) ??
    s.model.selected ??
    (await pickRun(s, t('Open Dashboard'), () => true, t('No runs yet. Choose Start Training… to start one.')));
  if (run === undefined) return;
  // Without a runtime a click on a row opens the run; with one it selects it. The run is selected either way.
  if (s.model.fromFolders && nodeOf(arg, 'run')) s.model.select(run);
  s.panels.show({ kind: 'dashboard', run });
  await s.ensureRuntime();
}

/** Compares the runs selected in the Runs view; without a selection, runs picked from all. */
async function compareRuns(s: StudioContext, arg: unknown, selected: unknown): Promise<void> {
  s.requireTrust();
  const clicked = nodeOf(arg, 'run'),
    nodes = (Array.isArray(selected) ? selected : clicked ? s.trees.runs.view.selection : [])
      .map((n) => nodeOf(n, 'run')?.run)
      .filter((r) => r !== undefined),
    marked = clicked && !nodes.includes(clicked.run) ? [clicked.run] : nodes;
  let runs: readonly RunPath[] | undefined = marked;
  if (marked.length < 2) {
    await s.ensureRuntime();
    if (!s.model.loaded) await s.model.reload();
    // A page names those that it shows.
    const shown = typeof arg === 'string' ? arg.split('\n') : marked;
    runs = await chooseMany(
      t('Compare Runs'),
      runItems(s.model.runs.filter((r) => !r.damaged)).map((i) => ({ ...i, picked: shown.includes(i.value) })),
      t('Select two or more runs'),
    );
  }
  if (!runs?.length) return;
  if (runs.length > mostCompared)
    void showInformationMessage(t('The first {0} of {1} runs are compared.', mostCompared, runs.length));
  s.panels.show({ kind: 'compareRuns', runs: runs.slice(0, mostCompared) });
  await s.ensureRuntime();
}
/** Most runs of one comparison: more than anybody can tell apart; a request takes no more. */
const mostCompared = 64;

/** A run folder, or a folder of them; remembered for this workspace. */
async function openRunFolder(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  const [uri] =
    arg instanceof Uri
      ? [arg]
      : ((await window.showOpenDialog({
          title: t('Open Run Folder'),
          canSelectFolders: true,
          canSelectFiles: false,
          openLabel: t('Open Run'),
        })) ?? []);
  if (!uri) return;
  const isRun = await exists(Uri.joinPath(uri, 'run.json'));
  await s.addRoot(uri.fsPath);
  await s.ensureRuntime();
  await s.model.reload();
  const inside = s.model.runs.filter((r) => r.run === uri.fsPath || dirname(r.run) === uri.fsPath);
  if (inside.length === 0) {
    await s.dropRoot(uri.fsPath);
    void showWarningMessage(
      t(
        '{0} holds no run. A run folder has a run.json and a journal; a folder of run folders can be opened as well.',
        basename(uri.fsPath),
      ),
    );
    return;
  }
  if (isRun) {
    s.model.select(uri.fsPath);
    s.panels.show({ kind: 'dashboard', run: uri.fsPath });
  } else await vscodeCommands.executeCommand('dartStudio.runs.focus');
}
async function forget(s: StudioContext, arg: unknown): Promise<void> {
  const roots = s.extension.workspaceState.get<string[]>(stored.extraRoots, []),
    run = runOf(arg);
  const root = roots.find((r) => run !== undefined && isListed([r], run)) ?? (isHeard(s, run) ? run : undefined);
  if (root === undefined) {
    void showInformationMessage(
      t('This run is in the runs folder of this workspace and is always listed. Nothing was changed.'),
    );
    return;
  }
  s.model.forget(root);
  await s.dropRoot(root);
  await s.model.reload();
}
/** Whether a run is over and listed only because this window heard of it, such as one of another window. */
function isHeard(s: StudioContext, run: RunPath | undefined): boolean {
  const known = s.model.summary(run);
  return known !== undefined && !isActive(known) && !isListed(s.roots(), known.run);
}
/** Shows a folder in the Explorer, the file manager or another window. */
export async function reveal(run: string): Promise<void> {
  const uri = Uri.file(run);
  if (workspace.getWorkspaceFolder(uri)) await vscodeCommands.executeCommand('revealInExplorer', uri);
  else if (env.uiKind === UIKind.Desktop && env.remoteName === undefined)
    await vscodeCommands.executeCommand('revealFileInOS', uri);
  else await vscodeCommands.executeCommand('vscode.openFolder', uri, { forceNewWindow: true });
}
export const exists = (uri: Uri): Promise<boolean> =>
  Promise.resolve(workspace.fs.stat(uri)).then(
    () => true,
    () => false,
  );
