/**
 * Requests that outlive a connection: event subscriptions and watched desktops. Each is made again at every new
 * session.
 */
import type { ScreenHeader } from '../../runtime/protocol/binary.js';
import { ignoreFailure } from '../../runtime/protocol/failures.js';
import type { Notifications } from '../../runtime/protocol/notifications.js';
import type { Session } from './session.js';
import { asError, DaemonError, type EventsBatch, type EventsQuery, type WatchListener } from './types.js';

/** Errors after which a retry at the next session makes sense. */
const isTransient = (e: unknown): boolean =>
  e instanceof DaemonError && (e.kind === 'connection.lost' || e.kind === 'cancelled');

/** How one kind of standing request is made and ended. */
interface Kind<T> {
  /** Resolves with the id that the daemon gave it; `begin` is called in the same turn, if it is still wanted. */
  start(session: Session, item: T): Promise<{ readonly id: number; begin?(): void }>;
  stop(session: Session, id: number): Promise<unknown>;
  failed(item: T, e: DaemonError): void;
}

/** Requests of one kind that last until they are withdrawn, over any number of sessions. */
class StandingRequests<T extends object> {
  readonly #kind: Kind<T>;
  readonly #all = new Set<T>();
  readonly #ids = new Map<T, number>();
  #byId = new Map<number, T>();
  #session: Session | undefined;

  constructor(kind: Kind<T>) {
    this.#kind = kind;
  }
  add(item: T): () => void {
    this.#all.add(item);
    void this.#start(item);
    return () => {
      this.#all.delete(item);
      const id = this.#ids.get(item);
      this.#ids.delete(item);
      if (id !== undefined) this.#stop(id);
    };
  }
  /** A new session, or none. */
  attach(session: Session | undefined): void {
    this.#session = session;
    this.#byId = new Map();
    this.#ids.clear();
    for (const item of this.#all) void this.#start(item);
  }
  /** The subscription of this id in the present session. */
  get(id: number): T | undefined {
    return this.#byId.get(id);
  }
  /** The daemon has ended it. */
  ended(id: number): void {
    const item = this.#byId.get(id);
    this.#byId.delete(id);
    if (item) this.#all.delete(item);
  }

  async #start(item: T): Promise<void> {
    const session = this.#session;
    if (!session) return;
    try {
      const { id, begin } = await this.#kind.start(session, item);
      if (session !== this.#session) return;
      if (!this.#all.has(item)) {
        this.#stop(id);
        return;
      }
      this.#ids.set(item, id);
      this.#byId.set(id, item);
      begin?.();
    } catch (e) {
      if (session !== this.#session || isTransient(e) || !this.#all.delete(item)) return;
      this.#kind.failed(item, asError(e));
    }
  }
  #stop(id: number): void {
    this.#byId.delete(id);
    if (this.#session) ignoreFailure(this.#kind.stop(this.#session, id), 'it ends with the connection too');
  }
}

interface Subscription {
  readonly q: EventsQuery;
  next: number;
  readonly batch: (b: EventsBatch) => void;
  readonly failed: (e: DaemonError) => void;
}

/**
 * Events of runs, each exactly once and in order, over any number of connections: a new session asks for the next
 * event, and duplicates are dropped.
 */
export class Subscriptions {
  readonly #standing = new StandingRequests<Subscription>({
    start: async (session, s) => {
      const { subscription } = await session.request('events/subscribe', { ...s.q, sinceSeq: s.next });
      return { id: subscription };
    },
    stop: (session, id) => session.request('events/unsubscribe', { subscription: id }),
    failed: (s, e) => s.failed(e),
  });

  add(q: EventsQuery, batch: (b: EventsBatch) => void, failed: (e: DaemonError) => void): () => void {
    return this.#standing.add({ q, next: q.sinceSeq, batch, failed });
  }
  attach(session: Session | undefined): void {
    this.#standing.attach(session);
  }
  take(p: Notifications['events/batch']): void {
    const s = this.#standing.get(p.subscription);
    if (!s) return;
    const events =
      p.events.length > 0 && p.events[0]!.seq < s.next ? p.events.filter((e) => e.seq >= s.next) : p.events;
    s.next = Math.max(s.next, p.nextSeq);
    if (p.ended || p.error) this.#standing.ended(p.subscription);
    if (p.error) s.failed(new DaemonError(p.error.kind, p.error.message, p.error.remedy));
    else s.batch({ events, nextSeq: s.next, live: p.live, ended: p.ended || undefined });
  }
}

interface Watch {
  readonly desktop: string;
  readonly maxFps: number | undefined;
  readonly listener: WatchListener;
}

/** Screens of desktops; a new session starts them again with a whole picture. */
export class Watches {
  /** Pictures are not in line with answers: the first of a stream may come before the answer that names it. */
  #unanswered = 0;
  #early: { readonly header: ScreenHeader; readonly png: Uint8Array }[] = [];
  readonly #standing = new StandingRequests<Watch>({
    start: (session, w) => this.#start(session, w),
    stop: (session, id) => session.request('desktop/unwatch', { stream: id }),
    failed: (w, e) => w.listener.end(e.hostError),
  });

  add(desktop: string, maxFps: number | undefined, listener: WatchListener): () => void {
    return this.#standing.add({ desktop, maxFps, listener });
  }
  attach(session: Session | undefined): void {
    this.#standing.attach(session);
  }
  patch(header: ScreenHeader, png: Uint8Array): void {
    const w = this.#standing.get(header.stream);
    if (w) w.listener.patch(header, png);
    else if (this.#unanswered > 0) this.#early.push({ header, png });
  }
  ended(p: Notifications['desktop/streamEnded']): void {
    const w = this.#standing.get(p.stream);
    if (!w) return;
    this.#standing.ended(p.stream);
    w.listener.end(p.error);
  }

  async #start(session: Session, w: Watch): Promise<{ readonly id: number; begin(): void }> {
    this.#unanswered++;
    try {
      const { stream, width, height } = await session.request('desktop/watch', {
        desktop: w.desktop,
        maxFps: w.maxFps,
      });
      const early = this.#early.filter((e) => e.header.stream === stream);
      return {
        id: stream,
        begin: () => {
          w.listener.start({ width, height });
          for (const e of early) w.listener.patch(e.header, e.png);
        },
      };
    } finally {
      if (--this.#unanswered === 0) this.#early = [];
    }
  }
}
