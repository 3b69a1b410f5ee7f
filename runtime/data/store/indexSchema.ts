import type { Database, SqlValue, Statement } from 'sql.js';
import { isError } from '../events.js';
import type { StoredEvent } from '../events.js';
import { stepEntropy } from '../curation/highEntropy.js';
import type { JournalPosition } from './journalReader.js';

/** Raise when a table changes: an index of another schema is rebuilt from the journal. */
export const schemaVersion = 1;

/**
 * The queryable view of a journal. `position` columns say where in the journal a record lies. Times are ms since the epoch.
 * rollouts holds every trajectory (probes and demonstrations too); `state` and `reason` are the ledger's.
 */
export const schema = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE runs(run TEXT, at INTEGER, resumed INTEGER);
CREATE TABLE rollouts(id TEXT PRIMARY KEY, family TEXT, task TEXT, grp TEXT, seed INTEGER, cap INTEGER, provenance TEXT, state TEXT, reason TEXT, batch TEXT, trained_version INTEGER,
  outcome TEXT, reward REAL, truncated INTEGER, error_kind TEXT, steps INTEGER DEFAULT 0, kept INTEGER, entropy_sum REAL DEFAULT 0, entropy_steps INTEGER DEFAULT 0,
  version_min INTEGER, version_max INTEGER, queued_at INTEGER, started_at INTEGER, ended_at INTEGER, instruction TEXT, head_position INTEGER) WITHOUT ROWID;
CREATE INDEX rollouts_ended ON rollouts(ended_at);
CREATE INDEX rollouts_family ON rollouts(family, ended_at);
CREATE INDEX rollouts_group ON rollouts(grp);
CREATE TABLE steps(rollout TEXT, idx INTEGER, position INTEGER, frame TEXT, action TEXT, entropy REAL, version INTEGER, settled INTEGER, ms REAL, PRIMARY KEY(rollout, idx)) WITHOUT ROWID;
CREATE TABLE groups(id TEXT PRIMARY KEY, family TEXT, task TEXT, size INTEGER, cap INTEGER, state TEXT, reason TEXT, members INTEGER, successes INTEGER, reward_mean REAL, injected INTEGER, threshold REAL, opened_at INTEGER, closed_at INTEGER, position INTEGER) WITHOUT ROWID;
CREATE TABLE batches(id TEXT PRIMARY KEY, groups INTEGER, rollouts INTEGER, steps INTEGER, version INTEGER, trained_version INTEGER, lag_mean REAL, lag_max REAL, claimed_at INTEGER, trained_at INTEGER, state TEXT) WITHOUT ROWID;
CREATE TABLE metrics(name TEXT, at INTEGER, seq INTEGER, version INTEGER, value REAL, PRIMARY KEY(name, seq)) WITHOUT ROWID;
CREATE TABLE evals(seq INTEGER PRIMARY KEY, at INTEGER, version INTEGER, episodes INTEGER, successes INTEGER, errors INTEGER, low REAL, high REAL, label TEXT);
CREATE TABLE events(seq INTEGER PRIMARY KEY, at INTEGER, type TEXT, subject TEXT, position INTEGER);
CREATE INDEX events_type ON events(type, seq);
`;

type Values = readonly (SqlValue | undefined)[];

/** Writes events into the tables with prepared statements. Idempotent: applying an event again leaves the same rows. */
export class IndexWriter {
  readonly #db: Database;
  readonly #statements = new Map<string, Statement>();
  constructor(db: Database) { this.#db = db; }

  /** Statements belong to one database and go with it. */
  free(): void { for (const s of this.#statements.values()) s.free(); this.#statements.clear(); }

  setMeta(key: string, value: SqlValue): void { this.#run('INSERT OR REPLACE INTO meta VALUES(?, ?)', [key, value]); }

  apply(e: StoredEvent, position: JournalPosition): void {
    if (e.type !== 'rollout.step' && e.type !== 'activity') this.#run('INSERT OR REPLACE INTO events VALUES(?, ?, ?, ?, ?)', [e.seq, e.at, e.type, subject(e), position]);
    switch (e.type) {
      case 'run.opened': this.#run('INSERT INTO runs VALUES(?, ?, ?)', [e.run, e.at, e.resumed ? 1 : 0]); break;
      case 'group.opened':
        this.#run("INSERT OR REPLACE INTO groups(id, family, task, size, cap, state, opened_at, position) VALUES(?, ?, ?, ?, ?, 'open', ?, ?)", [e.group, e.family, e.task, e.size, e.cap, e.at, position]); break;
      case 'rollout.queued': {
        const o = e.order;
        this.#run("INSERT OR IGNORE INTO rollouts(id, family, task, grp, seed, cap, provenance, state, queued_at) VALUES(?, ?, ?, ?, ?, ?, 'rollout', 'queued', ?)", [o.rollout, o.family, o.task, o.group, o.seed, o.cap, e.at]); break;
      }
      case 'rollout.started': this.#run("UPDATE rollouts SET state = 'running', started_at = ? WHERE id = ?", [e.at, e.rollout]); break;
      case 'rollout.step': this.#step(e, position); break;
      case 'trajectory.recorded': this.#recorded(e, position); break;
      case 'rollout.retired': this.#retire(e.rollout, e.reason, e.at); break;
      case 'group.formed': {
        for (const m of e.members) if (!m.injected) this.#run("UPDATE rollouts SET state = 'grouped', kept = ? WHERE id = ?", [m.keep.filter(Boolean).length, m.rollout]);
        for (const r of e.retired) this.#retire(r.rollout, r.reason, e.at);
        const rewards = e.members.map((m) => m.reward);
        this.#run("UPDATE groups SET state = 'ready', members = ?, successes = ?, reward_mean = ?, injected = ?, threshold = ?, closed_at = ?, position = ? WHERE id = ?",
          [e.members.length, rewards.filter((r) => r >= 1).length, mean(rewards), e.members.filter((m) => m.injected).length, e.threshold, e.at, position, e.group]);
        break;
      }
      case 'group.dropped':
        for (const r of e.retired) this.#retire(r.rollout, r.reason, e.at);
        this.#run("UPDATE groups SET state = 'dropped', reason = ?, members = ?, successes = ?, reward_mean = ?, injected = 0, closed_at = ?, position = ? WHERE id = ?",
          [e.reason, e.rewards.length, e.rewards.filter((r) => r >= 1).length, mean(e.rewards), e.at, position, e.group]);
        break;
      case 'group.retired':
        for (const r of e.rollouts) this.#retire(r, e.reason, e.at);
        if (e.whole) this.#run("UPDATE groups SET state = 'dropped', reason = ?, closed_at = ? WHERE id = ?", [e.reason, e.at, e.group]);
        break;
      case 'batch.claimed':
        this.#run("INSERT OR REPLACE INTO batches VALUES(?, ?, ?, ?, ?, NULL, ?, ?, ?, NULL, 'claimed')", [e.batch, e.groups.length, e.lags.length, e.steps, e.version, mean(e.lags), e.lags.length > 0 ? Math.max(...e.lags) : null, e.at]);
        for (const g of e.groups) {
          this.#run("UPDATE groups SET state = 'claimed' WHERE id = ?", [g.group]);
          for (const r of g.rollouts) this.#run("UPDATE rollouts SET state = 'claimed', batch = ? WHERE id = ?", [e.batch, r]);
        }
        break;
      case 'batch.released':
        this.#run("UPDATE batches SET state = 'released' WHERE id = ?", [e.batch]);
        for (const g of e.groups) {
          this.#run("UPDATE groups SET state = 'ready' WHERE id = ?", [g.group]);
          for (const r of g.rollouts) this.#run("UPDATE rollouts SET state = 'grouped', batch = NULL WHERE id = ?", [r]);
        }
        break;
      case 'batch.trained':
        this.#run("UPDATE batches SET state = 'trained', trained_version = ?, trained_at = ? WHERE id = ?", [e.version, e.at, e.batch]);
        this.#run("UPDATE groups SET state = 'trained' WHERE id IN (SELECT grp FROM rollouts WHERE batch = ?)", [e.batch]);
        for (const r of e.rollouts) this.#run("UPDATE rollouts SET state = 'trained', trained_version = ? WHERE id = ?", [e.version, r]);
        break;
      case 'metrics':
        for (const [name, value] of Object.entries(e.values)) if (Number.isFinite(value)) this.#run('INSERT OR REPLACE INTO metrics VALUES(?, ?, ?, ?, ?)', [`${e.source}.${name}`, e.at, e.seq, e.version, value]);
        break;
      case 'eval': this.#run('INSERT OR REPLACE INTO evals VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)', [e.seq, e.at, e.version, e.episodes, e.successes, e.errors, e.low, e.high, e.label]); break;
      default: break;
    }
  }

  #step(e: Extract<StoredEvent, { type: 'rollout.step' }>, position: number): void {
    const { step } = e, h = stepEntropy(step), t = step.timings;
    this.#run('INSERT OR REPLACE INTO steps VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)',
      [e.rollout, step.index, position, step.frame.hash, step.actions.map((a) => a.type).join(' '), h, step.version, step.settled ? 1 : 0, t.observe + t.queue + t.decide + t.perform + t.settle]);
  }

  #recorded(e: Extract<StoredEvent, { type: 'trajectory.recorded' }>, position: number): void {
    const h = e.head, o = h.outcome, error = isError(o);
    this.#run("INSERT OR IGNORE INTO rollouts(id, family, task, cap, provenance, state) VALUES(?, ?, ?, ?, ?, 'kept')", [h.id, h.family, h.task, h.cap, h.provenance.kind]);
    this.#run(`UPDATE rollouts SET outcome = ?, reward = ?, truncated = ?, error_kind = ?, steps = ?, started_at = ?, ended_at = ?, instruction = ?, head_position = ?,
      state = CASE WHEN provenance <> 'rollout' THEN 'kept' WHEN ? THEN 'retired' ELSE 'recorded' END, reason = CASE WHEN ? THEN 'error' ELSE NULL END WHERE id = ?`,
    [o.kind, error ? null : o.reward, error ? 0 : o.truncated ? 1 : 0, error ? o.error.kind : null, h.steps, h.startedAt, h.endedAt, h.instruction, position, error ? 1 : 0, error ? 1 : 0, h.id]);
    this.#run(`UPDATE rollouts SET (entropy_sum, entropy_steps, version_min, version_max) =
      (SELECT COALESCE(SUM(entropy), 0), COUNT(entropy), MIN(version), MAX(version) FROM steps WHERE rollout = ?1) WHERE id = ?1`, [h.id]);
  }

  #retire(rollout: string, reason: string, at: number): void { this.#run("UPDATE rollouts SET state = 'retired', reason = ?, ended_at = COALESCE(ended_at, ?) WHERE id = ?", [reason, at, rollout]); }

  #run(sql: string, values: Values): void {
    let s = this.#statements.get(sql);
    if (!s) this.#statements.set(sql, s = this.#db.prepare(sql));
    s.run(values.map((v) => v ?? null));
  }
}

const mean = (xs: readonly number[]): number | null => (xs.length === 0 ? null : xs.reduce((a, b) => a + b, 0) / xs.length);

function subject(e: StoredEvent): string | null {
  if ('rollout' in e && e.rollout) return e.rollout;
  if ('group' in e) return e.group;
  if ('batch' in e) return e.batch;
  if (e.type === 'rollout.queued') return e.order.rollout;
  if (e.type === 'trajectory.recorded') return e.head.id;
  if (e.type === 'pool.added') return e.entry.id;
  if (e.type === 'pool.removed') return e.entry;
  return null;
}
