/**
 * All webview panels: opened, found again, restored after a reload. One per run and kind (panelKinds.ts), reused with
 * `reveal`.
 */
import { Uri, ViewColumn, window, type WebviewPanel } from 'vscode';
import type { PageInput, PageKind } from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import { parseInput } from './messages.js';
import { panelFolders, panelKey, panelKinds, panelTitle } from './panelKinds.js';
import { WebviewHost, type HostDeps } from './webviewHost.js';

interface Open {
  readonly panel: WebviewPanel;
  readonly host: WebviewHost;
}
const kinds = Object.keys(panelKinds) as PageKind[];

export class PanelManager implements Ends {
  readonly #deps: HostDeps;
  readonly #closed: (input: PageInput) => void;
  readonly #own = new Disposables();
  /** Oldest first; a panel split off with `beside` comes after the one it was split from. */
  readonly #open = new Set<Open>();

  /** `closed`: what a panel showed when the user closed it. */
  constructor(deps: HostDeps, closed: (input: PageInput) => void = () => undefined) {
    this.#deps = deps;
    this.#closed = closed;
    for (const kind of kinds) {
      this.#own.add(
        window.registerWebviewPanelSerializer(panelKinds[kind].viewType, {
          deserializeWebviewPanel: (panel: WebviewPanel, state: unknown) => {
            const input = parseInput(state, kind);
            if (input) this.#adopt(panel, input);
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
  /** What is shown where the user can see it. */
  get visible(): readonly PageInput[] {
    return [...this.#open].filter((o) => o.panel.visible).map((o) => o.host.input);
  }
  /** What is open, seen or not; a page that was restored and not yet looked at is not among them. */
  get inputs(): readonly PageInput[] {
    return [...this.#open].map((o) => o.host.input);
  }

  show(input: PageInput, o: { readonly beside?: boolean; readonly preserveFocus?: boolean } = {}): void {
    const key = panelKey(input);
    const found = o.beside ? undefined : [...this.#open].find((x) => panelKey(x.host.input) === key);
    if (found) {
      if (!sameInput(found.host.input, input)) {
        found.panel.title = this.#titleOf(input);
        found.host.show(input);
      }
      found.panel.reveal(undefined, o.preserveFocus ?? false);
      return;
    }
    const { viewType, find } = panelKinds[input.kind];
    const column = {
      viewColumn: o.beside ? ViewColumn.Beside : ViewColumn.Active,
      preserveFocus: o.preserveFocus ?? false,
    };
    this.#adopt(window.createWebviewPanel(viewType, this.#titleOf(input), column, { enableFindWidget: find }), input);
  }
  dispose(): void {
    this.#own.dispose();
  }

  #titleOf(i: PageInput): string {
    return panelTitle(i, i.kind === 'live' ? this.#deps.held(i.desktop) : undefined);
  }
  #adopt(panel: WebviewPanel, input: PageInput): void {
    const icons = Uri.joinPath(this.#deps.extensionUri, 'media', 'icons'),
      { icon } = panelKinds[input.kind];
    panel.iconPath = { light: Uri.joinPath(icons, `${icon}-light.svg`), dark: Uri.joinPath(icons, `${icon}-dark.svg`) };
    panel.title = this.#titleOf(input);
    const folders = panelFolders(input).map((path) => ({ path, uri: Uri.file(path) }));
    const host = new WebviewHost(
      {
        webview: panel.webview,
        kind: input.kind,
        title: panel.title,
        input,
        folders,
        setTitle: (title) => {
          panel.title = title;
        },
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
      this.#closed(last);
    });
  }
}

const sameInput = (a: PageInput, b: PageInput): boolean => JSON.stringify(a) === JSON.stringify(b);
