/**
 * A page in a VS Code webview: what it may load, where its files are, and its conversation (pageSession.ts). Panels and
 * the custom editor each own one.
 */
import { env, l10n, Uri, workspace, type Webview } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { ControlState, SavedTableFilter } from '../../runtime/protocol/types.js';
import { namesBelow } from '../../webview/folders.js';
import type { HostAction, PageInput, PageKind, ResourceRoot } from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import type { Runtime } from '../runtimePort.js';
import { t } from '../words.js';
import { newNonce, pageHtml } from './html.js';
import { PageSession } from './pageSession.js';
import { fetchedIn } from './remotePictures.js';

export interface HostDeps {
  readonly extensionUri: Uri;
  readonly runtime: Runtime;
  /** Whom the page asks that shows this, where it is not `runtime`. */
  readonly runtimeOf?: (input: PageInput) => Runtime | undefined;
  readonly log: { warn(message: string): void; error(message: string): void };
  /** `cache` of each runtime's storage: thumbnails. */
  readonly caches: readonly Uri[];
  readonly act: (action: HostAction, from: WebviewHost) => void;
  readonly watchFps: () => number;
  readonly held: (desktop: string) => ControlState | undefined;
  readonly adopt: (s: ControlState) => void;
  /** Filters of tables, saved with the workspace. */
  readonly savedFilters: () => readonly SavedTableFilter[];
}
/** A folder a page may show files of; `path` is how the page names it. */
export interface Folder {
  readonly path: string;
  readonly uri: Uri;
  /** The runtime named it. */
  readonly named?: true;
}
export interface HostOptions {
  readonly webview: Webview;
  readonly kind: PageKind;
  readonly title: string;
  readonly input: PageInput;
  readonly folders: readonly Folder[];
  readonly setTitle?: (title: string) => void;
}

const PATIENCE_MS = 10_000,
  REBUILDS = 3;

export class WebviewHost implements Ends {
  readonly kind: PageKind;
  readonly #o: HostOptions;
  readonly #deps: HostDeps;
  readonly #own = new Disposables();
  #session: PageSession;
  #runtime: Runtime;
  #following: Ends | undefined;
  #folders: readonly Folder[];
  /** The runtime elsewhere that the page shows at the moment. */
  #remote: Runtime['remote'];

  constructor(o: HostOptions, deps: HostDeps) {
    const { webview, kind } = o;
    this.#o = o;
    this.#deps = deps;
    this.kind = kind;
    this.#runtime = this.#runtimeOf(o.input);
    this.#remote = this.#runtime.remote;
    this.#folders = this.#ofHere(o.folders);
    this.#session = this.#begin(o.input);
    this.#own.add(webview.onDidReceiveMessage((m: unknown) => this.#session.receive(m)));
    this.#own.add(
      workspace.onDidGrantWorkspaceTrust(() => {
        if (!this.ask()) this.#render();
      }),
    );
    this.#allowFolders();
    this.#render();
  }
  #runtimeOf(input: PageInput): Runtime {
    return this.#deps.runtimeOf?.(input) ?? this.#deps.runtime;
  }
  #begin(input: PageInput): PageSession {
    const o = this.#o,
      deps = this.#deps;
    this.#following = this.#follow();
    return this.#own.add(
      new PageSession({
        kind: this.kind,
        input,
        runtime: this.#runtime,
        log: deps.log,
        watchFps: deps.watchFps,
        cache: deps.caches[0]?.fsPath ?? '',
        held: deps.held,
        adopt: deps.adopt,
        savedFilters: deps.savedFilters,
        trusted: () => workspace.isTrusted,
        roots: () => this.#roots(),
        post: (m) => o.webview.postMessage(m),
        act: (a) => deps.act(a, this),
        setTitle: (title) => o.setTitle?.(title),
        rebuild: (time) => this.#render(time),
      }),
    );
  }
  /** Follows the runtime that has what the page shows. */
  #follow(): Disposables {
    const runtime = this.#runtime,
      following = this.#own.add(new Disposables());
    following.defer(runtime.onState(() => this.#turn()));
    // The last status of a run comes before its end.
    if (this.kind === 'compareRuns')
      following.defer(
        runtime.on(methods.runsChanged, ({ run }) => {
          const { input } = this;
          if (input.kind === 'compareRuns' && input.runs.includes(run)) this.do('reload');
        }),
      );
    return following;
  }
  /** Whether another runtime has what the page shows; the page is built anew with that. */
  ask(): boolean {
    const { input } = this,
      runtime = this.#runtimeOf(input);
    if (runtime === this.#runtime) return false;
    this.#own.drop(this.#session);
    this.#own.drop(this.#following);
    this.#runtime = runtime;
    this.#remote = runtime.remote;
    this.#session = this.#begin(input);
    this.#allowFolders();
    this.#render();
    return true;
  }
  get input(): PageInput {
    return this.#session.input;
  }
  /** The file that a page names, if the page may show it. */
  uriOf(path: string): Uri | undefined {
    for (const f of this.#allFolders()) {
      const names = namesBelow(f.path, path);
      if (names) return Uri.joinPath(f.uri, ...names);
    }
    return undefined;
  }
  /** Another thing in the same page. */
  show(input: PageInput, folders: readonly Folder[] = this.#folders): void {
    const more = folders.some((f) => !this.#folders.some((x) => x.path === f.path));
    this.#folders = this.#ofHere(folders);
    if (more) this.#allowFolders();
    this.#session.show(input);
  }
  /** The page shows another trajectory already. */
  moved(rollout: string): void {
    this.#session.moved(rollout);
  }
  savedFiltersChanged(): void {
    this.#session.savedFiltersChanged();
  }
  /** A menu item or shortcut of VS Code that the page carries out, or `reload`. */
  do(what: string, context?: unknown): void {
    this.#session.do(what, context);
  }
  dispose(): void {
    this.#own.dispose();
  }

  /** A runtime elsewhere names no folder of this machine, even after the window has detached. */
  #ofHere(folders: readonly Folder[]): readonly Folder[] {
    return this.#remote ? folders.filter((f) => !f.named) : folders;
  }
  #allFolders(): Folder[] {
    const [cache] = this.#deps.caches,
      caches = !this.#remote ? this.#deps.caches : cache ? [Uri.file(fetchedIn(cache.fsPath))] : [];
    return [...this.#ofHere(this.#folders), ...caches.map((uri) => ({ path: uri.fsPath, uri }))];
  }
  /** The window changes from one runtime to another. */
  #turn(): void {
    const { remote } = this.#runtime,
      changed = (remote === undefined) !== (this.#remote === undefined);
    this.#remote = remote;
    if (!changed) return;
    this.#allowFolders();
    this.#render();
  }
  #roots(): ResourceRoot[] {
    return this.#allFolders().map((f) => ({ path: f.path, uri: this.#o.webview.asWebviewUri(f.uri).toString() }));
  }
  #allowFolders(): void {
    const ext = this.#deps.extensionUri;
    this.#o.webview.options = {
      enableScripts: true,
      localResourceRoots: [
        Uri.joinPath(ext, 'dist', 'webview'),
        Uri.joinPath(ext, 'media'),
        ...this.#allFolders().map((f) => f.uri),
      ],
    };
  }
  /**
   * Renders a new page with a new nonce; it gets everything again that the old one got. `time`: of building it anew,
   * each more patient than the one before, the last of which is shown with words where its script does not come either.
   */
  #render(time = 0): void {
    const { webview } = this.#o,
      file = (name: string): string =>
        webview.asWebviewUri(Uri.joinPath(this.#deps.extensionUri, 'dist', 'webview', name)).toString();
    this.#session.gone();
    webview.html = pageHtml({
      kind: this.kind,
      title: this.#o.title,
      lang: env.language,
      words: l10n.bundle,
      nonce: newNonce(),
      lost: {
        patienceMs: PATIENCE_MS * 2 ** time,
        words:
          time < REBUILDS
            ? undefined
            : t('This page could not be loaded. Close it and open it again; if it stays empty, reload the window.'),
      },
      sources: {
        cspSource: webview.cspSource,
        script: file(`${this.kind}.js`),
        styles: ['codicon', 'ui', this.kind].map((name) => file(`${name}.css`)),
      },
    });
  }
}
