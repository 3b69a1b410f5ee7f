/** The editor's actions for pages; each is checked by messages.ts before it comes here. */
import { homedir } from 'node:os';
import { env, Uri, window, workspace } from 'vscode';
import { orUndefined } from '../../runtime/protocol/failures.js';
import type { SavedTableFilter } from '../../runtime/protocol/types.js';
import type { HostAction, PageCommand } from '../../webview/protocol.js';
import { exportPage, writeLink } from '../commands/share.js';
import { recordedAsText } from '../commands/trajectoryFiles.js';
import { watch } from '../commands/desktops.js';
import { showTable } from '../commands/table.js';
import { commands, stored, type CommandId } from '../ids.js';
import { savedFilters } from '../savedFilters.js';
import type { StudioContext } from '../studioContext.js';
import { showWarningMessage } from '../toasts.js';
import { t } from '../words.js';
import type { WebviewHost } from './webviewHost.js';

const commandOf: Readonly<Record<PageCommand, CommandId>> = {
  startTraining: commands.startTraining,
  stopTraining: commands.stopTraining,
  pause: commands.pause,
  resume: commands.resume,
  evaluate: commands.evaluate,
  openDashboard: commands.openDashboard,
  compareRuns: commands.compareRuns,
  openRunFile: commands.openRunFile,
  duplicateRun: commands.duplicateRun,
  showLog: commands.showLog,
  startRuntime: commands.startRuntime,
  watchDesktop: commands.watchDesktop,
  recordDemonstration: commands.recordDemonstration,
  buildDesktop: commands.buildDesktop,
  tryPolicy: commands.tryPolicy,
};

export async function carryOut(s: StudioContext, a: HostAction, from: WebviewHost): Promise<void> {
  if (a.action === 'exportPage' || a.action === 'saveImage') s.requireHere();
  switch (a.action) {
    case 'openTrajectory':
      s.panels.show({ kind: 'inspector', run: a.run, rollout: a.rollout, step: a.step }, { beside: a.beside ?? false });
      return;
    case 'compare':
      s.panels.show({ kind: 'compare', run: a.run, left: a.left, right: a.right });
      return;
    case 'openTable':
      showTable(s, a.run, a.filter, a.view);
      return;
    case 'keepFilter':
      await changeSavedFilters(s, (all) => [...all.filter((f) => f.name !== a.filter.name), a.filter]);
      return;
    case 'dropFilter':
      await changeSavedFilters(s, (all) => all.filter((f) => f.name !== a.name));
      return;
    case 'openText': {
      const document = s.editors.uriOf(from);
      if (document) s.run(commands.openAsText, document);
      else if (a.run) await recordedAsText(s, a.run, a.rollout);
      return;
    }
    case 'copy':
      await env.clipboard.writeText(a.text);
      window.setStatusBarMessage(t('$(copy) Copied'), 2000);
      return;
    case 'copyLink':
      await writeLink(s, a);
      return;
    case 'exportPage':
      await exportPage(s, a.run === undefined ? s.editors.uriOf(from) : a);
      return;
    case 'saveChart':
      await saveChart(a.png, a.name);
      return;
    case 'saveImage':
      await saveImage(from, a.path, a.name);
      return;
    case 'command':
      // The page that replays a trajectory stays in sight.
      if (a.command === 'watchDesktop' && a.argument !== undefined && from.kind === 'inspector') {
        await watch(s, a.argument, { aside: true });
        return;
      }
      // A page knows one "resume"; of a run that is over it means to go on with it.
      s.run(
        a.command === 'resume' && s.model.active?.run !== a.argument ? commands.resumeRun : commandOf[a.command],
        a.argument,
      );
      return;
    case 'annotate':
      s.requireEditing();
      s.panels.show({ kind: 'inspector', run: a.run, rollout: a.rollout, annotate: true });
      return;
    case 'moved':
      from.moved(a.rollout);
      return;
  }
}

async function changeSavedFilters(
  s: StudioContext,
  change: (all: readonly SavedTableFilter[]) => SavedTableFilter[],
): Promise<void> {
  await s.extension.workspaceState.update(stored.tableFilters, change(savedFilters(s.extension.workspaceState)));
  s.panels.savedFiltersChanged();
}

async function saveChart(png: string, name: string): Promise<void> {
  const folder = workspace.workspaceFolders?.[0]?.uri ?? Uri.file(homedir()),
    target = await window.showSaveDialog({
      title: t('Save Chart'),
      defaultUri: Uri.joinPath(folder, `${name.replace(/[^\w.-]+/g, '-')}.png`),
      filters: { PNG: ['png'] },
    });
  if (target) await workspace.fs.writeFile(target, Buffer.from(png, 'base64'));
}

/** A copy of a picture that the page may show, and of nothing else. */
async function saveImage(from: WebviewHost, path: string, name: string): Promise<void> {
  const source = from.uriOf(path),
    there = source && (await orUndefined(Promise.resolve(workspace.fs.stat(source)), 'it is said below'));
  if (!source || !there) {
    void showWarningMessage(
      t('The picture of this screenshot was not found. Wait until the page shows it, then save it again.'),
    );
    return;
  }
  const folder = workspace.workspaceFolders?.[0]?.uri ?? Uri.joinPath(source, '..');
  const target = await window.showSaveDialog({
    title: t('Save Screenshot'),
    defaultUri: Uri.joinPath(folder, name.replace(/[^\w.-]+/g, '-')),
    filters: { PNG: ['png'] },
  });
  if (target) await workspace.fs.copy(source, target, { overwrite: true });
}
