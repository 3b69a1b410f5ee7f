import { access, constants } from 'node:fs/promises';
import { resolve } from 'node:path';
import { runHolder } from '../data/store/runLock.js';
import { type AnnotationMarks, type AnnotationView, type RunPath, ServiceError, messageOf } from '../domain/index.js';
import { settled } from '../concurrency/failures.js';
import { annotatedOf, marksOf } from './facts.js';
import { AnnotationLog, annotationsDir, logMark, readLog, type Lines } from './log.js';
import { emptyLine, type AnnotationRecord, type Line } from './line.js';
import { Turns } from '../concurrency/turns.js';

/** Most logs kept open for writing, and most logs cached in memory for reading. */
const OPEN = 8,
  CACHED = 32;

interface CachedLog {
  readonly mark: string;
  readonly lines: Lines;
  marks?: Promise<Map<string, AnnotationMarks>>;
}

/**
 * The annotations of all runs that this process serves: one writer per run, edits one after another; everything it
 * returns is on disk.
 */
export class Annotations {
  readonly #warn: (text: string) => void;
  readonly #open = new Map<RunPath, AnnotationLog>();
  readonly #kept = new Map<RunPath, CachedLog>();
  readonly #folded = new WeakMap<Line, AnnotationMarks | undefined>();
  readonly #turn = new Map<RunPath, Promise<unknown>>();
  #closed = false;
  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  /** The present annotations, by recorded trajectory. */
  async lines(run: RunPath): Promise<Lines> {
    return (await this.#read(resolve(run))).lines;
  }
  async line(run: RunPath, root: string): Promise<Line> {
    return (await this.lines(run)).get(root) ?? emptyLine;
  }

  /** Summaries for list rows, of the recorded trajectories that have annotations. */
  async marks(run: RunPath): Promise<ReadonlyMap<string, AnnotationMarks>> {
    const kept = await this.#read(resolve(run));
    return (kept.marks ??= this.#marks(kept.lines));
  }
  async #marks(lines: Lines): Promise<Map<string, AnnotationMarks>> {
    const out = new Map<string, AnnotationMarks>();
    const turns = new Turns();
    for (const [root, line] of [...lines]) {
      // A line is never changed, only replaced, so a folded one can be reused.
      if (!this.#folded.has(line)) this.#folded.set(line, marksOf(annotatedOf(root, line)[0]!));
      const marks = this.#folded.get(line);
      if (marks) out.set(root, marks);
      // Thousands of lines take longer than others should wait.
      if (turns.over) await turns.next();
    }
    return out;
  }

  /**
   * Adds one record, or none when `build` answers undefined; resolves with the line as it then is, on disk. `build`
   * sees the newest line, and is asked twice where the log must be opened first: what it throws leaves nothing behind.
   */
  async write(run: RunPath, root: string, build: (l: Line) => AnnotationRecord | undefined): Promise<Line> {
    const dir = resolve(run);
    return this.#inTurn(dir, async () => {
      const open = this.#open.get(dir),
        seen = open && !open.closed ? (open.lines.get(root) ?? emptyLine) : await this.line(dir, root);
      const first = build(seen);
      if (!first) return seen;
      const log = await this.#writer(dir),
        newest = log.lines.get(root) ?? emptyLine,
        record = open === log ? first : build(newest);
      if (record) {
        await log.append(record);
        this.#kept.delete(dir);
      }
      return log.lines.get(root) ?? emptyLine;
    });
  }

  /** Why the annotations cannot be edited; undefined when they probably can. */
  async locked(run: RunPath): Promise<AnnotationView['locked']> {
    const dir = resolve(run),
      folder = annotationsDir(dir),
      open = this.#open.get(dir);
    if (open && !open.closed) return undefined;
    const writable = async (path: string): Promise<string | undefined> =>
      access(path, constants.W_OK).then(
        () => undefined,
        (e: NodeJS.ErrnoException) => e.code,
      );
    const here = await writable(`${folder}/.`),
      problem = here === 'ENOENT' ? await writable(dir) : here;
    if (problem)
      return {
        message: `The folder of this run cannot be written to (${problem}).`,
        remedy: 'Copy the run to a folder you can write to, and annotate the copy.',
      };
    const holder = here === undefined ? await runHolder(folder) : undefined;
    if (holder)
      return {
        message: `The annotations of this run are being edited by another process${holder === 'unknown' ? '' : ` (${holder.pid} on ${holder.host})`}.`,
        remedy: 'Edit them there, or close it first.',
      };
    return undefined;
  }

  /** Resolves when pending edits are on disk and the logs are closed. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#turn.values());
    await Promise.all([...this.#open.values()].map((l) => l.close()));
    this.#open.clear();
  }

  async #read(dir: RunPath): Promise<CachedLog> {
    const open = this.#open.get(dir),
      mark =
        open && !open.closed
          ? 'open'
          : await logMark(dir).catch((e: unknown) => {
              this.#warn(`The annotations of ${dir} cannot be read: ${messageOf(e)}`);
              return 'none';
            }),
      kept = this.#kept.get(dir);
    if (kept?.mark === mark) {
      this.#kept.delete(dir);
      this.#kept.set(dir, kept);
      return kept;
    }
    const now: CachedLog =
      open && !open.closed
        ? { mark, lines: open.lines }
        : { mark, lines: mark === 'none' ? new Map<string, Line>() : await this.#readLog(dir) };
    this.#kept.set(dir, now);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size > CACHED) this.#kept.delete(oldest);
      break;
    }
    return now;
  }
  async #readLog(dir: RunPath): Promise<Lines> {
    const c = await readLog(dir);
    this.#report(dir, c);
    return c.lines;
  }
  #report(
    dir: RunPath,
    c: { readonly skipped: number; readonly damage: readonly { readonly from: number; readonly to: number }[] },
  ): void {
    const bytes = c.damage.reduce((n, d) => n + d.to - d.from, 0);
    if (bytes > 0 || c.skipped > 0)
      this.#warn(
        `The annotations of ${dir} are damaged: ${bytes} bytes and ${c.skipped} records cannot be read and are left out.`,
      );
  }
  async #writer(dir: RunPath): Promise<AnnotationLog> {
    if (this.#closed)
      throw new ServiceError('draining', 'The runtime is stopping.', 'Start it again when it has stopped.');
    const open = this.#open.get(dir);
    if (open && !open.closed) return open;
    const log = await AnnotationLog.open(dir);
    this.#report(dir, log.found);
    this.#open.delete(dir);
    this.#open.set(dir, log);
    this.#kept.delete(dir);
    for (const [other, l] of this.#open) {
      if (this.#open.size <= OPEN) break;
      if (!this.#turn.has(other)) {
        this.#open.delete(other);
        await l.close();
      }
    }
    return log;
  }
  #inTurn<T>(dir: RunPath, work: () => Promise<T>): Promise<T> {
    const mine = settled(this.#turn.get(dir)).then(work);
    this.#turn.set(dir, mine);
    const over = (): void => {
      if (this.#turn.get(dir) === mine) this.#turn.delete(dir);
    };
    mine.then(over, over);
    return mine;
  }
}
