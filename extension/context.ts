/**
 * The single owner of everything the extension creates. Creating it does no I/O; the runtime is attached to after
 * activation.
 */
import { join, sep } from 'node:path';
import {
  commands as vscodeCommands,
  Uri,
  window,
  workspace,
  type ExtensionContext,
  type LogOutputChannel,
  type Memento,
} from 'vscode';
import * as methods from '../runtime/protocol/methods.js';
import type { PageInput } from '../webview/protocol.js';
import { alertEnvironment } from './alerts.js';
import { registerActions } from './commands/action.js';
import { DaemonClient } from './daemon/client.js';
import { wasInterrupted } from './daemon/interrupted.js';
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
import { rootsThere, sampleFolder } from './model/roots.js';
import { runFiles } from './model/runFiles.js';
import { savedRuns } from './model/savedRuns.js';
import { StudioModel } from './model/studioModel.js';
import { TrajectoryList } from './model/trajectoryList.js';
import { PanelManager } from './panels/panelManager.js';
import { forgetFetched } from './panels/remotePictures.js';
import type { HostDeps } from './panels/webviewHost.js';
import { Reports } from './reports.js';
import { RunFileChecks } from './runFileChecks.js';
import { serveSchema } from './runFileSchema.js';
import { RunFolders } from './runFolders.js';
import { savedFilters } from './savedFilters.js';
import { settings } from './settings.js';
import { showStatus } from './statusBar.js';
import type { StudioContext } from './studioContext.js';
import { ofThisMachine, requireHere } from './attached.js';
import { requireTrust, trustOf } from './trust.js';
import { createTrees, type Trees } from './views/trees.js';
import { followEvents } from './wiring.js';
import { t } from './words.js';

declare const __BUILD_TIME__: number;
declare const __BUILD_VERSION__: string;

export function createStudioContext(extension: ExtensionContext): StudioContext & Ends {
  const own = new Disposables();
  const log = own.add(window.createOutputChannel('DART Studio', { log: true }));
  const runtimeLog = own.add(window.createOutputChannel('DART Studio Runtime', { log: true }));
  const report = new Reporter(log),
    storage = extension.globalStorageUri.fsPath,
    { workspaceState } = extension,
    folders = new RunFolders(storage, workspaceState);
  const here: Surroundings = { extension, own, log, report, client: createClient(extension, own, log) };
  const { client } = here,
    sample = new SampleRuntime(() => createClient(extension, own, log, true), storage);
  own.defer(() => forgetFetched(join(storage, 'cache')));
  const models = createModels(here, folders),
    { model, list, sessions } = models;
  const trees = createViews(here, models, () => context);
  const review = own.add(new ReviewCount(client, (waiting) => trees.setReview(waiting)));
  let machine: Machine = 'unknown';
  const keys = contextWriter(() => factsOf(client, models, machine, pages.panels.active?.input));
  const pages = createPages(here, { sessions, sample }, () => context);
  own.defer(pages.panels.onChange(keys));
  const context: StudioContext = {
    extension,
    log,
    runtimeLog,
    report,
    client,
    ...models,
    trees,
    ...pages,
    ...trustOf(folders),
    ...runtimeOf(here, storage),
    ...foldersOf(folders),
    ...viewChoices(list, workspaceState),
    reports: own.add(new Reports()),
    runFiles: createRunFiles(here),
    storage,
    stopping: new Set(),
    cancelled: new Set(),
    get activeHost() {
      return pages.panels.active ?? pages.editors.active?.host;
    },
    readSample: async () => {
      await sample.start();
      pages.panels.runtimesChanged();
    },
    setMachine(m) {
      machine = m;
      keys();
    },
    reviewing: (run, queue) => review.begin(run, queue),
    run: runCommand,
  };

  registerInputs(here, context);
  own.add(showStatus(client, model, sessions));

  own.add(followEvents({ studio: context, review, machine: () => machine, keys }));
  keys();
  return Object.assign(context, { dispose: () => own.dispose() });
}

/** The parameters that every part is made with. */
interface Surroundings {
  readonly extension: ExtensionContext;
  readonly own: Disposables;
  readonly log: LogOutputChannel;
  readonly report: Reporter;
  readonly client: DaemonClient;
}

const runCommand = (command: CommandId, arg?: unknown): void => {
  void vscodeCommands.executeCommand(command, arg);
};
/** How commands reach a runtime. */
const runtimeOf = (
  { client, log }: Surroundings,
  storage: string,
): Pick<StudioContext, 'requireHere' | 'ensureRuntime' | 'attach'> => ({
  requireHere: () => requireHere(client.remote),
  ensureRuntime: (signal) => ensureRuntime(client, signal),
  attach: () => attach(client, storage, log),
});

/** Commands and links reach the window here; their code is loaded with the first of them. */
function registerInputs({ own, report }: Surroundings, context: StudioContext): void {
  own.add(
    registerActions(Object.values(commands), {
      load: async () => (await onDemand()).actionsOf(context),
      before: (id) => {
        if (ofThisMachine.has(id)) context.requireHere();
      },
      report,
    }),
  );
  own.add(
    window.registerUriHandler({
      handleUri: (uri) =>
        report.background(
          onDemand().then((c) => c.openLink(context, uri)),
          t('open the link'),
        ),
    }),
  );
}

/** `sample`: of the runtime that only reads the sample run, in a window that is not trusted. */
function createClient(
  extension: ExtensionContext,
  own: Disposables,
  log: LogOutputChannel,
  sample = false,
): DaemonClient {
  return own.add(
    new DaemonClient({
      storage: sample ? sampleStorage(extension) : extension.globalStorageUri.fsPath,
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
          DART_STUDIO_IDLE_MINUTES: String(sample ? sampleIdleMinutes : settings.idleMinutes),
          // Without the setting, DOCKER_HOST of this window's own environment holds.
          ...(settings.dockerHost ? { DOCKER_HOST: settings.dockerHost } : {}),
          ...(settings.metricsPort > 0 && !sample ? { DART_STUDIO_METRICS_PORT: String(settings.metricsPort) } : {}),
          ...(sample ? {} : alertEnvironment()),
          ...(settings.kubeContext ? { DART_STUDIO_KUBE_CONTEXT: settings.kubeContext } : {}),
          ...(settings.osworldVm ? { DART_STUDIO_OSWORLD_VM: settings.osworldVm } : {}),
          ...(settings.osworldCheckout ? { DART_STUDIO_OSWORLD_CHECKOUT: settings.osworldCheckout } : {}),
          ...(settings.kubePlugins.length > 0 ? { DART_STUDIO_KUBE_PLUGINS: settings.kubePlugins.join(',') } : {}),
        };
      },
    }),
  );
}

/** How long the runtime that reads the sample run stays without a window. */
const sampleIdleMinutes = 0.2;
const sampleStorage = (extension: ExtensionContext): string =>
  join(extension.globalStorageUri.fsPath, 'sample-runtime');
/** The runtime of Restricted Mode, which can only read the sample run. */
class SampleRuntime {
  readonly #make: () => DaemonClient;
  readonly #folder: string;
  #client: DaemonClient | undefined;
  constructor(make: () => DaemonClient, storage: string) {
    this.#make = make;
    this.#folder = sampleFolder(storage);
  }
  async start(): Promise<void> {
    await (this.#client ??= this.#make()).connect({ start: true });
  }
  of(input: PageInput): DaemonClient | undefined {
    return !workspace.isTrusted && 'run' in input && input.run?.startsWith(this.#folder + sep)
      ? this.#client
      : undefined;
  }
}
type Models = Pick<StudioContext, 'model' | 'list' | 'pool' | 'sessions'>;
/** The models of the views, with the choices that the workspace keeps. */
function createModels({ extension, own, log, client }: Surroundings, folders: RunFolders): Models {
  const { workspaceState } = extension;
  // The views show what is wrong themselves; a toast would only repeat it.
  const failed = (e: unknown, doing: string): void =>
    log.warn(`${doing}: ${e instanceof Error ? e.message : String(e)}`);
  const model = own.add(
    new StudioModel({
      runtime: client,
      roots: (active) => (client.remote ? rootsThere(client.hello, active) : folders.roots(active)),
      selected: workspaceState.get<string>(stored.selectedRun),
      keepSelected: (run) => {
        void workspaceState.update(stored.selectedRun, run);
      },
      saved: (roots) => (client.remote ? Promise.resolve([]) : savedRuns(roots, runFiles)),
      failed,
    }),
  );
  const sort = workspaceState.get<string>(stored.sort);
  const list = new TrajectoryList(
    client,
    () => settings.pageSize,
    parseFilter(workspaceState.get(stored.filter)),
    sorts.find((x) => x === sort) ?? 'newest',
  );
  const pool = own.add(new PoolModel({ runtime: client }));
  const sessions = own.add(
    new ControlSessions({
      runtime: client,
      mine: workspaceState.get<string[]>(stored.sessions, []),
      keepMine: (ids) => {
        void workspaceState.update(stored.sessions, ids);
      },
      failed,
    }),
  );
  return { model, list, pool, sessions };
}

function createViews({ own, report }: Surroundings, models: Models, context: () => StudioContext): Trees {
  return own.add(
    createTrees({
      ...models,
      now: Date.now,
      setPool: (run, rollouts, enabled) =>
        report.background(
          onDemand().then((c) => c.setPool(context(), run, rollouts, enabled)),
          t('change the experience pool'),
        ),
    }),
  );
}
/** The facts that context keys of menus and welcome views are made from. */
const factsOf = (
  client: DaemonClient,
  { model, list, sessions }: Models,
  machine: Machine,
  shown: PageInput | undefined,
): Parameters<typeof keysOf>[0] => ({
  daemon: client.state,
  runs: model.runs,
  active: model.active,
  selected: model.selected,
  shown: shown?.kind === 'dashboard' ? shown.run : undefined,
  desktops: model.desktops.length,
  filtered: !isEmpty(list.filter),
  machine,
  sessions: sessions.open.length,
  attached: client.remote !== undefined,
});

/** Panels and custom editors. */
function createPages(
  { extension, own, log, report, client }: Surroundings,
  { sessions, sample }: { readonly sessions: ControlSessions; readonly sample: SampleRuntime },
  context: () => StudioContext,
): Pick<StudioContext, 'panels' | 'editors'> {
  const deps: HostDeps = {
    extensionUri: extension.extensionUri,
    runtime: client,
    runtimeOf: (input) => sample.of(input),
    log,
    caches: [extension.globalStorageUri, Uri.file(sampleStorage(extension))].map((u) => Uri.joinPath(u, 'cache')),
    watchFps: () => settings.watchFps,
    held: (desktop) => sessions.of(desktop),
    adopt: (s) => sessions.adopt(s),
    savedFilters: () => savedFilters(extension.workspaceState),
    act: (action, from) =>
      report.background(
        onDemand().then((c) => c.carryOut(context(), action, from)),
        t('do this'),
      ),
  };
  /** A page in which somebody acted was closed: its session is kept for a minute, which is then said (onAbandoned). */
  const detach = (input: PageInput): void => {
    if (!('session' in input) || input.session === undefined || client.state !== 'ready') return;
    client
      .request(methods.detachControl, { session: input.session })
      .catch((e: unknown) => log.debug(`detach from ${input.desktop}: ${String(e)}`));
  };
  return {
    panels: own.add(
      new PanelManager(deps, {
        closed: detach,
        titles: {
          get: () => extension.workspaceState.get<Record<string, string>>(stored.panelTitles, {}),
          keep: (titles) => {
            void extension.workspaceState.update(stored.panelTitles, titles);
          },
        },
      }),
    ),
    editors: own.add(new TrajectoryEditors(deps, () => settings.maxTrajectoryBytes)),
  };
}

/** Run files in the editor. */
function createRunFiles({ extension, own, client, log }: Surroundings): RunFileChecks {
  own.add(serveSchema(extension.extensionUri));
  return own.add(
    new RunFileChecks({
      runtime: client,
      state: {
        get: (key) => extension.workspaceState.get<string[]>(key),
        update: (key, value) => {
          void extension.workspaceState.update(key, value);
        },
      },
      failed: (e) => log.warn(`check the run file: ${String(e)}`),
    }),
  );
}

async function ensureRuntime(client: DaemonClient, signal: AbortSignal | undefined): Promise<void> {
  requireTrust();
  signal?.throwIfAborted();
  if (client.state !== 'ready') await client.connect({ start: true });
  signal?.throwIfAborted();
}
/** Finds a runtime that runs; one that ended in the middle of a run is started, and goes on with it. */
async function attach(client: DaemonClient, storage: string, log: LogOutputChannel): Promise<void> {
  if (!workspace.isTrusted || !['stopped', 'attaching', 'starting'].includes(client.state)) return;
  await client
    .connect({ start: await wasInterrupted(storage) })
    .catch((e: unknown) => log.debug(`no runtime to attach to: ${String(e)}`));
}

const foldersOf = (
  f: RunFolders,
): Pick<StudioContext, 'folders' | 'home' | 'homes' | 'settings' | 'roots' | 'base' | 'addRoot' | 'dropRoot'> => ({
  folders: () => f.workspaceFolders(),
  home: (folder) => f.home(folder),
  homes: () => f.homes(),
  settings: (of) => f.settings(of),
  roots: () => f.roots([]),
  base: () => f.base(),
  addRoot: (path) => f.addRoot(path),
  dropRoot: (path) => f.dropRoot(path),
});
/** Filter and order of the Trajectories view, kept with the workspace. */
const viewChoices = (list: TrajectoryList, state: Memento): Pick<StudioContext, 'filter' | 'sort'> => ({
  async filter(f: ViewFilter) {
    await state.update(stored.filter, f);
    await list.show({ filter: f });
  },
  async sort(by) {
    await state.update(stored.sort, by);
    await list.show({ sort: by });
  },
});

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
