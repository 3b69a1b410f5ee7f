/**
 * The experience pool of the selected run, read when the view is visible and again when the runtime reports a change.
 */
import * as methods from '../../runtime/protocol/methods.js';
import type { PoolView, RunPath } from '../../runtime/protocol/types.js';
import type { HostError } from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import { Emitter } from '../emitter.js';
import { wireError } from '../errorWords.js';
import type { Runtime } from '../runtimePort.js';
import { throttle, type Later } from '../throttle.js';

export interface PoolModelOptions {
  readonly runtime: Runtime;
  readonly later?: Later;
}

export class PoolModel implements Ends {
  readonly #o: PoolModelOptions;
  readonly #own = new Disposables();
  readonly #changed = new Emitter<void>();
  readonly #soon: () => void;
  #run: RunPath | undefined;
  #view: PoolView | undefined;
  #problem: HostError | undefined;
  #loading: Promise<void> | undefined;
  #seen = false;
  /** Whether the shown pool is older than the run. */
  #stale = true;
  #turn = 0;

  constructor(o: PoolModelOptions) {
    this.#o = o;
    this.#soon = this.#own.add(
      throttle(
        () => {
          void this.#read();
        },
        1000,
        o.later,
      ),
    );
    const { runtime } = o;
    this.#own.defer(
      runtime.on(methods.poolChanged, ({ run }) => {
        if (run === this.#run) this.touch();
      }),
    );
    this.#own.defer(
      runtime.onState((s) => {
        if (s === 'ready') {
          this.touch();
          return;
        }
        this.#forget();
        this.#changed.fire();
      }),
    );
  }
  readonly onChange = (l: () => void): (() => void) => this.#changed.on(l);
  get run(): RunPath | undefined {
    return this.#run;
  }
  get view(): PoolView | undefined {
    return this.#view;
  }
  get problem(): HostError | undefined {
    return this.#problem;
  }
  get loading(): Promise<void> | undefined {
    return this.#loading;
  }

  show(run: RunPath | undefined): void {
    if (run === this.#run) return;
    this.#run = run;
    this.#forget();
    this.#changed.fire();
    // Another run is shown at once, whatever was read a moment ago.
    if (this.#seen) void this.#read();
  }
  /** Whether the view is visible: otherwise the pool is not read. */
  seen(visible: boolean): void {
    this.#seen = visible;
    if (visible && this.#stale && this.#run !== undefined) this.#soon();
  }
  /** Something that it shows has changed. */
  touch(): void {
    this.#stale = true;
    if (this.#seen && this.#run !== undefined) this.#soon();
  }
  /** An answer that carries the pool as it is now. */
  take(run: RunPath, view: PoolView): void {
    if (run !== this.#run) return;
    this.#turn++;
    this.#view = view;
    this.#stale = false;
    this.#problem = this.#loading = undefined;
    this.#changed.fire();
  }
  dispose(): void {
    this.#own.dispose();
  }

  #forget(): void {
    this.#turn++;
    this.#view = this.#problem = this.#loading = undefined;
    this.#stale = true;
  }
  #read(): Promise<void> {
    const run = this.#run,
      turn = ++this.#turn;
    if (run === undefined || this.#o.runtime.state !== 'ready') return Promise.resolve();
    this.#stale = false;
    const loading = this.#o.runtime.request(methods.listPool, { run }).then(
      (view) => {
        if (turn === this.#turn) this.take(run, view);
      },
      (e: unknown) => {
        if (turn !== this.#turn) return;
        this.#loading = undefined;
        this.#problem = wireError(e);
        this.#changed.fire();
      },
    );
    this.#loading = loading;
    this.#changed.fire();
    return loading;
  }
}
