/** Updates the tables of indexSchema.ts from the journal, one record after another. */
import type { SqlValue } from 'sql.js';
import { stepEntropy } from '../curation/highEntropy.js';
import { countTrained, faultOf, isError, timesOf } from '../events.js';
import type { EventOf, JournalEvent, StoredEvent, TrajectoryHead } from '../events.js';
import { addMetrics, addTokens } from './indexMetrics.js';
import type { Rows } from './indexRows.js';
import { addSpans, endOfSpans } from './indexSpans.js';
import type { JournalPosition } from './journalReader.js';
import { packSteps } from './stepPack.js';

/**
 * Records that are listed in `events`: those that are looked for by their type. What happens to every rollout or group
 * is in the columns of `rollouts` and `groups` instead, which take a tenth of the room.
 */
const LISTED = [
  'run.opened',
  'run.closed',
  'batch.claimed',
  'batch.trained',
  'checkpoint',
  'eval',
  'metrics',
  'rates.seeded',
  'model.served',
  'frames.removed',
  'log',
] as const satisfies readonly JournalEvent['type'][];
export type ListedEvent = (typeof LISTED)[number];
const listed: ReadonlySet<string> = new Set(LISTED);

/** Writes events into the tables, each once: what a batch wrote and its place in the journal are one transaction. */
export class IndexWriter {
  readonly #rows: Rows;
  /** The last that is known of the run: when a record was written, or when work of a lane ended. */
  #at: number;

  constructor(rows: Rows) {
    this.#rows = rows;
    this.#at = Number(rows.all("SELECT value FROM meta WHERE key = 'at'")[0]?.[0] ?? 0);
  }

  /** Written with the last record of a transaction: how far the tables reach. */
  reached(o: { readonly position: JournalPosition; readonly seq: number; readonly events: number }): void {
    for (const [key, value] of Object.entries({ ...o, at: this.#at })) this.setMeta(key, value);
  }
  setMeta(key: string, value: SqlValue): void {
    this.#rows.run('INSERT OR REPLACE INTO meta VALUES(?, ?)', [key, value]);
  }

  apply(e: StoredEvent, position: JournalPosition): void {
    if (listed.has(e.type))
      this.#rows.run('INSERT OR REPLACE INTO events VALUES(?, ?, ?, ?)', [e.seq, e.at, e.type, position]);
    // Nobody worked on the run between the last record of one process and the first of the next.
    if (e.type === 'run.opened')
      this.#rows.run('INSERT INTO runs(run, at, resumed, before) VALUES(?, ?, ?, ?)', [
        e.run,
        e.at,
        e.resumed ? 1 : 0,
        this.#at,
      ]);
    const at = Math.max(this.#at, e.at, e.type === 'spans' ? endOfSpans(e) : 0);
    if (Number.isFinite(at)) this.#at = at;
    // The table gives each handler the events of its own type; the compiler cannot follow that through one lookup.
    const handle = handlers[e.type] as ((rows: Rows, e: StoredEvent, position: JournalPosition) => void) | undefined;
    handle?.(this.#rows, e, position);
  }
}

type Stored<T extends JournalEvent['type']> = EventOf<T> & StoredEvent;
/** The changes a record makes besides its row in `events`; a type without an entry makes none. */
type Handlers = {
  readonly [T in JournalEvent['type']]?: (rows: Rows, e: Stored<T>, position: JournalPosition) => void;
};

/** Of the newest process, once. */
function trainingBegan(rows: Rows, at: number): void {
  // A damaged journal may lack the record of the process.
  rows.run('INSERT INTO runs(at) SELECT ? WHERE NOT EXISTS(SELECT 1 FROM runs)', [at]);
  rows.run('UPDATE runs SET queued = COALESCE(queued, ?) WHERE rowid = (SELECT MAX(rowid) FROM runs)', [at]);
}

const handlers: Handlers = {
  'run.opened'(rows) {
    // Probes of an earlier process are not handed out again under their id.
    rows.run(
      "UPDATE rollouts SET state = 'retired', reason = 'lost' WHERE state = 'running' AND provenance <> 'rollout'",
      [],
    );
  },
  'group.opened'(rows, e, position) {
    rows.run(
      "INSERT OR REPLACE INTO groups(id, family, task, size, cap, state, opened_at, position) VALUES(?, ?, ?, ?, ?, 'open', ?, ?)",
      [e.group, e.family, e.task, e.size, e.cap, e.at, position],
    );
  },
  'training.began'(rows, e) {
    trainingBegan(rows, e.at);
  },
  'training.ended'(rows, e) {
    rows.run('UPDATE runs SET trained = ? WHERE rowid = (SELECT MAX(rowid) FROM runs)', [e.at]);
  },
  'rollout.queued'(rows, e) {
    const o = e.order;
    rows.run(
      "INSERT OR IGNORE INTO rollouts(id, family, task, grp, seed, cap, provenance, state, queued_at, born) VALUES(?, ?, ?, ?, ?, ?, 'rollout', 'queued', ?, ?)",
      [o.rollout, o.family, o.task, o.group, o.seed, o.cap, e.at, e.seq],
    );
    if (rows.modified === 0) return;
    // Journals before 0.2 do not say when training begins.
    trainingBegan(rows, e.at);
    rows.run('UPDATE runs SET orders = orders + 1 WHERE rowid = (SELECT MAX(rowid) FROM runs)', []);
  },
  'rollout.started'(rows, e) {
    rows.run("UPDATE rollouts SET state = 'running', started_at = ?, desktop = ?, instruction = ? WHERE id = ?", [
      e.at,
      e.desktop,
      e.instruction,
      e.rollout,
    ]);
  },
  'rollout.restarted'(rows, e) {
    rows.run("UPDATE rollouts SET state = 'queued', started_at = NULL WHERE id = ?", [e.rollout]);
    startOver(rows, e.rollout);
  },
  'trajectory.started'(rows, e) {
    rows.run(
      "INSERT OR IGNORE INTO rollouts(id, family, task, cap, provenance, state, started_at, desktop, instruction, born) VALUES(?, ?, ?, ?, ?, 'running', ?, ?, ?, ?)",
      [e.rollout, e.family, e.task, e.cap, e.provenance, e.at, e.desktop, e.instruction, e.seq],
    );
    // A probe that is repeated after a restart starts over.
    rows.run(
      "UPDATE rollouts SET state = 'running', reason = NULL, outcome = NULL, reward = NULL, error_kind = NULL, head_position = NULL, ended_at = NULL, recorded_at = NULL, steps = 0, started_at = ?, desktop = ? WHERE id = ?",
      [e.at, e.desktop, e.rollout],
    );
    startOver(rows, e.rollout);
  },
  'rollout.step'(rows, e, position) {
    addStep(rows, e, position);
  },
  'trajectory.recorded'(rows, e, position) {
    endRollout(rows, e, position);
  },
  'rollout.retired'(rows, e) {
    retire(rows, e.rollout, e.reason, e.at);
  },
  'group.formed'(rows, e, position) {
    for (const m of e.members)
      if (m.injected) rows.run('INSERT OR IGNORE INTO injections VALUES(?, ?, ?)', [e.group, m.rollout, e.seq]);
    for (const m of e.members)
      if (!m.injected)
        rows.run("UPDATE rollouts SET state = 'grouped', kept = ? WHERE id = ?", [
          m.keep.filter(Boolean).length,
          m.rollout,
        ]);
    for (const r of e.retired) retire(rows, r.rollout, r.reason, e.at);
    const rewards = e.members.map((m) => m.reward);
    rows.run(
      "UPDATE groups SET state = 'ready', members = ?, successes = ?, reward_mean = ?, injected = ?, threshold = ?, closed_at = ?, position = ? WHERE id = ?",
      [
        e.members.length,
        rewards.filter((r) => r >= 1).length,
        mean(rewards),
        e.members.filter((m) => m.injected).length,
        e.threshold,
        e.at,
        position,
        e.group,
      ],
    );
  },
  'group.dropped'(rows, e, position) {
    for (const r of e.retired) retire(rows, r.rollout, r.reason, e.at);
    rows.run(
      "UPDATE groups SET state = 'dropped', reason = ?, members = ?, successes = ?, reward_mean = ?, injected = 0, closed_at = ?, position = ? WHERE id = ?",
      [e.reason, e.rewards.length, e.rewards.filter((r) => r >= 1).length, mean(e.rewards), e.at, position, e.group],
    );
  },
  'group.retired'(rows, e) {
    for (const r of e.rollouts) retire(rows, r, e.reason, e.at);
    if (e.whole)
      rows.run("UPDATE groups SET state = 'dropped', reason = ?, closed_at = ? WHERE id = ?", [
        e.reason,
        e.at,
        e.group,
      ]);
  },
  'batch.claimed'(rows, e) {
    rows.run(
      "INSERT OR REPLACE INTO batches(id, groups, rollouts, steps, version, lag_mean, lag_max, claimed_at, state) VALUES(?, ?, ?, ?, ?, ?, ?, ?, 'claimed')",
      [
        e.batch,
        e.groups.length,
        e.lags.length,
        e.steps,
        e.version,
        mean(e.lags),
        e.lags.length > 0 ? Math.max(...e.lags) : null,
        e.at,
      ],
    );
    for (const g of e.groups) {
      rows.run("UPDATE groups SET state = 'claimed' WHERE id = ?", [g.group]);
      for (const r of g.rollouts)
        rows.run("UPDATE rollouts SET state = 'claimed', batch = ? WHERE id = ?", [e.batch, r]);
    }
  },
  'batch.released'(rows, e) {
    rows.run("UPDATE batches SET state = 'released' WHERE id = ?", [e.batch]);
    for (const g of e.groups) {
      rows.run("UPDATE groups SET state = 'ready' WHERE id = ?", [g.group]);
      for (const r of g.rollouts) rows.run("UPDATE rollouts SET state = 'grouped', batch = NULL WHERE id = ?", [r]);
    }
  },
  'batch.trained'(rows, e, position) {
    const steps = e.trajectories ? countTrained(e.trajectories) : null;
    rows.run(
      "UPDATE batches SET state = 'trained', trained_version = ?, trained_at = ?, steps = COALESCE(?, steps) WHERE id = ?",
      [e.version, e.at, steps, e.batch],
    );
    for (const r of e.rollouts) {
      rows.run("UPDATE rollouts SET state = 'trained', trained_version = ?, trained_position = ? WHERE id = ?", [
        e.version,
        position,
        r,
      ]);
      rows.run("UPDATE groups SET state = 'trained' WHERE id = (SELECT grp FROM rollouts WHERE id = ?)", [r]);
    }
    // An injected success keeps the values of its own group.
    for (const t of e.trajectories ?? [])
      rows.run('UPDATE rollouts SET advantage = ?, weight = ? WHERE id = ? AND (advantage IS NULL OR ?)', [
        finite(t.advantage),
        mean(t.weights.filter((w) => Number.isFinite(w))),
        t.rollout,
        !t.injected && e.rollouts.includes(t.rollout) ? 1 : 0,
      ]);
  },
  'pool.added'(rows, e) {
    const p = e.entry;
    rows.run('INSERT OR REPLACE INTO pool VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, 1)', [
      p.id,
      p.family,
      p.task,
      p.steps,
      p.provenance,
      p.version,
      p.override,
      e.at,
      e.seq,
    ]);
  },
  'pool.removed'(rows, e) {
    rows.run('DELETE FROM pool WHERE rollout = ?', [e.entry]);
  },
  'pool.switched'(rows, e) {
    for (const r of e.entries) rows.run('UPDATE pool SET enabled = ? WHERE rollout = ?', [e.enabled ? 1 : 0, r]);
  },
  metrics(rows, e) {
    addMetrics(rows, e, e);
    if (e.source === 'update') addTokens(rows, e);
  },
  checkpoint(rows, e) {
    if (e.learned) addMetrics(rows, e, e.learned);
  },
  eval(rows, e) {
    rows.run('INSERT OR REPLACE INTO evals VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)', [
      e.seq,
      e.at,
      e.version,
      e.episodes,
      e.successes,
      e.errors,
      e.low,
      e.high,
      e.label,
    ]);
  },
  spans(rows, e) {
    addSpans(rows, e);
  },
  'frames.removed'(rows, e) {
    for (const r of e.rollouts) rows.run('UPDATE rollouts SET bare = 1 WHERE id = ?', [r]);
  },
};

function addStep(rows: Rows, e: Stored<'rollout.step'>, position: number): void {
  rows.run('INSERT OR REPLACE INTO steps VALUES(?, ?, ?, ?, ?)', [
    e.rollout,
    e.step.index,
    position,
    stepEntropy(e.step),
    e.step.version,
  ]);
  if (e.step.actions.some((a) => a.type === 'fail')) rows.run('INSERT OR IGNORE INTO gave_up VALUES(?)', [e.rollout]);
}

function endRollout(rows: Rows, e: Stored<'trajectory.recorded'>, position: number): void {
  const h = e.head,
    o = h.outcome,
    error = isError(o);
  // Whoever has read how it ended before has to read all of them again.
  rows.run(
    "INSERT OR REPLACE INTO meta SELECT 'again', ? WHERE EXISTS(SELECT 1 FROM rollouts WHERE id = ? AND recorded IS NOT NULL)",
    [e.seq, h.id],
  );
  rows.run(
    "INSERT OR IGNORE INTO rollouts(id, family, task, cap, provenance, state, born) VALUES(?, ?, ?, ?, ?, 'kept', ?)",
    [h.id, h.family, h.task, h.cap, h.provenance.kind, e.seq],
  );
  const began = rows.all('SELECT started_at FROM rollouts WHERE id = ?', [h.id])[0]?.[0],
    { startedAt, endedAt } = timesOf(h, e.at, typeof began === 'number' ? began : undefined);
  rows.run(
    `UPDATE rollouts SET outcome = ?, reward = ?, truncated = ?, error_kind = ?, steps = ?, started_at = ?, ended_at = ?, instruction = ?, head_position = ?, human = ?, origin = ?, recorded = ?, recorded_at = ?,
    state = CASE WHEN provenance <> 'rollout' THEN 'kept' WHEN ? THEN 'retired' ELSE 'recorded' END, reason = ? WHERE id = ?`,
    [
      o.kind,
      error ? null : o.reward,
      error ? 0 : o.truncated ? 1 : 0,
      error ? o.error.kind : null,
      h.steps,
      startedAt,
      endedAt,
      h.instruction,
      position,
      h.human ?? 0,
      originOf(h),
      e.seq,
      e.at,
      error ? 1 : 0,
      error ? faultOf(o) : null,
      h.id,
    ],
  );
  packEnded(rows, h.id);
}

/** Packs the steps of an ended rollout into one row, a third of their size. */
function packEnded(rows: Rows, rollout: string): void {
  const steps = rows.all('SELECT idx, position, entropy, version FROM steps WHERE rollout = ? ORDER BY idx', [rollout]);
  if (steps.length === 0) return;
  rows.run(
    `UPDATE rollouts SET (entropy_sum, entropy_steps, version_min, version_max) =
    (SELECT COALESCE(SUM(entropy), 0), COUNT(entropy), MIN(version), MAX(version) FROM steps WHERE rollout = ?1) WHERE id = ?1`,
    [rollout],
  );
  rows.run('INSERT OR REPLACE INTO tracks VALUES(?, ?)', [rollout, packSteps(steps)]);
  rows.run('DELETE FROM steps WHERE rollout = ?', [rollout]);
}
/** Deletes the steps of a rollout that begins again. */
function startOver(rows: Rows, rollout: string): void {
  for (const table of ['steps', 'tracks', 'gave_up']) rows.run(`DELETE FROM ${table} WHERE rollout = ?`, [rollout]);
}

function retire(rows: Rows, rollout: string, reason: string, at: number): void {
  rows.run(
    "UPDATE rollouts SET state = 'retired', reason = ?1, ended_at = COALESCE(ended_at, ?2), recorded_at = COALESCE(recorded_at, ?2) WHERE id = ?3",
    [reason, at, rollout],
  );
}

const finite = (x: number | null): number | null => (x !== null && Number.isFinite(x) ? x : null);
function originOf({ provenance: p, branch }: Pick<TrajectoryHead, 'provenance' | 'branch'>): string | undefined {
  if (branch && p.kind === 'rollout') return `${branch.of}@${branch.step}`;
  if (p.kind === 'hindsight') return p.instruction;
  return p.kind === 'imported' ? p.from : p.kind === 'human' ? p.of : undefined;
}
const mean = (xs: readonly number[] | Float32Array): number | null =>
  xs.length === 0 ? null : [...xs].reduce((a, b) => a + b, 0) / xs.length;
