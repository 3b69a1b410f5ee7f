/** The page's end of the wire to the extension host: handshake, requests with cancellation, and the path -> URI map. */
import type {
  HostAction,
  HostError,
  PageInput,
  PageJob,
  PageKind,
  PageMethod,
  Requester,
  ResourceRoot,
  ToHost,
  ToPage,
} from '../protocol.js';
import type { Params, Result } from '../../runtime/protocol/requests.js';
import type { RunEventType } from '../../runtime/protocol/types.js';
import { uriBelow } from '../folders.js';
import { t } from './words.js';

/** Event with which a part that knows no host sends its action up, as the event's detail. */
export const hostActionEvent = 'ds-host-action';

interface VsCodeApi {
  postMessage(m: unknown): void;
  getState(): unknown;
  setState(s: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

export type Init = Extract<ToPage, { type: 'init' }>;
export type Pushed = Exclude<ToPage, { type: 'init' | 'response' }>;

/** The error of a failed request: words for people and what to do next. */
export class RequestFailed extends Error {
  readonly kind: string;
  readonly remedy: string;
  constructor(e: HostError) {
    super(e.message);
    this.name = 'RequestFailed';
    this.kind = e.kind;
    this.remedy = e.remedy;
  }
}

/** An error in words to show. */
export const hostErrorOf = (e: unknown): HostError =>
  e instanceof RequestFailed
    ? { kind: e.kind, message: e.message, remedy: e.remedy }
    : {
        kind: 'internal',
        message: e instanceof Error ? e.message : String(e),
        remedy: t('Try again; if it persists, see the log.'),
      };

/** The host of a page of kind `K`, which may ask the daemon what `pageMethods` lists for it. */
export class Host<K extends PageKind = PageKind> implements Requester<PageMethod<K>> {
  readonly #api: VsCodeApi;
  readonly #boot: string;
  readonly #waiting = new Map<number, { resolve: (v: unknown) => void; reject: (e: Error) => void }>();
  readonly #listeners = new Set<(m: Pushed) => void>();
  /** Requests of the page before this one that nobody here waits for yet. */
  #going: readonly PageJob[] = [];
  #roots: readonly ResourceRoot[] = [];
  /** The choices that the host was told last. */
  #told = '';
  #id = 0;

  constructor() {
    // The page waits for its script no longer (extension/panels/html.ts).
    document.documentElement.dataset['started'] = '';
    document.getElementById('lost')?.remove();
    this.#api = acquireVsCodeApi();
    this.#boot = crypto.randomUUID();
    addEventListener('error', (e) =>
      this.#post({ type: 'fault', boot: this.#boot, message: `${e.message} at ${e.filename}:${e.lineno}` }),
    );
    document.addEventListener(hostActionEvent, (e) => this.act((e as CustomEvent<HostAction>).detail));
    addEventListener('unhandledrejection', (e) =>
      this.#post({
        type: 'fault',
        boot: this.#boot,
        message: e.reason instanceof Error ? (e.reason.stack ?? e.reason.message) : String(e.reason),
      }),
    );
  }

  /** Says that the page is there and waits for what it is to show. Listen before calling it. */
  start(): Promise<Init> {
    return new Promise((resolve) => {
      let there = false;
      const ready = (): void => this.#post({ type: 'ready', boot: this.#boot });
      // A window that is being restored may lose a message; to be ready twice does no harm.
      const again = setInterval(ready, 3000);
      addEventListener('message', (e: MessageEvent<ToPage>) => {
        const m = e.data;
        if (m.boot !== this.#boot) return;
        if (m.type === 'init') {
          clearInterval(again);
          this.#roots = m.roots;
          if (there) return;
          there = true;
          this.#told = JSON.stringify(m.input);
          this.#going = m.jobs ?? [];
          this.#id = Math.max(this.#id, ...this.#going.map((j) => j.id));
          resolve(m);
          return;
        }
        if (m.type === 'show') {
          this.#roots = m.roots;
          this.#told = JSON.stringify(m.input);
        }
        if (m.type === 'response') {
          const w = this.#waiting.get(m.id);
          this.#waiting.delete(m.id);
          this.#going = this.#going.filter((j) => j.id !== m.id);
          if (m.error) w?.reject(new RequestFailed(m.error));
          else w?.resolve(m.result);
          return;
        }
        for (const l of this.#listeners) l(m);
      });
      ready();
    });
  }
  on(listener: (m: Pushed) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Parameters of requests that the page before this one made and that go on: to ask the same is to wait for them. */
  going<M extends PageMethod<K>>(method: M): readonly Params<M>[] {
    return this.#going.filter((j) => j.method === method).map((j) => j.params as Params<M>);
  }
  /** A daemon request (pageMethods). Rejects with RequestFailed; an aborted one is cancelled on the way. */
  request<M extends PageMethod<K>>(method: M, params: Params<M>, signal?: AbortSignal): Promise<Result<M>> {
    const asked = JSON.stringify(params),
      going = this.#going.find((j) => j.method === method && JSON.stringify(j.params) === asked),
      id = going?.id ?? ++this.#id;
    this.#going = this.#going.filter((j) => j !== going);
    return new Promise<Result<M>>((resolve, reject) => {
      if (signal?.aborted) {
        reject(new RequestFailed({ kind: 'cancelled', message: t('Cancelled.'), remedy: '' }));
        return;
      }
      this.#waiting.set(id, { resolve: resolve as (v: unknown) => void, reject });
      signal?.addEventListener(
        'abort',
        () => {
          if (this.#waiting.has(id)) this.#post({ type: 'cancel', boot: this.#boot, id });
        },
        { once: true },
      );
      if (!going) this.#post({ type: 'request', boot: this.#boot, id, method, params });
    });
  }
  subscribe(o: {
    readonly run: string;
    readonly sinceSeq: number;
    readonly types?: readonly RunEventType[];
    readonly rollout?: string;
  }): void {
    this.#post({ type: 'subscribe', boot: this.#boot, ...o });
  }
  act(action: HostAction): void {
    this.#post({ type: 'action', boot: this.#boot, action });
  }
  title(title: string): void {
    this.#post({ type: 'title', boot: this.#boot, title });
  }

  /** URI of a local file, or undefined when the page may not show it. */
  uri(path: string): string | undefined {
    return uriBelow(this.#roots, path);
  }
  /** The picture of a frame. */
  frame(framesDir: string, hash: string): string | undefined {
    return this.uri(`${framesDir}/${hash.slice(0, 2)}/${hash}.png`);
  }

  /**
   * Navigation and UI choices of this page; survives hiding and reload. Never data. What is shown of them the host knows
   * too, and has a page that is built again begin with it.
   */
  getState<S>(): S | undefined {
    return this.#api.getState() as S | undefined;
  }
  setState(s: { readonly input: PageInput; readonly [k: string]: unknown }): void {
    this.#api.setState(s);
    const { input } = s;
    // Sessions the host knows from what it passes on; a document is the editor's.
    if (input.kind === 'live' || (input.kind === 'inspector' && input.run === undefined)) return;
    const told = JSON.stringify(input);
    if (told === this.#told) return;
    this.#told = told;
    this.#post({ type: 'now', boot: this.#boot, input });
  }
  #post(m: ToHost): void {
    this.#api.postMessage(m);
  }
}
