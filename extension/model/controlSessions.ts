/**
 * The control sessions of the runtime: who has which desktop. Updated by `control/changed` and reloaded when the
 * runtime is back, which is how a demonstration is found after a reload of the window.
 */
import * as methods from '../../runtime/protocol/methods.js';
import type { ControlSessionId, ControlState } from '../../runtime/protocol/types.js';
import { Disposables, type Ends } from '../dispose.js';
import { Emitter } from '../emitter.js';
import type { Runtime } from '../runtimePort.js';

/** Whether it still needs a person: it is running, or a judged demonstration was neither kept nor discarded. */
export const isOpen = (s: ControlState): boolean =>
  s.mode !== 'ended' ||
  (s.purpose === 'record' && s.verdict !== undefined && s.kept === undefined && s.error === undefined);

export interface ControlSessionsOptions {
  readonly runtime: Runtime;
  /** Sessions that were opened from this window, also before a reload. */
  readonly mine: readonly ControlSessionId[];
  readonly keepMine: (ids: readonly ControlSessionId[]) => void;
  readonly failed: (e: unknown, doing: string) => void;
}

export class ControlSessions implements Ends {
  readonly #o: ControlSessionsOptions;
  readonly #own = new Disposables();
  readonly #open = new Map<ControlSessionId, ControlState>();
  readonly #mine: Set<ControlSessionId>;
  readonly #changed = new Emitter<ControlState | undefined>();
  readonly #abandoned = new Emitter<ControlState>();

  constructor(o: ControlSessionsOptions) {
    this.#o = o;
    this.#mine = new Set(o.mine);
    const { runtime } = o;
    this.#own.defer(runtime.on(methods.controlChanged, (s) => this.note(s)));
    this.#own.defer(
      runtime.onState((state) => {
        if (state === 'ready') void this.reload();
        else if (this.#open.size > 0) {
          this.#open.clear();
          this.#changed.fire(undefined);
        }
      }),
    );
    if (runtime.state === 'ready') void this.reload();
  }
  /** Calls `l` with the session that changed; undefined: all of them. */
  readonly onChange = (l: (s: ControlState | undefined) => void): (() => void) => this.#changed.on(l);
  /** A session of this window that no page shows any more, and when it will end (`abandonedAt`). */
  readonly onAbandoned = (l: (s: ControlState) => void): (() => void) => this.#abandoned.on(l);

  get open(): readonly ControlState[] {
    return [...this.#open.values()];
  }
  get(id: ControlSessionId | undefined): ControlState | undefined {
    return id === undefined ? undefined : this.#open.get(id);
  }
  /** Whoever has this desktop. */
  of(desktop: string): ControlState | undefined {
    return this.open.find((s) => s.desktop === desktop);
  }
  isMine(id: ControlSessionId): boolean {
    return this.#mine.has(id);
  }

  /** Adds a session that this window created or shows. */
  adopt(s: ControlState): void {
    if (!this.#mine.has(s.session)) {
      this.#mine.add(s.session);
      this.#o.keepMine([...this.#mine]);
    }
    this.note(s);
  }
  note(s: ControlState): void {
    const before = this.#open.get(s.session);
    if (isOpen(s)) this.#open.set(s.session, s);
    else {
      this.#open.delete(s.session);
      if (this.#mine.delete(s.session)) this.#o.keepMine([...this.#mine]);
    }
    this.#changed.fire(s);
    if (isOpen(s) && s.abandonedAt !== undefined && before?.abandonedAt === undefined && this.#mine.has(s.session))
      this.#abandoned.fire(s);
  }
  async reload(): Promise<void> {
    try {
      const { sessions } = await this.#o.runtime.request(methods.listControl, {});
      for (const id of this.#open.keys()) if (!sessions.some((s) => s.session === id)) this.#open.delete(id);
      const there = [...this.#mine].filter((id) => sessions.some((s) => s.session === id));
      if (there.length < this.#mine.size) {
        this.#mine.clear();
        for (const id of there) this.#mine.add(id);
        this.#o.keepMine(there);
      }
      for (const s of sessions) this.note(s);
      this.#changed.fire(undefined);
    } catch (e) {
      this.#o.failed(e, 'list the open demonstrations');
    }
  }
  dispose(): void {
    this.#own.dispose();
  }
}
