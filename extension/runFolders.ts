/** Folders of the workspace on this machine's disk, and where its runs are kept and looked for. */
import { workspace, type Memento, type WorkspaceFolder } from 'vscode';
import { stored } from './ids.js';
import { homeOf, rootsOf } from './model/roots.js';
import { settings } from './settings.js';

type Roots = ReturnType<typeof rootsOf>;

export class RunFolders {
  readonly #storage: string;
  readonly #state: Memento;

  /** `storage`: path of the runtime's folder, for runs made without an open folder. */
  constructor(storage: string, state: Memento) {
    this.#storage = storage;
    this.#state = state;
  }

  workspaceFolders(): string[] {
    return (workspace.workspaceFolders ?? []).filter((f) => f.uri.scheme === 'file').map((f) => f.uri.fsPath);
  }
  /** Folder that new runs are kept in. */
  home(folder?: WorkspaceFolder): string {
    return homeOf({
      folders: folder && folder.uri.scheme === 'file' ? [folder.uri.fsPath] : this.workspaceFolders(),
      storage: this.#storage,
      runsFolder: settings.runsFolder,
    });
  }
  /** Folder in which relative paths of a run without a file are resolved. */
  base(): string {
    return this.workspaceFolders()[0] ?? this.#storage;
  }
  /** Every folder that runs are looked for in. */
  roots(active: Parameters<typeof rootsOf>[0]['active']): Roots {
    return rootsOf({
      folders: this.workspaceFolders(),
      storage: this.#storage,
      runsFolder: settings.runsFolder,
      extra: this.#extra(),
      active,
    });
  }
  async addRoot(path: string): Promise<void> {
    const extra = this.#extra();
    if (!extra.includes(path)) await this.#state.update(stored.extraRoots, [...extra, path]);
  }
  async dropRoot(path: string): Promise<void> {
    await this.#state.update(
      stored.extraRoots,
      this.#extra().filter((x) => x !== path),
    );
  }
  #extra(): string[] {
    return this.#state.get<string[]>(stored.extraRoots, []);
  }
}
