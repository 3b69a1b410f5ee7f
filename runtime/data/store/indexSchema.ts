/** Raise when a table changes: an index of another schema is rebuilt from the journal. */
export const schemaVersion = 13;

/**
 * The queryable view of a journal. `position` columns say where in the journal a record lies. Times are ms since the
 * epoch. rollouts holds every trajectory (probes and demonstrations too); `state` and `reason` are the ledger's; `born`
 * is the sequence number of its first record, which never changes; `human` counts the steps of a taken-over rollout in
 * which a person acted, `origin` says where an import came from, what a demonstration replays, where a
 * branch begins (ROLLOUT@STEP), or what a relabelled failure was asked for; `advantage` and `weight` (mean truncated importance weight of its trained steps) are those of the update that used it. pool holds what is in
 * it now, `seq` being when it joined: an entry was used as often as it was injected since. gave_up lists trajectories
 * that ended with "this task cannot be done". steps has those of trajectories that run, and only what is queried over
 * many; of one that has ended they are one row of tracks (stepPack.ts). `recorded` is the sequence number of the record
 * with which it ended and `recorded_at` when that was written, by the clock on the wall (what ended without one: when it was retired); `trained_position` is that of the update that used it; `bare`: its screens were removed. runs has a row for each process that wrote the run: `before` is
 * the last that is known of the run before it, `queued` when its reinforcement learning began (in journals before 0.2:
 * when its first order was), `trained` when that was over, `orders` how many orders it gave. lanes is when each lane was there; span_minutes and
 * span_hours hold the ms of each activity per lane and minute or hour, an hour in the one or in the other.
 *
 * An index has a bound (indexTrim.ts). Those in held stay: people worked on them. Rollouts that went are counted in past, with '' for what is not there, groups in
 * past_groups, where cap is that of the one that was opened last; past_outcomes has how each ended, by its record.
 * Of older metrics the peaks are there (indexThin.ts), and in past_metrics where their records lie in the journal, as 64-bit
 * floats; older batches are added up in past_updates. `tokens` are NULL of an update whose metrics a crash took, and
 * `mute` those that left theirs without them.
 */
export const schema = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE runs(run TEXT, at INTEGER, resumed INTEGER, before INTEGER, queued INTEGER, trained INTEGER, orders INTEGER DEFAULT 0);
CREATE TABLE rollouts(id TEXT PRIMARY KEY, family TEXT, task TEXT, grp TEXT, seed INTEGER, cap INTEGER, provenance TEXT, state TEXT, reason TEXT, batch TEXT, trained_version INTEGER,
  outcome TEXT, reward REAL, truncated INTEGER, error_kind TEXT, steps INTEGER DEFAULT 0, kept INTEGER, entropy_sum REAL DEFAULT 0, entropy_steps INTEGER DEFAULT 0,
  version_min INTEGER, version_max INTEGER, queued_at INTEGER, started_at INTEGER, ended_at INTEGER, instruction TEXT, head_position INTEGER,
  born INTEGER, desktop TEXT, human INTEGER DEFAULT 0, origin TEXT, advantage REAL, weight REAL, recorded INTEGER, recorded_at INTEGER, bare INTEGER, trained_position INTEGER) WITHOUT ROWID;
CREATE INDEX rollouts_ended ON rollouts(ended_at);
CREATE INDEX rollouts_family ON rollouts(family, ended_at);
CREATE INDEX rollouts_group ON rollouts(grp);
CREATE INDEX rollouts_born ON rollouts(born);
CREATE INDEX rollouts_recorded ON rollouts(recorded) WHERE recorded IS NOT NULL;
CREATE INDEX rollouts_won ON rollouts(ended_at) WHERE outcome = 'success' AND provenance = 'rollout';
CREATE TABLE injections(grp TEXT, rollout TEXT, seq INTEGER, PRIMARY KEY(rollout, grp)) WITHOUT ROWID;
CREATE TABLE pool(rollout TEXT PRIMARY KEY, family TEXT, task TEXT, steps INTEGER, provenance TEXT, version INTEGER, override TEXT, at INTEGER, seq INTEGER, enabled INTEGER) WITHOUT ROWID;
CREATE TABLE gave_up(rollout TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE steps(rollout TEXT, idx INTEGER, position INTEGER, entropy REAL, version INTEGER, PRIMARY KEY(rollout, idx)) WITHOUT ROWID;
CREATE TABLE tracks(rollout TEXT PRIMARY KEY, steps BLOB) WITHOUT ROWID;
CREATE TABLE groups(id TEXT PRIMARY KEY, family TEXT, task TEXT, size INTEGER, cap INTEGER, state TEXT, reason TEXT, members INTEGER, successes INTEGER, reward_mean REAL, injected INTEGER, threshold REAL, opened_at INTEGER, closed_at INTEGER, position INTEGER) WITHOUT ROWID;
CREATE TABLE batches(id TEXT PRIMARY KEY, groups INTEGER, rollouts INTEGER, steps INTEGER, version INTEGER, trained_version INTEGER, lag_mean REAL, lag_max REAL, claimed_at INTEGER, trained_at INTEGER, state TEXT, tokens INTEGER, mute INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE INDEX batches_version ON batches(trained_version) WHERE trained_version IS NOT NULL;
CREATE TABLE metrics(name TEXT, at INTEGER, seq INTEGER, version INTEGER, value REAL, PRIMARY KEY(name, seq)) WITHOUT ROWID;
CREATE TABLE evals(seq INTEGER PRIMARY KEY, at INTEGER, version INTEGER, episodes INTEGER, successes INTEGER, errors INTEGER, low REAL, high REAL, label TEXT);
CREATE TABLE spans(seq INTEGER PRIMARY KEY, lane TEXT, kind TEXT, t0 REAL, t1 REAL, what BLOB, start BLOB, ms BLOB, who BLOB, rollouts TEXT, version INTEGER);
CREATE INDEX spans_time ON spans(t1, t0);
CREATE TABLE span_minutes(lane TEXT, minute INTEGER, what INTEGER, kind TEXT, ms REAL, PRIMARY KEY(lane, minute, what)) WITHOUT ROWID;
CREATE TABLE span_hours(lane TEXT, hour INTEGER, what INTEGER, kind TEXT, ms REAL, PRIMARY KEY(lane, hour, what)) WITHOUT ROWID;
CREATE TABLE lanes(lane TEXT PRIMARY KEY, kind TEXT, t0 REAL, t1 REAL) WITHOUT ROWID;
CREATE TABLE held(rollout TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE past(family TEXT, state TEXT, reason TEXT, outcome TEXT, n INTEGER, begun INTEGER, steps INTEGER, version_max INTEGER, instruction TEXT, PRIMARY KEY(family, state, reason, outcome)) WITHOUT ROWID;
CREATE TABLE past_groups(family TEXT PRIMARY KEY, n INTEGER, cap INTEGER, opened_at INTEGER, injected INTEGER) WITHOUT ROWID;
CREATE TABLE past_families(id INTEGER PRIMARY KEY, family TEXT UNIQUE);
CREATE TABLE past_outcomes(recorded INTEGER PRIMARY KEY, ended_at INTEGER, family INTEGER, success INTEGER, steps INTEGER, reward REAL);
CREATE TABLE past_updates(part INTEGER PRIMARY KEY, at INTEGER, n INTEGER, steps INTEGER, tokens INTEGER, mute INTEGER);
CREATE TABLE past_metrics(seq INTEGER PRIMARY KEY, positions BLOB);
CREATE TABLE events(seq INTEGER PRIMARY KEY, at INTEGER, type TEXT, position INTEGER);
CREATE INDEX events_type ON events(type, seq);
`;
