import { writeFile } from 'node:fs/promises';
import { StudioError } from '../domain/index.js';
import type { ColumnType } from '../interchange/parquet/library.js';
import { metricRows, rolloutTable, type MetricRow, type rolloutColumns } from '../queries/runReport.js';

/** A value as CSV has it (RFC 4180). Pure. */
export function csvCell(v: unknown): string {
  const s =
    v === null || v === undefined ? '' : typeof v === 'object' ? JSON.stringify(v) : String(v as string | number);
  return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
}
/** Rows of one shape as CSV, a heading first. Pure. */
export const csvText = (rows: readonly object[], columns: readonly string[]): string =>
  [columns, ...rows.map((r) => columns.map((c) => (r as Record<string, unknown>)[c]))]
    .map((cells) => cells.map(csvCell).join(','))
    .join('\n');

/** Column types for Parquet; times become timestamps. */
const metricTypes: Readonly<Record<keyof MetricRow, ColumnType>> = {
    name: 'STRING',
    at: 'TIMESTAMP',
    version: 'INT32',
    value: 'DOUBLE',
  },
  rolloutTypes: Readonly<Record<(typeof rolloutColumns)[number], ColumnType>> = {
    id: 'STRING',
    family: 'STRING',
    task: 'STRING',
    group: 'STRING',
    seed: 'INT64',
    cap: 'INT32',
    provenance: 'STRING',
    state: 'STRING',
    reason: 'STRING',
    batch: 'STRING',
    trained_version: 'INT32',
    outcome: 'STRING',
    reward: 'DOUBLE',
    truncated: 'BOOLEAN',
    error_kind: 'STRING',
    steps: 'INT32',
    human: 'INT32',
    entropy_mean: 'DOUBLE',
    version_min: 'INT32',
    version_max: 'INT32',
    queued_at: 'TIMESTAMP',
    started_at: 'TIMESTAMP',
    ended_at: 'TIMESTAMP',
    instruction: 'STRING',
  };

/** `metrics`: in long form (name, time, version, value); `rollouts`: a row each. */
export type TableKind = 'metrics' | 'rollouts';
/** Endings of the formats. */
export const TABLE_FILE = /\.(csv|json|parquet)$/;

/** Writes a table of a run folder to a file, in the format that its ending names; returns how many rows it has. */
export async function exportTable(dir: string, to: string, what: TableKind): Promise<number> {
  if (!TABLE_FILE.test(to))
    throw new StudioError(
      'config.invalid',
      `${to}: the name must end in .csv, .json or .parquet`,
      "Choose one of the formats by the file's ending.",
    );
  const [rows, types] =
      what === 'metrics'
        ? ([await metricRows(dir), metricTypes] as const)
        : ([await rolloutTable(dir), rolloutTypes] as const),
    columns = Object.keys(types);
  if (to.endsWith('.parquet')) {
    const { parquetFile } = await import('../interchange/parquet/library.js');
    await writeFile(to, parquetFile(rows, types));
  } else await writeFile(to, `${to.endsWith('.json') ? JSON.stringify(rows, null, 1) : csvText(rows, columns)}\n`);
  return rows.length;
}
