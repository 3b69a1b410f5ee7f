/** What updates and checkpoints say of themselves, in the tables of indexSchema.ts. */
import type { EventOf } from '../events.js';
import type { Rows } from './indexRows.js';

/** Each value of a record as a row. */
export function addMetrics(
  rows: Rows,
  e: { readonly at: number; readonly seq: number; readonly version?: number | undefined },
  { source, values }: Pick<EventOf<'metrics'>, 'source' | 'values'>,
): void {
  for (const [name, value] of Object.entries(values))
    // JSON has no NaN: what could not be measured reads back as null.
    if (typeof value === 'number' && Number.isFinite(value))
      rows.run('INSERT OR REPLACE INTO metrics VALUES(?, ?, ?, ?, ?)', [
        `${source}.${name}`,
        e.at,
        e.seq,
        e.version,
        value,
      ]);
}

/** How many tokens the update had that these are the metrics of. */
export function addTokens(rows: Rows, { version, values }: Pick<EventOf<'metrics'>, 'version' | 'values'>): void {
  const known = (x: unknown): x is number => typeof x === 'number' && Number.isFinite(x),
    tokens = values['tokens'];
  if (!known(tokens) && !known(values['loss'])) return;
  rows.run('UPDATE batches SET tokens = ?, mute = ? WHERE trained_version = ?', [
    known(tokens) ? tokens : null,
    known(tokens) ? 0 : 1,
    version,
  ]);
}
