import type { OutcomeKind, TrajectoryRow } from '../domain/index.js';
import { isObject } from '../foreign/json.js';

/** A column of few distinct texts: row `i` has `values[at[i]]`. */
export interface CodedColumn<V extends string = string> {
  readonly values: readonly V[];
  readonly at: readonly number[];
}
/** Place of a trajectory in the ledger: its state, or `retired:` and the reason; '' where it is in no ledger. */
export type LedgerPlace = string;

/** Bits of `TrajectoryColumns.flags`. */
export const tableFlags = { truncated: 1, injected: 2, assisted: 4, annotated: 8, reviewed: 16 } as const;
export type TableFlag = keyof typeof tableFlags;

/** Trajectories as columns, newest first: what the table filters and sorts by itself. null: there is none. */
export interface TrajectoryColumns {
  readonly rollout: readonly string[];
  readonly task: CodedColumn;
  readonly family: CodedColumn;
  readonly instruction: CodedColumn;
  readonly outcome: CodedColumn<OutcomeKind>;
  readonly origin: CodedColumn<TrajectoryRow['provenance']>;
  readonly ledger: CodedColumn<LedgerPlace>;
  readonly steps: readonly number[];
  readonly reward: readonly (number | null)[];
  /** Mean entropy of its steps, nats. */
  readonly entropy: readonly (number | null)[];
  /** Advantage in the update that used it. `weight`: the mean truncated importance weight of its trained steps. */
  readonly advantage: readonly (number | null)[];
  readonly weight: readonly (number | null)[];
  /** Policy versions that acted, oldest and newest. */
  readonly versionMin: readonly (number | null)[];
  readonly versionMax: readonly (number | null)[];
  /** Version that the update which used it made. */
  readonly update: readonly (number | null)[];
  readonly startedAt: readonly (number | null)[];
  readonly endedAt: readonly (number | null)[];
  readonly flags: readonly number[];
}

/** A range with both ends included. */
export interface TableRange {
  readonly min?: number;
  readonly max?: number;
}
export const rangeColumns = [
  'steps',
  'reward',
  'entropy',
  'advantage',
  'weight',
  'version',
  'update',
  'lag',
  'time',
] as const;
export type RangeColumn = (typeof rangeColumns)[number];
export const listColumns = ['outcome', 'family', 'origin', 'ledger'] as const;
export type ListColumn = (typeof listColumns)[number];

/**
 * Which trajectories are listed: all parts hold at once, and of a list any one. `time` is when it ended, or began where
 * it goes on, ms since the epoch; `lag` is how many updates its oldest step was behind when it was trained. A trajectory
 * without the number is outside every range.
 */
export interface TableFilter
  extends Partial<Record<ListColumn, readonly string[]>>, Partial<Record<RangeColumn, TableRange>> {
  readonly task?: string;
  /** These and no others. */
  readonly rollouts?: readonly string[];
  readonly flags?: Partial<Record<TableFlag, boolean>>;
  /** Text to find in instruction, task and id, whatever the case. */
  readonly text?: string;
}
export interface SavedTableFilter {
  readonly name: string;
  readonly filter: TableFilter;
}

const most = { list: 100, rollouts: 500, text: 500, filters: 100 } as const;
const isText = (x: unknown): x is string => typeof x === 'string' && x.length <= most.text;

/** The valid part of a stored or received filter. */
export function tableFilterOf(x: unknown): TableFilter {
  if (!isObject(x)) return {};
  const out: Record<string, unknown> = {};
  for (const k of listColumns) {
    const v = x[k];
    if (Array.isArray(v) && v.length > 0) out[k] = v.filter(isText).slice(0, most.list);
  }
  for (const k of rangeColumns) {
    const v = x[k];
    if (!isObject(v)) continue;
    const range = Object.fromEntries(['min', 'max'].flatMap((e) => (Number.isFinite(v[e]) ? [[e, v[e]]] : [])));
    if (Object.keys(range).length > 0) out[k] = range;
  }
  const rollouts = x['rollouts'];
  if (Array.isArray(rollouts) && rollouts.length > 0) out['rollouts'] = rollouts.filter(isText).slice(0, most.rollouts);
  for (const k of ['task', 'text']) if (isText(x[k]) && x[k] !== '') out[k] = x[k];
  const flags = x['flags'];
  if (isObject(flags)) {
    const known = Object.keys(tableFlags).flatMap((f) => (typeof flags[f] === 'boolean' ? [[f, flags[f]]] : []));
    if (known.length > 0) out['flags'] = Object.fromEntries(known);
  }
  return out;
}
export function savedTableFiltersOf(x: unknown): SavedTableFilter[] {
  return Array.isArray(x)
    ? x
        .slice(0, most.filters)
        .flatMap((f: unknown) =>
          isObject(f) && isText(f['name']) && f['name'] !== ''
            ? [{ name: f['name'], filter: tableFilterOf(f['filter']) }]
            : [],
        )
    : [];
}
