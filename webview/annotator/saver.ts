/** Brings edits to disk, one at a time and in order for each trajectory, and hears of other windows' edits. */
import type { AnnotationOp, AnnotationView } from '../../runtime/protocol/types.js';
import type { HostError, Requester } from '../protocol.js';
import * as box from './outbox.js';
import type { KeptEdits, Outbox } from './outbox.js';

export interface Target {
  readonly run: string;
  readonly rollout: string;
}
export interface SaverIo extends Requester<`annotation/${'get' | 'edit' | 'undo' | 'redo'}`> {
  error(e: unknown): HostError;
  /** Something of this trajectory changed. */
  changed(t: Target): void;
}
/** Edits that are not on disk, for the page's own state. */
export interface KeptBox extends Target, KeptEdits {}

export const keyOf = (t: Target): string => `${t.run}\n${t.rollout}`;
/** Views kept of trajectories seen earlier; beyond this, those with nothing to save are dropped. */
const remembered = 8;
interface Entry {
  readonly target: Target;
  box: Outbox;
  asking?: Promise<void>;
  error?: HostError;
  /** Revision that the daemon told of while a request was under way. */
  heard?: number;
  /** Made here and not announced yet. */
  own?: number;
}

export class Saver {
  readonly #io: SaverIo;
  readonly #entries = new Map<string, Entry>();

  constructor(io: SaverIo, keptBoxes: readonly KeptBox[] = []) {
    this.#io = io;
    for (const k of keptBoxes)
      this.#entries.set(keyOf(k), { target: { run: k.run, rollout: k.rollout }, box: box.restored(k) });
  }
  of(t: Target): Outbox {
    return this.#entries.get(keyOf(t))?.box ?? box.empty;
  }
  /** Why its annotations could not be read. */
  errorOf(t: Target): HostError | undefined {
    return this.#entries.get(keyOf(t))?.error;
  }
  /** Edits of other trajectories that are not on disk. */
  unsavedElsewhere(t: Target): number {
    return [...this.#entries.values()]
      .filter((e) => keyOf(e.target) !== keyOf(t))
      .reduce((n, e) => n + (box.kept(e.box)?.edits.length ?? 0), 0);
  }
  get keep(): KeptBox[] {
    return [...this.#entries.values()].flatMap((e) => {
      const k = box.kept(e.box);
      return k ? [{ ...e.target, ...k }] : [];
    });
  }

  /** Asks for the daemon's view; what waited is then sent, what failed only with `retry`. */
  ask(t: Target, retry = true): Promise<void> {
    const e = this.#entry(t);
    if (!e.asking) e.heard = undefined;
    return (e.asking ??= this.#io
      .request('annotation/get', t)
      .then(
        (view) => {
          e.error = undefined;
          if (!e.box.busy) {
            if (e.heard === view.revision) e.heard = undefined;
            this.#put(e, box.seen(retry ? box.retried(e.box) : e.box, view));
          }
        },
        (x: unknown) => {
          e.error = this.#io.error(x);
          this.#io.changed(t);
        },
      )
      .finally(() => {
        e.asking = undefined;
        this.#pump(e);
      }));
  }
  edit(t: Target, ops: readonly AnnotationOp[]): void {
    this.#step(t, (b) => box.edit(b, ops));
  }
  undo(t: Target): void {
    this.#step(t, box.undo);
  }
  redo(t: Target): void {
    this.#step(t, box.redo);
  }
  rebase(t: Target): void {
    this.#step(t, box.rebased);
  }
  discard(t: Target): void {
    this.#step(t, box.discarded);
  }
  /** The daemon is asked first: an edit whose answer was lost may be there. */
  retry(t: Target): void {
    void this.ask(t);
  }
  /** The connection is back. */
  retryAll(): void {
    for (const e of [...this.#entries.values()])
      if (e.error || (e.box.jobs.length && !e.box.busy)) void this.ask(e.target);
  }
  /** `annotation/changed`: perhaps our own edit, whose answer is under way. */
  heard(t: Target, revision: number): void {
    const e = this.#entries.get(keyOf(t));
    if (!e) return;
    if (e.box.busy || e.asking) e.heard = revision;
    else if (e.own === revision && e.box.view?.revision === revision) e.own = undefined;
    // Also of the revision that is shown: a verdict on it came.
    else void this.ask(t, false);
  }
  /** Our own edit is done. Its notification is still to come, or came before. */
  #made(e: Entry, view: AnnotationView): void {
    if (e.heard === undefined) e.own = view.revision;
    else if (e.heard === view.revision) e.heard = undefined;
    this.#put(e, box.answered(e.box, view));
  }

  #entry(t: Target): Entry {
    const key = keyOf(t),
      e: Entry = this.#entries.get(key) ?? { target: t, box: box.empty };
    // Last used, last: those used longest ago are forgotten.
    this.#entries.delete(key);
    this.#entries.set(key, e);
    for (const [k, old] of this.#entries) {
      if (this.#entries.size <= remembered) break;
      if (old !== e && !old.box.jobs.length && !old.asking) this.#entries.delete(k);
    }
    return e;
  }
  #step(t: Target, f: (b: Outbox) => Outbox): void {
    const e = this.#entry(t);
    this.#put(e, f(e.box));
    this.#pump(e);
  }
  #put(e: Entry, b: Outbox): void {
    e.box = b;
    this.#io.changed(e.target);
  }
  #listen(e: Entry): void {
    if (!e.box.busy && !e.asking && e.heard !== undefined) void this.ask(e.target, false);
  }

  #pump(e: Entry): void {
    const job = e.asking ? undefined : box.next(e.box);
    if (!job) {
      this.#listen(e);
      return;
    }
    this.#put(e, box.sending(e.box));
    const sent =
      job.kind === 'edit'
        ? this.#io.request('annotation/edit', { ...e.target, base: e.box.base, ops: job.ops })
        : this.#io.request(`annotation/${job.kind}`, e.target);
    sent
      .then(
        (view) => this.#made(e, view),
        async (x: unknown) => {
          const error = this.#io.error(x);
          this.#put(e, box.failed(e.box, error));
          if (error.kind === 'busy' || job.kind !== 'edit') await this.ask(e.target, false);
        },
      )
      .finally(() => this.#pump(e));
  }
}
