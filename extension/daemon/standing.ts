/**
 * What outlives a connection: event subscriptions and watched desktops. Each is asked for again at every new session.
 */
import type { ScreenHeader } from '../../runtime/protocol/binary.js';
import type { Notifications } from '../../runtime/protocol/notifications.js';
import type { Session } from './session.js';
import { asError, DaemonError, type EventsBatch, type EventsQuery, type WatchListener } from './types.js';

/** Errors after which asking again at the next session makes sense. */
const passing = (e: unknown): boolean =>
  e instanceof DaemonError && (e.kind === 'connection.lost' || e.kind === 'cancelled');

interface Subscription {
  readonly q: EventsQuery;
  next: number;
  id?: number;
  readonly batch: (b: EventsBatch) => void;
  readonly failed: (e: DaemonError) => void;
}

/**
 * Events of runs, each exactly once and in order, over any number of connections: the next one wanted is asked for, and
 * what was seen is dropped.
 */
export class Subscriptions {
  readonly #all = new Set<Subscription>();
  #byId = new Map<number, Subscription>();
  #session: Session | undefined;

  add(q: EventsQuery, batch: (b: EventsBatch) => void, failed: (e: DaemonError) => void): () => void {
    const s: Subscription = { q, next: q.sinceSeq, batch, failed };
    this.#all.add(s);
    void this.#ask(s);
    return () => {
      this.#all.delete(s);
      if (s.id !== undefined) this.#drop(s.id);
    };
  }
  /** A new session, or none. */
  attach(session: Session | undefined): void {
    this.#session = session;
    this.#byId = new Map();
    for (const s of this.#all) {
      delete s.id;
      void this.#ask(s);
    }
  }
  take(p: Notifications['events/batch']): void {
    const s = this.#byId.get(p.subscription);
    if (!s) return;
    const events =
      p.events.length > 0 && p.events[0]!.seq < s.next ? p.events.filter((e) => e.seq >= s.next) : p.events;
    s.next = Math.max(s.next, p.nextSeq);
    if (p.ended || p.error) {
      this.#all.delete(s);
      this.#byId.delete(p.subscription);
    }
    if (p.error) s.failed(new DaemonError(p.error.kind, p.error.message, p.error.remedy));
    else s.batch({ events, nextSeq: s.next, live: p.live, ...(p.ended ? { ended: true } : {}) });
  }

  async #ask(s: Subscription): Promise<void> {
    const session = this.#session;
    if (!session) return;
    try {
      const { subscription } = await session.request('events/subscribe', { ...s.q, sinceSeq: s.next });
      if (session !== this.#session) return;
      if (!this.#all.has(s)) {
        this.#drop(subscription);
        return;
      }
      s.id = subscription;
      this.#byId.set(subscription, s);
    } catch (e) {
      if (session !== this.#session || passing(e) || !this.#all.delete(s)) return;
      s.failed(asError(e));
    }
  }
  #drop(id: number): void {
    this.#byId.delete(id);
    // closed: it has ended there too
    this.#session?.request('events/unsubscribe', { subscription: id }).catch(() => undefined);
  }
}

interface Watch {
  readonly desktop: string;
  readonly maxFps: number | undefined;
  readonly to: WatchListener;
  id?: number;
}

/** Screens of desktops; a new session starts them again with a whole picture. */
export class Watches {
  readonly #all = new Set<Watch>();
  #byId = new Map<number, Watch>();
  #session: Session | undefined;
  /** Pictures are not in line with answers: the first of a stream may come before the answer that names it. */
  #asking = 0;
  #early: { readonly h: ScreenHeader; readonly png: Uint8Array }[] = [];

  add(desktop: string, maxFps: number | undefined, to: WatchListener): () => void {
    const w: Watch = { desktop, maxFps, to };
    this.#all.add(w);
    void this.#ask(w);
    return () => {
      this.#all.delete(w);
      if (w.id !== undefined) this.#drop(w.id);
    };
  }
  attach(session: Session | undefined): void {
    this.#session = session;
    this.#byId = new Map();
    for (const w of this.#all) {
      delete w.id;
      void this.#ask(w);
    }
  }
  patch(h: ScreenHeader, png: Uint8Array): void {
    const w = this.#byId.get(h.stream);
    if (w) w.to.patch(h, png);
    else if (this.#asking > 0) this.#early.push({ h, png });
  }
  ended(p: Notifications['desktop/streamEnded']): void {
    const w = this.#byId.get(p.stream);
    if (!w) return;
    this.#byId.delete(p.stream);
    this.#all.delete(w);
    w.to.end(p.error);
  }

  async #ask(w: Watch): Promise<void> {
    const session = this.#session;
    if (!session) return;
    this.#asking++;
    try {
      const { stream, width, height } = await session.request('desktop/watch', {
        desktop: w.desktop,
        ...(w.maxFps === undefined ? {} : { maxFps: w.maxFps }),
      });
      if (session !== this.#session) return;
      if (!this.#all.has(w)) {
        this.#drop(stream);
        return;
      }
      w.id = stream;
      this.#byId.set(stream, w);
      w.to.start({ width, height });
      for (const e of this.#early) if (e.h.stream === stream) w.to.patch(e.h, e.png);
    } catch (e) {
      if (session !== this.#session || passing(e) || !this.#all.delete(w)) return;
      w.to.end(asError(e).hostError);
    } finally {
      if (--this.#asking === 0) this.#early = [];
    }
  }
  #drop(id: number): void {
    this.#byId.delete(id);
    this.#session?.request('desktop/unwatch', { stream: id }).catch(() => undefined);
  }
}
