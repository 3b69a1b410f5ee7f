/** The page's end of the wire to the extension host: handshake, requests with cancellation, and the path -> URI map. */
import type {
  HostAction,
  HostError,
  PageInput,
  PageKind,
  PageMethod,
  Requester,
  ResourceRoot,
  ToHost,
  ToPage,
} from '../protocol.js';
import type { Params, Result } from '../../runtime/protocol/requests.js';
import type { RunEventType } from '../../runtime/protocol/types.js';
import { t } from './words.js';

/** What knows no host sends its action up as this event, as its detail. */
export const hostActionEvent = 'ds-host-action';

interface VsCodeApi {
  postMessage(m: unknown): void;
  getState(): unknown;
  setState(s: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

export type Init = Extract<ToPage, { type: 'init' }>;
export type Pushed = Exclude<ToPage, { type: 'init' | 'response' }>;

/** What a failed request rejects with: words for people and what to do next. */
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

/** What went wrong, in words to show. */
export const hostErrorOf = (e: unknown): HostError =>
  e instanceof RequestFailed
    ? { kind: e.kind, message: e.message, remedy: e.remedy }
    : {
        kind: 'internal',
        message: e instanceof Error ? e.message : String(e),
        remedy: t('Try again; if it persists, see the log.'),
      };

/** Of a page of kind `K`, which may ask the daemon what `pageMethods` lists for it. */
export class Host<K extends PageKind = PageKind> implements Requester<PageMethod<K>> {
  readonly #api: VsCodeApi;
  readonly #boot: string;
  readonly #waiting = new Map<number, { resolve: (v: unknown) => void; reject: (e: Error) => void }>();
  readonly #listeners = new Set<(m: Pushed) => void>();
  #roots: readonly ResourceRoot[] = [];
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
      const ready = (): void => this.#post({ type: 'ready', boot: this.#boot });
      // A window that is being restored may lose a message; to be ready twice does no harm.
      const again = setInterval(ready, 3000);
      addEventListener('message', (e: MessageEvent<ToPage>) => {
        const m = e.data;
        if (m.boot !== this.#boot) return;
        if (m.type === 'init') {
          clearInterval(again);
          this.#roots = m.roots;
          resolve(m);
          return;
        }
        if (m.type === 'show') this.#roots = m.roots;
        if (m.type === 'response') {
          const w = this.#waiting.get(m.id);
          this.#waiting.delete(m.id);
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

  /** A daemon request (pageMethods). Rejects with RequestFailed; an aborted one is cancelled on the way. */
  request<M extends PageMethod<K>>(method: M, params: Params<M>, signal?: AbortSignal): Promise<Result<M>> {
    const id = ++this.#id;
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
      this.#post({ type: 'request', boot: this.#boot, id, method, params });
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
    const r = this.#roots.find((x) => path === x.path || path.startsWith(x.path.endsWith('/') ? x.path : `${x.path}/`));
    if (!r) return undefined;
    return (
      r.uri.replace(/\/$/, '') +
      path.slice(r.path.replace(/\/$/, '').length).split('/').map(encodeURIComponent).join('/')
    );
  }
  /** The picture of a frame. */
  frame(framesDir: string, hash: string): string | undefined {
    return this.uri(`${framesDir}/${hash.slice(0, 2)}/${hash}.png`);
  }

  /** Navigation and UI choices of this page; survives hiding and reload. Never data. */
  getState<S>(): S | undefined {
    return this.#api.getState() as S | undefined;
  }
  setState(s: { readonly input: PageInput; readonly [k: string]: unknown }): void {
    this.#api.setState(s);
  }
  #post(m: ToHost): void {
    this.#api.postMessage(m);
  }
}
