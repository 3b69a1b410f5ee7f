import { existsSync } from 'node:fs';
import { messageOf } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import initSqlJs from 'sql.js';
import type { Database, SqlJsStatic, SqlValue } from 'sql.js';
import { createFresh } from '../../files/folderParts.js';
import { readForeign } from '../../files/foreignFile.js';
import { crc32 } from '../../files/crc32.js';
import { storedEvent } from './follow.js';
import { syncDir } from './journal.js';
import { readJournal } from './journalReader.js';
import type { JournalPosition } from './journalReader.js';
import { schema, schemaVersion } from './indexSchema.js';
import { Rows } from './indexRows.js';
import { Trimmer, type IndexOptions } from './indexTrim.js';
import { IndexWriter } from './indexWriter.js';

export type Row = Readonly<Record<string, SqlValue>>;
export interface IndexStatus {
  /** Everything before this journal position is in the tables. */
  readonly position: JournalPosition;
  readonly events: number;
  /** How the index came up. */
  readonly start: 'snapshot' | 'rebuilt' | 'new';
  /** Why the snapshot was not used. */
  readonly because?: string;
}

/**
 * Loads sql.js from beside the bundle, packed (a tenth smaller than a zip packs it), or from node_modules when run from
 * sources.
 */
async function loadSqlJs(): Promise<SqlJsStatic> {
  const beside = join(dirname(fileURLToPath(import.meta.url)), 'sql-wasm.wasm.br');
  if (!existsSync(beside))
    return initSqlJs({ locateFile: () => createRequire(import.meta.url).resolve('sql.js/dist/sql-wasm.wasm') });
  const wasmBinary = await promisify(brotliDecompress)(await readForeign(beside, MOST_WASM));
  return initSqlJs({ wasmBinary: new Uint8Array(wasmBinary).buffer });
}
const MOST_WASM = 4 << 20;
/** A snapshot is held in memory whole; one this large takes longer to read than to make anew. */
const MOST_BYTES = 1 << 30;
let loading: Promise<SqlJsStatic> | undefined;
/** The library, loaded once for the process or thread. */
export const sqlJs = (): Promise<SqlJsStatic> => (loading ??= loadSqlJs());

/**
 * The index itself: a sql.js database that is a function of the journal. It is loaded from its snapshot when that is
 * valid, else rebuilt, and follows the journal by reading it. Runs in the store's worker thread, or in a short-lived
 * reader.
 */
export class IndexEngine {
  readonly #journal: string;
  readonly #file: string;
  readonly #db: Database;
  readonly #rows: Rows;
  readonly #writer: IndexWriter;
  readonly #trimmer: Trimmer;
  #position: JournalPosition;
  #events: number;
  #dirty = false;
  #start: IndexStatus['start'] = 'new';
  #because: string | undefined;

  private constructor(
    db: Database,
    journal: string,
    file: string,
    position: number,
    events: number,
    o: IndexOptions | undefined,
  ) {
    this.#db = db;
    this.#rows = new Rows(db);
    this.#writer = new IndexWriter(this.#rows);
    this.#trimmer = new Trimmer(this.#rows, o);
    this.#journal = journal;
    this.#file = file;
    this.#position = position;
    this.#events = events;
  }

  /**
   * `journal` is the folder, `file` the snapshot, `until` the durable end of the journal (its present end when absent).
   */
  static async open(journal: string, file: string, until?: JournalPosition, o?: IndexOptions): Promise<IndexEngine> {
    const [SQL, bytes] = await Promise.all([
      sqlJs(),
      orUndefined(readForeign(file, MOST_BYTES, { inside: dirname(file) }), 'without a snapshot the index is rebuilt'),
    ]);
    let engine: IndexEngine | undefined, because: string | undefined;
    if (bytes) {
      const loaded = load(SQL, bytes, until);
      if ('problem' in loaded) because = loaded.problem;
      else {
        engine = new IndexEngine(loaded.db, journal, file, loaded.position, loaded.events, o);
        engine.#start = 'snapshot';
      }
    }
    if (!engine) {
      const db = new SQL.Database();
      db.exec(schema);
      engine = new IndexEngine(db, journal, file, 0, 0, o);
      engine.#because = because;
      engine.#writer.setMeta('schema', schemaVersion);
    }
    const before = engine.#events;
    await engine.advance(until);
    if (engine.#start === 'new' && engine.#events > before) engine.#start = 'rebuilt';
    return engine;
  }

  status(): IndexStatus {
    return {
      position: this.#position,
      events: this.#events,
      start: this.#start,
      because: this.#because,
    };
  }
  get dirty(): boolean {
    return this.#dirty;
  }

  /** Applies the journal's records up to `until`; one transaction per batch, which also stores the position. */
  async advance(until?: JournalPosition): Promise<void> {
    if (until !== undefined && until <= this.#position) return;
    for await (const batch of readJournal(this.#journal, {
      from: this.#position > 0 ? this.#position : undefined,
      until,
    })) {
      const position = batch.at(-1)!.next,
        events = this.#events + batch.length;
      this.#db.exec('BEGIN');
      try {
        for (const entry of batch) this.#writer.apply(storedEvent(entry), entry.position);
        this.#trimmer.trim();
        this.#writer.reached({ position, seq: batch.at(-1)!.seq, events });
        this.#db.exec('COMMIT');
      } catch (e) {
        this.#db.exec('ROLLBACK');
        throw e;
      }
      this.#position = position;
      this.#events = events;
      this.#dirty = true;
    }
  }

  /** These are not trimmed: people worked on them. */
  hold(rollouts: readonly string[]): void {
    this.#rows.run('INSERT OR IGNORE INTO held SELECT value FROM json_each(?)', [JSON.stringify(rollouts)]);
    this.#dirty ||= this.#rows.modified > 0;
  }

  /** Rows of a SELECT; any other statement is refused. */
  query(sql: string, params: readonly SqlValue[] = []): Row[] {
    this.#db.exec('PRAGMA query_only = 1');
    try {
      const s = this.#db.prepare(sql, [...params]),
        rows: Row[] = [];
      try {
        while (s.step()) rows.push(s.getAsObject());
      } finally {
        s.free();
      }
      return rows;
    } finally {
      this.#db.exec('PRAGMA query_only = 0');
    }
  }

  /** The same as columns, which cross a thread at a fraction of the cost of rows. */
  columns(sql: string, params: readonly SqlValue[] = []): SqlValue[][] {
    this.#db.exec('PRAGMA query_only = 1');
    try {
      const s = this.#db.prepare(sql, [...params]),
        out: SqlValue[][] = s.getColumnNames().map(() => []);
      try {
        while (s.step())
          s.get().forEach((v, i) => {
            out[i]!.push(v);
          });
      } finally {
        s.free();
      }
      return out;
    } finally {
      this.#db.exec('PRAGMA query_only = 0');
    }
  }

  /**
   * Atomic: a reader sees the old snapshot or the new one. Returns its size, or 0 when nothing changed since the last.
   */
  async snapshot(): Promise<number> {
    if (!this.#dirty) return 0;
    const bytes = this.#db.export(),
      tmp = `${this.#file}.tmp`;
    seal(bytes);
    this.#dirty = false;
    try {
      const f = await createFresh(tmp);
      try {
        await f.writeFile(bytes);
        await f.sync();
      } finally {
        await f.close();
      }
      await rename(tmp, this.#file);
      await syncDir(dirname(this.#file));
    } catch (e) {
      this.#dirty = true;
      await rm(tmp, { force: true });
      throw e;
    }
    return bytes.length;
  }

  close(): void {
    this.#rows.free();
    this.#db.close();
  }
}

/**
 * Byte of a SQLite file at which its application id lies: 4 bytes that nobody else uses here and that take the checksum
 * of all the others.
 */
const sealAt = 68;
const sum = (bytes: Uint8Array): number => crc32(bytes.subarray(sealAt + 4), crc32(bytes.subarray(0, sealAt)));
const view = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
function seal(bytes: Uint8Array): void {
  view(bytes).setUint32(sealAt, sum(bytes));
}
/**
 * Whether every byte is as it was written; undefined for a file without a seal. Takes 10 ms where SQLite's own check of
 * 40 MB takes 230.
 */
function sealed(bytes: Uint8Array): boolean | undefined {
  if (bytes.length < sealAt + 4) return undefined;
  const kept = view(bytes).getUint32(sealAt);
  return kept === 0 ? undefined : kept === sum(bytes);
}

/**
 * Everything a database defines. A view or trigger in a file that a stranger made would run with our questions, and
 * could run for ever.
 */
const tablesOf = (db: Database): string =>
  JSON.stringify(db.exec('SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name')[0]?.values ?? []);
let ours: string | undefined;
function ourTables(SQL: SqlJsStatic): string {
  if (ours !== undefined) return ours;
  const db = new SQL.Database();
  db.exec(schema);
  ours = tablesOf(db);
  db.close();
  return ours;
}

type Loaded =
  { readonly db: Database; readonly position: number; readonly events: number } | { readonly problem: string };

function load(SQL: SqlJsStatic, bytes: Buffer, until: JournalPosition | undefined): Loaded {
  let db: Database | undefined;
  try {
    const whole = sealed(bytes);
    if (whole === false) throw new Error('it is damaged (its checksum differs)');
    db = new SQL.Database(bytes);
    const check = whole ? 'ok' : db.exec('PRAGMA quick_check')[0]?.values[0]?.[0];
    if (check !== 'ok') throw new Error(`it is damaged (${String(check)})`);
    const meta = Object.fromEntries((db.exec('SELECT key, value FROM meta')[0]?.values ?? []) as [string, SqlValue][]);
    if (meta['schema'] !== schemaVersion)
      throw new Error(`its schema is ${String(meta['schema'])}, not ${schemaVersion}`);
    if (tablesOf(db) !== ourTables(SQL)) throw new Error('its tables are not those of DART Studio');
    const position = Number(meta['position'] ?? 0);
    if (until !== undefined && position > until) throw new Error('it is ahead of the journal');
    return { db, position, events: Number(meta['events'] ?? 0) };
  } catch (e) {
    db?.close();
    return { problem: messageOf(e) };
  }
}
