import { watch } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { discoveryFile, type DiscoveryRecord } from '../../runtime/protocol/version.js';

const isInt = (x: unknown, max = Number.MAX_SAFE_INTEGER): boolean =>
  Number.isInteger(x) && (x as number) >= 0 && (x as number) <= max;

export function parseDiscovery(text: string): DiscoveryRecord | undefined {
  let r: unknown;
  try {
    r = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof r !== 'object' || r === null) return undefined;
  const { pid, port, token, protocol, minClient, build, startedAt } = r as Record<string, unknown>;
  const b = build as { version?: unknown; time?: unknown } | null | undefined;
  const ok =
    isInt(pid) &&
    isInt(port, 65_535) &&
    port !== 0 &&
    typeof token === 'string' &&
    /^[0-9a-f]{64}$/.test(token) &&
    isInt(protocol) &&
    isInt(minClient) &&
    isInt(startedAt) &&
    typeof b?.version === 'string' &&
    isInt(b.time);
  return ok ? (r as DiscoveryRecord) : undefined;
}

/**
 * The record, when this user wrote it and no other user could have read or changed it. It does not tell whether the
 * daemon is alive.
 */
export async function readDiscovery(storage: string): Promise<DiscoveryRecord | undefined> {
  let f;
  try {
    f = await open(join(storage, discoveryFile), 'r');
  } catch {
    return undefined;
  }
  try {
    const s = await f.stat();
    if (s.size > 4096 || (process.getuid && (s.uid !== process.getuid() || (s.mode & 0o077) !== 0))) return undefined;
    return parseDiscovery(await f.readFile('utf8'));
  } catch {
    return undefined;
  } finally {
    await f.close();
  }
}

const withoutWatchMs = 250;
/** Reports changes in the storage folder: the record, the start lock. */
export class FolderWatch {
  readonly #close: () => void;
  readonly #listeners = new Set<(name: string | null) => void>();
  #count = 0;
  private constructor(dir: string) {
    try {
      const w = watch(dir, { persistent: false }, (_event, name) => this.#fire(name));
      w.on('error', () => this.#fire(null)); // the folder was removed: whoever waits looks, and meets the deadline
      this.#close = () => w.close();
    } catch {
      // Linux gives out a limited number of watches, and editors use them up
      const t = setInterval(() => this.#fire(null), withoutWatchMs).unref();
      this.#close = () => clearInterval(t);
    }
  }
  static async open(dir: string): Promise<FolderWatch> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return new FolderWatch(dir);
  }
  /** Calls `l` with the name of what changed, where the system says it. */
  onChange(l: (name: string | null) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }
  close(): void {
    this.#close();
    this.#listeners.clear();
  }

  /**
   * The first result of `look` that is not undefined; `look` is called again at every change (and when `nudge`
   * resolves). Undefined after `ms`.
   */
  async until<T>(look: () => Promise<T | undefined>, ms: number, nudge?: Promise<unknown>): Promise<T | undefined> {
    let late = false,
      wake: () => void = () => undefined;
    const timer = setTimeout(() => {
        late = true;
        wake();
      }, ms),
      off = this.onChange(() => wake());
    void nudge?.then(() => {
      this.#count++;
      wake();
    });
    try {
      for (;;) {
        const seen = this.#count,
          found = await look();
        if (found !== undefined || late) return found;
        if (seen === this.#count)
          await new Promise<void>((go) => {
            wake = go;
            if (late || seen !== this.#count) go();
          });
      }
    } finally {
      clearTimeout(timer);
      off();
    }
  }
  #fire(name: string | null): void {
    this.#count++;
    for (const l of [...this.#listeners]) l(name);
  }
}
