import { type RetireReason, internalError } from '../domain/index.js';
import type { BatchId, GroupId, RolloutId } from '../domain/index.js';
import { EndedRollouts } from './endedRollouts.js';
import type { LedgerCounts, RolloutState } from './types.js';

/** One move of one rollout; the ledger is a sequence of moves. */
export interface LedgerMove {
  readonly rollout: RolloutId;
  readonly to: RolloutState;
}

type At = RolloutState['at'];
/**
 * Legal moves from each state. `claimed -> grouped` is a released batch (the trainer died before it trained); a rollout
 * that ended in an error goes from running to retired without being recorded. `running -> queued`: it was cut short in a
 * deterministic run, and begins again under its own id.
 */
const legal: Readonly<Record<At | 'none', readonly At[]>> = {
  none: ['queued'],
  queued: ['running', 'retired'],
  running: ['recorded', 'retired', 'queued'],
  recorded: ['grouped', 'retired'],
  grouped: ['claimed', 'retired'],
  claimed: ['trained', 'grouped', 'retired'],
  trained: [],
  retired: [],
};
const reasonsFrom: Readonly<Partial<Record<At, readonly RetireReason[]>>> = {
  queued: ['stopped', 'lost', 'error'],
  running: ['error', 'stopped', 'lost', 'diverged'],
  recorded: ['no-variance', 'replaced', 'trimmed', 'masked', 'stale', 'lost'],
  grouped: ['masked', 'stale', 'no-variance', 'lost'],
  claimed: ['masked', 'stale', 'no-variance'],
};

/**
 * Where every rollout is. Pure: no clock, no file; `move` checks and applies, so the same moves always give the same
 * ledger. At any moment generated = trained + in flight + retired.
 */
export class Ledger {
  /** The states of rollouts that have not ended. */
  readonly #inFlight = new Map<RolloutId, RolloutState>();
  readonly #ended = new EndedRollouts();
  #generated = 0;
  readonly #byState: Record<At, number> = {
    queued: 0,
    running: 0,
    recorded: 0,
    grouped: 0,
    claimed: 0,
    trained: 0,
    retired: 0,
  };
  readonly #retired: Partial<Record<RetireReason, number>> = {};
  #begun = 0;
  #judged = 0;
  readonly #batches = new Map<BatchId, Set<RolloutId>>();
  readonly #groups = new Map<GroupId, Set<RolloutId>>();

  state(rollout: RolloutId): RolloutState | undefined {
    return this.#inFlight.get(rollout) ?? this.#ended.get(rollout);
  }

  /** Why a move is not allowed; undefined when it is. */
  refusal(m: LedgerMove): string | undefined {
    const from = this.state(m.rollout);
    if (!legal[from?.at ?? 'none'].includes(m.to.at))
      return `${m.rollout} cannot go from ${from?.at ?? 'nowhere'} to ${m.to.at}`;
    if (m.to.at === 'retired' && !reasonsFrom[from!.at]?.includes(m.to.reason))
      return `${m.rollout} is ${from!.at} and cannot be retired as ${m.to.reason}`;
    return undefined;
  }

  /** Throws `internal` on an illegal move, without changing anything. */
  move(m: LedgerMove): void {
    const refused = this.refusal(m);
    if (refused) throw internalError(`Ledger: ${refused}.`);
    this.#set(m);
  }
  #set(m: LedgerMove): void {
    const from = this.state(m.rollout);
    if (from?.at === 'running' && m.to.at === 'queued') this.#begun--;
    if (from?.at === 'retired') this.#retired[from.reason] = (this.#retired[from.reason] ?? 0) - 1;
    if (from) {
      this.#byState[from.at]--;
      this.#leave(m.rollout, from);
    } else this.#generated++;
    if (m.to.at === 'trained' || m.to.at === 'retired') this.#ended.set(m.rollout, m.to);
    else this.#inFlight.set(m.rollout, m.to);
    this.#byState[m.to.at]++;
    // A rollout that fails while it waits for its desktop has a trajectory, too.
    if (m.to.at === 'running' || (from?.at === 'queued' && m.to.at === 'retired' && m.to.reason === 'error'))
      this.#begun++;
    if (m.to.at === 'recorded') this.#judged++;
    if (m.to.at === 'retired') this.#retired[m.to.reason] = (this.#retired[m.to.reason] ?? 0) + 1;
    if (m.to.at === 'grouped') add(this.#groups, m.to.group, m.rollout);
    if (m.to.at === 'claimed') add(this.#batches, m.to.batch, m.rollout);
  }

  /** All moves or none: a claim that cannot have every one of its rollouts takes none. */
  moveAll(moves: readonly LedgerMove[]): void {
    const seen = new Set<RolloutId>();
    for (const m of moves) {
      const refused = seen.has(m.rollout) ? `${m.rollout} is named twice in one move` : this.refusal(m);
      if (refused) throw internalError(`Ledger: ${refused}.`);
      seen.add(m.rollout);
    }
    for (const m of moves) this.move(m);
  }

  /**
   * Moves without a check: for a rollout whose earlier records are lost in a damaged journal. A trained rollout stays
   * trained, so that nothing is trained twice.
   */
  force(moves: readonly LedgerMove[]): void {
    for (const m of moves) if (this.state(m.rollout)?.at !== 'trained') this.#set(m);
  }

  counts(): LedgerCounts {
    const b = this.#byState;
    return {
      generated: this.#generated,
      begun: this.#begun,
      judged: this.#judged,
      trained: b.trained,
      inFlight: b.queued + b.running + b.recorded + b.grouped + b.claimed,
      retired: { ...this.#retired },
      byState: { ...b },
    };
  }

  /** Rollouts that a batch still claims. */
  claimedBy(batch: BatchId): readonly RolloutId[] {
    return [...(this.#batches.get(batch) ?? [])];
  }
  /** Rollouts waiting in a group. */
  inGroup(group: GroupId): readonly RolloutId[] {
    return [...(this.#groups.get(group) ?? [])];
  }
  rollouts(at: At): RolloutId[] {
    if (at === 'trained' || at === 'retired') return [...this.#ended.all(at)];
    return [...this.#inFlight].flatMap(([r, s]) => (s.at === at ? [r] : []));
  }

  #leave(rollout: RolloutId, from: RolloutState): void {
    if (from.at === 'grouped') drop(this.#groups, from.group, rollout);
    if (from.at === 'claimed') drop(this.#batches, from.batch, rollout);
    if (!this.#inFlight.delete(rollout)) this.#ended.delete(rollout);
  }
}

function add<K>(m: Map<K, Set<RolloutId>>, k: K, r: RolloutId): void {
  const s = m.get(k);
  if (s) s.add(r);
  else m.set(k, new Set([r]));
}
function drop<K>(m: Map<K, Set<RolloutId>>, k: K, r: RolloutId): void {
  const s = m.get(k);
  s?.delete(r);
  if (s?.size === 0) m.delete(k);
}
