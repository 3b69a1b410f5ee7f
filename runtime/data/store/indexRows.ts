import type { Database, SqlValue, Statement } from 'sql.js';

type Values = readonly (SqlValue | undefined)[];

/** Prepared statements of one database. */
export class Rows {
  readonly #db: Database;
  readonly #statements = new Map<string, Statement>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Statements belong to one database and go with it. */
  free(): void {
    for (const s of this.#statements.values()) s.free();
    this.#statements.clear();
  }

  run(sql: string, values: Values = []): void {
    this.#prepared(sql).run(values.map((v) => v ?? null));
  }
  all(sql: string, values: Values = []): SqlValue[][] {
    const s = this.#prepared(sql),
      out: SqlValue[][] = [];
    s.bind(values.map((v) => v ?? null));
    while (s.step()) out.push(s.get());
    // Without a reset the statement would still read when the transaction ends.
    s.reset();
    return out;
  }
  /** The first column of the first row, as a number. */
  number(sql: string, values: Values = []): number {
    return Number(this.all(sql, values)[0]?.[0] ?? 0);
  }

  #prepared(sql: string): Statement {
    let s = this.#statements.get(sql);
    if (!s) this.#statements.set(sql, (s = this.#db.prepare(sql)));
    return s;
  }

  /** How many rows the last statement changed. */
  get modified(): number {
    return this.#db.getRowsModified();
  }
}
