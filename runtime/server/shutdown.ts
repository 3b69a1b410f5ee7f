export type Reason = 'idle' | 'drained' | 'shutdown' | 'fault';
export interface ShutdownRequest {
  readonly reason: Reason;
  readonly message?: string;
  /** Whether running rollouts get no grace. */
  readonly now: boolean;
  /** Whether the next daemon goes on with the active run, which nobody wanted to end. */
  readonly keep?: boolean;
  /** Exit code; the highest asked for is used. */
  readonly code: number;
  /** ms until the process leaves whatever is still going on. */
  readonly deadlineMs: number;
}
export interface ShutdownEffects {
  /** Ends what is served. Runs once; who asked for the end is answered when it is done. */
  cleanup(r: ShutdownRequest): Promise<void>;
  /** Then lets go of sockets, files and the lock. */
  leave(): Promise<void>;
  /** A later request wants the same without grace. */
  hurry(): void;
  exit(code: number): void;
  log(level: 'info' | 'warn' | 'error', message: string): void;
}

/**
 * The one way out: signals, requests, idling and faults share one cleanup. A second signal or the deadline ends
 * the process at once.
 */
export class ShutdownCoordinator {
  readonly #effects: ShutdownEffects;
  #cleanup: Promise<void> | undefined;
  #code = 0;
  #signals = 0;
  #now = false;
  #left = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(effects: ShutdownEffects) {
    this.#effects = effects;
  }
  get inProgress(): boolean {
    return this.#cleanup !== undefined;
  }

  /** Resolves when the cleanup is done, just before the process leaves. */
  request(r: ShutdownRequest): Promise<void> {
    this.#code = Math.max(this.#code, r.code);
    if (!this.#cleanup) {
      this.#now = r.now;
      this.#effects.log(
        r.reason === 'fault' ? 'error' : 'info',
        `going down: ${r.reason}${r.message ? ` (${r.message})` : ''}`,
      );
      this.#arm(r.deadlineMs);
      this.#cleanup = this.#effects.cleanup(r).catch(this.#failed);
      void this.#cleanup
        .then(() => this.#effects.leave())
        .catch(this.#failed)
        .then(() => this.#exit());
    } else if (r.now && !this.#now) {
      this.#now = true;
      this.#arm(r.deadlineMs);
      this.#effects.hurry();
    }
    return this.#cleanup;
  }
  /** SIGTERM or SIGINT. The first one is a request without grace, the second the end. */
  signal(name: string): void {
    if (this.#signals++ > 0) {
      this.#effects.log('warn', `second signal (${name}): leaving without cleaning up`);
      this.#code = Math.max(this.#code, 1);
      this.#exit();
      return;
    }
    // A machine that goes down sends SIGTERM, a terminal that is closed SIGHUP; Ctrl-C is a person's.
    const keep = name !== 'SIGINT';
    void this.request({ reason: 'shutdown', message: name, now: true, keep, code: 0, deadlineMs: 60_000 });
  }
  /** Handles an error that nobody caught. Abort-type rejections are how cancelled work ends, and no fault. */
  fault(e: unknown, where: 'exception' | 'rejection'): void {
    if (where === 'rejection' && isAbort(e)) return;
    this.#effects.log('error', `uncaught ${where}: ${e instanceof Error ? (e.stack ?? e.message) : String(e)}`);
    if (this.#cleanup) {
      this.#code = Math.max(this.#code, 1);
      return;
    }
    void this.request({
      reason: 'fault',
      message: e instanceof Error ? e.message : String(e),
      now: true,
      keep: true,
      code: 1,
      deadlineMs: 30_000,
    });
  }

  #arm(ms: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => {
      this.#effects.log('error', `still cleaning up after ${ms} ms: leaving`);
      this.#code = Math.max(this.#code, 1);
      this.#exit();
    }, ms);
  }
  readonly #failed = (e: unknown): void => {
    this.#code = Math.max(this.#code, 1);
    this.#effects.log('error', `going down failed: ${e instanceof Error ? (e.stack ?? e.message) : String(e)}`);
  };
  #exit(): void {
    if (this.#left) return;
    this.#left = true;
    clearTimeout(this.#deadline);
    this.#effects.exit(this.#code);
  }
}

function isAbort(e: unknown): boolean {
  if (!(e instanceof Error)) return false;
  return (
    e.name === 'AbortError' ||
    (e as { code?: unknown }).code === 'ABORT_ERR' ||
    (e as { kind?: unknown }).kind === 'cancelled'
  );
}
