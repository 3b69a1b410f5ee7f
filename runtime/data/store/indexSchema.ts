/** Raise when a table changes: an index of another schema is rebuilt from the journal. */
export const schemaVersion = 6;

/**
 * The queryable view of a journal. `position` columns say where in the journal a record lies. Times are ms since the
 * epoch. rollouts holds every trajectory (probes and demonstrations too); `state` and `reason` are the ledger's; `born`
 * is the sequence number of its first record, which never changes; `human` counts the steps of a taken-over rollout in
 * which a person acted, `origin` says where an import came from or what a demonstration replays; `advantage` and
 * `weight` (mean truncated importance weight of its trained steps) are those of the update that used it. pool holds what is in
 * it now, `seq` being when it joined: an entry was used as often as it was injected since. gave_up lists trajectories
 * that ended with "this task cannot be done". steps is by far the longest: it has only what is queried over many steps;
 * the rest is in the journal's record. span_minutes holds the ms of each activity per lane and minute.
 */
export const schema = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE runs(run TEXT, at INTEGER, resumed INTEGER);
CREATE TABLE rollouts(id TEXT PRIMARY KEY, family TEXT, task TEXT, grp TEXT, seed INTEGER, cap INTEGER, provenance TEXT, state TEXT, reason TEXT, batch TEXT, trained_version INTEGER,
  outcome TEXT, reward REAL, truncated INTEGER, error_kind TEXT, steps INTEGER DEFAULT 0, kept INTEGER, entropy_sum REAL DEFAULT 0, entropy_steps INTEGER DEFAULT 0,
  version_min INTEGER, version_max INTEGER, queued_at INTEGER, started_at INTEGER, ended_at INTEGER, instruction TEXT, head_position INTEGER,
  born INTEGER, desktop TEXT, human INTEGER DEFAULT 0, origin TEXT, advantage REAL, weight REAL) WITHOUT ROWID;
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
