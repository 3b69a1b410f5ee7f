import { appendFileSync } from 'node:fs';
import { open, rename, stat, type FileHandle } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { errorCode } from '../domain/index.js';

export type LogLevel = 'info' | 'warn' | 'error';
const maxBytes = 4 << 20;

/** The text as it may leave the process: no secrets, the home folder as ~. */
export function redact(text: string, secrets: readonly string[] = [], home = homedir()): string {
  let out = text;
  for (const s of secrets) if (s !== '') out = out.replaceAll(s, '[redacted]');
  // The match does not start at the beginning of the word that names a secret: a long word would take the square of its
  // length.
  out = out
    .replace(/\bBearer\s+[\w.~+/=-]+/gi, 'Bearer [redacted]')
    .replace(
      /((?:token|api[-_]?key|secret|password|authorization)["']?\s*[:=]\s*["']?)(?!Bearer )[^\s"',;}&]{6,}/gi,
      '$1[redacted]',
    );
  return home.length > 1 ? out.replaceAll(home, '~') : out;
}

/**
 * `daemon.log`, one line an entry; past 4 MB it becomes `daemon.1.log`. Writes are in order and off the caller's path.
 */
export class DaemonLog {
  readonly file: string;
  readonly #dir: string;
  readonly #secrets: readonly string[];
  #handle: FileHandle | undefined;
  #size = 0;
  #closed = false;
  #queue: Promise<void> = Promise.resolve();

  private constructor(dir: string, secrets: readonly string[]) {
    this.#dir = dir;
    this.#secrets = secrets;
    this.file = join(dir, 'daemon.log');
  }

  static async open(dir: string, secrets: readonly string[]): Promise<DaemonLog> {
    const log = new DaemonLog(dir, secrets);
    await log.#open();
    return log;
  }
  readonly write = (level: LogLevel, message: string): void => {
    const line = this.#line(level, message);
    // A full disk must not end a run.
    this.#queue = settled(this.#queue.then(() => this.#append(line)));
  };
  /** Writes synchronously, for a process that is about to end. */
  writeNow(level: LogLevel, message: string): void {
    try {
      appendFileSync(this.file, this.#line(level, message), { mode: 0o600 });
    } catch {
      /* nothing is left to tell it to */
    }
  }
  flush(): Promise<void> {
    return this.#queue;
  }
  async close(): Promise<void> {
    await this.flush();
    this.#closed = true;
    await this.#handle?.close();
    this.#handle = undefined;
  }

  #line(level: LogLevel, message: string): string {
    return `${new Date().toISOString()} [${level}] ${redact(message, this.#secrets).replace(/\r?\n/g, '\n    ')}\n`;
  }
  async #open(): Promise<void> {
    this.#handle = await open(this.file, 'a', 0o600);
    this.#size = (await stat(this.file)).size;
  }
  async #append(line: string): Promise<void> {
    if (this.#closed) return;
    if (this.#size + line.length > maxBytes && this.#handle) {
      const full = this.#handle;
      // From here on each entry tries again where this one fails.
      this.#handle = undefined;
      await full.close();
      await rename(this.file, join(this.#dir, 'daemon.1.log')).catch((e: unknown) => {
        // Somebody has removed it.
        if (errorCode(e) !== 'ENOENT') throw e;
      });
    }
    if (!this.#handle) await this.#open();
    await this.#handle!.appendFile(line);
    this.#size += Buffer.byteLength(line);
  }
}
import { settled } from '../concurrency/failures.js';
