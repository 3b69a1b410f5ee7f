/**
 * The single owner of everything the extension makes. Making it does no I/O; the runtime is attached to after
 * activation.
 */
import {
  commands as vscodeCommands,
  Uri,
  window,
  workspace,
  type ExtensionContext,
  type WorkspaceFolder,
} from 'vscode';
import * as methods from '../runtime/protocol/methods.js';
import type { PageInput } from '../webview/protocol.js';
import { registerActions } from './commands/action.js';
import { DaemonClient } from './daemon/client.js';
import { Disposables, type Ends } from './dispose.js';
import { TrajectoryEditors } from './editors/trajectoryEditor.js';
import { Reporter } from './errors.js';
import { commands, stored, type CommandId } from './ids.js';
import { onDemand } from './loadOnDemand.js';
import { keysOf, type Machine } from './model/contextKeys.js';
import { ControlSessions } from './model/controlSessions.js';
import { isEmpty, parseFilter, sorts, type ViewFilter } from './model/filter.js';
import { PoolModel } from './model/poolModel.js';
import { ReviewCount } from './model/reviewCount.js';
import { homeOf, rootsOf } from './model/roots.js';
import { StudioModel } from './model/studioModel.js';
import { TrajectoryList } from './model/trajectoryList.js';
import { PanelManager } from './panels/panelManager.js';
import type { HostDeps } from './panels/webviewHost.js';
import { Refused } from './refused.js';
import { Reports } from './reports.js';
import { settings } from './settings.js';
import { showStatus } from './statusBar.js';
import type { Studio } from './studio.js';
import { createTrees } from './views/trees.js';
import { followEvents } from './wiring.js';
import { t } from './words.js';

declare const __BUILD_TIME__: number;
declare const __BUILD_VERSION__: string;

export function createStudio(extension: ExtensionContext): Studio & Ends {
  const own = new Disposables();
  const log = own.add(window.createOutputChannel('DART Studio', { log: true }));
  const runtimeLog = own.add(window.createOutputChannel('DART Studio Runtime', { log: true }));
  const report = new Reporter(log),
    storage = extension.globalStorageUri.fsPath,
    { workspaceState } = extension;

  const client = own.add(
    new DaemonClient({
      storage,
      runtime: Uri.joinPath(extension.extensionUri, 'dist', 'runtime.js').fsPath,
      build: { version: __BUILD_VERSION__, time: __BUILD_TIME__ },
      client: 'VS Code window',
      log: (level, message) => log[level](message),
      // Read when a runtime is started: changes of the settings apply to the next one.
      get node() {
        return settings.nodePath || undefined;
      },
      get env() {
        return {
          DART_STUDIO_IDLE_MINUTES: String(settings.idleMinutes),
          // A missing key leaves what this window's own environment says.
          ...(settings.dockerHost ? { DOCKER_HOST: settings.dockerHost } : {}),
        };
      },
    }),
  );
  const folders = (): string[] =>
    (workspace.workspaceFolders ?? []).filter((f) => f.uri.scheme === 'file').map((f) => f.uri.fsPath);
  const extra = (): string[] => workspaceState.get<string[]>(stored.extraRoots, []);
  const model = own.add(
    new StudioModel({
      runtime: client,
      roots: (active) =>
        rootsOf({ folders: folders(), storage, runsFolder: settings.runsFolder, extra: extra(), active }),
      selected: workspaceState.get<string>(stored.selectedRun),
      keepSelected: (run) => {
        void workspaceState.update(stored.selectedRun, run);
      },
      // The views say what is wrong themselves; a toast would only repeat it.
      failed: (e, doing) => log.warn(`${doing}: ${e instanceof Error ? e.message : String(e)}`),
    }),
  );
  const kept = workspaceState.get<string>(stored.sort);
  const list = new TrajectoryList(
    client,
    () => settings.pageSize,
    parseFilter(workspaceState.get(stored.filter)),
    sorts.find((x) => x === kept) ?? 'newest',
  );
  const pool = own.add(new PoolModel({ runtime: client }));
  const sessions = own.add(
    new ControlSessions({
      runtime: client,
      mine: workspaceState.get<string[]>(stored.sessions, []),
      keepMine: (ids) => {
        void workspaceState.update(stored.sessions, ids);
      },
      failed: (e, doing) => log.warn(`${doing}: ${e instanceof Error ? e.message : String(e)}`),
    }),
  );
  const trees = own.add(
    createTrees({
      model,
      list,
      pool,
      sessions,
      now: Date.now,
      setPool: (run, rollouts, enabled) =>
        report.background(
          onDemand().then((c) => c.setPool(studio, run, rollouts, enabled)),
          t('change the experience pool'),
        ),
    }),
  );
  const review = own.add(new ReviewCount(client, (waiting) => trees.setReview(waiting)));

  const deps: HostDeps = {
    extensionUri: extension.extensionUri,
    runtime: client,
    log,
    cache: Uri.joinPath(extension.globalStorageUri, 'cache'),
    watchFps: () => settings.watchFps,
    held: (desktop) => sessions.of(desktop),
    adopt: (s) => sessions.adopt(s),
    act: (action, from) =>
      report.background(
        onDemand().then((c) => c.carryOut(studio, action, from)),
        t('do this'),
      ),
  };
  const panels = own.add(new PanelManager(deps, (input) => letGo(input)));
  const reports = own.add(new Reports());
  const editors = own.add(new TrajectoryEditors(deps, () => settings.maxTrajectoryBytes));

  let machine: Machine = 'unknown';
  const keys = contextWriter(() => ({
    daemon: client.state,
    runs: model.runs,
    active: model.active,
    selected: model.selected,
    desktops: model.desktops.length,
    filtered: !isEmpty(list.filter),
    machine,
    sessions: sessions.open.length,
  }));
  const requireTrust = (): void => {
    if (!workspace.isTrusted)
      throw new Refused(
        'untrusted',
        t('This workspace is not trusted; in Restricted Mode trajectories can be opened and nothing is started.'),
        t('Trust the workspace to train.'),
      );
  };
  /** A page in which somebody acted was closed: its session is kept for a minute, which is then said (onAbandoned). */
  const letGo = (input: PageInput): void => {
    if (input.kind !== 'live' || input.session === undefined || client.state !== 'ready') return;
    client
      .request(methods.detachControl, { session: input.session })
      .catch((e: unknown) => log.debug(`let go of ${input.desktop}: ${String(e)}`));
  };
  const attach = async (): Promise<void> => {
    if (!workspace.isTrusted || !['stopped', 'attaching', 'starting'].includes(client.state)) return;
    await client.connect({ start: false }).catch((e: unknown) => log.debug(`no runtime to attach to: ${String(e)}`));
  };

  const studio: Studio = {
    extension,
    log,
    runtimeLog,
    report,
    client,
    model,
    list,
    pool,
    sessions,
    trees,
    panels,
    editors,
    reports,
    storage,
    stopping: new Set(),
    cancelled: new Set(),
    get activeHost() {
      return panels.active ?? editors.active?.host;
    },
    requireTrust,
    requireEditing() {
      if (!workspace.isTrusted)
        throw new Refused(
          'untrusted',
          t('This workspace is not trusted; in Restricted Mode trajectories can be looked at, and nothing is changed.'),
          t('Trust the workspace to annotate and to record.'),
        );
    },
    requireTraining() {
      requireTrust();
      if (workspace.workspaceFolders?.length && folders().length === 0)
        throw new Refused(
          'virtual',
          t('The files of this workspace are not on a disk of this machine.'),
          t('Open a folder on disk to train; trajectories can be opened here.'),
        );
    },
    async ensureRuntime(signal) {
      requireTrust();
      signal?.throwIfAborted();
      if (client.state !== 'ready') await client.connect({ start: true });
      signal?.throwIfAborted();
    },
    attach,
    folders,
    home: (folder?: WorkspaceFolder) =>
      homeOf({
        folders: folder && folder.uri.scheme === 'file' ? [folder.uri.fsPath] : folders(),
        storage,
        runsFolder: settings.runsFolder,
      }),
    base: () => folders()[0] ?? storage,
    addRoot: async (path) => {
      if (!extra().includes(path)) await workspaceState.update(stored.extraRoots, [...extra(), path]);
    },
    dropRoot: async (path) => {
      await workspaceState.update(
        stored.extraRoots,
        extra().filter((x) => x !== path),
      );
    },
    setMachine(m) {
      machine = m;
      keys();
    },
    async filter(f: ViewFilter) {
      await workspaceState.update(stored.filter, f);
      await list.show({ filter: f });
    },
    async sort(by) {
      await workspaceState.update(stored.sort, by);
      await list.show({ sort: by });
    },
    reviewing: (run, queue) => review.begin(run, queue),
    run: (command: CommandId, arg?: unknown) => {
      void vscodeCommands.executeCommand(command, arg);
    },
  };

  own.add(registerActions(Object.values(commands), async () => (await onDemand()).actionsOf(studio), report));
  own.add(showStatus(client, model, sessions));

  own.add(followEvents({ studio, review, machine: () => machine, keys }));
  keys();
  return Object.assign(studio, { dispose: () => own.dispose() });
}

function contextWriter(facts: () => Parameters<typeof keysOf>[0]): () => void {
  const written = new Map<string, string | boolean>();
  return () => {
    for (const [key, value] of Object.entries(keysOf(facts()))) {
      if (written.get(key) === value) continue;
      written.set(key, value);
      void vscodeCommands.executeCommand('setContext', key, value);
    }
  };
}
