/**
 * Run files in the editor: what is wrong in one is in the Problems view, and the commands of run files are offered for
 * every JSON file that is one, by its name, by its `$schema`, or because training was started with it.
 */
import {
  commands as vscodeCommands,
  Diagnostic,
  DiagnosticSeverity,
  languages,
  Range,
  window,
  workspace,
  type TextDocument,
  type Uri,
} from 'vscode';
import * as methods from '../runtime/protocol/methods.js';
import { Disposables, type Ends } from './dispose.js';
import { contextKeys, stored } from './ids.js';
import { placeOf } from './model/jsonPlaces.js';
import { hasSchema, withSchema } from './model/runFile.js';
import type { Runtime } from './runtimePort.js';
import { showInformationMessage } from './toasts.js';
import { t } from './words.js';

export interface RunFileOptions {
  readonly runtime: Runtime;
  readonly state: {
    get(key: string): readonly string[] | undefined;
    update(key: string, value: readonly string[]): void;
  };
  readonly failed: (e: unknown) => void;
}
const mostChosen = 50;

export class RunFileChecks implements Ends {
  readonly #o: RunFileOptions;
  readonly #own = new Disposables();
  readonly #problems = this.#own.add(languages.createDiagnosticCollection('dart-studio'));
  #active: boolean | undefined;

  constructor(o: RunFileOptions) {
    this.#o = o;
    this.#own.add(window.onDidChangeActiveTextEditor(() => this.#look()));
    this.#own.add(
      workspace.onDidSaveTextDocument((d) => {
        this.#look();
        if (this.is(d)) void this.check(d);
      }),
    );
    this.#own.add(workspace.onDidOpenTextDocument((d) => this.is(d) && void this.check(d)));
    this.#own.add(workspace.onDidCloseTextDocument((d) => this.#problems.delete(d.uri)));
    this.#own.defer(
      o.runtime.onState((s) => {
        if (s === 'ready') for (const d of workspace.textDocuments) if (this.is(d)) void this.check(d);
      }),
    );
    this.#look();
  }
  /** Whether a document is a run file. */
  is(d: TextDocument): boolean {
    if (d.languageId !== 'json' && d.languageId !== 'jsonc') return false;
    return hasSchema(d.uri.path, d.getText()) || this.#chosen().includes(d.uri.toString());
  }
  /** Shows the problems of a run file in the Problems view; returns their number. Needs the runtime. */
  async check(d: TextDocument): Promise<number> {
    // Old versions of it (git:), sides of a comparison and the like are not what training would read.
    if (this.#o.runtime.state !== 'ready' || !['file', 'untitled'].includes(d.uri.scheme)) return 0;
    const text = d.getText();
    try {
      const { problems } = await this.#o.runtime.request(methods.checkConfig, { text, file: d.uri.fsPath });
      // Nothing would take its problems away again.
      if (d.isClosed) return problems.length;
      this.#problems.set(
        d.uri,
        problems.map((p) => {
          const place = p.line === undefined ? placeOf(text, p.path) : undefined,
            range = place
              ? new Range(d.positionAt(place.from), d.positionAt(place.to))
              : d.lineAt(Math.max(0, Math.min(d.lineCount - 1, (p.line ?? 1) - 1))).range,
            found = new Diagnostic(range, p.message, DiagnosticSeverity.Error);
          found.source = 'DART Studio';
          return found;
        }),
      );
      return problems.length;
    } catch (e) {
      this.#o.failed(e);
      return 0;
    }
  }
  /** Training is started with this file: it is a run file from now on, and may say so for the editor's sake. */
  choose(d: TextDocument): void {
    if (hasSchema(d.uri.path, d.getText())) return;
    const key = d.uri.toString(),
      known = this.#chosen();
    if (known.includes(key)) return;
    this.#o.state.update(stored.runFiles, [...known, key].slice(-mostChosen));
    this.#look();
    const add = t('Add $schema');
    void showInformationMessage(
      t('{0} does not name the schema of run files, so the editor cannot complete its keys.', nameOf(d.uri)),
      add,
    ).then(async (picked) => {
      const text = picked === add ? withSchema(d.getText()) : undefined;
      if (text === undefined) return;
      const editor = await window.showTextDocument(d),
        whole = new Range(d.positionAt(0), d.positionAt(d.getText().length));
      await editor.edit((e) => e.replace(whole, text));
    });
  }
  dispose(): void {
    this.#own.dispose();
  }

  #chosen(): readonly string[] {
    return this.#o.state.get(stored.runFiles) ?? [];
  }
  #look(): void {
    const d = window.activeTextEditor?.document,
      active = d !== undefined && this.is(d);
    if (active === this.#active) return;
    this.#active = active;
    void vscodeCommands.executeCommand('setContext', contextKeys.runFileActive, active);
  }
}
const nameOf = (uri: Uri): string => uri.path.split('/').at(-1) ?? uri.path;
