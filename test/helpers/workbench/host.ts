import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type * as vscode from 'vscode';

interface HostRecord {
  readonly pid: number;
  readonly port: number;
  readonly folders: readonly string[];
  readonly at: number;
}

/** The extension host of a workbench window, through the helper extension (test/helpers/extension-host). */
export class Host {
  readonly #dir: string;
  readonly #token: string;
  readonly #folder: string;
  #only: number | undefined;
  constructor(dir: string, token: string, folder: string) {
    this.#dir = dir;
    this.#token = token;
    this.#folder = folder;
  }

  /** Another window on the same folder has a host too; from now on it is not taken for this window's. */
  stay(): void {
    this.#only = this.record?.pid;
  }
  /** The window gets a new host. */
  renew(): void {
    this.#only = undefined;
  }

  /** The newest host of this window's folder; a reload makes a new one. */
  get record(): HostRecord | undefined {
    const all = listing(this.#dir).flatMap((f): HostRecord[] => {
      try {
        return [JSON.parse(readFileSync(join(this.#dir, f), 'utf8')) as HostRecord];
      } catch {
        return [];
      }
    });
    return all
      .filter((r) => r.folders.includes(this.#folder) && (this.#only === undefined || r.pid === this.#only))
      .sort((a, b) => b.at - a.at)[0];
  }

  /**
   * Runs `f(vscode, ...args)` there; it may use nothing but its arguments and Node's globals. Rejects with what it
   * threw.
   */
  async run<A extends readonly unknown[], R>(f: (v: typeof vscode, ...args: A) => R, ...args: A): Promise<Awaited<R>> {
    const r = this.record;
    if (!r) throw new Error('the extension host has not started');
    const res = await fetch(`http://127.0.0.1:${r.port}/eval`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#token}` },
      body: JSON.stringify({ fn: f.toString(), args }),
    });
    const body = (await res.json()) as { value?: Awaited<R>; error?: string };
    if (!res.ok) throw new Error(body.error);
    return body.value as Awaited<R>;
  }
  command<R = unknown>(id: string, ...args: unknown[]): Promise<R> {
    return this.run((v, c, a) => v.commands.executeCommand(c, ...a), id, args) as Promise<R>;
  }
  /** Starts a command that is over only when a person has answered it. */
  async begin(id: string, ...args: unknown[]): Promise<void> {
    await this.run(
      (v, c, a) => {
        void v.commands.executeCommand(c, ...a);
      },
      id,
      args,
    );
  }
}
const listing = (dir: string): string[] => {
  try {
    return readdirSync(dir).filter((f) => f.endsWith('.json'));
  } catch {
    return [];
  }
};
