/** Trajectories as files: opened, exported, shown as text. */
import { basename } from 'node:path';
import { commands as vscodeCommands, Uri, ViewColumn, window, workspace } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import { trajectoryEditor } from '../ids.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage } from '../toasts.js';
import { nodeOf } from '../views/nodes.js';
import { t } from '../words.js';
import { pickTrajectory, working } from './ask.js';

const filters = (): Record<string, string[]> => ({ [t('Trajectories')]: ['traj.jsonl', 'jsonl'] });

/** Needs no runtime and no trust. */
export async function openTrajectoryFile(uri: Uri | undefined): Promise<void> {
  const target = uri ?? (await window.showOpenDialog({ title: t('Open Trajectory'), filters: filters() }))?.[0];
  if (target) await vscodeCommands.executeCommand('vscode.openWith', target, trajectoryEditor);
}

export async function exportTrajectory(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  const node = nodeOf(arg, 'trajectory'),
    shown = s.activeHost?.input;
  await s.ensureRuntime();
  const named = node
    ? { run: node.run, rollout: node.row.rollout }
    : shown?.kind === 'inspector' && shown.run !== undefined
      ? { run: shown.run, rollout: shown.rollout }
      : await ask(s);
  if (!named) return;
  const folder = workspace.workspaceFolders?.[0]?.uri ?? Uri.file(s.storage);
  const target = await window.showSaveDialog({
    title: t('Export Trajectory'),
    defaultUri: Uri.joinPath(folder, `${named.rollout}.traj.jsonl`),
    filters: filters(),
  });
  if (!target) return;
  await working(t('Exporting the trajectory'), async (_say, signal) => {
    await s.client.request(methods.exportTrajectory, { ...named, file: target.fsPath }, signal);
  });
  const open = t('Open');
  void showInformationMessage(
    t('Exported {0}, with its pictures in the folder next to it.', basename(target.fsPath)),
    open,
  ).then((picked) => {
    if (picked === open) s.report.background(openTrajectoryFile(target), t('open the file'));
  });
}
async function ask(s: StudioContext): Promise<{ readonly run: string; readonly rollout: string } | undefined> {
  const run = s.model.selected;
  if (run === undefined) {
    void showInformationMessage(t('There are no trajectories yet.'));
    return undefined;
  }
  const row = await pickTrajectory(s, run, t('Export Trajectory'));
  return row && row !== 'file' ? { run, rollout: row.rollout } : undefined;
}

/** The file behind the editor in VS Code's text editor; a recorded trajectory as a new document. */
export async function openAsText(s: StudioContext, arg: unknown): Promise<void> {
  const uri = arg instanceof Uri ? arg : s.editors.active?.uri;
  if (uri) {
    await vscodeCommands.executeCommand('vscode.openWith', uri, 'default', ViewColumn.Active);
    return;
  }
  const node = nodeOf(arg, 'trajectory'),
    shown = s.activeHost?.input;
  if (node) await recordedAsText(s, node.run, node.row.rollout);
  else if (shown?.kind === 'inspector' && shown.run !== undefined) await recordedAsText(s, shown.run, shown.rollout);
  else void showInformationMessage(t('Open a trajectory first.'));
}
export async function recordedAsText(s: StudioContext, run: string, rollout: string): Promise<void> {
  await s.ensureRuntime();
  const { text } = await s.client.request(methods.exportTrajectory, { run, rollout });
  await window.showTextDocument(await workspace.openTextDocument({ language: 'dart-trajectory', content: text ?? '' }));
}
