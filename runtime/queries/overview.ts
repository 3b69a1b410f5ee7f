import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { checkpointName, type RunError } from '../domain/index.js';
import { heldOutTryPrefix } from '../domain/probeNames.js';
import { checkpointOf, type EventOf } from '../data/events.js';
import type { StepCounts } from '../data/stepLedger.js';
import type { LedgerCounts } from '../data/types.js';
import type { RunReader } from '../data/store/runStore.js';
import type { EvalPoint, Ledger, RunState, RunSummary } from '../protocol/types.js';
import { BEGUN, REASONS, STATES } from '../data/store/totals.js';

const sum = (o: Readonly<Record<string, number | undefined>>): number =>
  Object.values(o).reduce<number>((a, b) => a + (b ?? 0), 0);

/**
 * Whether all there is was imported, made by a person or kept from trying a policy: nothing was planned, learned or
 * evaluated.
 */
export const COLLECTION = `SELECT CASE WHEN EXISTS(SELECT 1 FROM groups) OR EXISTS(SELECT 1 FROM past_groups) OR EXISTS(SELECT 1 FROM events WHERE type IN ('checkpoint', 'batch.trained', 'eval')) THEN 0
  ELSE EXISTS(SELECT 1 FROM rollouts WHERE provenance IN ('imported', 'human') OR id LIKE '${heldOutTryPrefix}%')
    AND NOT EXISTS(SELECT 1 FROM rollouts WHERE provenance NOT IN ('imported', 'human') AND id NOT LIKE '${heldOutTryPrefix}%') END AS c`;

/** generated = trained + in flight + retired. */
export function ledgerOf(c: LedgerCounts, steps: Pick<StepCounts, 'human' | 'assisted'>): Ledger {
  const retired = Object.fromEntries(Object.entries(c.retired).filter(([, n]) => n > 0)) as Record<string, number>;
  return {
    generated: c.generated,
    begun: c.begun,
    trained: c.trained,
    inFlight: c.inFlight,
    byState: c.byState,
    retired,
    closes: c.generated === c.trained + c.inFlight + sum(retired),
    human: steps.assisted > 0 ? { rollouts: steps.assisted, steps: steps.human } : undefined,
  };
}

/** The same of a run that is over, from its index: rollouts queued against the states they are in. */
export async function ledgerFromIndex(run: RunReader): Promise<Ledger> {
  const [queued, [begun], states, reasons, [human]] = await Promise.all([
    run.index.query('SELECT SUM(orders) AS c FROM runs', []),
    run.index.query(BEGUN, []),
    run.index.query(STATES, []),
    run.index.query(REASONS, []),
    run.index.query(
      "SELECT COUNT(*) AS c, SUM(human) AS steps FROM rollouts WHERE provenance = 'rollout' AND human > 0",
      [],
    ),
  ]);
  const byState = {
    queued: 0,
    running: 0,
    recorded: 0,
    grouped: 0,
    claimed: 0,
    trained: 0,
    retired: 0,
    ...Object.fromEntries(states.map((r) => [String(r['state']), Number(r['c'])])),
  };
  const retired = Object.fromEntries(reasons.map((r) => [String(r['reason']), Number(r['c'])])),
    inFlight = byState.queued + byState.running + byState.recorded + byState.grouped + byState.claimed,
    generated = Number(queued[0]?.['c'] ?? 0);
  return {
    generated,
    begun: Number(begun?.['c'] ?? 0),
    trained: byState.trained,
    inFlight,
    byState,
    retired,
    closes: generated === byState.trained + inFlight + sum(retired),
    ...(Number(human?.['c'] ?? 0) > 0
      ? { human: { rollouts: Number(human!['c']), steps: Number(human!['steps']) } }
      : {}),
  };
}

/** Characters of an evaluation's label, or of the name of a family. */
const MOST_NAME = 1000,
  MOST_FAMILIES = 2000;
/** Room that a family takes beside its name, bytes, and that those of a run's evaluations may take together. */
const FAMILY_BYTES = 100,
  MOST_FAMILY_BYTES = 64 << 20;

const numbers = (...xs: readonly unknown[]): boolean => xs.every((x) => typeof x === 'number' && Number.isFinite(x));
/**
 * Undefined where what it says is no number: the journal may be a stranger's. Of the families a record may have, at most
 * `MOST_FAMILIES` are kept; without `families`, none.
 */
export function evalPoint(e: EventOf<'eval'> & { readonly at: number }, families = true): EvalPoint | undefined {
  const { at, version, episodes, successes, errors, low, high, infeasible, label = '' } = e;
  if (!numbers(at, version, episodes, successes, errors, low, high)) return undefined;
  if (typeof label !== 'string' || label.length > MOST_NAME) return undefined;
  return {
    label,
    at,
    version,
    episodes,
    successes,
    errors,
    low,
    high,
    perFamily: families ? familiesOf(e.perFamily) : {},
    infeasible:
      infeasible && numbers(infeasible.episodes, infeasible.successes) && infeasible.episodes > 0
        ? { episodes: infeasible.episodes, successes: infeasible.successes }
        : undefined,
  };
}
function familiesOf(of: EventOf<'eval'>['perFamily']): EvalPoint['perFamily'] {
  const kept: [string, { episodes: number; successes: number }][] = [];
  for (const name in of ?? {}) {
    const { episodes, successes } = of![name] ?? {};
    if (name.length > MOST_NAME || !numbers(episodes, successes)) continue;
    if (kept.push([name, { episodes: episodes!, successes: successes! }]) === MOST_FAMILIES) break;
  }
  return Object.fromEntries(kept);
}
const familyBytes = (p: EvalPoint): number =>
  Object.keys(p.perFamily).reduce((n, name) => n + name.length + FAMILY_BYTES, 0);

/** Journal records that are read at once, and evaluations that are read at all: far more than a run has. */
const RECORDS_AT_ONCE = 16,
  MOST_EVALS = 10_000;
/**
 * Evaluations that were read before, by place in the journal, null for what is none: records do not change, and every
 * look at a run asks for all.
 */
const readEvals = new WeakMap<RunReader, Map<number, Promise<EvalPoint | null | undefined>>>();
export async function evalPoints(run: RunReader): Promise<EvalPoint[]> {
  const rows = await run.index.query(
      `SELECT position FROM events WHERE type = 'eval' ORDER BY seq LIMIT ${MOST_EVALS}`,
      [],
    ),
    read = readEvals.get(run) ?? new Map<number, Promise<EvalPoint | null | undefined>>();
  readEvals.set(run, read);
  const one = (position: number, families: boolean): Promise<EvalPoint | null | undefined> => {
    const known = read.get(position);
    if (known) return known;
    const reading = run.at(position).then((e) => (e?.type === 'eval' ? (evalPoint(e, families) ?? null) : undefined));
    read.set(position, reading);
    // A record that could not be read may be there the next time.
    const forget = (): unknown => read.delete(position);
    void reading.then((e) => e === undefined && forget(), forget);
    return reading;
  };
  // The newest first: where there are more families than anybody has, old evaluations come without.
  const out: EvalPoint[] = [];
  let room = MOST_FAMILY_BYTES;
  for (let end = rows.length; end > 0; end -= RECORDS_AT_ONCE) {
    const some = rows.slice(Math.max(0, end - RECORDS_AT_ONCE), end).reverse();
    for (const e of await Promise.all(some.map((r) => one(Number(r['position']), room > 0)))) {
      if (!e) continue;
      out.push(e);
      room -= familyBytes(e);
    }
  }
  return out.reverse();
}

/** Journal records that are looked at for the name of a checkpoint. */
const MOST_RECORDS = 200;
/** Checkpoints that are still there, newest first. Reads no more of the journal than it takes to find each of them. */
export async function checkpoints(run: RunReader): Promise<{ version: number; path: string }[]> {
  const folder = join(run.dir, 'checkpoints'),
    missing = new Set((await readdir(folder).catch((): string[] => [])).filter((n) => checkpointName.test(n))),
    out: { version: number; path: string }[] = [];
  if (missing.size === 0) return out;
  const rows = await run.index.query(
    `SELECT position FROM events WHERE type IN ('checkpoint', 'batch.trained') ORDER BY seq DESC LIMIT ${MOST_RECORDS}`,
    [],
  );
  for (let i = 0; i < rows.length && missing.size > 0; i += RECORDS_AT_ONCE)
    for (const e of await Promise.all(rows.slice(i, i + RECORDS_AT_ONCE).map((r) => run.at(Number(r['position']))))) {
      const written = e && checkpointOf(e);
      if (!written) continue;
      const name = basename(written.dir.replaceAll('\\', '/'));
      if (missing.delete(name)) out.push({ version: written.version, path: join(folder, name) });
    }
  return out;
}

/** How a run that nobody writes any more ended. */
export async function endOf(run: RunReader): Promise<{
  readonly state: Extract<RunState, 'finished' | 'stopped' | 'failed' | 'interrupted'>;
  readonly endedAt?: number;
  readonly error?: RunError;
}> {
  const [row] = await run.index.query(
    "SELECT type, position FROM events WHERE type IN ('run.opened', 'run.closed') ORDER BY seq DESC LIMIT 1",
    [],
  );
  const e = row?.['type'] === 'run.closed' ? await run.at(Number(row['position'])) : undefined;
  if (e?.type !== 'run.closed') return { state: 'interrupted' };
  const { at: endedAt } = e;
  if (e.reason === 'stopped') return { state: 'stopped', endedAt };
  if (e.reason !== 'failed') return { state: 'finished', endedAt };
  for (const r of await run.index.query(
    "SELECT position FROM events WHERE type = 'log' ORDER BY seq DESC LIMIT 20",
    [],
  )) {
    const log = await run.at(Number(r['position']));
    if (log?.type === 'log' && log.level === 'error')
      return {
        state: 'failed',
        endedAt,
        error: {
          kind: 'internal',
          remedy: 'See the log of the runtime.',
          ...(log.details as Partial<RunError> | undefined),
          message: log.message,
        },
      };
  }
  return { state: 'failed', endedAt };
}

/** A run in one line, but for who is writing it. */
export async function summaryOf(run: RunReader): Promise<Omit<RunSummary, 'state'>> {
  const [[counts], [versions], [made], evals] = await Promise.all([
    run.index.query(BEGUN, []),
    run.index.query('SELECT MAX(version) AS v FROM metrics', []),
    run.index.query(COLLECTION, []),
    evalPoints(run),
  ]);
  const last = evals.at(-1),
    seed = (run.meta.config as { readonly seed?: unknown } | undefined)?.seed;
  return {
    run: run.dir,
    id: run.meta.id,
    name: run.meta.name ?? run.meta.id,
    createdAt: run.meta.createdAt,
    rollouts: Number(counts?.['c'] ?? 0),
    version: Math.max(Number(counts?.['v'] ?? 0), Number(versions?.['v'] ?? 0), last?.version ?? 0),
    lastEval: last,
    evals: evals.map((e) => (e.episodes > 0 ? e.successes / e.episodes : 0)),
    ...(made?.['c'] === 1 ? { collection: true } : {}),
    ...(typeof seed === 'number' ? { seed } : {}),
  };
}
