/** The pages of the Trajectories view: filter, order, "Load more", and a reload that keeps what was unfolded. */
import * as methods from '../../runtime/protocol/methods.js';
import type { RunPath, TrajectoryRow, TrajectorySort } from '../../runtime/protocol/types.js';
import type { HostError } from '../../webview/protocol.js';
import { Emitter } from '../emitter.js';
import { wireError } from '../errorWords.js';
import type { Runtime } from '../runtimePort.js';
import { isEmpty, type ViewFilter } from './filter.js';

const largestPage = 500;

export class TrajectoryList {
  readonly #runtime: Runtime;
  readonly #changed = new Emitter<void>();
  readonly #pageSize: () => number;
  readonly onChange = (l: () => void): (() => void) => this.#changed.on(l);
  #run: RunPath | undefined;
  #filter: ViewFilter;
  #sort: TrajectorySort;
  #rows: readonly TrajectoryRow[] = [];
  #total = 0;
  #older = 0;
  #cursor: string | undefined;
  #problem: HostError | undefined;
  #loading: Promise<void> | undefined;
  /** Read again when the present reading is done. */
  #stale = false;
  #abort = new AbortController();

  constructor(runtime: Runtime, pageSize: () => number, filter: ViewFilter, sort: TrajectorySort) {
    this.#runtime = runtime;
    this.#pageSize = pageSize;
    this.#filter = filter;
    this.#sort = sort;
  }
  get run(): RunPath | undefined {
    return this.#run;
  }
  get filter(): ViewFilter {
    return this.#filter;
  }
  get sort(): TrajectorySort {
    return this.#sort;
  }
  get rows(): readonly TrajectoryRow[] {
    return this.#rows;
  }
  get total(): number {
    return this.#total;
  }
  /** Older ones that the run only counts. */
  get older(): number {
    return this.#older;
  }
  get more(): boolean {
    return this.#cursor !== undefined;
  }
  get problem(): HostError | undefined {
    return this.#problem;
  }
  get loading(): Promise<void> | undefined {
    return this.#loading;
  }

  /** Another run, filter or order: what is on the way for the old one is cancelled. */
  show(o: {
    readonly run?: RunPath | undefined;
    readonly filter?: ViewFilter;
    readonly sort?: TrajectorySort;
  }): Promise<void> {
    if ('run' in o) this.#run = o.run;
    if (o.filter) this.#filter = o.filter;
    if (o.sort) this.#sort = o.sort;
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#rows = [];
    this.#total = 0;
    this.#older = 0;
    this.#cursor = undefined;
    this.#loading = undefined;
    this.#stale = false;
    this.#changed.fire();
    return this.reload();
  }
  /** Reads as many rows as are shown; when called while it reads, it reads once more afterwards. */
  reload(): Promise<void> {
    if (this.#loading) {
      this.#stale = true;
      return this.#loading;
    }
    return this.#read(Math.min(largestPage, Math.max(this.#pageSize(), this.#rows.length)), undefined);
  }
  loadMore(): Promise<void> {
    if (this.#loading || this.#cursor === undefined) return this.#loading ?? Promise.resolve();
    return this.#read(this.#pageSize(), this.#cursor);
  }

  #read(limit: number, cursor: string | undefined): Promise<void> {
    const run = this.#run,
      { signal } = this.#abort;
    if (run === undefined || this.#runtime.state !== 'ready') return Promise.resolve();
    const before = cursor === undefined ? [] : this.#rows;
    const loading = (async () => {
      try {
        const page = await this.#runtime.request(
          methods.listTrajectories,
          {
            run,
            sort: this.#sort,
            limit,
            filter: isEmpty(this.#filter) ? undefined : this.#filter,
            cursor,
          },
          signal,
        );
        if (signal.aborted) return;
        // Rows may have moved between two pages of a run that goes on: none is shown twice. A reload of more than one
        // page renews the head and keeps the rest, which is older.
        const tail = cursor === undefined && this.#rows.length > limit ? this.#rows : [];
        const seen = new Set([...before, ...(tail.length > 0 ? page.rows : [])].map((r) => r.rollout));
        this.#rows =
          tail.length > 0
            ? [...page.rows, ...tail.filter((r) => !seen.has(r.rollout))]
            : [...before, ...page.rows.filter((r) => !seen.has(r.rollout))];
        this.#total = page.total;
        this.#older = page.older ?? 0;
        if (tail.length === 0) this.#cursor = page.cursor;
        this.#problem = undefined;
      } catch (e) {
        if (!signal.aborted) this.#problem = wireError(e);
      }
      if (signal.aborted) return;
      this.#loading = undefined;
      this.#changed.fire();
      if (this.#stale) {
        this.#stale = false;
        void this.reload();
      }
    })();
    this.#loading = loading;
    this.#changed.fire();
    return loading;
  }
}
