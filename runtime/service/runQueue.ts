import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { ServiceError, toRunError, type RunError } from '../domain/index.js';
import { growingMs, type Patience } from '../concurrency/pause.js';
import { replaceFile } from '../files/replaceFile.js';
import * as m from '../protocol/methods.js';
import type { AlertKind } from '../domain/run.js';
import type { QueuedRun, QueueView } from '../protocol/types.js';
import { keepRecord, readOwnRecord } from './ownRecord.js';
import { fields, schemas, type Handlers } from './params.js';
import {
  added,
  begun,
  changed,
  emptyQueue,
  hasRoom,
  moved,
  nextOf,
  recovered,
  removed,
  viewOf,
  waitFor,
  waitsAgain,
  type Entry,
  type QueueState,
} from './queueState.js';
import { planStart } from './runSession.js';
import type { Studio } from './studio.js';

/** Desktops may be away for a while, as where Docker starts after the daemon. */
const AWAY: Patience = { baseMs: 5000, maxMs: 300_000, attempts: Infinity };
const fileName = 'queue.json',
  mostBytes = 64 << 20;
/** An item of `queue/add`: a run file's text is always given, so that what is queued is what is run. */
const queued = schemas.startRun.omit({ preset: true }).required({ text: true });
const stored = z.object({ paused: z.boolean().optional(), items: z.array(z.unknown()) }),
  item = z.object({
    id: fields.text,
    name: z.string(),
    seed: z.number().optional(),
    state: z.enum(['waiting', 'running', 'done', 'failed']),
    run: z.string().optional(),
    error: z.string().optional(),
    start: queued,
  });

/**
 * Runs that are begun one after another. Written whole before anything begins, so that whatever kills the daemon, the
 * next one goes on: with the run that was active, then with the rest.
 */
export class RunQueue {
  readonly #studio: Studio;
  readonly #file: string;
  #q: QueueState = emptyQueue;
  #writing: Promise<void> = Promise.resolve();
  #begins = false;
  /**
   * Until it is set, a run that was active before goes first; a daemon that is there for one run alone leaves the queue
   * to the next.
   */
  #open = false;
  #loaded: Promise<void>;
  /** Entries that wait for desktops, until they are tried again. */
  readonly #held = new Set<string>();
  readonly #patience: Patience;
  #tries = 0;
  #again: NodeJS.Timeout | undefined;

  constructor(studio: Studio, dir: string, patience = AWAY) {
    this.#studio = studio;
    this.#patience = patience;
    this.#file = join(dir, fileName);
    this.#loaded = this.#load();
    studio.onSession((s) => {
      if (!s) this.#ended();
    });
    // The end of a run does not begin an entry while a long job is under way; the job's end does.
    studio.onIdle(() => void this.#next());
    studio.closing.addEventListener('abort', () => {
      clearTimeout(this.#again);
    });
  }
  /** Something is to begin: the daemon stays. */
  get busy(): boolean {
    return this.#begins || (this.#again !== undefined && !this.#studio.draining);
  }
  get view(): QueueView {
    return viewOf(this.#q);
  }
  /** Runs that were active are resumed by now, or never will be. */
  async recover(): Promise<void> {
    await this.#loaded;
    // Set at once: the run that was resumed may end while the queue is written.
    this.#open = true;
    await this.#put(
      recovered(this.#q, (run) =>
        this.#studio.session?.run === run ? 'active' : existsSync(join(run, 'run.json')) ? 'over' : 'never began',
      ),
    );
    void this.#next();
  }
  async list(): Promise<QueueView> {
    await this.#loaded;
    return this.view;
  }
  async change(how: (q: QueueState) => QueueState): Promise<QueueView> {
    await this.#loaded;
    const written = this.#put(how(this.#q));
    this.#release();
    await written;
    return this.view;
  }
  async add(runs: readonly QueuedRun[]): Promise<QueueView> {
    await this.#loaded;
    if (!hasRoom(this.#q, runs.length))
      throw new ServiceError('busy', 'The queue is full.', 'Remove runs from it, or wait until some have ended.');
    // Faults of a run file are reported now, and not when its turn comes in the middle of the night.
    const entries = runs.map((start): Entry => {
      const { config } = planStart(start);
      return {
        id: randomUUID(),
        name: config.name || basename(start.file ?? ''),
        seed: config.seed,
        state: 'waiting',
        start,
      };
    });
    return this.change((q) => added(q, entries));
  }

  #ended(): void {
    if (!this.#open || this.#studio.closing.aborted) return;
    const e = this.#q.items.find((x) => x.state === 'running');
    if (e) void this.#put(changed(this.#q, e.id, { state: 'done' }));
    this.#release();
  }
  async #next(): Promise<void> {
    const s = this.#studio;
    if (!this.#open || this.#begins || s.busy || s.draining || s.closing.aborted) return;
    const e = nextOf(this.#q, this.#held);
    if (!e) {
      this.#wait();
      return;
    }
    this.#begins = true;
    try {
      await this.#begin(e);
    } catch (x) {
      // Another run was begun first: this one waits for its end.
      if (x instanceof ServiceError && x.kind === 'busy') await this.#put(waitsAgain(this.#q, e.id));
      else if (!s.closing.aborted) await this.#notBegun(e, toRunError(x));
    } finally {
      this.#begins = false;
    }
    if (s.session) return;
    // An entry that could not begin makes way for the next.
    await this.#next();
    s.settle();
  }
  async #begin(e: Entry): Promise<void> {
    const plan = planStart(e.start);
    // The entry still waits here: people can start runs and change the queue meanwhile.
    await this.#studio.checkDesktops(plan);
    if (nextOf(this.#q, this.#held)?.id !== e.id) return;
    this.#tries = 0;
    await this.#put(begun(waitFor(this.#q, this.#alike(e)), e.id, plan.dir));
    await this.#studio.begin(plan);
  }
  async #notBegun(e: Entry, error: RunError): Promise<void> {
    const why = `${error.message} ${error.remedy}`.trim();
    // Somebody has taken it out.
    if (!this.#q.items.some((x) => x.id === e.id)) return;
    if (error.kind !== 'desktop.unavailable') {
      this.#say(e, 'finished', `could not be started: ${why}`);
      await this.#put(changed(this.#q, e.id, { state: 'failed', error: why }));
      return;
    }
    // Told once, however often it is tried.
    if (e.error === undefined) this.#say(e, 'stalled', `waits for desktops, and starts when there are some: ${why}`);
    const alike = this.#alike(e);
    for (const id of alike) this.#held.add(id);
    await this.#put(waitFor(waitsAgain(this.#q, e.id), alike, why));
  }
  /** Entries that need the same desktops, `e` among them: there are desktops for all of them, or for none. */
  #alike(e: Entry): ReadonlySet<string> {
    const of = desktopsOf(e);
    return new Set(this.#q.items.filter((x) => desktopsOf(x) === of).map((x) => x.id));
  }
  #say(e: Entry, kind: AlertKind, message: string): void {
    this.#studio.log('error', `Queued run ${e.name} ${message}`);
    this.#studio.alerts.send({ id: '', name: e.name, kind, message, at: Date.now() });
  }
  /** Tries again after a while: nothing tells when there are desktops. */
  #wait(): void {
    if (this.#held.size === 0 || this.#again || this.#studio.closing.aborted) return;
    this.#again = setTimeout(
      () => {
        this.#release();
        this.#studio.settle();
      },
      growingMs(this.#patience, this.#tries++),
    );
  }
  /** Tries the entries that waited for desktops again. */
  #release(): void {
    clearTimeout(this.#again);
    this.#again = undefined;
    this.#held.clear();
    void this.#next();
  }

  async #load(): Promise<void> {
    const say = (why: string): void => this.#studio.log('warn', `The queue of runs: ${why}`),
      text = await readOwnRecord(this.#file, { most: mostBytes, say });
    if (text === undefined) return;
    const { data } = stored.safeParse(parsed(text)),
      // One that is not understood costs the others nothing.
      read = (data?.items ?? []).map((x) => item.safeParse(x)),
      items = read.flatMap((r) => (r.success ? [r.data as Entry] : []));
    if (!data || items.length < read.length) await keepRecord(this.#file, text, say);
    if (data) this.#q = { paused: data.paused ?? false, items };
  }
  #put(q: QueueState): Promise<void> {
    this.#q = q;
    this.#studio.broadcast({ method: 'queue/changed', params: viewOf(q) });
    this.#writing = this.#writing.then(() =>
      replaceFile(this.#file, JSON.stringify(q), { durable: true, mode: 0o600 }).catch((e: unknown) => {
        this.#studio.log('warn', `The queue of runs cannot be written: ${toRunError(e).message}`);
      }),
    );
    return this.#writing;
  }
}
/** A key of the entry's desktops; an entry that cannot be planned shares its key with no other. */
function desktopsOf(e: Entry): string {
  try {
    return JSON.stringify(planStart(e.start).config.desktops);
  } catch {
    return e.id;
  }
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function queueHandlers(h: Handlers, queue: RunQueue): void {
  const id = z.strictObject({ id: fields.text });
  h.on(m.listQueue, schemas.empty, () => queue.list());
  h.on(m.addToQueue, z.strictObject({ runs: z.array(queued).min(1).max(100) }), (p) => queue.add(p.runs));
  h.on(m.removeFromQueue, id, (p) => queue.change((q) => removed(q, p.id)));
  h.on(m.moveInQueue, id.extend({ by: z.int().min(-1000).max(1000) }), (p) =>
    queue.change((q) => moved(q, p.id, p.by)),
  );
  h.on(m.pauseQueue, z.strictObject({ paused: z.boolean() }), (p) => queue.change((q) => ({ ...q, paused: p.paused })));
}
