interface Job {
  /** A sentence. */
  readonly what: string;
  readonly exclusive: boolean;
}
export interface JobOptions {
  /** The job uses the desktops and the processor of a run, so no run begins beside it. */
  readonly exclusive?: boolean;
}

/** Long work that people asked for, a run aside. */
export class Jobs {
  readonly #jobs = new Map<AbortController, Job>();

  get any(): boolean {
    return this.#jobs.size > 0;
  }
  /** The exclusive job that keeps runs from beginning, in a sentence. */
  get exclusive(): string | undefined {
    return [...this.#jobs.values()].find((j) => j.exclusive)?.what;
  }
  /** Runs a job. Its signal fires with the caller's, and when all jobs are cancelled. */
  async run<T>(
    what: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    { exclusive = false }: JobOptions,
  ): Promise<T> {
    const abort = new AbortController(),
      onAbort = (): void => {
        abort.abort();
      };
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#jobs.set(abort, { what, exclusive });
    try {
      return await work(abort.signal);
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#jobs.delete(abort);
    }
  }
  cancelAll(): void {
    for (const j of this.#jobs.keys()) j.abort();
  }
}
