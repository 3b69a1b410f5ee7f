/** New Run File: a starter with every common option, saved where the schema of the editor applies. */
import { Uri, window, workspace } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { StudioContext } from '../studioContext.js';
import { t } from '../words.js';
import { choose } from './ask.js';

export async function newRunFile(s: StudioContext): Promise<void> {
  const preset = await choose(t('New Run File'), [
    {
      label: t('Quick start'),
      description: 'quickstart',
      detail: t('The small policy that trains on this machine'),
      value: 'quickstart' as const,
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
      label: t('DART'),
      description: 'dart',
      detail: t("The paper's experiment: UI-TARS-1.5-7B on OSWorld, with many desktops and a cluster"),
      value: 'dart' as const,
    },
  ]);
  if (!preset) return;
  const { text } = await s.ensureRuntime().then(() => s.client.request(methods.template, { preset }));
  const folder = workspace.workspaceFolders?.find((f) => workspace.fs.isWritableFileSystem(f.uri.scheme) !== false);
  if (!folder) {
    await window.showTextDocument(await workspace.openTextDocument({ language: 'json', content: text }));
    return;
  }
  const target = await window.showSaveDialog({
    title: t('New Run File'),
    defaultUri: Uri.joinPath(folder.uri, preset === 'quickstart' ? 'dart-run.json' : `${preset}.dart-run.json`),
    filters: { [t('Run files')]: ['json'] },
  });
  if (!target) return;
  await workspace.fs.writeFile(target, new TextEncoder().encode(text));
  await window.showTextDocument(await workspace.openTextDocument(target));
}
