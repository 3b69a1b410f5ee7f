import type { WatchListener } from '../../../extension/daemon/client.js';
import type { Runtime } from '../../../extension/runtimePort.js';
import type { DaemonState } from '../../../webview/protocol.js';

/** A runtime whose answers the test holds back and whose events it sends. */
export class ScriptedRuntime {
  state: DaemonState = 'stopped';
  stateDetail: undefined;
  hello: undefined;
  readonly asked: {
    readonly method: string;
    readonly params: unknown;
    readonly signal: AbortSignal | undefined;
    answer(v: unknown): void;
    fail(e: Error): void;
  }[] = [];
  readonly watches: {
    readonly desktop: string;
    readonly fps: number;
    readonly listener: WatchListener;
    ended: boolean;
  }[] = [];
  readonly subscriptions: {
    readonly query: { run: string; sinceSeq: number };
    send(b: unknown): void;
    ended: boolean;
  }[] = [];
  answers: Record<string, (params: never) => unknown> = {};
  readonly #state = new Set<(s: DaemonState) => void>();
  readonly #notes = new Map<string, Set<(p: unknown) => void>>();
  become(s: DaemonState): void {
    this.state = s;
    for (const l of this.#state) l(s);
  }
  notify(method: string, params: unknown): void {
    for (const l of this.#notes.get(method) ?? []) l(params);
  }
  readonly port = {
    onState: (l: (s: DaemonState) => void) => {
      this.#state.add(l);
      return () => this.#state.delete(l);
    },
    on: (type: { method: string }, l: (p: unknown) => void) => {
      const all = this.#notes.get(type.method) ?? new Set();
      this.#notes.set(type.method, all.add(l));
      return () => all.delete(l);
    },
    request: (type: { method: string }, params: unknown, signal?: AbortSignal) =>
      this.#ask(type.method, params, signal),
    call: (method: string, params: unknown, signal?: AbortSignal) => this.#ask(method, params, signal),
    subscribe: (query: { run: string; sinceSeq: number }, send: (b: unknown) => void) => {
      const s = { query, send, ended: false };
      this.subscriptions.push(s);
      return () => {
        s.ended = true;
      };
    },
    watch: (desktop: string, o: { readonly maxFps: number }, listener: WatchListener) => {
      const w = { desktop, fps: o.maxFps, listener, ended: false };
      this.watches.push(w);
      return () => {
        w.ended = true;
      };
    },
  };
  get runtime(): Runtime {
    const runtime = Object.create(this.port) as Runtime;
    Object.defineProperties(runtime, {
      state: { get: () => this.state },
      stateDetail: { get: () => undefined },
      hello: { get: () => undefined },
    });
    return runtime;
  }
  #ask(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    const ready = this.answers[method];
    return new Promise((resolve, reject) => {
      this.asked.push({ method, params, signal, answer: resolve, fail: reject });
      signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
      if (ready) resolve(ready(params as never));
    });
  }
}
export const settled = (): Promise<void> => new Promise((r) => setImmediate(r));
