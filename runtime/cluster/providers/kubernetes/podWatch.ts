import { StudioError } from '../../../domain/index.js';
import { ignoreFailure } from '../../../concurrency/failures.js';
import { growingMs, pauseOrStop } from '../../../concurrency/pause.js';
import type { Api } from './api.js';
import type { Pod, PodList } from './pods.js';

const BACKOFF = { baseMs: 200, maxMs: 10_000 };

/**
 * The pods of one selector as the cluster tells of them: listed once, then watched from that version on; listed again
 * when the server has forgotten it (410). A server that is away changes nothing until it is back.
 */
export class PodWatch {
  readonly #api: Api;
  readonly #path: string;
  readonly #selector: string;
  readonly #pods = new Map<string, Pod>();
  readonly #listeners = new Map<string, Set<(pod: Pod | undefined) => void>>();
  readonly #stop = new AbortController();
  #listed: Promise<void> | undefined;
  #version = '';

  constructor(api: Api, namespace: string, selector: string) {
    this.#api = api;
    this.#path = `/api/v1/namespaces/${namespace}/pods`;
    this.#selector = selector;
  }

  /** Begins to watch; resolves when what exists is known. Rejects when it cannot be listed; then call it again. */
  ready(): Promise<void> {
    this.#listed ??= this.#list().then(
      () => {
        ignoreFailure(this.#follow(), 'it ends only with close()');
      },
      (e: unknown) => {
        this.#listed = undefined;
        throw e;
      },
    );
    return this.#listed;
  }

  pod(name: string): Pod | undefined {
    return this.#pods.get(name);
  }

  /** A pod that was just created: it is known before the watch tells of it. */
  add(name: string, pod: Pod): void {
    if (!this.#pods.has(name)) this.#pods.set(name, pod);
  }

  /** Calls `listener` at every change; `undefined` when the pod is gone. */
  onChange(name: string, listener: (pod: Pod | undefined) => void): () => void {
    const all = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, all.add(listener));
    return () => {
      all.delete(listener);
      if (all.size === 0) this.#listeners.delete(name);
    };
  }

  /** The first answer of `test` that is not undefined, now or at a change. Rejects with what it throws, or when the signal fires. */
  until<T>(name: string, test: (pod: Pod | undefined) => T | undefined, signal: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const off = this.onChange(name, (pod) => look(pod));
      const aborted = (): void => {
        end();
        reject(signal.reason as Error);
      };
      const end = (): void => {
        off();
        signal.removeEventListener('abort', aborted);
      };
      const look = (pod: Pod | undefined): void => {
        try {
          const found = test(pod);
          if (found === undefined) return;
          end();
          resolve(found);
        } catch (e) {
          end();
          reject(e as Error);
        }
      };
      signal.addEventListener('abort', aborted, { once: true });
      if (signal.aborted) aborted();
      else look(this.#pods.get(name));
    });
  }

  close(): void {
    this.#stop.abort();
    this.#listeners.clear();
  }

  async #list(): Promise<void> {
    const list = await this.#api.call<PodList>('GET', this.#path, {
      query: { labelSelector: this.#selector },
      signal: this.#stop.signal,
      what: 'list pods',
    });
    const now = new Map((list.items ?? []).map((p) => [p.metadata?.name ?? '', p]));
    this.#version = list.metadata?.resourceVersion ?? '';
    // A pod that was made after this list was is not missing.
    for (const [name, pod] of [...this.#pods])
      if (!now.has(name) && !(versionOf(pod) > Number(this.#version))) this.#set(name, undefined);
    for (const [name, pod] of now) this.#set(name, pod);
  }

  async #follow(): Promise<void> {
    let failures = 0,
      relist = false;
    while (!this.#stop.signal.aborted) {
      try {
        if (relist) await this.#list();
        relist = false;
        const began = performance.now();
        const events = this.#api.watch<Pod & { code?: number }>(this.#path, {
          query: { labelSelector: this.#selector, resourceVersion: this.#version },
          signal: this.#stop.signal,
          what: 'watch pods',
        });
        for await (const e of events) {
          if (e.type === 'ERROR') {
            relist = true;
            // Any other than a version that was forgotten, e.g. one that a server just started has not caught up with (504).
            if (e.object.code !== 410) failures++;
            break;
          }
          failures = 0;
          this.#version = e.object.metadata?.resourceVersion ?? this.#version;
          if (e.type !== 'BOOKMARK')
            this.#set(e.object.metadata?.name ?? '', e.type === 'DELETED' ? undefined : e.object);
        }
        // Ended at once: something in between does not carry watches.
        if (!relist && performance.now() - began < 500) failures++;
      } catch (e) {
        failures++;
        relist ||= e instanceof StudioError && e.error.details?.['status'] === 410;
      }
      if (failures > 0) {
        const wait = growingMs(BACKOFF, failures - 1, { from: 0.5, to: 1.5 });
        await pauseOrStop(wait, this.#stop.signal);
      }
    }
  }

  #set(name: string, pod: Pod | undefined): void {
    if (pod) this.#pods.set(name, pod);
    else this.#pods.delete(name);
    for (const l of [...(this.#listeners.get(name) ?? [])]) l(pod);
  }
}

const versionOf = (p: Pod): number => Number(p.metadata?.resourceVersion);
