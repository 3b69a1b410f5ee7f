import type { StoredEvent } from '../../../runtime/data/events.js';
import { sqlJs } from '../../../runtime/data/store/indexEngine.js';
import { Rows } from '../../../runtime/data/store/indexRows.js';
import { schema } from '../../../runtime/data/store/indexSchema.js';
import { Trimmer, type IndexOptions } from '../../../runtime/data/store/indexTrim.js';
import { IndexWriter } from '../../../runtime/data/store/indexWriter.js';
import type { RunReader } from '../../../runtime/data/store/runStore.js';

type Params = readonly (string | number | null)[];

/** An index without a journal, as a run that is read: what is written is applied, a transaction a batch. */
export class MemoryIndex {
  readonly rows: Rows;
  readonly run: RunReader;
  readonly #writer: IndexWriter;
  readonly #trimmer: Trimmer;
  readonly #exec: (sql: string) => void;

  static async open(o: IndexOptions = {}): Promise<MemoryIndex> {
    const SQL = await sqlJs(),
      db = new SQL.Database();
    db.exec(schema);
    const query = (sql: string, params: Params): object[] => {
      const s = db.prepare(sql, [...params]),
        found: object[] = [];
      while (s.step()) found.push(s.getAsObject());
      s.free();
      return found;
    };
    return new MemoryIndex(new Rows(db), o, (sql) => void db.exec(sql), query);
  }
  private constructor(
    rows: Rows,
    o: IndexOptions,
    exec: (sql: string) => void,
    query: (sql: string, params: Params) => object[],
  ) {
    this.rows = rows;
    this.#writer = new IndexWriter(rows);
    this.#trimmer = new Trimmer(rows, o);
    this.#exec = exec;
    const columns = (sql: string, params: Params = []): unknown[][] => {
      const found = rows.all(sql, params);
      return (found[0] ?? []).map((_, i) => found.map((r) => r[i]));
    };
    this.run = {
      meta: { id: 'memory', createdAt: 0, format: 1 },
      dir: '',
      at: () => Promise.resolve(undefined),
      index: {
        query: (sql: string, params?: Params) => Promise.resolve(query(sql, params ?? [])),
        columns: (sql: string, params?: Params) => Promise.resolve(columns(sql, params)),
      },
    } as unknown as RunReader;
  }

  write(batch: readonly StoredEvent[]): void {
    this.#exec('BEGIN');
    for (const e of batch) this.#writer.apply(e, e.seq * 1500);
    this.#trimmer.trim();
    this.#writer.reached({ position: 0, seq: batch.at(-1)!.seq, events: 0 });
    this.#exec('COMMIT');
  }
  /** What is in use, in bytes. */
  get bytes(): number {
    const of = (what: string): number => this.rows.number(`PRAGMA ${what}`);
    return (of('page_count') - of('freelist_count')) * of('page_size');
  }
  close(): void {
    this.rows.free();
  }
}
