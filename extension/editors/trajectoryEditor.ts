/**
 * The trajectory file as the inspector shows it. Read-only; works without the runtime, in Restricted Mode and in
 * virtual workspaces. Several editors of one document have a page each.
 */
import {
  commands as vscodeCommands,
  env,
  ViewColumn,
  window,
  type CustomReadonlyEditorProvider,
  type Uri,
  type WebviewPanel,
} from 'vscode';
import type { PageInput } from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import { commands, trajectoryEditor } from '../ids.js';
import { escapeHtml } from '../panels/html.js';
import { WebviewHost, type HostDeps } from '../panels/webviewHost.js';
import { showInformationMessage } from '../toasts.js';
import { t } from '../words.js';
import { TrajectoryDocument } from './trajectoryDocument.js';

interface Editor {
  readonly panel: WebviewPanel;
  readonly document: TrajectoryDocument;
  host?: WebviewHost;
}

export class TrajectoryEditors implements CustomReadonlyEditorProvider<TrajectoryDocument>, Ends {
  readonly #deps: HostDeps;
  readonly #maxBytes: () => number;
  readonly #editors = new Set<Editor>();
  readonly #own = new Disposables();

  constructor(deps: HostDeps, maxBytes: () => number) {
    this.#deps = deps;
    this.#maxBytes = maxBytes;
    this.#own.add(
      window.registerCustomEditorProvider(trajectoryEditor, this, {
        supportsMultipleEditorsPerDocument: true,
        webviewOptions: { enableFindWidget: true },
      }),
    );
  }
  get active(): { readonly host: WebviewHost | undefined; readonly uri: Uri } | undefined {
    const e = [...this.#editors].find((x) => x.panel.active);
    return e && { host: e.host, uri: e.document.uri };
  }
  uriOf(host: WebviewHost): Uri | undefined {
    return [...this.#editors].find((e) => e.host === host)?.document.uri;
  }
  openCustomDocument(uri: Uri): Promise<TrajectoryDocument> {
    return TrajectoryDocument.open(uri, this.#maxBytes);
  }

  resolveCustomEditor(document: TrajectoryDocument, panel: WebviewPanel): void {
    const editor: Editor = { panel, document },
      own = new Disposables();
    this.#editors.add(editor);
    own.add(document.onDidChange(() => this.#show(editor)));
    const ended = panel.onDidDispose(() => {
      this.#editors.delete(editor);
      editor.host?.dispose();
      own.dispose();
      ended.dispose();
    });
    this.#show(editor);
  }
  dispose(): void {
    this.#own.dispose();
  }

  #show(e: Editor): void {
    const { content, folder } = e.document;
    if (content.kind === 'trajectory') {
      const input: PageInput = {
        kind: 'inspector',
        rollout: content.view.row.rollout,
        document: content.view,
        skipped: content.skipped.length > 0 ? content.skipped : undefined,
      };
      if (e.host) e.host.show(input);
      else
        e.host = new WebviewHost(
          {
            webview: e.panel.webview,
            kind: 'inspector',
            title: content.view.row.instruction,
            input,
            folders: [{ path: folder.path.replace(/\/$/, ''), uri: folder }],
          },
          this.#deps,
        );
      if (content.skipped.length > 0)
        this.#deps.log.warn(
          `${e.document.uri.path}: ${content.skipped.length} lines could not be read and are left out`,
        );
      return;
    }
    e.host?.dispose();
    delete e.host;
    if (content.kind === 'tooLarge') this.#openAsText(e, content.bytes);
    else if (content.kind === 'special') this.#explain(e, t('It is not a regular file.'), '');
    else this.#explain(e, content.why);
  }
  #openAsText(e: Editor, bytes: number): void {
    const column = e.panel.viewColumn ?? ViewColumn.Active;
    void showInformationMessage(
      t(
        'This trajectory is too large for the inspector ({0} MB); it is shown as text. The limit is the setting dartStudio.trajectory.maxFileSizeMb.',
        Math.round(bytes / 2 ** 20),
      ),
    );
    e.panel.dispose();
    void vscodeCommands.executeCommand('vscode.openWith', e.document.uri, 'default', column);
  }
  /** `actions`: HTML. */
  #explain(
    e: Editor,
    why: string,
    actions = `<p><a href="command:${commands.openAsText}">${escapeHtml(t('Open as Text'))}</a></p>`,
  ): void {
    const { webview } = e.panel;
    webview.options = { enableScripts: false, localResourceRoots: [], enableCommandUris: [commands.openAsText] };
    webview.html = `<!DOCTYPE html><html lang="${escapeHtml(env.language)}"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><title>${escapeHtml(t('Trajectory'))}</title></head>
<body><main><h1>${escapeHtml(t('This file cannot be shown as a trajectory'))}</h1><p>${escapeHtml(why)}</p>${actions}</main></body></html>`;
  }
}
