/** The runtime's log file as an output channel: followed by file events, read from where the last reading ended. */
import { watch, type FSWatcher } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { LogOutputChannel } from 'vscode';
import type { Ends } from './dispose.js';
import { parseLine } from './logLine.js';
import { throttle } from './throttle.js';

/** Bytes from the end of the log that are shown at first. */
const firstBytes = 64 << 10;

export class LogTail implements Ends {
  readonly #file: string;
  readonly #to: LogOutputChannel;
  #watcher: FSWatcher | undefined;
  #offset: number | undefined;
  #rest = '';
  #reading = false;
  #again = false;
  readonly #soon = throttle(() => {
    void this.#read();
  }, 200);

  constructor(file: string, to: LogOutputChannel) {
    this.#file = file;
    this.#to = to;
  }
  /** Once the folder exists; idempotent. */
  start(): void {
    if (this.#watcher) return;
    try {
      this.#watcher = watch(dirname(this.#file), { persistent: false }, (_e, name) => {
        if (name === null || name === basename(this.#file)) this.#soon();
      });
    } catch {
      return;
    }
    this.#watcher.on('error', () => this.#stop());
    this.#soon();
  }
  dispose(): void {
    this.#stop();
    this.#soon.dispose();
  }

  #stop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }
  async #read(): Promise<void> {
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    try {
      const f = await open(this.#file, 'r');
      try {
        const { size } = await f.stat();
        const cut = this.#offset === undefined && size > firstBytes;
        // Smaller than what was read: the file was rotated and begins anew.
        let at = this.#offset === undefined ? Math.max(0, size - firstBytes) : size < this.#offset ? 0 : this.#offset;
        while (at < size) {
          const chunk = Buffer.alloc(Math.min(256 << 10, size - at));
          const { bytesRead } = await f.read(chunk, 0, chunk.length, at);
          if (bytesRead === 0) break;
          at += bytesRead;
          this.#write(chunk.toString('utf8', 0, bytesRead), cut && this.#offset === undefined);
          this.#offset = at;
        }
        this.#offset = at;
      } finally {
        await f.close();
      }
    } catch {
      /* not there yet, or just being rotated: the next event reads it */
    }
    this.#reading = false;
    if (this.#again) {
      this.#again = false;
      this.#soon();
    }
  }
  #write(text: string, dropFirst: boolean): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of dropFirst ? lines.slice(1) : lines) {
      if (line === '') continue;
      const { level, message } = parseLine(line);
      this.#to[level](message);
    }
  }
}
