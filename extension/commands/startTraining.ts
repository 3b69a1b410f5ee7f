/** Start Training…: what to train, the set-up with a Cancel that really stops, the dashboard. */
import { basename, dirname } from 'node:path';
import { commands as vscodeCommands, Uri, window, workspace, type QuickPickItem } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { StartParams } from '../../runtime/protocol/methods.js';
import type { RunPath } from '../../runtime/protocol/types.js';
import type { HostError } from '../../webview/protocol.js';
import { wireError } from '../errorWords.js';
import { commands, stored } from '../ids.js';
import { withStoreDir } from '../model/roots.js';
import { settings } from '../settings.js';
import type { StudioContext } from '../studioContext.js';
import { showErrorMessage, showInformationMessage } from '../toasts.js';
import { t } from '../words.js';
import { choose, working } from './ask.js';
import { newRunFile } from './runFile.js';

type What = { readonly kind: 'file'; readonly uri: Uri } | { readonly kind: 'quickstart' };
export const runFilePattern = '**/{dart-run.json,*.dart-run.json}';

export async function startTraining(s: StudioContext, arg?: unknown): Promise<void> {
  s.requireTraining();
  const what: What | undefined = arg instanceof Uri ? { kind: 'file', uri: arg } : await chooseWhat(s);
  if (!what) return;
  const params = await paramsOf(s, what);
  if (what.kind === 'file') s.runFiles.choose(await workspace.openTextDocument(what.uri));
  const run = await working(t('Starting training'), (say, signal) =>
    start(s, params, (message) => say.report({ message }), signal),
  ).catch(async (e: unknown) => {
    // A run that was cancelled or failed while it started has a folder and is listed.
    await s.model.reload();
    if (what.kind !== 'file' || wireError(e).kind !== 'config.invalid') throw e;
    await sayRunFileWrong(s, what.uri, wireError(e));
    return undefined;
  });
  if (run !== undefined) await sayThatItSurvives(s, run);
}

/** Errors in a run file are fixed there: each is marked in the file and in the Problems view. */
async function sayRunFileWrong(s: StudioContext, uri: Uri, e: HostError): Promise<void> {
  const document = await workspace.openTextDocument(uri),
    found = await s.runFiles.check(document),
    name = basename(uri.path);
  s.log.error(`${name}: ${e.message} ${e.remedy}`);
  await window.showTextDocument(document);
  const open = t('Open File'),
    problems = t('Show Problems'),
    words =
      found === 0
        ? `${e.message} ${e.remedy}`.trim()
        : found === 1
          ? t('Training was not started: {0} has a problem. {1}', name, e.message)
          : t('Training was not started: {0} has {1} problems.', name, found);
  void showErrorMessage(words, open, ...(found > 0 ? [problems] : [])).then(async (picked) => {
    if (picked === open) await window.showTextDocument(document);
    else if (picked === problems) await vscodeCommands.executeCommand('workbench.actions.view.problems');
  });
}

async function start(
  s: StudioContext,
  params: StartParams,
  say: (message: string) => void,
  signal: AbortSignal,
): Promise<RunPath> {
  say(t('the runtime starts'));
  await s.ensureRuntime(signal);
  say(t('the run is prepared'));
  // The answer is awaited even after a cancel: a start that succeeded all the same is stopped below, so that no desktop
  // is left.
  const { run } = await s.client.request(methods.startRun, params, signal, true);
  s.log.info(`run started: ${run}`);
  await keepListed(s, dirname(run));
  await s.model.started(run);
  if (settings.openDashboardOnStart && !signal.aborted) s.panels.show({ kind: 'dashboard', run });
  await underWay(s, run, say, signal);
  return run;
}

/**
 * Lists a run, or the folder of runs that a run file names, from now on: a run must not be gone when it is over, or when
 * the window is reloaded.
 */
export async function keepListed(s: StudioContext, root: string): Promise<void> {
  // Paths of a runtime elsewhere mean nothing here.
  if (!s.client.remote && !s.roots().includes(root)) await s.addRoot(root);
}

/** Run files of the workspace, by their paths; a folder is named where they lie in one. */
export async function runFiles(): Promise<readonly { label: string; description: string; uri: Uri }[]> {
  const files = await workspace.findFiles(runFilePattern, '**/{node_modules,runs}/**', 50);
  return files
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map((uri) => ({
      label: basename(uri.path),
      description: dirname(workspace.asRelativePath(uri)).replace(/^\.$/, ''),
      uri,
    }));
}

/** Run files of the workspace first, then the quick start; a new file last. */
async function chooseWhat(s: StudioContext): Promise<What | undefined> {
  const items: (QuickPickItem & { readonly value: What | 'new' | 'browse' })[] = [
    ...(await runFiles()).map(({ label, description, uri }) => ({
      label: `$(json) ${label}`,
      description,
      detail: t('Run file of this workspace'),
      value: { kind: 'file', uri } as const,
    })),
    {
      label: `$(rocket) ${t('Quick start')}`,
      description: t('{0} minutes', settings.quickStartMinutes),
      detail: t('The built-in tasks and the small policy that trains on this machine; no GPU, no network'),
      value: { kind: 'quickstart' },
    },
    {
      label: `$(new-file) ${t('New Run File…')}`,
      detail: t('Every option with its default, completed and checked by the editor'),
      value: 'new',
    },
    { label: `$(folder-opened) ${t('Another Run File…')}`, value: 'browse' },
  ];
  const picked = await choose(t('Start Training'), items, t('What do you want to train?'));
  if (picked === 'new') {
    await newRunFile(s);
    return undefined;
  }
  if (picked !== 'browse') return picked;
  const [uri] = await browseRunFiles(false);
  return uri && { kind: 'file', uri };
}
/** Run files of any name. */
export const browseRunFiles = async (many: boolean): Promise<readonly Uri[]> =>
  (await window.showOpenDialog({
    title: t('Run File'),
    canSelectMany: many,
    filters: { [t('Run files')]: ['json'] },
  })) ?? [];

export async function paramsOf(s: StudioContext, what: What): Promise<StartParams> {
  const folder = what.kind === 'file' ? workspace.getWorkspaceFolder(what.uri) : undefined,
    { provider, desktopCount } = s.settings(folder);
  const common = {
    provider: provider === 'auto' ? undefined : provider,
    desktops: desktopCount > 0 ? desktopCount : undefined,
  };
  if (what.kind === 'quickstart')
    return {
      ...common,
      text: withStoreDir('{"preset":"quickstart"}', s.home()),
      base: s.base(),
      minutes: settings.quickStartMinutes,
    };
  // The editor's text, saved or not: the user trains what they see.
  const text = (await workspace.openTextDocument(what.uri)).getText();
  return {
    ...common,
    text: withStoreDir(text, s.home(folder)),
    file: what.uri.fsPath,
    base: folder?.uri.fsPath ?? dirname(what.uri.fsPath),
  };
}

/**
 * Waits until the run has left its starting phase; when cancelled, the run is stopped and its desktops removed before
 * this returns.
 */
export async function underWay(
  s: StudioContext,
  run: RunPath,
  say: (message: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const ends: (() => void)[] = [];
  try {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        const status = s.model.summary(run)?.status;
        if (status?.detail) say(status.detail);
        else if (status) say(status.phase);
        if (
          s.client.state !== 'ready' ||
          (status && status.phase !== 'starting') ||
          (s.model.summary(run) && s.model.active?.run !== run)
        )
          resolve();
      };
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
      ends.push(
        s.model.onChange((c) => {
          if (c === 'status' || c === 'runs' || c === 'daemon') look();
        }),
      );
      look();
    });
  } finally {
    for (const e of ends) e();
  }
  if (!signal.aborted) return;
  s.log.info(`run cancelled while it started: ${run}`);
  s.cancelled.add(run);
  await s.client.request(methods.stopRun, { run, now: true });
  signal.throwIfAborted();
}

/** Once per user: that closing the editor does not end the training. */
async function sayThatItSurvives(s: StudioContext, run: RunPath): Promise<void> {
  if (s.extension.globalState.get<boolean>(stored.saidSurvives)) return;
  await s.extension.globalState.update(stored.saidSurvives, true);
  const show = t('Show Run Folder');
  void showInformationMessage(
    t(
      'Training is running and continues when VS Code is closed. It ends with its budget or with {0}.',
      t('Stop Training'),
    ),
    show,
  ).then((picked) => {
    if (picked === show) s.run(commands.revealRun, run);
  });
}

export const startCommands = (
  s: StudioContext,
): Record<
  typeof commands.startTraining | typeof commands.startTrainingWithFile,
  { doing: string; run(arg?: unknown): Promise<void> }
> => ({
  [commands.startTraining]: { doing: t('start training'), run: () => startTraining(s) },
  [commands.startTrainingWithFile]: {
    doing: t('start training'),
    run: (arg) => startTraining(s, arg instanceof Uri ? arg : window.activeTextEditor?.document.uri),
  },
});
