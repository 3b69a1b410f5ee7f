/** Folders of the workspace on this machine's disk, and where its runs are kept and looked for. */
import { sep } from 'node:path';
import { Uri, workspace, type Memento, type WorkspaceFolder } from 'vscode';
import type { RunPath } from '../runtime/protocol/types.js';
import { stored } from './ids.js';
import { homeOf, inFolder, isListed, rootsOf } from './model/roots.js';
import { settingsAt, type FolderSettings } from './settings.js';

type Roots = ReturnType<typeof rootsOf>;

const isOnDisk = (f: WorkspaceFolder): boolean => f.uri.scheme === 'file';
const onDisk = (): readonly WorkspaceFolder[] => (workspace.workspaceFolders ?? []).filter(isOnDisk);
/** The folder's own runs folder: each folder of a workspace may name another. */
const runsOf = ({ uri }: WorkspaceFolder): string => inFolder(uri.fsPath, settingsAt(uri).runsFolder);

export class RunFolders {
  readonly #storage: string;
  readonly #state: Memento;

  /** `storage`: path of the runtime's folder, for runs made without an open folder. */
  constructor(storage: string, state: Memento) {
    this.#storage = storage;
    this.#state = state;
  }

  workspaceFolders(): string[] {
    return onDisk().map((f) => f.uri.fsPath);
  }
  /** Folder that new runs are kept in. */
  home(folder?: WorkspaceFolder): string {
    return homeOf({ homes: (folder && isOnDisk(folder) ? [folder] : onDisk()).map(runsOf), storage: this.#storage });
  }
  /** The runs folder of each workspace folder, but for those in the runtime's own folder. */
  homes(): string[] {
    return [...new Set(onDisk().map(runsOf))].filter((dir) => !`${dir}${sep}`.startsWith(`${this.#storage}${sep}`));
  }
  /** Settings of this folder, or of the one that keeps this run; without either, of the one that keeps new runs. */
  settings(of?: WorkspaceFolder | RunPath): FolderSettings {
    const folders = onDisk();
    if (typeof of === 'string') return settingsAt(folders.find((f) => isListed([runsOf(f)], of))?.uri ?? Uri.file(of));
    return settingsAt((of && isOnDisk(of) ? of : folders[0])?.uri);
  }
  /** Folder in which relative paths of a run without a file are resolved. */
  base(): string {
    return this.workspaceFolders()[0] ?? this.#storage;
  }
  /** Every folder that runs are looked for in. */
  roots(active: Parameters<typeof rootsOf>[0]['active']): Roots {
    return rootsOf({ homes: onDisk().map(runsOf), storage: this.#storage, extra: this.#extra(), active });
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
