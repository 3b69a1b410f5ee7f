/** Tags that trajectories of a run have: what the field for tags completes to. */
import type { AnnotationOp, TrajectoryRow } from '../../runtime/protocol/types.js';
import type { PageMethod, Requester } from '../protocol.js';

export class KnownTags {
  readonly #io: Requester<PageMethod<'inspector'>>;
  #all: readonly string[] = [];
  #run = '';

  constructor(io: Requester<PageMethod<'inspector'>>) {
    this.#io = io;
  }
  /** Sorted. */
  get all(): readonly string[] {
    return this.#all;
  }
  seeRows(rows: readonly TrajectoryRow[]): void {
    this.#add(rows.flatMap((r) => r.annotated?.tags ?? []));
  }
  seeOps(ops: readonly AnnotationOp[]): void {
    this.#add(ops.flatMap((op) => (op.op === 'tags' ? op.tags : [])));
  }
  /** Reads those of a run, once; true when there may be new ones. */
  async read(run: string): Promise<boolean> {
    if (this.#run === run) return false;
    this.#run = run;
    // Completion is a convenience: without an answer the person types the whole tag.
    try {
      this.seeRows((await this.#io.request('trajectory/list', { run, filter: { annotated: true }, limit: 200 })).rows);
    } catch {
      return false;
    }
    return true;
  }
  #add(tags: readonly string[]): void {
    if (tags.length > 0) this.#all = [...new Set([...this.#all, ...tags])].sort();
  }
}
