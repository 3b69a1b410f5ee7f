import { random, type GroupId, type Trajectory } from '../domain/index.js';
import type { Commits } from './commits.js';
import type { DataConfig } from './config.js';
import { branchPoint } from './curation/branches.js';
import { curateGroup, overridden } from './curation/curateGroup.js';
import type { PlannedGroup } from './planner.js';
import type { DataState } from './state.js';
import type { TrajectoryCache } from './trajectoryCache.js';

type Curated = ReturnType<typeof curateGroup>;

/** Curates complete groups: journals the result and drops the trajectories that are no longer needed. */
export class GroupCurator {
  readonly #state: DataState;
  readonly #config: DataConfig;
  readonly #commits: Commits;
  readonly #trajectories: TrajectoryCache;

  constructor(state: DataState, config: DataConfig, commits: Commits, trajectories: TrajectoryCache) {
    this.#state = state;
    this.#config = config;
    this.#commits = commits;
    this.#trajectories = trajectories;
  }

  /**
   * Chooses where the branches of a group begin, once its other rollouts have ended; applied at once. Resolves when that
   * is on disk.
   */
  #branch(group: GroupId): Promise<void> {
    const ended = this.#state.planner.toBranch(group);
    if (!ended) return Promise.resolve();
    const branch = branchPoint(
      ended.map((r) => this.#trajectories.get(r)),
      this.#config.branches,
      random(`${this.#config.planner.seed}/branch/${group}`),
    );
    const begins = branch && { branch, cap: this.#trajectories.get(branch.of).cap };
    return this.#commits.commit([{ type: 'group.branched', group, ...(begins ? { begins } : {}) }]);
  }

  /**
   * Chooses where the branches of a group begin, or curates the group. Applied at once; `ready`: the group is ready for
   * a batch. `saved` resolves when it is on disk.
   */
  settle(group: GroupId): { readonly ready: boolean; readonly saved: Promise<void> } {
    const branched = this.#branch(group),
      complete = this.#state.planner.complete(group);
    if (!complete) return { ready: false, saved: branched };
    const { plan } = complete,
      own = complete.members.map((r) => this.#trajectories.get(r)),
      cut = random(`${this.#config.planner.seed}/cut/${group}`),
      curated = curateGroup(own, () => this.#inject(plan), this.#config, cut),
      saved = Promise.all([branched, this.#note(plan, curated)]).then(() => undefined);
    const kept = new Set(curated.kind === 'dropped' ? [] : curated.members.map((m) => m.trajectory));
    for (const t of own) if (!kept.has(t)) this.#trajectories.forget(t.id);
    return { ready: curated.kind !== 'dropped', saved };
  }

  /** A pool success for a group whose rollouts all failed (runtime/data/README.md#experience-pool). */
  #inject({ task, family }: PlannedGroup): Trajectory | undefined {
    const e = this.#state.pool.choose(task, family, this.#state.version),
      t = e && this.#trajectories.all.get(e.id);
    return t && overridden(t);
  }

  #note({ group, family, task }: PlannedGroup, c: Curated): Promise<void> {
    if (c.kind === 'dropped')
      return this.#commits.commit([
        { type: 'group.dropped', group, family, task, rewards: c.rewards, retired: c.retired, reason: c.reason },
      ]);
    return this.#commits.commit([
      {
        type: 'group.formed',
        group,
        family,
        task,
        version: this.#state.version,
        retired: c.retired,
        threshold: c.threshold,
        members: c.members.map((m) => ({
          rollout: m.trajectory.id,
          injected: m.injected,
          reward: m.reward,
          keep: m.keep,
          ...(m.trajectory.branch && !m.injected ? { from: m.trajectory.branch.step } : {}),
        })),
      },
      ...(Object.keys(c.stats).length > 0
        ? [{ type: 'metrics' as const, source: 'curation', version: this.#state.version, values: c.stats }]
        : []),
    ]);
  }
}
