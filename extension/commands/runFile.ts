/** New Run File: a starter with every common option, saved where the schema of the editor applies. */
import { commands as vscodeCommands, Uri, window, workspace } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { StudioContext } from '../studioContext.js';
import { t } from '../words.js';
import { choose, pickRun, runOf } from './ask.js';

export async function newRunFile(s: StudioContext): Promise<void> {
  const preset = await choose(t('New Run File'), [
    {
      label: t('Quick start'),
      description: 'quickstart',
      detail: t('The small policy that trains on this machine'),
      value: 'quickstart' as const,
    },
    {
      label: t('Desk'),
      description: 'desk',
      detail: t('The small policy on every template of the desk suite, for an hour'),
      value: 'desk' as const,
    },
    {
      label: t('UI-TARS-1.5-7B'),
      description: 'ui-tars-7b',
      detail: t('A vision-language model made for desktops, on one GPU of 80 GB'),
      value: 'ui-tars-7b' as const,
    },
    {
      label: t('Qwen3-VL-8B'),
      description: 'qwen3-vl-8b',
      detail: t('A general vision-language model, on one GPU of 80 GB'),
      value: 'qwen3-vl-8b' as const,
    },
    {
      label: t('OSWorld'),
      description: 'osworld',
      detail: t('UI-TARS-1.5-7B on the tasks of OSWorld, on one GPU of 80 GB'),
      value: 'osworld' as const,
    },
    {
      label: t('DART'),
      description: 'dart',
      detail: t("The paper's experiment: UI-TARS-1.5-7B on OSWorld, with many desktops and a cluster"),
      value: 'dart' as const,
    },
  ]);
  if (!preset) return;
  const { text } = await s.ensureRuntime().then(() => s.client.request(methods.template, { preset }));
  await saveAndShow(t('New Run File'), preset === 'quickstart' ? 'dart-run.json' : `${preset}.dart-run.json`, text);
}
/** The run file as the run was started with it: what its folder keeps, which nothing changes afterwards. */
export async function openRunFile(s: StudioContext, arg: unknown): Promise<void> {
  const run = runOf(arg) ?? s.model.selected ?? (await pickRun(s, t('Open Run File')));
  if (run === undefined) return;
  await window.showTextDocument(await workspace.openTextDocument(Uri.joinPath(Uri.file(run), 'run.json')), {
    preview: true,
  });
  // Opened read-only: the file is a record, and a change would only make it wrong.
  await vscodeCommands.executeCommand('workbench.action.files.setActiveEditorReadonlyInSession');
}
/** A new run file with the options of a run, to change and to start. */
export async function duplicateRun(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  const run =
    runOf(arg) ??
    s.model.selected ??
    (await pickRun(s, t('Duplicate with Changes'), (r) => !r.collection && !r.damaged));
  if (run === undefined) return;
  await s.ensureRuntime();
  const { text } = await s.client.request(methods.getRunFile, { run }),
    name = (s.model.summary(run)?.name ?? '').replace(/[^\w.-]+/g, '-') || 'run';
  await saveAndShow(t('Duplicate with Changes'), `${name}-2.dart-run.json`, text);
}
/** Saves in the workspace, where somebody chooses; without one, shows a document that is not saved. */
async function saveAndShow(title: string, name: string, text: string): Promise<void> {
  const folder = workspace.workspaceFolders?.find((f) => workspace.fs.isWritableFileSystem(f.uri.scheme) !== false);
  if (!folder) {
    await window.showTextDocument(await workspace.openTextDocument({ language: 'json', content: text }));
    return;
  }
  const target = await window.showSaveDialog({
    title,
    defaultUri: Uri.joinPath(folder.uri, name),
    filters: { [t('Run files')]: ['json'] },
  });
  if (!target) return;
  await workspace.fs.writeFile(target, new TextEncoder().encode(text));
  await window.showTextDocument(await workspace.openTextDocument(target));
}
