import { CURATION_REASONS, ServiceError } from '../domain/index.js';
import { probePrefix } from '../domain/probeNames.js';
import type { Row } from '../data/store/runIndex.js';
import type { RunReader } from '../data/store/runStore.js';
import type {
  AnnotationMarks,
  OutcomeKind,
  TrajectoryFilter,
  TrajectoryRow,
  TrajectorySort,
} from '../protocol/types.js';
import { older } from '../data/store/totals.js';

const num = (v: unknown): number | undefined => (typeof v === 'number' ? v : undefined);
const str = (v: unknown): string | undefined => (typeof v === 'string' && v !== '' ? v : undefined);

export const steps =
  'CASE WHEN r.outcome IS NULL THEN (SELECT COUNT(*) FROM steps s WHERE s.rollout = r.id) ELSE r.steps END';
export const entropy = 'CASE WHEN r.entropy_steps > 0 THEN r.entropy_sum / r.entropy_steps END';
/** Columns that `rowOf` reads, of table rollouts as r. */
export const rowColumns = `r.id, r.task, r.family, r.instruction, r.outcome, r.reward, r.truncated, r.error_kind, r.provenance, r.state, r.reason, r.grp, r.cap, r.kept, r.version_min, r.version_max, r.started_at, r.ended_at, r.born, r.desktop, r.human, r.origin,
  ${steps} AS n, ${entropy} AS h, EXISTS(SELECT 1 FROM injections i WHERE i.rollout = r.id) AS injected`;

/** Orders that never became a rollout are no trajectories. */
export const begun = '(r.started_at IS NOT NULL OR r.outcome IS NOT NULL)';
const running = "(r.outcome IS NULL AND r.state = 'running')";

/** Reasons of retirement that say something about the trajectory, besides the error it ended with. */
const reasons: readonly string[] = CURATION_REASONS;

/** `alive`: somebody is still writing the run; else what looks as if it ran was lost with its process. */
export function rowOf(r: Row, alive: boolean): TrajectoryRow {
  const id = String(r['id']),
    kind = str(r['outcome']),
    isRunning = kind === undefined && r['state'] === 'running' && alive;
  const outcome: OutcomeKind = isRunning ? 'running' : kind === 'success' || kind === 'failure' ? kind : 'error';
  const [min, max] = [num(r['version_min']), num(r['version_max'])],
    reason = str(r['reason']),
    tags: string[] = [];
  if (r['truncated'] === 1) tags.push('truncated');
  if (r['injected'] === 1) tags.push('injected');
  if (reason && reasons.includes(reason)) tags.push(reason);
  if (r['provenance'] === 'probe') tags.push(`eval:${id.split('/')[1] ?? ''}`);
  return {
    rollout: id,
    task: String(r['task']),
    family: String(r['family']),
    instruction: str(r['instruction']) ?? '',
    outcome,
    provenance: String(r['provenance']) as TrajectoryRow['provenance'],
    steps: Number(r['n'] ?? 0),
    cap: Number(r['cap'] ?? 0),
    ...opt('reward', num(r['reward'])),
    truncated: r['truncated'] === 1 || undefined,
    // Absent where there is none: what a revision derives from a row drops the key.
    ...(outcome === 'error' ? { errorKind: str(r['error_kind']) ?? reason ?? 'lost' } : {}),
    ...opt('state', str(r['state'])),
    ...opt('group', str(r['grp'])),
    ...opt('kept', num(r['kept'])),
    ...opt('entropy', num(r['h'])),
    versions: min !== undefined && max !== undefined ? [min, max] : undefined,
    ...opt('startedAt', num(r['started_at'])),
    ...opt('endedAt', num(r['ended_at'])),
    tags: tags.length > 0 ? tags : undefined,
    assisted: num(r['human']) ? true : undefined,
    ...(r['provenance'] === 'human' ? opt('of', str(r['origin'])) : {}),
    ...(r['provenance'] === 'rollout' ? opt('branch', str(r['origin'])) : {}),
    ...(r['provenance'] === 'hindsight' ? opt('relabelledFrom', str(r['origin'])) : {}),
  };
}
const opt = <K extends string, V>(k: K, v: V | undefined): Partial<Record<K, V>> =>
  v === undefined ? {} : ({ [k]: v } as Record<K, V>);

export interface ListQuery {
  readonly filter?: TrajectoryFilter | undefined;
  readonly sort?: TrajectorySort | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}
type Param = string | number;
interface Where {
  readonly sql: string;
  readonly params: readonly Param[];
}

/** People's annotations by trajectory; the index does not have them. */
type Marks = ReadonlyMap<string, AnnotationMarks>;
const noMarks: Marks = new Map();

/**
 * A page of trajectories. Keyset paging: a page begins behind the last row of the one before, so nothing is lost or
 * shown twice while rows are added.
 */
export async function listTrajectories(
  run: RunReader,
  q: ListQuery,
  alive: boolean,
  marks = noMarks,
): Promise<{ rows: TrajectoryRow[]; total: number; older?: number; cursor?: string }> {
  const limit = q.limit ?? 100,
    sort = q.sort ?? 'newest',
    where = filterSql(q.filter ?? {}, alive, marks),
    order = orders[sort];
  const after = q.cursor === undefined ? undefined : readCursor(q.cursor, sort);
  const behind: Where | undefined = after && {
    sql:
      order.key === 'r.born'
        ? `r.born ${order.dir} ?`
        : `(${order.key} ${order.dir} ? OR (${order.key} = ? AND r.born < ?))`,
    params: order.key === 'r.born' ? [after.born] : [after.key, after.key, after.born],
  };
  const by = order.key === 'r.born' ? `r.born ${order.dir === '<' ? 'DESC' : 'ASC'}` : `${order.key} DESC, r.born DESC`;
  const [rows, [count]] = await Promise.all([
    run.index.query(
      `SELECT ${rowColumns}, ${order.key} AS sort_key FROM rollouts r WHERE ${where.sql}${behind ? ` AND ${behind.sql}` : ''} ORDER BY ${by} LIMIT ?`,
      [...where.params, ...(behind?.params ?? []), limit + 1],
    ),
    run.index.query(`SELECT COUNT(*) AS c FROM rollouts r WHERE ${where.sql}`, [...where.params]),
  ]);
  const page = rows.slice(0, limit),
    last = page.at(-1);
  return {
    rows: page.map((r) => withMarks(rowOf(r, alive), marks)),
    total: Number(count?.['c'] ?? 0),
    ...(await older(run)),
    ...(rows.length > limit && last
      ? { cursor: Buffer.from(JSON.stringify([sort, last['sort_key'], last['born']])).toString('base64url') }
      : {}),
  };
}

const orders: Readonly<Record<TrajectorySort, { readonly key: string; readonly dir: '<' | '>' }>> = {
  newest: { key: 'r.born', dir: '<' },
  oldest: { key: 'r.born', dir: '>' },
  longest: { key: `(${steps})`, dir: '<' },
  entropy: { key: `COALESCE(${entropy}, -1)`, dir: '<' },
  reward: { key: 'COALESCE(r.reward, -1)', dir: '<' },
};

function readCursor(cursor: string, sort: TrajectorySort): { key: number; born: number } {
  try {
    const [s, key, born] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    if (s === sort && typeof key === 'number' && typeof born === 'number') return { key, born };
  } catch {
    /* said below */
  }
  throw new ServiceError(
    'params.invalid',
    'trajectory/list: cursor: is not one of this list',
    'Ask for the first page again.',
  );
}

/** A row with what people said of its trajectory. */
export function withMarks(row: TrajectoryRow, marks: Marks): TrajectoryRow {
  const annotated = marks.get(row.rollout);
  return annotated ? { ...row, annotated } : row;
}

function filterSql(f: TrajectoryFilter, alive: boolean, marks: Marks): Where {
  const all: Where[] = [{ sql: begun, params: [] }];
  const add = (sql: string, ...params: Param[]): void => {
    all.push({ sql, params });
  };
  if (f.outcome?.length) add(`(${f.outcome.map((o) => outcomeSql(o, alive)).join(' OR ')})`);
  if (f.family !== undefined) add('r.family = ?', f.family);
  if (f.task !== undefined) add('r.task = ?', f.task);
  if (f.group !== undefined)
    add('(r.grp = ? OR r.id IN (SELECT i.rollout FROM injections i WHERE i.grp = ?))', f.group, f.group);
  if (f.provenance?.length) add(`r.provenance IN (${f.provenance.map(() => '?').join(', ')})`, ...f.provenance);
  if (f.version?.min !== undefined) add('r.version_max >= ?', f.version.min);
  if (f.version?.max !== undefined) add('r.version_min <= ?', f.version.max);
  const said = (fits: (m: AnnotationMarks) => boolean, is: boolean): Where => ({
    sql: `r.id ${is ? '' : 'NOT '}IN (SELECT value FROM json_each(?))`,
    params: [JSON.stringify([...marks].flatMap(([id, m]) => (fits(m) ? [id] : [])))],
  });
  if (f.annotated !== undefined) all.push(said(() => true, f.annotated));
  if (f.reviewed !== undefined) all.push(said((m) => m.reviewed === true, f.reviewed));
  if (f.assisted !== undefined) add(`COALESCE(r.human, 0) ${f.assisted ? '>' : '='} 0`);
  if (f.tag !== undefined) {
    const { tag } = f,
      own = tagSql(tag),
      theirs = said((m) => m.tags?.includes(tag) ?? false, true);
    all.push({ sql: `(${own.sql} OR ${theirs.sql})`, params: [...own.params, ...theirs.params] });
  }
  if (f.text) {
    const like = `%${f.text.replace(/[\\%_]/g, '\\$&')}%`;
    add("(r.instruction LIKE ? ESCAPE '\\' OR r.task LIKE ? ESCAPE '\\' OR r.id LIKE ? ESCAPE '\\')", like, like, like);
  }
  return { sql: all.map((w) => w.sql).join(' AND '), params: all.flatMap((w) => w.params) };
}
function outcomeSql(o: OutcomeKind, alive: boolean): string {
  if (o === 'running') return alive ? running : '0';
  if (o === 'error') return `(r.outcome = 'error' OR (r.outcome IS NULL AND ${alive ? `NOT ${running}` : '1'}))`;
  return `r.outcome = '${o}'`;
}
function tagSql(tag: string): Where {
  if (tag === 'truncated') return { sql: 'r.truncated = 1', params: [] };
  if (tag === 'injected') return { sql: 'EXISTS(SELECT 1 FROM injections i WHERE i.rollout = r.id)', params: [] };
  if (tag.startsWith('eval:')) {
    const prefix = probePrefix(tag.slice(5));
    return { sql: "(r.provenance = 'probe' AND substr(r.id, 1, ?) = ?)", params: [prefix.length, prefix] };
  }
  return { sql: 'r.reason = ?', params: [tag] };
}

/** Rows of named trajectories, in no order. */
export async function rowsOf(
  run: RunReader,
  ids: readonly string[],
  alive: boolean,
): Promise<Map<string, TrajectoryRow>> {
  const out = new Map<string, TrajectoryRow>();
  for (let i = 0; i < ids.length; i += 400) {
    const part = ids.slice(i, i + 400);
    for (const r of await run.index.query(
      `SELECT ${rowColumns} FROM rollouts r WHERE r.id IN (${part.map(() => '?').join(', ')})`,
      part,
    ))
      out.set(String(r['id']), rowOf(r, alive));
  }
  return out;
}
