import { parquetWriteBuffer } from 'hyparquet-writer';

/** Loaded by the first export to Parquet (scripts/build.mjs): nothing else needs it. */

export type ColumnType = 'STRING' | 'DOUBLE' | 'INT32' | 'INT64' | 'BOOLEAN' | 'TIMESTAMP';
type Cell = string | number | boolean | null | undefined;

/**
 * Rows as a Parquet file (Snappy, row groups of at most 100,000). Every column may be null; a value that its type cannot
 * hold is null. `TIMESTAMP`: ms since the epoch, UTC. Rows are objects with the columns as keys.
 */
export function parquetFile(rows: readonly object[], columns: Readonly<Record<string, ColumnType>>): Uint8Array {
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: Object.entries(columns).map(([name, type]) => ({
        name,
        type,
        nullable: true,
        data: rows.map((r) => valueOf((r as Readonly<Record<string, Cell>>)[name], type)),
      })),
      createdBy: 'DART Studio',
    }),
  );
}

function valueOf(v: Cell, type: ColumnType): unknown {
  if (v === null || v === undefined) return null;
  switch (type) {
    case 'STRING':
      return String(v);
    case 'BOOLEAN':
      return Boolean(v);
    case 'DOUBLE':
      return typeof v === 'number' ? v : null;
    case 'INT32':
      return Number.isInteger(v) && Math.abs(v as number) < 2 ** 31 ? v : null;
    case 'INT64':
      return Number.isSafeInteger(v) ? BigInt(v as number) : null;
    case 'TIMESTAMP':
      return typeof v === 'number' && Math.abs(v) <= 8.64e15 ? new Date(v) : null;
  }
}
