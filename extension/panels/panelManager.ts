/**
 * All webview panels: opened, found again, restored after a reload. One per run and kind (panelKinds.ts), reused with
 * `reveal`.
 */
import { TabInputWebview, Uri, ViewColumn, window, type Tab, type WebviewPanel } from 'vscode';
import type { PageInput, PageKind } from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import { Emitter } from '../emitter.js';
import { panelType } from '../ids.js';
import { inPage, panelFolders, panelKey, panelKinds, panelTitle, restoredInput, sameInput } from './panelKinds.js';
import { WebviewHost, type HostDeps } from './webviewHost.js';

interface Open {
  readonly panel: WebviewPanel;
  readonly host: WebviewHost;
}
const kinds = Object.keys(panelKinds) as PageKind[];

export interface PanelEvents {
  /** Called with a panel's input when the user closed it. */
  readonly closed?: (input: PageInput) => void;
  /** The titles that panels had last, by what they show: kept over a reload of the window. */
  readonly titles?: { get(): Readonly<Record<string, string>>; keep(titles: Readonly<Record<string, string>>): void };
}
/** Titles kept; what was opened longest ago is forgotten. */
const mostTitles = 60;

export class PanelManager implements Ends {
  readonly #deps: HostDeps;
  readonly #on: PanelEvents;
  readonly #own = new Disposables();
  /** Oldest first; a panel split off with `beside` comes after the one it was split from. */
  readonly #open = new Set<Open>();
  readonly #changes = new Emitter<void>();

  constructor(deps: HostDeps, on: PanelEvents = {}) {
    this.#deps = deps;
    this.#on = on;
    this.#own.add(window.tabGroups.onDidChangeTabs(() => this.#changes.fire()));
    for (const kind of kinds) {
      this.#own.add(
        window.registerWebviewPanelSerializer(panelType(kind), {
          deserializeWebviewPanel: (panel: WebviewPanel, state: unknown) => {
            const input = restoredInput(state, kind);
            // The panel keeps its title until its page says otherwise; who has a desktop may have changed.
            if (input) this.#adopt(panel, input, input.kind === 'live' ? undefined : panel.title || undefined);
            else panel.dispose();
            return Promise.resolve();
          },
        }),
      );
    }
  }
  /** The host of the panel that has the focus. */
  get active(): WebviewHost | undefined {
    return [...this.#open].find((o) => o.panel.active)?.host;
  }
  /** Inputs of the panels that the user can see. */
  get visible(): readonly PageInput[] {
    return [...this.#open].filter((o) => o.panel.visible).map((o) => o.host.input);
  }
  /** Inputs of the open panels, seen or not; a page that was restored and not yet looked at is not among them. */
  get inputs(): readonly PageInput[] {
    return [...this.#open].map((o) => o.host.input);
  }
  /** `l` is called when a panel is opened, closed, focused or shows something else, and when tabs change. */
  readonly onChange = (l: () => void): (() => void) => this.#changes.on(l);
  /** Whether VS Code is still to restore a panel of this kind in front of the person, as after a reload of the window. */
  restoring(kind: PageKind): boolean {
    const tabs = this.#tabs(kind),
      ours = [...this.#open].filter((o) => o.host.input.kind === kind),
      inFront = tabs.filter((x) => x.isActive).length;
    return tabs.length > ours.length && inFront > ours.filter((o) => o.panel.visible).length;
  }

  /** `beside`: in one more panel beside the active one. `aside`: there, if no panel shows it. */
  show(
    input: PageInput,
    o: { readonly beside?: boolean; readonly aside?: boolean; readonly preserveFocus?: boolean } = {},
  ): void {
    const key = panelKey(input);
    const found = o.beside ? undefined : [...this.#open].find((x) => panelKey(x.host.input) === key);
    if (found) {
      if (!sameInput(found.host.input, inPage(found.host.input, input))) {
        this.#name(found.panel, input, this.#titleOf(input));
        found.host.show(input);
        this.#changes.fire();
      }
      found.panel.reveal(undefined, o.preserveFocus ?? false);
      return;
    }
    if (!o.beside) this.#closeUnrestored(input);
    const type = panelType(input.kind),
      { find } = panelKinds[input.kind];
    const column = {
      viewColumn: o.beside || o.aside ? ViewColumn.Beside : ViewColumn.Active,
      preserveFocus: o.preserveFocus ?? false,
    };
    this.#adopt(window.createWebviewPanel(type, this.#titleOf(input), column, { enableFindWidget: find }), input);
  }
  /** Another runtime than before may have what pages show. */
  runtimesChanged(): void {
    for (const o of this.#open) o.host.ask();
  }
  savedFiltersChanged(): void {
    for (const o of this.#open) o.host.savedFiltersChanged();
  }
  dispose(): void {
    this.#own.dispose();
  }

  #titleOf(i: PageInput): string {
    return panelTitle(i, i.kind === 'live' ? this.#deps.held(i.desktop) : undefined);
  }
  #adopt(panel: WebviewPanel, input: PageInput, title = this.#titleOf(input)): void {
    const icons = Uri.joinPath(this.#deps.extensionUri, 'media', 'icons'),
      { icon } = panelKinds[input.kind];
    panel.iconPath = { light: Uri.joinPath(icons, `${icon}-light.svg`), dark: Uri.joinPath(icons, `${icon}-dark.svg`) };
    panel.title = title;
    const folders = panelFolders(input).map((path) => ({ path, uri: Uri.file(path), named: true as const }));
    const host = new WebviewHost(
      {
        webview: panel.webview,
        kind: input.kind,
        title: panel.title,
        input,
        folders,
        setTitle: (title) => this.#name(panel, host.input, title),
      },
      this.#deps,
    );
    const open: Open = { panel, host };
    this.#open.add(open);
    const ended = panel.onDidDispose(() => {
      this.#open.delete(open);
      const { input: last } = host;
      host.dispose();
      ended.dispose();
      focus.dispose();
      this.#on.closed?.(last);
      this.#changes.fire();
    });
    const focus = panel.onDidChangeViewState(() => this.#changes.fire());
    this.#name(panel, input, panel.title);
    this.#changes.fire();
  }
  #name(panel: WebviewPanel, input: PageInput, title: string): void {
    panel.title = title;
    const { titles } = this.#on,
      known = titles?.get() ?? {},
      key = panelKey(input);
    if (known[key] === title) return;
    titles?.keep(
      Object.fromEntries([...Object.entries(known).filter(([k]) => k !== key), [key, title]].slice(-mostTitles)),
    );
  }
  /**
   * After a reload VS Code restores a panel behind others only when it is looked at; until then its page is not among
   * ours. It is closed rather than opened a second time. Its tab is known by its title, if only one thing has that.
   */
  #closeUnrestored(input: PageInput): void {
    const titles = this.#on.titles?.get() ?? {},
      title = titles[panelKey(input)];
    if (title === undefined || Object.values(titles).filter((x) => x === title).length > 1) return;
    const ours = [...this.#open].map((o) => o.panel.title),
      tabs = this.#tabs(input.kind).filter((x) => x.label === title);
    if (tabs.length > ours.filter((x) => x === title).length) void window.tabGroups.close(tabs, true);
  }
  /** Tabs with panels of this kind, restored or not. */
  #tabs(kind: PageKind): Tab[] {
    const viewType = panelType(kind);
    return window.tabGroups.all
      .flatMap((g) => g.tabs)
      .filter((x) => x.input instanceof TabInputWebview && x.input.viewType.endsWith(viewType));
  }
}
