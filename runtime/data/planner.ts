import { id, random, type RetireReason } from '../domain/index.js';
import type { FamilyId, GroupId, Random, RolloutId, TaskId } from '../domain/index.js';
import type { DataConfig } from './config.js';
import { numberedRollout } from './endedRollouts.js';
import { stepCap } from './curation/dynamicLength.js';
import type { SuccessLengths } from './curation/dynamicLength.js';
import type { GroupPlan } from './curation/mechanism.js';
import { planGroup } from './curation/registry.js';
import type { SuccessStats } from './curation/successStats.js';
import type { RolloutOrder } from './types.js';

/** One family to train on. `seeds` is a list, or a range of `count` seeds from `from`. */
export interface PlannerFamily {
  readonly id: FamilyId;
  readonly seeds: readonly number[] | { readonly from: number; readonly count: number };
  /** The suite's own step limit, when it is below the global cap. */
  readonly maxSteps?: number;
}

export interface PlannedGroup {
  readonly group: GroupId;
  readonly family: FamilyId;
  readonly task: TaskId;
  readonly seed: number;
  readonly size: number;
  /** Step cap of its non-exploring rollouts. */
  readonly cap: number;
  /** How many of them are branches; absent in journals from before there were any. */
  readonly branches?: number;
}
/** Where the branches of a group begin, and their cap: the turns that the original rollout had left there. */
type Beginning = Required<Pick<RolloutOrder, 'branch' | 'cap'>>;
export interface GroupBranches {
  readonly group: GroupId;
  /** Absent when no step is worth a branch. */
  readonly begins?: Beginning;
}

type Member = 'queued' | 'running' | 'recorded';
export interface OpenGroup extends PlannedGroup {
  /** Rollouts of the group, without those that ended in an error. */
  readonly members: Readonly<Record<RolloutId, Member>>;
  /** Slots still to hand out. */
  readonly toIssue: number;
  /** Slots withheld until the first rollouts have ended (`pilot`). */
  readonly withheld?: number;
  /** Successes among its rollouts that have ended. */
  readonly successes?: number;
  readonly retries: number;
  /** Branches still to hand out, and where they begin, which is chosen once the others have ended. */
  readonly toBranch?: number;
  readonly begins?: Beginning;
  /** The members that are branches. */
  readonly branched?: readonly RolloutId[];
}
/** The whole state of a planner; plain JSON. */
export interface PlannerState {
  readonly groups: number;
  readonly rollouts: number;
  readonly open: readonly OpenGroup[];
}

/** The planner's decision; it changes nothing until `apply` is called, so it can be journalled first. */
export type PlannerEvent =
  | ({ readonly type: 'group.opened' } & PlannedGroup)
  | ({ readonly type: 'group.branched' } & GroupBranches)
  | { readonly type: 'rollout.queued'; readonly order: RolloutOrder };

/** An open group; mutable. */
interface Open {
  readonly plan: PlannedGroup;
  readonly members: Map<RolloutId, Member>;
  toIssue: number;
  withheld: number;
  successes: number;
  retries: number;
  toBranch: number;
  begins: Beginning | undefined;
  readonly branched: Set<RolloutId>;
}

export interface PlannerDeps {
  readonly families: readonly PlannerFamily[];
  readonly taskOf: (family: FamilyId, seed: number) => TaskId;
  readonly stats: SuccessStats;
  readonly lengths: SuccessLengths;
  readonly config: DataConfig;
}

/**
 * The withheld rest of a group is dropped when mixed outcomes, the only ones with a gradient, are less likely than
 * this.
 */
const MIXED_LIKELY_ENOUGH = 0.5;
/**
 * Least weight of a family with the planner `variance`, against p(1-p) <= 0.25, so that every family is drawn
 * sometimes.
 */
const WEIGHT_FLOOR = 0.05;

/**
 * Decides what to roll out next. Orders of one group are handed out one after another, so its rollouts end at about the
 * same time without a barrier. Every draw comes from (seed, counter), never from a running generator: state is two
 * counters and the open groups.
 */
export class Planner {
  readonly #d: PlannerDeps;
  #limits: ReadonlyMap<FamilyId, number | undefined> | undefined;
  #groups = 0;
  #rollouts = 0;
  readonly #open = new Map<GroupId, Open>();

  constructor(d: PlannerDeps) {
    this.#d = d;
  }

  static restore(d: PlannerDeps, s: PlannerState): Planner {
    const p = new Planner(d);
    p.#groups = s.groups;
    p.#rollouts = s.rollouts;
    for (const g of s.open) {
      const { members, toIssue, retries, withheld = 0, successes = 0, toBranch = 0, ...more } = g,
        { begins, branched = [], ...plan } = more;
      p.#open.set(plan.group, {
        plan,
        toIssue,
        retries,
        withheld,
        successes,
        toBranch,
        begins,
        members: new Map(Object.entries(members).map(([r, m]) => [id<RolloutId>(r), m])),
        branched: new Set(branched),
      });
    }
    return p;
  }
  state(): PlannerState {
    return {
      groups: this.#groups,
      rollouts: this.#rollouts,
      open: [...this.#open.values()].map((g) => ({
        ...g.plan,
        members: Object.fromEntries(g.members),
        toIssue: g.toIssue,
        retries: g.retries,
        withheld: g.withheld,
        successes: g.successes,
        ...(g.plan.branches === undefined ? {} : { toBranch: g.toBranch, begins: g.begins, branched: [...g.branched] }),
      })),
    };
  }

  /**
   * The next order: a slot of the oldest group that has one, else the first of a new group. Returns an empty list
   * without families.
   */
  next(): readonly PlannerEvent[] {
    for (const g of this.#open.values()) {
      if (g.toIssue > 0) return [this.#order(g.plan)];
      if (g.begins && g.toBranch > 0) return [this.#order(g.plan, g.begins)];
    }
    const plan = this.#plan();
    return plan ? [{ type: 'group.opened', ...plan }, this.#order(plan)] : [];
  }
  /** Slots of open groups still to hand out; `next` gives these before it opens another group. */
  get unissued(): number {
    let n = 0;
    for (const g of this.#open.values()) n += g.toIssue + (g.begins ? g.toBranch : 0);
    return n;
  }

  apply(e: PlannerEvent): void {
    if (e.type === 'group.opened') {
      const { type: _t, ...plan } = e;
      this.#groups = Math.max(this.#groups + 1, numberOf(plan.group));
      const { branches = 0 } = plan,
        whole = plan.size - branches,
        first = Math.min(whole, this.#d.config.planner.pilot || whole);
      this.#open.set(plan.group, {
        plan,
        members: new Map(),
        toIssue: first,
        withheld: whole - first,
        successes: 0,
        retries: 0,
        toBranch: branches,
        begins: undefined,
        branched: new Set(),
      });
    } else if (e.type === 'group.branched') {
      const g = this.#open.get(e.group);
      if (!g) return;
      g.begins = e.begins;
      if (!e.begins) g.toBranch = 0;
    } else {
      this.#rollouts = Math.max(this.#rollouts + 1, numberOf(e.order.rollout));
      const g = this.#open.get(e.order.group);
      if (g) {
        g.members.set(e.order.rollout, 'queued');
        if (e.order.branch) {
          g.toBranch--;
          g.branched.add(e.order.rollout);
        } else g.toIssue = Math.max(0, g.toIssue - 1);
      }
    }
  }
  /** A rollout whose order is lost in a damaged journal: its id is not used again. */
  saw(rollout: RolloutId): void {
    this.#rollouts = Math.max(this.#rollouts, numberOf(rollout));
  }
  started(group: GroupId, rollout: RolloutId): void {
    const g = this.#open.get(group);
    if (g?.members.has(rollout)) g.members.set(rollout, 'running');
  }
  /** A rollout begins again. */
  restarted(group: GroupId, rollout: RolloutId): void {
    const g = this.#open.get(group);
    if (g?.members.has(rollout)) g.members.set(rollout, 'queued');
  }
  recorded(group: GroupId, rollout: RolloutId, success: boolean): void {
    const g = this.#open.get(group);
    if (!g?.members.has(rollout)) return;
    g.members.set(rollout, 'recorded');
    if (success) g.successes++;
    this.#decide(g);
  }

  /**
   * A rollout without an outcome. After an error it is retried while the group has retries left; one that was stopped
   * or lost is always handed out again, and a branch that met another screen never.
   */
  retired(group: GroupId, rollout: RolloutId, reason: RetireReason): void {
    const g = this.#open.get(group);
    if (!g || !g.members.delete(rollout)) return;
    const again = reason !== 'error' || g.retries < this.#d.config.planner.retries,
      branch = g.branched.delete(rollout);
    if (reason === 'diverged') return;
    if (again && reason === 'error') g.retries++;
    if (again && branch) g.toBranch++;
    else if (again) g.toIssue++;
    this.#decide(g);
  }

  /**
   * When the first rollouts of a group have ended, the others follow unless, by the family's Beta posterior, all would
   * probably end the same way (all successes or all failures). Such a group is curated with what it has.
   */
  #decide(g: Open): void {
    if (g.withheld === 0 || g.toIssue > 0 || !allRecorded(g)) return;
    const n = g.members.size,
      mixed = g.successes > 0 && g.successes < n,
      s = this.#d.stats.of(g.plan.family);
    if (
      mixed ||
      1 - sameAgain(g.successes === n ? s.successes : s.n - s.successes, s.n, g.withheld) >= MIXED_LIKELY_ENOUGH
    )
      g.toIssue = g.withheld;
    g.withheld = 0;
  }

  /** Members of a group that have ended and whose branches have no beginning yet. */
  toBranch(group: GroupId): readonly RolloutId[] | undefined {
    const g = this.#open.get(group);
    return g && g.toBranch > 0 && !g.begins && hasEnded(g) ? [...g.members.keys()] : undefined;
  }
  /** Plan and members of a complete group; undefined while rollouts are missing. */
  complete(group: GroupId): { readonly plan: PlannedGroup; readonly members: readonly RolloutId[] } | undefined {
    const g = this.#open.get(group);
    if (!g || g.toBranch > 0 || !hasEnded(g)) return undefined;
    return { plan: g.plan, members: [...g.members.keys()] };
  }
  close(group: GroupId): void {
    this.#open.delete(group);
  }
  openGroups(): GroupId[] {
    return [...this.#open.keys()];
  }
  isOpen(group: GroupId): boolean {
    return this.#open.has(group);
  }
  /** Rollouts of an open group, without those that ended in an error. */
  members(group: GroupId): Iterable<RolloutId> {
    return this.#open.get(group)?.members.keys() ?? [];
  }

  families(): FamilyId[] {
    return this.#d.families.map((f) => f.id);
  }

  /** N and step cap that a group of this family would get now. */
  outlook(family: FamilyId): { readonly size: number; readonly cap: number } {
    const { size, cap } = this.#planOf(family);
    return { size, cap };
  }
  #planOf(family: FamilyId): GroupPlan {
    const { config, stats, lengths } = this.#d,
      limit = this.#limitOf(family),
      { global } = config.dynamicLength;
    return planGroup(
      { size: config.dynamicRollouts.max, cap: Math.min(global, limit ?? global), branches: 0 },
      { successes: stats.of(family), longest: lengths.longest(family), limit },
      config,
    );
  }

  /** The suite's own step limit. By name: there may be hundreds of families, and all of them are asked for at once. */
  #limitOf(family: FamilyId): number | undefined {
    this.#limits ??= new Map(this.#d.families.map((f) => [f.id, f.maxSteps]));
    return this.#limits.get(family);
  }

  #plan(): PlannedGroup | undefined {
    const { families } = this.#d,
      config = this.#d.config.planner;
    if (families.length === 0) return undefined;
    const k = this.#groups,
      r = random(`${config.seed}/group/${k}`);
    const family = config.planner === 'variance' ? this.#byVariance(r) : this.#byPass(k);
    const seed = 'count' in family.seeds ? fromRange(family.seeds, r) : r.pick(family.seeds);
    const { branches, ...plan } = this.#planOf(family.id);
    return {
      group: id<GroupId>(`g${pad(k + 1)}`),
      family: family.id,
      task: this.#d.taskOf(family.id, seed),
      seed,
      ...plan,
      ...(branches > 0 ? { branches } : {}),
    };
  }
  #byPass(k: number): PlannerFamily {
    const n = this.#d.families.length;
    return random(`${this.#d.config.planner.seed}/pass/${Math.floor(k / n)}`).shuffle(this.#d.families)[k % n]!;
  }
  #byVariance(r: Random): PlannerFamily {
    const weights = this.#d.families.map((f) => {
      const p = this.#d.stats.of(f.id).posterior;
      return Math.max(WEIGHT_FLOOR, p * (1 - p)) ** this.#d.config.planner.uncertainty;
    });
    let u = r.next() * weights.reduce((a, b) => a + b, 0);
    for (const [i, w] of weights.entries()) {
      u -= w;
      if (u < 0) return this.#d.families[i]!;
    }
    return this.#d.families.at(-1)!;
  }
  #order(plan: PlannedGroup, begins?: Beginning): PlannerEvent {
    const rollout = numberedRollout(this.#rollouts + 1);
    const limit = this.#limitOf(plan.family);
    const length = this.#d.config.dynamicLength;
    const u = random(`${this.#d.config.planner.seed}/explore/${rollout}`).next();
    // The cap is planned with the group; only an exploring rollout has another one.
    const cap = length.enabled && u < length.exploreShare ? stepCap(undefined, 1, length, limit) : plan.cap;
    return {
      type: 'rollout.queued',
      order: {
        rollout,
        group: plan.group,
        family: plan.family,
        task: plan.task,
        seed: plan.seed,
        cap,
        groupSize: plan.size,
        ...begins,
      },
    };
  }
}

const allRecorded = (g: Pick<Open, 'members'>): boolean => [...g.members.values()].every((m) => m === 'recorded');
/** Every rollout that was handed out has ended, and only branches may be left to hand out. */
const hasEnded = (g: Open): boolean => g.toIssue === 0 && g.withheld === 0 && allRecorded(g);

/** Probability that `m` more outcomes are all of the kind that came `k` times in `n`, under Beta(1 + k, 1 + n - k). */
function sameAgain(k: number, n: number, m: number): number {
  let p = 1;
  for (let i = 0; i < m; i++) p *= (1 + k + i) / (2 + n + i);
  return p;
}
const numberOf = (of: GroupId | RolloutId): number => Number(/\d+$/.exec(of)?.[0] ?? 0);
const pad = (n: number): string => String(n).padStart(6, '0');
const fromRange = (s: { from: number; count: number }, r: Random): number => s.from + r.int(Math.max(1, s.count));
