import { assisted, byPerson, isLogical, type RetireReason } from '../domain/index.js';
import type {
  BatchId,
  ChoicePlaces,
  FamilyId,
  GroupId,
  Outcome,
  PolicyVersion,
  Provenance,
  RolloutId,
  RunId,
  ServedModel,
  Step,
  TaskId,
  Trajectory,
} from '../domain/index.js';
import type { Alternative, PackedAlternatives } from './alternatives.js';
import type { PoolEntryInfo } from './experiencePool.js';
import type { LedgerMove } from './ledger.js';
import type { GroupBranches, PlannedGroup } from './planner.js';
import type { RolloutOrder } from './types.js';

/** A trajectory without its steps, which were journalled one by one as they happened. */
export type TrajectoryHead = Omit<Trajectory, 'steps'> & {
  readonly steps: number;
  /** Steps of a rollout or probe in which a person acted; absent when there are none. */
  readonly human?: number;
};

/**
 * What the inspector shows of a decision besides its Step: the most probable alternatives of each choice, and the
 * replica that answered.
 */
export interface StepExtra {
  /** Per token, most probable first; empty for a position choice, whose alternatives are in `places`. */
  readonly packed?: PackedAlternatives;
  /** The same as lists, in journals of version 0.1. */
  readonly alternatives?: readonly (readonly Alternative[])[];
  /** Each token's choice, in words. */
  readonly labels?: readonly string[];
  readonly places?: readonly ChoicePlaces[];
  /** Labels of the tokens of each of the step's rejected answers; empty where they are not known. */
  readonly rejectedLabels?: readonly (readonly string[])[];
  readonly replica?: string;
  readonly desktop?: string;
}

/**
 * Spans of one lane as columns: activity `what[i]` (an index into `activities`) during t0 + start[i] .. t0 + start[i] +
 * ms[i]. `of[i]` is the index of the span's rollout in `rollouts`, 255 for none. All spans of a record have one
 * version.
 */
export interface LaneSpans {
  readonly lane: string;
  readonly kind: 'desktop' | 'replica' | 'trainer';
  /** ms since the epoch. */
  readonly t0: number;
  readonly what: Uint8Array;
  readonly start: Float32Array;
  readonly ms: Float32Array;
  readonly of: Uint8Array;
  readonly rollouts: readonly string[];
  readonly version?: PolicyVersion;
}

/**
 * How the steps of one trajectory were trained: its advantage, and per trained step its truncated importance weight
 * (mean over tokens; NaN when it has none).
 */
export interface TrainedSteps {
  readonly rollout: RolloutId;
  /** The steps were trained in a group that the trajectory was injected into. */
  readonly injected?: true;
  readonly advantage: number;
  readonly steps: Int32Array;
  readonly weights: Float32Array;
  /** Advantage of each trained step, where they differ (fork credit); `advantage` is then that of the first. */
  readonly advantages?: Float32Array;
  /**
   * Per trained step: the truncated weights of the tokens of its own answer, for people (NaN where unknown). Absent
   * where the trainer keeps none.
   */
  readonly tokenWeights?: readonly Float32Array[];
}

/**
 * Steps that an update trained: those that got a weight, which a step has none of that a stopped update did not reach; all
 * of them where the trainer says no weights.
 */
export function countTrained(trajectories: readonly TrainedSteps[]): number {
  const reached = trajectories.reduce((n, t) => n + t.weights.filter((w) => !Number.isNaN(w)).length, 0);
  return reached > 0 ? reached : trajectories.reduce((n, t) => n + t.steps.length, 0);
}

/** A trajectory that entered a group, and the steps of it that are trained. */
export interface GroupMember {
  readonly rollout: RolloutId;
  /** It comes from the experience pool and is not one of the group's own rollouts. */
  readonly injected: boolean;
  readonly reward: number;
  readonly keep: readonly boolean[];
  /** Index of a branch's first own step; absent for other rollouts. */
  readonly from?: number;
}

/** Why a waiting group is given up: something of it on disk is damaged, or the trainer does not take it. */
export type LossCause = 'corrupt' | 'refused';

/**
 * Everything that happens in a run. Each event is one record of the journal, which adds its sequence number and time.
 */
export type JournalEvent =
  | { readonly type: 'run.opened'; readonly run: RunId; readonly resumed: boolean; readonly pid: number }
  | { readonly type: 'run.closed'; readonly reason: string }
  /** Time that the run has used, pauses left out: every two seconds, so that a crash loses no more of it. */
  | { readonly type: 'run.time'; readonly elapsedMs: number }
  /** Reinforcement learning begins in this process: its rates and shares are counted from here. */
  | { readonly type: 'training.began' }
  /** It is over: the process may still evaluate and close, which is no longer counted. */
  | { readonly type: 'training.ended' }
  | ({ readonly type: 'group.opened' } & PlannedGroup)
  | ({ readonly type: 'group.branched' } & GroupBranches)
  | { readonly type: 'rollout.queued'; readonly order: RolloutOrder }
  | {
      readonly type: 'rollout.started';
      readonly rollout: RolloutId;
      readonly version: PolicyVersion;
      readonly desktop?: string;
      readonly instruction?: string;
    }
  /** The same for a probe, which is not in the ledger and has no order. */
  | {
      readonly type: 'trajectory.started';
      readonly rollout: RolloutId;
      readonly family: FamilyId;
      readonly task: TaskId;
      readonly instruction: string;
      readonly cap: number;
      readonly provenance: Provenance['kind'];
      readonly version: PolicyVersion;
      readonly desktop?: string;
    }
  | { readonly type: 'rollout.step'; readonly rollout: RolloutId; readonly step: Step; readonly extra?: StepExtra }
  /**
   * A rollout ended; an error outcome retires it with this record. Also for trajectories that are not in the ledger:
   * probes, demonstrations, imports.
   */
  | { readonly type: 'trajectory.recorded'; readonly head: TrajectoryHead }
  | {
      readonly type: 'rollout.retired';
      readonly rollout: RolloutId;
      readonly group: GroupId;
      readonly reason: RetireReason;
      /** The trajectory's record on disk is damaged. */
      readonly cause?: 'corrupt';
    }
  /**
   * The rollout was cut short in a deterministic run (`run.deterministic`): it begins again under its own id, and its
   * steps so far are void.
   */
  | { readonly type: 'rollout.restarted'; readonly rollout: RolloutId; readonly group: GroupId }
  /** A person held it for too long: its group continues without it, and it is retired as stale when it has ended. */
  | { readonly type: 'rollout.released'; readonly rollout: RolloutId; readonly group: GroupId }
  /** Curation in one record: which members stay with which steps, which are retired and why. */
  | {
      readonly type: 'group.formed';
      readonly group: GroupId;
      readonly family: FamilyId;
      readonly task: TaskId;
      readonly members: readonly GroupMember[];
      readonly retired: readonly { readonly rollout: RolloutId; readonly reason: RetireReason }[];
      /** Entropy threshold. */
      readonly threshold?: number;
      readonly version: PolicyVersion;
    }
  | {
      readonly type: 'group.dropped';
      readonly group: GroupId;
      readonly family: FamilyId;
      readonly task: TaskId;
      readonly rewards: readonly number[];
      readonly retired: readonly { readonly rollout: RolloutId; readonly reason: RetireReason }[];
      readonly reason: RetireReason;
    }
  /** Rollouts of a waiting group that can no longer be trained; `whole`: the entire group is retired. */
  | {
      readonly type: 'group.retired';
      readonly group: GroupId;
      readonly rollouts: readonly RolloutId[];
      readonly reason: RetireReason;
      readonly whole: boolean;
      readonly cause?: LossCause;
    }
  | {
      readonly type: 'batch.claimed';
      readonly batch: BatchId;
      readonly groups: readonly { readonly group: GroupId; readonly rollouts: readonly RolloutId[] }[];
      readonly version: PolicyVersion;
      /** How many updates each rollout lags behind. */
      readonly lags: readonly number[];
      /** The same of the policy's own earlier successes that were injected into these groups; absent without any. */
      readonly poolLags?: readonly number[];
      readonly steps: number;
    }
  | {
      readonly type: 'batch.trained';
      readonly batch: BatchId;
      readonly rollouts: readonly RolloutId[];
      readonly version: PolicyVersion;
      /** Folder of the checkpoint that holds these weights; version 0.1 wrote a `checkpoint` record after this one. */
      readonly checkpoint?: string;
      readonly trajectories?: readonly TrainedSteps[];
    }
  /** A claim released untrained. */
  | {
      readonly type: 'batch.released';
      readonly batch: BatchId;
      readonly groups: readonly { readonly group: GroupId; readonly rollouts: readonly RolloutId[] }[];
      readonly reason: string;
    }
  /** `by`: a person decided this, whatever the rules say. */
  | { readonly type: 'pool.added'; readonly entry: PoolEntryInfo; readonly by?: 'person' }
  | { readonly type: 'pool.removed'; readonly entry: RolloutId; readonly reason: string; readonly by?: 'person' }
  | { readonly type: 'pool.switched'; readonly entries: readonly RolloutId[]; readonly enabled: boolean }
  /** Success of another policy on this run's families, from a collection that joined its pool. */
  | {
      readonly type: 'rates.seeded';
      readonly families: Readonly<Record<string, { readonly successes: number; readonly failures: number }>>;
    }
  /** Named numbers of one moment, e.g. an update's report; `source` says where they come from. */
  | {
      readonly type: 'metrics';
      readonly source: string;
      readonly version?: PolicyVersion;
      readonly values: Readonly<Record<string, number>>;
      /** Histograms and other lists. */
      readonly lists?: Readonly<Record<string, readonly number[]>>;
    }
  | {
      readonly type: 'eval';
      readonly version: PolicyVersion;
      readonly episodes: number;
      readonly successes: number;
      readonly errors: number;
      readonly low: number;
      readonly high: number;
      readonly perFamily?: Readonly<Record<string, { readonly episodes: number; readonly successes: number }>>;
      readonly label?: string;
      readonly infeasible?: { readonly episodes: number; readonly successes: number };
    }
  /** Who acts and trains, as they say it, at each start of a run whose model servers serve. */
  | { readonly type: 'model.served'; readonly served: ServedModel }
  /** Weights in the folder `dir`. What a lesson made and that it was learned are one record: a crash tears neither off. */
  | {
      readonly type: 'checkpoint';
      readonly version: PolicyVersion;
      readonly dir: string;
      /** The lesson that made them, as `metrics` would say it; version 0.1 wrote a `metrics` record after this one. */
      readonly learned?: Pick<EventOf<'metrics'>, 'source' | 'values'>;
    }
  /** Screens that nothing else shows, of trajectories whose records stay; `rollouts` have lost theirs. */
  | {
      readonly type: 'frames.removed';
      readonly rollouts: readonly RolloutId[];
      readonly frames: number;
      readonly bytes: number;
      readonly why: 'age' | 'size';
    }
  /** Work of a desktop, replica or the trainer, for the utilisation lanes. */
  | ({ readonly type: 'spans' } & LaneSpans)
  | {
      readonly type: 'log';
      readonly level: 'info' | 'warn' | 'error';
      readonly message: string;
      readonly details?: unknown;
    };

export type StoredEvent = JournalEvent & { readonly seq: number; /** ms since the epoch. */ readonly at: number };
export type EventOf<T extends JournalEvent['type']> = Extract<JournalEvent, { type: T }>;

/** Records that change nothing of the ledger. */
export type NoteEvent = EventOf<
  | 'metrics'
  | 'eval'
  | 'checkpoint'
  | 'trajectory.started'
  | 'spans'
  | 'log'
  | 'run.time'
  | 'training.began'
  | 'training.ended'
  | 'run.closed'
  | 'rates.seeded'
  | 'model.served'
  | 'frames.removed'
>;

export const headOf = (t: Trajectory): TrajectoryHead => ({
  ...t,
  steps: t.steps.length,
  human: assisted(t) ? t.steps.filter(byPerson).length : undefined,
});
/**
 * When it began and ended, ms since the epoch: of a deterministic run, whose trajectories have logical times, when that
 * was recorded. `began`: as the record of its beginning has it.
 */
export const timesOf = (
  h: TrajectoryHead,
  recordedAt: number,
  began: number | undefined,
): Pick<TrajectoryHead, 'startedAt' | 'endedAt'> =>
  isLogical(h)
    ? { startedAt: began ?? recordedAt, endedAt: recordedAt }
    : { startedAt: h.startedAt, endedAt: h.endedAt };
/** Whether a person acted in it: then its outcome is not the policy's and influences no decision. */
export const isAssisted = (h: TrajectoryHead): boolean => (h.human ?? 0) > 0;
/** Why a rollout that ended in an error is retired. */
export const faultOf = (o: Extract<Outcome, { kind: 'error' }>): 'error' | 'diverged' =>
  o.error.kind === 'rollout.diverged' ? 'diverged' : 'error';
export const isError = (o: Outcome): o is Extract<Outcome, { kind: 'error' }> => o.kind === 'error';
/** Only training rollouts are in the ledger. */
export const inLedger = (p: Provenance): boolean => p.kind === 'rollout';

/** The ledger moves of an event. */
export function ledgerMoves(e: JournalEvent): readonly LedgerMove[] {
  switch (e.type) {
    case 'rollout.queued':
      return [{ rollout: e.order.rollout, to: { at: 'queued' } }];
    case 'rollout.started':
      return [{ rollout: e.rollout, to: { at: 'running' } }];
    case 'rollout.restarted':
      return [{ rollout: e.rollout, to: { at: 'queued' } }];
    case 'trajectory.recorded':
      if (!inLedger(e.head.provenance)) return [];
      return [
        {
          rollout: e.head.id,
          to: isError(e.head.outcome) ? { at: 'retired', reason: faultOf(e.head.outcome) } : { at: 'recorded' },
        },
      ];
    case 'rollout.retired':
      return [{ rollout: e.rollout, to: { at: 'retired', reason: e.reason } }];
    case 'group.formed':
      return [
        ...e.members
          .filter((m) => !m.injected && !e.retired.some((r) => r.rollout === m.rollout))
          .map((m): LedgerMove => ({ rollout: m.rollout, to: { at: 'grouped', group: e.group } })),
        ...e.retired.map((r): LedgerMove => ({ rollout: r.rollout, to: { at: 'retired', reason: r.reason } })),
      ];
    case 'group.dropped':
      return e.retired.map((r) => ({ rollout: r.rollout, to: { at: 'retired', reason: r.reason } }));
    case 'group.retired':
      return e.rollouts.map((rollout) => ({ rollout, to: { at: 'retired', reason: e.reason } }));
    case 'batch.claimed':
      return e.groups.flatMap((g) =>
        g.rollouts.map((rollout): LedgerMove => ({ rollout, to: { at: 'claimed', batch: e.batch } })),
      );
    case 'batch.released':
      return e.groups.flatMap((g) =>
        g.rollouts.map((rollout): LedgerMove => ({ rollout, to: { at: 'grouped', group: g.group } })),
      );
    case 'batch.trained':
      return e.rollouts.map((rollout) => ({ rollout, to: { at: 'trained' } }));
    default:
      return [];
  }
}

/** The checkpoint that an event tells of: its version and its folder as it was called when it was written. */
export function checkpointOf(e: JournalEvent): { readonly version: PolicyVersion; readonly dir: string } | undefined {
  if (e.type === 'checkpoint') return { version: e.version, dir: e.dir };
  return e.type === 'batch.trained' && e.checkpoint !== undefined
    ? { version: e.version, dir: e.checkpoint }
    : undefined;
}
