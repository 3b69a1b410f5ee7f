/** Commands for the first minutes and for trouble. */
import { basename, join } from 'node:path';
import { homedir, userInfo } from 'node:os';
import { commands as vscodeCommands, env, extensions, FileType, Uri, version, window, workspace } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import { commands, walkthrough } from '../ids.js';
import { redact, withoutTargets } from '../model/redact.js';
import { section, settings } from '../settings.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showWarningMessage } from '../toasts.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { working } from './ask.js';
import { openSample } from './sample.js';
import { exists } from './runs.js';

type Ids =
  | typeof commands.collectDiagnostics
  | typeof commands.openWalkthrough
  | typeof commands.openSample
  | typeof commands.openSettings
  | typeof commands.deleteAllData;

export const helpCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.collectDiagnostics]: { doing: t('collect diagnostics'), run: () => diagnostics(s) },
  [commands.openWalkthrough]: {
    doing: t('open the walkthrough'),
    run: async () => {
      await vscodeCommands.executeCommand(
        'workbench.action.openWalkthrough',
        `${s.extension.extension.id}#${walkthrough}`,
        false,
      );
    },
  },
  [commands.openSample]: { doing: t('open the sample run'), run: () => openSample(s) },
  [commands.openSettings]: {
    doing: t('open the settings'),
    run: async () => {
      await vscodeCommands.executeCommand('workbench.action.openSettings', `@ext:${s.extension.extension.id}`);
    },
  },
  [commands.deleteAllData]: { doing: t('delete the data'), run: () => deleteAllData(s) },
});

/**
 * Versions, state, settings, logs, the machine check; redacted, in a zip where the user wants it. Nothing is sent
 * anywhere.
 */
async function diagnostics(s: StudioContext): Promise<void> {
  const target = await window.showSaveDialog({
    title: t('Collect Diagnostics'),
    defaultUri: Uri.joinPath(
      workspace.workspaceFolders?.[0]?.uri ?? Uri.file(homedir()),
      'dart-studio-diagnostics.zip',
    ),
    filters: { Zip: ['zip'] },
  });
  if (!target) return;
  await working(t('Collecting diagnostics'), async (_say, signal) => {
    // An address that cannot be reached may stand in a log.
    const who = { home: homedir(), user: userInfo().username, secrets: [settings.alertWebhook] },
      files = {
        'editor.json': JSON.stringify(editorFacts(s), null, 2),
        ...(await logFiles(s)),
        ...(await runtimeFiles(s, signal)),
      };
    const { strToU8, zipSync } = await import('fflate');
    const zip = zipSync(
      Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(redact(text, who))])),
    );
    await workspace.fs.writeFile(target, zip);
  });
  const show = t('Show');
  void showInformationMessage(
    t(
      'Saved {0}. Secrets and the path of your home folder are removed; check it before you share it.',
      basename(target.fsPath),
    ),
    ...(env.remoteName === undefined ? [show] : []),
  ).then((picked) => {
    if (picked === show) void vscodeCommands.executeCommand('revealFileInOS', target);
  });
}
const editorFacts = (s: StudioContext): Readonly<Record<string, unknown>> => ({
  vscode: version,
  app: env.appName,
  remote: env.remoteName ?? null,
  language: env.language,
  extension: (s.extension.extension.packageJSON as { version?: string } | undefined)?.version ?? null,
  platform: process.platform,
  arch: process.arch,
  node: process.version,
  runtime: s.client.state,
  detail: s.client.stateDetail ?? null,
  trusted: workspace.isTrusted,
  folders: workspace.workspaceFolders?.map((f) => f.uri.scheme) ?? [],
  runs: s.model.runs.map((r) => ({ id: r.id, state: r.state, rollouts: r.rollouts })),
  settings: withoutTargets(workspace.getConfiguration(section)),
  others: extensions.all.filter((e) => !e.id.startsWith('vscode.')).map((e) => e.id),
});
type Files = Record<string, string>;
/** Logs of the window and of the runtime, by name in the zip. */
async function logFiles(s: StudioContext): Promise<Files> {
  const files: Files = {};
  for (const [name, type] of await entriesOf(s.extension.logUri))
    if (type === FileType.File) files[`extension/${name}`] = await textOf(Uri.joinPath(s.extension.logUri, name));
  for (const name of ['daemon.log', 'daemon.out.log']) {
    const uri = Uri.file(join(s.storage, name));
    if (await exists(uri)) files[`runtime/${name}`] = await textOf(uri);
  }
  return files;
}
/** Files from a running runtime; if it fails, a separate file says so. */
async function runtimeFiles(s: StudioContext, signal: AbortSignal): Promise<Files> {
  if (s.client.state !== 'ready') return {};
  const { files } = await s.client
    .request(methods.diagnostics, {}, signal)
    .catch((e: unknown): { files: Readonly<Files> } => ({ files: { 'failed.txt': String(e) } }));
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`runtime/${basename(name)}`, text]));
}
/** The entries of a folder; none where it cannot be read. */
const entriesOf = async (folder: Uri): Promise<readonly [string, FileType][]> =>
  workspace.fs.readDirectory(folder).then(
    (x) => x,
    () => [],
  );
const mostLog = 2 << 20;
async function textOf(uri: Uri): Promise<string> {
  const bytes = await workspace.fs.readFile(uri);
  return new TextDecoder().decode(bytes.subarray(Math.max(0, bytes.length - mostLog)));
}

/** Deletes everything stored outside of workspaces; the runs of this workspace only with their own button. */
async function deleteAllData(s: StudioContext): Promise<void> {
  s.requireTrust();
  const ours = s.homes();
  const own = t('Delete'),
    both = t('Delete with the Runs of This Workspace');
  const answer = await showWarningMessage(
    t('Delete all DART Studio data?'),
    {
      modal: true,
      detail: [
        t(
          'This stops the runtime and any active run, and deletes its records, logs, caches and the runs made without an open folder, in {0}.',
          s.storage,
        ),
        ...(ours.length === 0
          ? []
          : [t('Runs of this workspace, in {0}, are kept unless you choose otherwise.', ours.join(', '))]),
        t('This cannot be undone.'),
      ].join('\n\n'),
    },
    own,
    ...(ours.length === 0 ? [] : [both]),
  );
  if (answer !== own && answer !== both) return;
  await working(
    t('Deleting the data'),
    async () => {
      await s.attach();
      if (s.client.state !== 'stopped') await s.client.shutdown();
      const runs = answer === both ? await Promise.all(ours.map((dir) => runFolders(Uri.file(dir)))) : [],
        targets = [Uri.file(s.storage), ...runs.flat()];
      for (const uri of targets)
        if (await exists(uri)) await workspace.fs.delete(uri, { recursive: true, useTrash: false });
      for (const memento of [s.extension.globalState, s.extension.workspaceState])
        for (const key of memento.keys()) await memento.update(key, undefined);
    },
    { cancellable: false },
  );
  void showInformationMessage(t('DART Studio data was deleted.'));
}
/** Only folders that are runs are returned: a setting names the folder of runs, which may contain anything. */
async function runFolders(dir: Uri): Promise<Uri[]> {
  const found = await Promise.all(
    (await entriesOf(dir)).map(async ([name]) => {
      const uri = Uri.joinPath(dir, name);
      return (await exists(Uri.joinPath(uri, 'run.json'))) && (await exists(Uri.joinPath(uri, 'journal')))
        ? uri
        : undefined;
    }),
  );
  return found.filter((u) => u !== undefined);
}
