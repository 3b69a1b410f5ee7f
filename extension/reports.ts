/** Reports as documents that are read and never asked to be saved: Markdown, shown rendered where VS Code can. */
import { commands as vscodeCommands, EventEmitter, Uri, window, workspace } from 'vscode';
import { Disposables, type Ends } from './dispose.js';

const scheme = 'dart-studio-report';

export class Reports implements Ends {
  readonly #own = new Disposables();
  readonly #changed = this.#own.add(new EventEmitter<Uri>());
  readonly #texts = new Map<string, string>();
  constructor() {
    this.#own.add(
      workspace.registerTextDocumentContentProvider(scheme, {
        onDidChange: this.#changed.event,
        provideTextDocumentContent: (uri) => this.#texts.get(uri.path) ?? '',
      }),
    );
  }
  /** Shows a document; one of the same name is renewed. */
  async show(name: string, markdown: string): Promise<void> {
    const uri = Uri.from({ scheme, path: `/${name.replace(/[^\w .-]+/g, '-')}.md` });
    this.#texts.set(uri.path, markdown);
    this.#changed.fire(uri);
    await workspace.openTextDocument(uri);
    // Where the Markdown extension is turned off, the text itself is shown.
    await vscodeCommands
      .executeCommand('markdown.showPreview', uri)
      .then(undefined, () => window.showTextDocument(uri, { preview: true }));
  }
  dispose(): void {
    this.#own.dispose();
  }
}
