import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { StudioError, toRunError } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { growingMs, pause } from '../../concurrency/pause.js';
import { engineFailed, howItEnded, type RunningEngine } from './serve.js';

/**
 * An engine of our own for as long as it is wanted: started, started again at the same address when it dies, and ended.
 * What calls it waits meanwhile.
 */

export interface Launch {
  /** 0 chooses a free one. */
  readonly port: number;
  readonly key: string;
  readonly signal: AbortSignal;
}
export interface KeeperOptions {
  readonly launch: (l: Launch) => Promise<RunningEngine>;
  /** A note for people when the engine has died, or is back. */
  readonly onNote: (text: string) => void;
  /** Called when the engine dies again and again and is not started any more. */
  readonly onGivenUp: (e: StudioError) => void;
  readonly restart?: Partial<typeof RESTART>;
}
/**
 * An engine that has lived for `steadyMs`, or trained something, has got over what ended the one before. In a row, so
 * many deaths have one cause, which another start does not remove.
 */
const RESTART = { attempts: 5, baseMs: 1000, maxMs: 30_000, steadyMs: 600_000 };

/** A death is known so long after the calls that broke by it. */
const MOMENT_MS = 500;

export class EngineKeeper {
  readonly #o: KeeperOptions;
  readonly #restart: typeof RESTART;
  readonly #closed = new AbortController();
  /** The key that callers must send, so that nobody else on this machine can call the engine. */
  readonly key = randomBytes(32).toString('hex');
  /** Settles when it answers again; rejects when it never will. */
  #up: Promise<RunningEngine>;
  #now: RunningEngine | undefined;
  #url = '';
  /** Deaths in a row. `#died`: deaths in all. */
  #deaths = 0;
  #died = 0;

  /** Resolves when it answers. */
  static async start(o: KeeperOptions, signal: AbortSignal): Promise<EngineKeeper> {
    const k = new EngineKeeper(o);
    k.#up = k.#launch(0, signal);
    k.#url = (await k.#up).url;
    return k;
  }
  private constructor(o: KeeperOptions) {
    this.#o = o;
    this.#restart = { ...RESTART, ...o.restart };
    this.#up = Promise.reject(stopped());
    ignoreFailure(this.#up, 'start() puts another in its place');
  }

  /** Stays the same when it is started again. */
  get url(): string {
    return this.#url;
  }
  get device(): string | undefined {
    return this.#now?.device;
  }
  get pid(): number | undefined {
    return this.#now?.process.pid;
  }

  /** Called when the engine has trained something: deaths so far no longer count. */
  progressed(): void {
    this.#deaths = 0;
  }

  /** `fetch` that waits while the engine is away, and rejects with `engine.unavailable` when it stays away. */
  readonly fetch: typeof fetch = async (input, init) => {
    const signal = init?.signal;
    await (signal ? this.ready(signal) : this.#up);
    return fetch(input, init);
  };
  /** Resolves when the engine is there; rejects as `fetch` does. */
  readonly ready = (signal: AbortSignal): Promise<unknown> => abortable(this.#up, signal);

  /** Work that begins anew when the engine died meanwhile; what fails while it lives has failed. */
  async through<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      const died = this.#died;
      try {
        return await work();
      } catch (e) {
        if (this.#closed.signal.aborted) throw e;
        if (died === this.#died) await pause(MOMENT_MS, this.#closed.signal, stopped);
        if (died === this.#died) throw e;
        await this.#up;
      }
    }
  }

  /** Ends it; its callers' requests end with it. */
  async close(): Promise<void> {
    this.#closed.abort();
    const engine = await this.#up.catch(() => undefined);
    await engine?.stop();
  }

  async #launch(port: number, signal: AbortSignal): Promise<RunningEngine> {
    const engine = await this.#o.launch({ port, key: this.key, signal });
    if (this.#closed.signal.aborted) {
      await engine.stop();
      throw stopped();
    }
    this.#now = engine;
    void this.#watch(engine, performance.now());
    return engine;
  }

  async #watch(engine: RunningEngine, since: number): Promise<void> {
    const child = engine.process;
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    if (this.#closed.signal.aborted) return;
    this.#died++;
    if (performance.now() - since >= this.#restart.steadyMs) this.#deaths = 0;
    const failure = engineFailed('The engine ended', howItEnded(child), engine.log);
    this.#up = this.#again(failure);
    ignoreFailure(this.#up, 'whoever calls the engine hears of it, and so does onGivenUp');
  }

  /** Starts it anew, after growing pauses, until it answers or has died too often. */
  async #again(failure: StudioError): Promise<RunningEngine> {
    const { attempts } = this.#restart,
      port = Number(new URL(this.#url).port),
      { signal } = this.#closed;
    for (let last = failure; ;) {
      if (++this.#deaths > attempts) {
        this.#o.onGivenUp(last);
        throw last;
      }
      const { message, remedy } = toRunError(last);
      this.#o.onNote(`${message} ${remedy} It is started again (${this.#deaths} of ${attempts}).`);
      await pause(growingMs(this.#restart, this.#deaths - 1), signal, stopped);
      try {
        const engine = await this.#launch(port, signal);
        this.#o.onNote('The engine is back; training continues from its last checkpoint.');
        return engine;
      } catch (e) {
        if (signal.aborted || !(e instanceof StudioError)) throw e;
        last = e;
      }
    }
  }
}

/** The promise, or a rejection as soon as the signal fires. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
const stopped = (): StudioError =>
  new StudioError('cancelled', 'The engine was stopped.', 'Start the run again when you are ready.');
