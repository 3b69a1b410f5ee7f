import type { EventOf } from '../data/events.js';
import type { ListedEvent } from '../data/store/indexWriter.js';
import { runHolder } from '../data/store/runLock.js';
import { RunReader } from '../data/store/runStore.js';
import { nameOfTask } from '../protocol/taskGroups.js';
import { BEGUN, JUDGED, REASONS, STATES } from '../data/store/totals.js';

type Row = Readonly<Record<string, unknown>>;
const n = (v: unknown): number => (typeof v === 'number' ? v : Number(v ?? 0));

/** A run in numbers, for the command line. */
export interface RunReport {
  readonly id: string;
  readonly dir: string;
  readonly createdAt: number;
  readonly name: string;
  /** Rollouts that began on a desktop, as everywhere; `planned` are all. */
  readonly rollouts: number;
  readonly planned: number;
  /** Trajectories that were imported, or demonstrated by scripts and people; and the entries of the experience pool. */
  readonly imported: number;
  readonly pooled: number;
  /** Somebody is writing it now. */
  readonly live: boolean;
  readonly states: Readonly<Record<string, number>>;
  readonly retired: Readonly<Record<string, number>>;
  readonly evals: readonly {
    readonly label: string;
    readonly version: number;
    readonly episodes: number;
    readonly successes: number;
    readonly errors: number;
    readonly at: number;
  }[];
  readonly families: readonly {
    readonly family: string;
    /** Title for people: the words of its task where it is a UUID. */
    readonly title: string;
    readonly rollouts: number;
    readonly successes: number;
    readonly meanSteps: number;
  }[];
}

const IMPORTED = "SELECT COUNT(*) AS c FROM rollouts WHERE provenance IN ('imported', 'human', 'oracle')";

/** Counts, evaluations and success per family of one run; opens it read-only, beside a running writer too. */
export async function runReport(dir: string): Promise<RunReport> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const q = (sql: string): Promise<readonly Row[]> => run.index.query(sql, []);
    const counted = async (sql: string, by: string): Promise<Record<string, number>> =>
      Object.fromEntries((await q(sql)).map((r) => [String(r[by]), n(r['c'])]));
    const states = await counted(STATES, 'state'),
      retired = await counted(REASONS, 'reason');
    const evals = (await q('SELECT label, version, episodes, successes, errors, at FROM evals ORDER BY seq')).map(
      (r) => ({
        label: String(r['label'] ?? ''),
        version: n(r['version']),
        episodes: n(r['episodes']),
        successes: n(r['successes']),
        errors: n(r['errors']),
        at: n(r['at']),
      }),
    );
    const families = familiesOf(await q(JUDGED));
    return {
      id: run.meta.id,
      dir,
      createdAt: run.meta.createdAt,
      name: run.meta.name ?? '',
      rollouts: n((await q(BEGUN))[0]?.['c']),
      planned: Object.values(states).reduce((a, b) => a + b, 0),
      imported: n((await q(IMPORTED))[0]?.['c']),
      pooled: n((await q('SELECT COUNT(*) AS c FROM pool WHERE enabled = 1'))[0]?.['c']),
      live: (await runHolder(dir)) !== undefined,
      states,
      retired,
      evals,
      families,
    };
  } finally {
    await run.close();
  }
}

/** Families from rows by family and outcome, with those of a family side by side. */
function familiesOf(rows: readonly Row[]): RunReport['families'] {
  return [...new Set(rows.map((r) => String(r['family'])))].map((family) => {
    const mine = rows.filter((r) => r['family'] === family),
      sum = (of: readonly Row[], key: string): number => of.reduce((a, r) => a + n(r[key]), 0),
      rollouts = sum(mine, 'c'),
      [title = ''] = mine.flatMap((r) => (typeof r['ask'] === 'string' ? [r['ask']] : [])).sort();
    return {
      family,
      title: nameOfTask({ family, title }),
      rollouts,
      successes: sum(
        mine.filter((r) => r['outcome'] === 'success'),
        'c',
      ),
      meanSteps: sum(mine, 'steps') / rollouts,
    };
  });
}

/** A metric as it was written, oldest first. */
export interface MetricRow {
  readonly name: string;
  readonly at: number;
  readonly version: number | null;
  readonly value: number;
}
/** All metrics of a run, long form. */
export async function metricRows(dir: string): Promise<readonly MetricRow[]> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const [thinned] = await run.index.query('SELECT 1 FROM past_metrics LIMIT 1', []);
    if (thinned) return await journalledRows(run);
    const rows = await run.index.query('SELECT name, at, version, value FROM metrics ORDER BY seq, name', []);
    return rows as unknown as readonly MetricRow[];
  } finally {
    await run.close();
  }
}

/** Metrics from the journal, because the index has only the peaks of older ones. */
async function journalledRows(run: RunReader): Promise<MetricRow[]> {
  const out: MetricRow[] = [];
  for await (const e of recordsOf(run, ['metrics', 'checkpoint'])) {
    const of = e.type === 'checkpoint' ? e.learned : e.type === 'metrics' ? e : undefined;
    for (const [name, value] of Object.entries(of?.values ?? {})
      .map(([n, v]) => [`${of!.source}.${n}`, v] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)))
      if (typeof value === 'number' && Number.isFinite(value))
        out.push({ name, at: e.at, version: ('version' in e ? e.version : undefined) ?? null, value });
  }
  return out;
}
/** Records at once: many are read, each from its place in the journal. */
const AT_ONCE = 64;
/** Records of these types, oldest first; those of metrics also where the index has not listed them for long. */
async function* recordsOf(
  run: RunReader,
  types: readonly ListedEvent[],
): AsyncGenerator<NonNullable<Awaited<ReturnType<RunReader['at']>>>> {
  const [listed, past] = await Promise.all([
      run.index.query(`SELECT position FROM events WHERE type IN (SELECT value FROM json_each(?))`, [
        JSON.stringify(types),
      ]),
      types.includes('metrics') ? run.index.query('SELECT positions FROM past_metrics', []) : [],
    ]),
    places = [
      ...past.flatMap((r) => [...new Float64Array(Uint8Array.from(r['positions'] as Uint8Array).buffer)]),
      ...listed.map((r) => n(r['position'])),
    ].sort((a, b) => a - b);
  for (let i = 0; i < places.length; i += AT_ONCE)
    for (const e of await Promise.all(places.slice(i, i + AT_ONCE).map((p) => run.at(p)))) if (e) yield e;
}

/** Columns of `rolloutTable`. */
export const rolloutColumns = [
  'id',
  'family',
  'task',
  'group',
  'seed',
  'cap',
  'provenance',
  'state',
  'reason',
  'batch',
  'trained_version',
  'outcome',
  'reward',
  'truncated',
  'error_kind',
  'steps',
  'human',
  'entropy_mean',
  'version_min',
  'version_max',
  'queued_at',
  'started_at',
  'ended_at',
  'instruction',
] as const;
/** Every trajectory of a run in a row, in the order in which they began; times in ms since the epoch. */
export async function rolloutTable(
  dir: string,
): Promise<readonly Readonly<Record<(typeof rolloutColumns)[number], string | number | null>>[]> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const own: Readonly<Record<string, string>> = {
      group: 'grp AS "group"',
      entropy_mean: 'CASE WHEN entropy_steps > 0 THEN entropy_sum / entropy_steps END AS entropy_mean',
    };
    const rows = await run.index.query(
      `SELECT ${rolloutColumns.map((c) => own[c] ?? c).join(', ')} FROM rollouts ORDER BY born, id`,
      [],
    );
    return rows as unknown as Awaited<ReturnType<typeof rolloutTable>>;
  } finally {
    await run.close();
  }
}

/** Metrics and evaluations as they were journalled, oldest first. */
export async function metricRecords(dir: string): Promise<{
  readonly createdAt: number;
  readonly records: readonly (EventOf<'metrics' | 'eval'> & { readonly at: number })[];
}> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const records: (EventOf<'metrics' | 'eval'> & { readonly at: number })[] = [];
    for await (const e of recordsOf(run, ['metrics', 'eval']))
      if (e.type === 'metrics' || e.type === 'eval') records.push(e);
    return { createdAt: run.meta.createdAt, records };
  } finally {
    await run.close();
  }
}
