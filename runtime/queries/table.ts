import type { RunReader } from '../data/store/runStore.js';
import { tableFlags } from '../protocol/table.js';
import type { AnnotationMarks, CodedColumn, OutcomeKind, TrajectoryColumns, TrajectoryRow } from '../protocol/types.js';
import { stepPlaces } from '../data/store/stepPlaces.js';
import { older } from '../data/store/totals.js';
import { begun, entropy, steps } from './rows.js';
import { nextSeq } from './trajectory.js';

const COLUMNS = `r.id, r.task, r.family, r.instruction, r.outcome, r.provenance, r.state, r.reason, ${steps}, r.reward, ${entropy}, r.advantage, r.weight, r.version_min, r.version_max, r.started_at, r.ended_at,
  r.truncated, EXISTS(SELECT 1 FROM injections i WHERE i.rollout = r.id), r.human, r.trained_version, r.born`;

type Column = readonly unknown[];
const text = (v: unknown): string => (typeof v === 'string' ? v : '');
/** Five significant digits: more are not shown, and three quarters of the answer would be digits. */
const number = (v: unknown): number | null => (typeof v === 'number' ? Number(v.toPrecision(5)) : null);
const whole = (v: unknown): number | null => (typeof v === 'number' ? v : null);

/**
 * Part of a run's trajectories as columns, newest first, behind the one that was born as `before`. `alive`: somebody is
 * still writing the run.
 */
export async function trajectoryColumns(
  run: RunReader,
  q: { readonly before?: number | undefined; readonly limit: number },
  alive: boolean,
  marks: ReadonlyMap<string, AnnotationMarks> = new Map(),
): Promise<{ columns: TrajectoryColumns; total?: number; older?: number; next?: number; seq: number; alive: boolean }> {
  // First, so that events behind it repeat what is here at worst.
  const seq = await nextSeq(run),
    behind = q.before === undefined ? '' : ' AND r.born < ?';
  const [found, counted] = await Promise.all([
    run.index.columns(
      `SELECT ${COLUMNS} FROM rollouts r WHERE ${begun}${behind} ORDER BY r.born DESC LIMIT ?`,
      q.before === undefined ? [q.limit] : [q.before, q.limit],
    ),
    q.before === undefined
      ? run.index.query(`SELECT COUNT(*) AS c FROM rollouts r WHERE ${begun}`, [])
      : Promise.resolve(undefined),
  ]);
  const born = found.at(-1) ?? [],
    last = born.at(-1);
  return {
    columns: columnsOf(found, alive, marks),
    ...(counted ? { total: Number(counted[0]?.['c'] ?? 0), ...(await older(run)) } : {}),
    ...(born.length === q.limit && typeof last === 'number' ? { next: last } : {}),
    seq,
    alive,
  };
}

function columnsOf(
  found: readonly Column[],
  alive: boolean,
  marks: ReadonlyMap<string, AnnotationMarks>,
): TrajectoryColumns {
  const at = (i: number): Column => found[i] ?? [],
    ids = at(0).map(text),
    [outcome, state, reason] = [at(4), at(6), at(7)];
  return {
    rollout: ids,
    task: coded(at(1).map(text)),
    family: coded(at(2).map(text)),
    instruction: coded(at(3).map(text)),
    outcome: coded(outcome.map((o, i) => outcomeOf(o, state[i], alive))),
    origin: coded(at(5).map((p) => text(p) as TrajectoryRow['provenance'])),
    ledger: coded(at(5).map((p, i) => placeOf(text(p), text(state[i]), text(reason[i])))),
    steps: at(8).map(Number),
    reward: at(9).map(number),
    entropy: at(10).map(number),
    advantage: at(11).map(number),
    weight: at(12).map(number),
    versionMin: at(13).map(whole),
    versionMax: at(14).map(whole),
    update: at(20).map(whole),
    startedAt: at(15).map(whole),
    endedAt: at(16).map(whole),
    flags: ids.map((id, i) => flagsOf([at(17)[i], at(18)[i], at(19)[i]], marks.get(id))),
  };
}

/** The outcome of a rollout; one that seems to run was lost with its process, where nobody writes the run. */
function outcomeOf(kind: unknown, state: unknown, alive: boolean): OutcomeKind {
  if (kind === 'success' || kind === 'failure') return kind;
  return kind === null && state === 'running' && alive ? 'running' : 'error';
}
/** Probes, demonstrations and imports are in no ledger. */
const placeOf = (provenance: string, state: string, reason: string): string =>
  provenance !== 'rollout' ? '' : state === 'retired' ? `retired:${reason}` : state;

function flagsOf(of: readonly unknown[], marks: AnnotationMarks | undefined): number {
  const [truncated, injected, human] = of;
  return (
    (truncated === 1 ? tableFlags.truncated : 0) |
    (injected === 1 ? tableFlags.injected : 0) |
    (typeof human === 'number' && human > 0 ? tableFlags.assisted : 0) |
    (marks ? tableFlags.annotated : 0) |
    (marks?.reviewed ? tableFlags.reviewed : 0)
  );
}

function coded<V extends string>(of: readonly V[]): CodedColumn<V> {
  const places = new Map<V, number>();
  const at = of.map((v) => {
    let i = places.get(v);
    if (i === undefined) places.set(v, (i = places.size));
    return i;
  });
  return { values: [...places.keys()], at };
}

/** Hash of the last screen of each: what the verifier saw, or of one that runs, what its newest step saw. */
export async function lastFrames(run: RunReader, ids: readonly string[]): Promise<Record<string, string>> {
  if (ids.length === 0) return {};
  const [places, rows] = await Promise.all([
    stepPlaces(run.index, ids),
    run.index.query(
      `SELECT r.id, r.head_position AS head FROM rollouts r WHERE r.id IN (${ids.map(() => '?').join(', ')})`,
      ids,
    ),
  ]);
  const found = await Promise.all(
    rows.map(async (r): Promise<readonly [string, string | undefined]> => {
      const at = async (p: unknown): ReturnType<RunReader['at']> => (typeof p === 'number' ? run.at(p) : undefined);
      const head = await at(r['head']),
        last = head?.type === 'trajectory.recorded' ? head.head.last : undefined;
      if (last) return [String(r['id']), last.hash];
      const step = await at(places.get(String(r['id']))?.at(-1)?.position);
      return [String(r['id']), step?.type === 'rollout.step' ? step.step.frame.hash : undefined];
    }),
  );
  return Object.fromEntries(found.flatMap(([id, hash]) => (hash === undefined ? [] : [[id, hash]])));
}
