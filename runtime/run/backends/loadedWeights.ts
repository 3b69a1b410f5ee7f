import type { PolicyVersion, ReplicaId } from '../../domain/index.js';
import type { AdapterWeights } from '../../policy/remote/endpointReplica.js';

interface Files {
  readonly version: PolicyVersion;
  /** Servers that have loaded them. A server that lost them is given them again. */
  readonly servers: Set<ReplicaId>;
}

/**
 * Which exported weights model servers have loaded. Files may go when the last of them has unloaded theirs, and newer
 * ones are in use everywhere: a server asks for the files of what it has loaded again when it runs out of room.
 */
export class LoadedWeights {
  /** Never rejects. */
  readonly #forget: (path: string) => Promise<void>;
  /** By saved path. A version that was exported anew has several. */
  readonly #files = new Map<string, Files>();
  oldest: () => number = () => 0;

  constructor(forget: (path: string) => Promise<void>) {
    this.#forget = forget;
  }
  change(server: ReplicaId, { saved, version }: AdapterWeights, loaded: boolean): void {
    if (saved === undefined) return;
    // A server has one adapter a version, under the version's name.
    if (loaded) for (const f of this.#files.values()) if (f.version === version) f.servers.delete(server);
    const files = this.#files.get(saved) ?? { version, servers: new Set() };
    this.#files.set(saved, files);
    if (loaded) files.servers.add(server);
    else files.servers.delete(server);
    const oldest = this.oldest();
    for (const [path, f] of this.#files) if (f.servers.size === 0 && f.version < oldest) this.#gone(path);
  }
  /** Files that are not published again: they go unless a server took them. */
  refused({ saved }: AdapterWeights): void {
    if (saved === undefined || (this.#files.get(saved)?.servers.size ?? 0) > 0) return;
    this.#gone(saved);
  }
  /** Deletes the files of all weights, which no server has loaded any more. */
  async forgetAll(): Promise<void> {
    const all = [...this.#files.keys()];
    this.#files.clear();
    await Promise.all(all.map((saved) => this.#forget(saved)));
  }
  #gone(path: string): void {
    this.#files.delete(path);
    void this.#forget(path);
  }
}
