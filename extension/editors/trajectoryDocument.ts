/** A `.traj.jsonl` file read through VS Code's file system: no runtime, no trust, no local disk needed. */
import {
  EventEmitter,
  FileSystemError,
  FileType,
  RelativePattern,
  workspace,
  type CustomDocument,
  type Uri,
} from 'vscode';
import { parseTrajectory } from '../../runtime/protocol/trajectoryFile.js';
import type { TrajectoryView } from '../../runtime/protocol/types.js';
import { Disposables } from '../dispose.js';
import { throttle } from '../throttle.js';
import { folderOf, framesUnder } from './framesFolder.js';

export type Content =
  | {
      readonly kind: 'trajectory';
      readonly view: TrajectoryView;
      /** Lines that could not be used. */
      readonly skipped: readonly { readonly line: number; readonly why: string }[];
    }
  | { readonly kind: 'tooLarge'; readonly bytes: number }
  | { readonly kind: 'unreadable'; readonly why: string }
  /** A device, a pipe or a folder: it is not read, as text neither. */
  | { readonly kind: 'special' };

export class TrajectoryDocument implements CustomDocument {
  readonly uri: Uri;
  readonly folder: Uri;
  readonly #own = new Disposables();
  readonly #changed = this.#own.add(new EventEmitter<void>());
  readonly onDidChange = this.#changed.event;
  readonly #maxBytes: () => number;
  #content: Content = { kind: 'unreadable', why: '' };

  private constructor(uri: Uri, maxBytes: () => number) {
    this.uri = uri;
    this.folder = folderOf(uri);
    this.#maxBytes = maxBytes;
  }
  static async open(uri: Uri, maxBytes: () => number): Promise<TrajectoryDocument> {
    const d = new TrajectoryDocument(uri, maxBytes);
    await d.#load();
    // A writer touches a file several times; a reload a quarter second after the first touch and once after the last is
    // enough.
    const reload = d.#own.add(
      throttle(() => {
        d.#load().then(
          () => d.#changed.fire(),
          () => undefined,
        );
      }, 250),
    );
    const watcher = d.#own.add(
      workspace.createFileSystemWatcher(new RelativePattern(d.folder, uri.path.slice(uri.path.lastIndexOf('/') + 1))),
    );
    d.#own.add(watcher.onDidChange(reload));
    d.#own.add(watcher.onDidCreate(reload));
    return d;
  }
  get content(): Content {
    return this.#content;
  }
  dispose(): void {
    this.#own.dispose();
  }

  async #load(): Promise<void> {
    try {
      this.#content = await this.#read();
    } catch (e) {
      this.#content = {
        kind: 'unreadable',
        why: e instanceof FileSystemError || e instanceof Error ? e.message : String(e),
      };
    }
  }
  async #read(): Promise<Content> {
    // The name may be that of a link: reading from /dev/zero never ends, and a pipe holds a thread until somebody writes.
    const { type, size } = await workspace.fs.stat(this.uri);
    if ((type & FileType.File) === 0) return { kind: 'special' };
    if (size > this.#maxBytes()) return { kind: 'tooLarge', bytes: size };
    const bytes = await workspace.fs.readFile(this.uri);
    // Checked again: the file may have grown, and files of /proc say 0.
    if (bytes.byteLength > this.#maxBytes()) return { kind: 'tooLarge', bytes: bytes.byteLength };
    const parsed = parseTrajectory(new TextDecoder().decode(bytes));
    return parsed.ok
      ? {
          kind: 'trajectory',
          view: { ...parsed.trajectory, framesDir: framesUnder(this.folder, parsed.trajectory.framesDir) },
          skipped: parsed.skipped,
        }
      : { kind: 'unreadable', why: `line ${parsed.line}: ${parsed.why}` };
  }
}
