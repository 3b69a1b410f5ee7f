import type { Database, SqlValue, Statement } from 'sql.js';
import type { Provenance } from '../../domain/index.js';
import { isError } from '../events.js';
import type { StoredEvent } from '../events.js';
import { stepEntropy } from '../curation/highEntropy.js';
import type { JournalPosition } from './journalReader.js';

/** Raise when a table changes: an index of another schema is rebuilt from the journal. */
export const schemaVersion = 5;

/**
 * The queryable view of a journal. `position` columns say where in the journal a record lies. Times are ms since the
 * epoch. rollouts holds every trajectory (probes and demonstrations too); `state` and `reason` are the ledger's; `born`
 * is the sequence number of its first record, which never changes; `human` counts the steps of a taken-over rollout in
 * which a person acted, `origin` says where an import came from or what a demonstration replays. pool holds what is in
 * it now, `seq` being when it joined: an entry was used as often as it was injected since. gave_up are those in which
 * somebody said that the task cannot be done. steps is by far the longest: it has only what is asked over many steps,
 * the rest is in the journal's record. span_minutes holds the ms of each activity per lane and minute.
 */
export const schema = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE runs(run TEXT, at INTEGER, resumed INTEGER);
CREATE TABLE rollouts(id TEXT PRIMARY KEY, family TEXT, task TEXT, grp TEXT, seed INTEGER, cap INTEGER, provenance TEXT, state TEXT, reason TEXT, batch TEXT, trained_version INTEGER,
  outcome TEXT, reward REAL, truncated INTEGER, error_kind TEXT, steps INTEGER DEFAULT 0, kept INTEGER, entropy_sum REAL DEFAULT 0, entropy_steps INTEGER DEFAULT 0,
  version_min INTEGER, version_max INTEGER, queued_at INTEGER, started_at INTEGER, ended_at INTEGER, instruction TEXT, head_position INTEGER,
  born INTEGER, desktop TEXT, human INTEGER DEFAULT 0, origin TEXT) WITHOUT ROWID;
CREATE INDEX rollouts_ended ON rollouts(ended_at);
CREATE INDEX rollouts_family ON rollouts(family, ended_at);
CREATE INDEX rollouts_group ON rollouts(grp);
CREATE INDEX rollouts_born ON rollouts(born);
CREATE TABLE injections(grp TEXT, rollout TEXT, seq INTEGER, PRIMARY KEY(rollout, grp)) WITHOUT ROWID;
CREATE TABLE pool(rollout TEXT PRIMARY KEY, family TEXT, task TEXT, steps INTEGER, provenance TEXT, version INTEGER, override TEXT, at INTEGER, seq INTEGER, enabled INTEGER) WITHOUT ROWID;
CREATE TABLE gave_up(rollout TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE steps(rollout TEXT, idx INTEGER, position INTEGER, entropy REAL, version INTEGER, PRIMARY KEY(rollout, idx)) WITHOUT ROWID;
CREATE TABLE groups(id TEXT PRIMARY KEY, family TEXT, task TEXT, size INTEGER, cap INTEGER, state TEXT, reason TEXT, members INTEGER, successes INTEGER, reward_mean REAL, injected INTEGER, threshold REAL, opened_at INTEGER, closed_at INTEGER, position INTEGER) WITHOUT ROWID;
CREATE TABLE batches(id TEXT PRIMARY KEY, groups INTEGER, rollouts INTEGER, steps INTEGER, version INTEGER, trained_version INTEGER, lag_mean REAL, lag_max REAL, claimed_at INTEGER, trained_at INTEGER, state TEXT, trained_position INTEGER) WITHOUT ROWID;
CREATE TABLE metrics(name TEXT, at INTEGER, seq INTEGER, version INTEGER, value REAL, PRIMARY KEY(name, seq)) WITHOUT ROWID;
CREATE TABLE evals(seq INTEGER PRIMARY KEY, at INTEGER, version INTEGER, episodes INTEGER, successes INTEGER, errors INTEGER, low REAL, high REAL, label TEXT);
CREATE TABLE spans(seq INTEGER PRIMARY KEY, lane TEXT, kind TEXT, t0 REAL, t1 REAL, what BLOB, start BLOB, ms BLOB, who BLOB, rollouts TEXT, version INTEGER);
CREATE INDEX spans_time ON spans(t1, t0);
CREATE TABLE span_minutes(lane TEXT, minute INTEGER, what INTEGER, kind TEXT, ms REAL, PRIMARY KEY(lane, minute, what)) WITHOUT ROWID;
CREATE TABLE events(seq INTEGER PRIMARY KEY, at INTEGER, type TEXT, subject TEXT, position INTEGER);
CREATE INDEX events_type ON events(type, seq);
CREATE INDEX events_subject ON events(subject, type);
`;

type Values = readonly (SqlValue | undefined)[];

/** Writes events into the tables with prepared statements. Idempotent: applying an event again leaves the same rows. */
export class IndexWriter {
  readonly #db: Database;
  readonly #statements = new Map<string, Statement>();
  constructor(db: Database) {
    this.#db = db;
  }

  /** Statements belong to one database and go with it. */
  free(): void {
    for (const s of this.#statements.values()) s.free();
    this.#statements.clear();
  }

  setMeta(key: string, value: SqlValue): void {
    this.#run('INSERT OR REPLACE INTO meta VALUES(?, ?)', [key, value]);
  }

  apply(e: StoredEvent, position: JournalPosition): void {
    if (e.type !== 'rollout.step' && e.type !== 'activity' && e.type !== 'spans')
      this.#run('INSERT OR REPLACE INTO events VALUES(?, ?, ?, ?, ?)', [e.seq, e.at, e.type, subject(e), position]);
    switch (e.type) {
      case 'run.opened':
        this.#run('INSERT INTO runs VALUES(?, ?, ?)', [e.run, e.at, e.resumed ? 1 : 0]);
        // Probes of an earlier process are not handed out again under their id.
        this.#run(
          "UPDATE rollouts SET state = 'retired', reason = 'lost' WHERE state = 'running' AND provenance <> 'rollout'",
          [],
        );
        break;
      case 'group.opened':
        this.#run(
          "INSERT OR REPLACE INTO groups(id, family, task, size, cap, state, opened_at, position) VALUES(?, ?, ?, ?, ?, 'open', ?, ?)",
          [e.group, e.family, e.task, e.size, e.cap, e.at, position],
        );
        break;
      case 'rollout.queued': {
        const o = e.order;
        this.#run(
          "INSERT OR IGNORE INTO rollouts(id, family, task, grp, seed, cap, provenance, state, queued_at, born) VALUES(?, ?, ?, ?, ?, ?, 'rollout', 'queued', ?, ?)",
          [o.rollout, o.family, o.task, o.group, o.seed, o.cap, e.at, e.seq],
        );
        break;
      }
      case 'rollout.started':
        this.#run("UPDATE rollouts SET state = 'running', started_at = ?, desktop = ?, instruction = ? WHERE id = ?", [
          e.at,
          e.desktop,
          e.instruction,
          e.rollout,
        ]);
        break;
      case 'trajectory.started':
        this.#run(
          "INSERT OR IGNORE INTO rollouts(id, family, task, cap, provenance, state, started_at, desktop, instruction, born) VALUES(?, ?, ?, ?, ?, 'running', ?, ?, ?, ?)",
          [e.rollout, e.family, e.task, e.cap, e.provenance, e.at, e.desktop, e.instruction, e.seq],
        );
        // A probe that is repeated after a restart begins anew.
        this.#run(
          "UPDATE rollouts SET state = 'running', reason = NULL, outcome = NULL, reward = NULL, error_kind = NULL, head_position = NULL, ended_at = NULL, steps = 0, started_at = ?, desktop = ? WHERE id = ?",
          [e.at, e.desktop, e.rollout],
        );
        this.#run('DELETE FROM steps WHERE rollout = ?', [e.rollout]);
        this.#run('DELETE FROM gave_up WHERE rollout = ?', [e.rollout]);
        break;
      case 'rollout.step':
        this.#step(e, position);
        break;
      case 'trajectory.recorded':
        this.#recorded(e, position);
        break;
      case 'rollout.retired':
        this.#retire(e.rollout, e.reason, e.at);
        break;
      case 'group.formed': {
        for (const m of e.members)
          if (m.injected) this.#run('INSERT OR IGNORE INTO injections VALUES(?, ?, ?)', [e.group, m.rollout, e.seq]);
        for (const m of e.members)
          if (!m.injected)
            this.#run("UPDATE rollouts SET state = 'grouped', kept = ? WHERE id = ?", [
              m.keep.filter(Boolean).length,
              m.rollout,
            ]);
        for (const r of e.retired) this.#retire(r.rollout, r.reason, e.at);
        const rewards = e.members.map((m) => m.reward);
        this.#run(
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
        break;
      }
      case 'group.dropped':
        for (const r of e.retired) this.#retire(r.rollout, r.reason, e.at);
        this.#run(
          "UPDATE groups SET state = 'dropped', reason = ?, members = ?, successes = ?, reward_mean = ?, injected = 0, closed_at = ?, position = ? WHERE id = ?",
          [
            e.reason,
            e.rewards.length,
            e.rewards.filter((r) => r >= 1).length,
            mean(e.rewards),
            e.at,
            position,
            e.group,
          ],
        );
        break;
      case 'group.retired':
        for (const r of e.rollouts) this.#retire(r, e.reason, e.at);
        if (e.whole)
          this.#run("UPDATE groups SET state = 'dropped', reason = ?, closed_at = ? WHERE id = ?", [
            e.reason,
            e.at,
            e.group,
          ]);
        break;
      case 'batch.claimed':
        this.#run("INSERT OR REPLACE INTO batches VALUES(?, ?, ?, ?, ?, NULL, ?, ?, ?, NULL, 'claimed', NULL)", [
          e.batch,
          e.groups.length,
          e.lags.length,
          e.steps,
          e.version,
          mean(e.lags),
          e.lags.length > 0 ? Math.max(...e.lags) : null,
          e.at,
        ]);
        for (const g of e.groups) {
          this.#run("UPDATE groups SET state = 'claimed' WHERE id = ?", [g.group]);
          for (const r of g.rollouts)
            this.#run("UPDATE rollouts SET state = 'claimed', batch = ? WHERE id = ?", [e.batch, r]);
        }
        break;
      case 'batch.released':
        this.#run("UPDATE batches SET state = 'released' WHERE id = ?", [e.batch]);
        for (const g of e.groups) {
          this.#run("UPDATE groups SET state = 'ready' WHERE id = ?", [g.group]);
          for (const r of g.rollouts)
            this.#run("UPDATE rollouts SET state = 'grouped', batch = NULL WHERE id = ?", [r]);
        }
        break;
      case 'batch.trained':
        this.#run(
          "UPDATE batches SET state = 'trained', trained_version = ?, trained_at = ?, trained_position = ? WHERE id = ?",
          [e.version, e.at, position, e.batch],
        );
        this.#run("UPDATE groups SET state = 'trained' WHERE id IN (SELECT grp FROM rollouts WHERE batch = ?)", [
          e.batch,
        ]);
        for (const r of e.rollouts)
          this.#run("UPDATE rollouts SET state = 'trained', trained_version = ? WHERE id = ?", [e.version, r]);
        break;
      case 'pool.added': {
        const p = e.entry;
        this.#run('INSERT OR REPLACE INTO pool VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, 1)', [
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
        break;
      }
      case 'pool.removed':
        this.#run('DELETE FROM pool WHERE rollout = ?', [e.entry]);
        break;
      case 'pool.switched':
        for (const r of e.entries) this.#run('UPDATE pool SET enabled = ? WHERE rollout = ?', [e.enabled ? 1 : 0, r]);
        break;
      case 'metrics':
        for (const [name, value] of Object.entries(e.values))
          if (Number.isFinite(value))
            this.#run('INSERT OR REPLACE INTO metrics VALUES(?, ?, ?, ?, ?)', [
              `${e.source}.${name}`,
              e.at,
              e.seq,
              e.version,
              value,
            ]);
        break;
      case 'eval':
        this.#run('INSERT OR REPLACE INTO evals VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)', [
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
        break;
      case 'spans':
        this.#spans(e);
        break;
      default:
        break;
    }
  }

  #spans(e: Extract<StoredEvent, { type: 'spans' }>): void {
    const t1 = e.t0 + e.start.reduce((m, s, i) => Math.max(m, s + e.ms[i]!), 0);
    this.#run('INSERT OR IGNORE INTO spans VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', [
      e.seq,
      e.lane,
      e.kind,
      e.t0,
      t1,
      e.what,
      bytes(e.start),
      bytes(e.ms),
      e.of,
      JSON.stringify(e.rollouts),
      e.version,
    ]);
    if (this.#db.getRowsModified() === 0) return;
    const sums = new Map<number, number>();
    for (const [i, what] of e.what.entries()) {
      // A span over several minutes gives each its part.
      for (let from = e.t0 + e.start[i]!, end = from + e.ms[i]!; from < end;) {
        const minute = Math.floor(from / 60_000),
          to = Math.min(end, (minute + 1) * 60_000),
          key = minute * 16 + what;
        sums.set(key, (sums.get(key) ?? 0) + to - from);
        from = to;
      }
    }
    for (const [key, ms] of sums)
      this.#run('INSERT INTO span_minutes VALUES(?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ms = ms + excluded.ms', [
        e.lane,
        Math.floor(key / 16),
        key % 16,
        e.kind,
        ms,
      ]);
  }

  #step(e: Extract<StoredEvent, { type: 'rollout.step' }>, position: number): void {
    this.#run('INSERT OR REPLACE INTO steps VALUES(?, ?, ?, ?, ?)', [
      e.rollout,
      e.step.index,
      position,
      stepEntropy(e.step),
      e.step.version,
    ]);
    if (e.step.actions.some((a) => a.type === 'fail'))
      this.#run('INSERT OR IGNORE INTO gave_up VALUES(?)', [e.rollout]);
  }

  #recorded(e: Extract<StoredEvent, { type: 'trajectory.recorded' }>, position: number): void {
    const h = e.head,
      o = h.outcome,
      error = isError(o);
    this.#run(
      "INSERT OR IGNORE INTO rollouts(id, family, task, cap, provenance, state, born) VALUES(?, ?, ?, ?, ?, 'kept', ?)",
      [h.id, h.family, h.task, h.cap, h.provenance.kind, e.seq],
    );
    this.#run(
      `UPDATE rollouts SET outcome = ?, reward = ?, truncated = ?, error_kind = ?, steps = ?, started_at = ?, ended_at = ?, instruction = ?, head_position = ?, human = ?, origin = ?,
      state = CASE WHEN provenance <> 'rollout' THEN 'kept' WHEN ? THEN 'retired' ELSE 'recorded' END, reason = CASE WHEN ? THEN 'error' ELSE NULL END WHERE id = ?`,
      [
        o.kind,
        error ? null : o.reward,
        error ? 0 : o.truncated ? 1 : 0,
        error ? o.error.kind : null,
        h.steps,
        h.startedAt,
        h.endedAt,
        h.instruction,
        position,
        h.human ?? 0,
        originOf(h.provenance),
        error ? 1 : 0,
        error ? 1 : 0,
        h.id,
      ],
    );
    this.#run(
      `UPDATE rollouts SET (entropy_sum, entropy_steps, version_min, version_max) =
      (SELECT COALESCE(SUM(entropy), 0), COUNT(entropy), MIN(version), MAX(version) FROM steps WHERE rollout = ?1) WHERE id = ?1`,
      [h.id],
    );
  }

  #retire(rollout: string, reason: string, at: number): void {
    this.#run("UPDATE rollouts SET state = 'retired', reason = ?, ended_at = COALESCE(ended_at, ?) WHERE id = ?", [
      reason,
      at,
      rollout,
    ]);
  }

  #run(sql: string, values: Values): void {
    let s = this.#statements.get(sql);
    if (!s) this.#statements.set(sql, (s = this.#db.prepare(sql)));
    s.run(values.map((v) => v ?? null));
  }
}

const bytes = (a: Float32Array): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
const originOf = (p: Provenance): string | undefined =>
  p.kind === 'imported' ? p.from : p.kind === 'human' ? p.of : undefined;
const mean = (xs: readonly number[]): number | null =>
  xs.length === 0 ? null : xs.reduce((a, b) => a + b, 0) / xs.length;

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
