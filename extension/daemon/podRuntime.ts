/** The runtime of a pod, reached through `kubectl port-forward`. Plain Node. */
import type { ChildProcess } from 'node:child_process';
import { parseDiscovery } from './discovery.js';
import {
  cancelledWords,
  faultOf,
  forwardArguments,
  forwardedPort,
  keepSaid,
  kubectl,
  late,
  missing,
  recordArguments,
  start,
  type Place,
} from './kubectl.js';
import type { RemoteRuntime, Way } from './remote.js';
import { DaemonError } from './types.js';

/**
 * Reads the pod's record anew for every connection: it says whether the pod still lives, and which token holds. The
 * connection ends with the forwarding process, and a later one starts another.
 */
export class PodRuntime implements RemoteRuntime {
  readonly name: string;
  readonly #place: Place;
  /** ms that forwarding may take to begin. */
  readonly #ms: number;
  #forward: ChildProcess | undefined;
  #ended = false;

  constructor(place: Place, pod: string, o: { readonly ms?: number } = {}) {
    this.#place = place;
    this.name = pod;
    this.#ms = o.ms ?? 30_000;
  }
  async reach(signal?: AbortSignal): Promise<Way> {
    this.#stop();
    const text = await kubectl(this.#place, recordArguments(this.#place, this.name), { signal, ms: this.#ms }),
      record = parseDiscovery(text);
    if (!record)
      throw new DaemonError(
        'remote.invalid',
        `The record of the runtime in ${this.name} makes no sense to this extension.`,
        'Install the version of the extension that its image was made from.',
      );
    const port = await this.#start(record.port, signal);
    return { record, port };
  }
  dispose(): void {
    this.#ended = true;
    this.#stop();
  }

  #stop(): void {
    this.#forward?.kill();
    this.#forward = undefined;
  }
  #start(port: number, signal: AbortSignal | undefined): Promise<number> {
    return new Promise((done, fail) => {
      if (this.#ended || signal?.aborted) {
        fail(cancelledWords());
        return;
      }
      const { program } = this.#place,
        child = start(this.#place, forwardArguments(this.#place, this.name, port)),
        said = keepSaid(child);
      this.#forward = child;
      let out = '';
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const end = (e: DaemonError): void => {
        settle();
        child.kill();
        fail(e);
      };
      const timer = setTimeout(() => end(late(program)), this.#ms),
        onAbort = (): void => end(cancelledWords());
      signal?.addEventListener('abort', onAbort);
      child.once('error', (e) => end(missing(program, e.message)));
      child.once('close', () => end(faultOf(said(), program)));
      child.stdout?.on('data', (d: Buffer) => {
        // Later lines tell of connections, and nobody reads them.
        if (out.length > 4096) return;
        out += d.toString();
        const here = forwardedPort(out);
        if (here === undefined) return;
        settle();
        done(here);
      });
    });
  }
}
