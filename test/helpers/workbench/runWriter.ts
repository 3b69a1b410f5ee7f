/** Writes the journal of a run step by step, as training would. */
import { parseRunFile } from '../../../runtime/config/index.js';
import { headOf, type JournalEvent } from '../../../runtime/data/events.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import {
  activities,
  id,
  random,
  type ActivityName,
  type BatchId,
  type FamilyId,
  type FrameRef,
  type GroupId,
  type PolicyVersion,
  type Provenance,
  type Random,
  type RolloutId,
  type RunId,
  type Step,
  type TaskId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { wilson } from '../../../runtime/domain/stats.js';
import { screen } from '../interchange/make.js';
import { actionsOf, instructionOf, outcomeOf, stepOf, trained, updateFigures, type TrainedRun } from './runEpisodes.js';

const size = { width: 320, height: 200 };
const groupSize = 4;
export const minute = 60_000;

export class RunWriter {
  readonly #o: TrainedRun;
  readonly #r: Random;
  #store!: RunStore;
  #now: number;
  #screens: readonly FrameRef[] = [];
  #version: PolicyVersion = 1;
  #made = 0;
  #failed: unknown;
  #waiting: Promise<unknown>[] = [];

  constructor(o: TrainedRun) {
    this.#o = o;
    this.#r = random(`trained/${o.seed}`);
    this.#now = o.begin;
  }
  /** Minutes since the run was made. */
  at(minutes: number): void {
    this.#now = this.#o.begin + minutes * minute;
  }
  async open(dir: string, resumed: boolean): Promise<void> {
    const { name, seed, lr, begin } = this.#o,
      run = id<RunId>(`${name}-${seed}`);
    this.#store = await RunStore.open(dir, {
      index: 'local',
      now: () => this.#now,
      frames: { sync: false },
      create: {
        id: run,
        createdAt: begin,
        name,
        // As training keeps it: every option with its value.
        config: parseRunFile({
          name,
          seed,
          tasks: { families: ['form-one', 'press-button'] },
          desktops: { count: 2 },
          trainer: { lr },
          warmStart: { demonstrations: 1, steps: 10, reading: { steps: 50, screens: 40 } },
          evaluation: { episodes: 20 },
          budget: { minutes: 15 },
        }),
      },
    });
    this.say({ type: 'run.opened', run, resumed, pid: 1 });
  }
  async frames(): Promise<void> {
    this.#screens = await Promise.all(
      Array.from({ length: 8 }, (_, i) => this.#store.frames.put(screen(i, size.width, size.height))),
    );
  }
  /** `reason` undefined: the process was killed. */
  async close(reason: string | undefined): Promise<void> {
    if (reason !== undefined) this.say({ type: 'run.closed', reason });
    await Promise.all(this.#waiting.splice(0));
    if (this.#failed !== undefined) throw this.#failed;
    await this.#store.close();
  }
  /** Order of calls is order in the journal. */
  say(e: JournalEvent): void {
    this.#waiting.push(
      this.#store.append(e).catch((x: unknown) => {
        this.#failed ??= x;
      }),
    );
  }
  spans(
    lane: string,
    kind: 'desktop' | 'replica' | 'trainer',
    minutes: number,
    parts: readonly (readonly [ActivityName, number])[],
    rollout?: string,
  ): void {
    let at = 0;
    const start = parts.map(([, ms]) => (at += ms) - ms);
    this.say({
      type: 'spans',
      lane,
      kind,
      t0: this.#o.begin + minutes * minute,
      rollouts: rollout === undefined ? [] : [rollout],
      version: this.#version,
      what: Uint8Array.from(parts, ([name]) => activities.indexOf(name)),
      start: Float32Array.from(start),
      ms: Float32Array.from(parts, ([, ms]) => ms),
      of: Uint8Array.from(parts, () => (rollout === undefined ? 255 : 0)),
    });
  }

  /** The same held-out tasks each time, first those of form-one; their episodes are kept. */
  evaluation(
    version: PolicyVersion,
    label: string,
    won: { readonly formOne: number; readonly pressButton: number },
  ): void {
    const { formOne, pressButton } = trained.families,
      episodes = trained.formOne.episodes;
    for (const [family, successes] of [
      [formOne, won.formOne],
      [pressButton, won.pressButton],
    ] as const)
      // Three of each are enough to look at.
      for (let i = 0; i < 3; i++)
        this.#episode({
          rollout: `probe/${label}/v${version}/${family}/${i}`,
          family,
          seed: 9000 + i,
          provenance: { kind: 'probe' },
          version,
          won: i < Math.min(2, successes),
          desktop: 'desktop-1',
        });
    const all = won.formOne + won.pressButton,
      w = wilson(all, 2 * episodes);
    this.say({
      type: 'eval',
      version,
      label,
      episodes: 2 * episodes,
      successes: all,
      errors: 0,
      low: w.low,
      high: w.high,
      perFamily: {
        [formOne]: { episodes, successes: won.formOne },
        [pressButton]: { episodes, successes: won.pressButton },
      },
    });
  }
  demonstration(minutes: number, n: number): void {
    this.at(minutes);
    this.#episode({
      rollout: `demo/${n}`,
      family: Object.values(trained.families)[n % 2]!,
      seed: n,
      provenance: { kind: 'oracle' },
      version: 0,
      won: true,
      desktop: 'desktop-1',
    });
  }
  /** Every second one of form-one: half of the first three succeed, all of the next; the last one is never trained. */
  group(g: number, minutes: number): void {
    this.at(minutes);
    const { formOne, pressButton } = trained.families,
      family = id<FamilyId>(g % 2 === 0 ? formOne : pressButton),
      task = id<TaskId>(`${family}#${g}`),
      group = id<GroupId>(`g${g}`),
      rollouts: Trajectory[] = [],
      // Every second group that is trained was acted by the version before.
      acting = g % 4 === 3 ? this.#version - 1 : this.#version;
    this.say({ type: 'group.opened', group, family, task, seed: g, size: groupSize, cap: 8 });
    for (let i = 0; i < groupSize; i++) {
      const rollout = id<RolloutId>(`r${String(this.#made++).padStart(4, '0')}`);
      this.say({
        type: 'rollout.queued',
        order: { rollout, group, family, task, seed: g, cap: 8, groupSize },
      });
      // Three desktops after one another at each of two places.
      const desktop = `sandbox-${1 + (i % 2) + 2 * Math.floor(g / 4)}`;
      this.say({
        type: 'rollout.started',
        rollout,
        version: acting,
        desktop,
        instruction: instructionOf(family, g),
      });
      rollouts.push(
        this.#episode({
          rollout,
          family,
          seed: g,
          provenance: { kind: 'rollout' },
          version: acting,
          // The window of form-one is its newest 16: groups 2, 4, 6 and 8, all of which succeed.
          won: family === formOne ? g > 0 : i < 2,
          truncated: family !== formOne && i === 3,
          desktop,
          group,
        }),
      );
    }
    if (g === 9)
      for (let i = 0; i < trained.planned; i++)
        this.say({
          type: 'rollout.queued',
          order: {
            rollout: id<RolloutId>(`r9${i}`),
            group: id<GroupId>('g10'),
            family,
            task,
            seed: 10,
            cap: 8,
            groupSize,
          },
        });
    const rewards = rollouts.map((t) => (t.outcome.kind === 'success' ? 1 : 0));
    if (new Set(rewards).size === 1) {
      this.say({
        type: 'group.dropped',
        group,
        family,
        task,
        rewards,
        reason: 'no-variance',
        retired: rollouts.map((t) => ({ rollout: t.id, reason: 'no-variance' as const })),
      });
      return;
    }
    this.say({
      type: 'group.formed',
      group,
      family,
      task,
      threshold: 0.3,
      version: this.#version,
      retired: [],
      members: rollouts.map((t, i) => ({
        rollout: t.id,
        injected: false,
        reward: rewards[i]!,
        keep: t.steps.map((_, k) => k > 0),
      })),
    });
    if (g < 9) this.#update(group, rollouts, minutes, acting);
  }
  #update(group: GroupId, rollouts: readonly Trajectory[], minutes: number, acting: PolicyVersion): void {
    const batch = id<BatchId>(`b${this.#version}`),
      ids = rollouts.map((t) => t.id),
      r = this.#r;
    this.say({
      type: 'batch.claimed',
      batch,
      groups: [{ group, rollouts: ids }],
      version: this.#version,
      lags: ids.map(() => this.#version - acting),
      steps: rollouts.reduce((a, t) => a + t.steps.length, 0),
    });
    this.#now += 5000;
    this.#version++;
    this.say({
      type: 'batch.trained',
      batch,
      rollouts: ids,
      version: this.#version,
      trajectories: rollouts.map((t) => ({
        rollout: t.id,
        advantage: t.outcome.kind === 'success' ? 0.5 : -0.5,
        steps: Int32Array.from(t.steps.slice(1), (s) => s.index),
        weights: Float32Array.from(t.steps.slice(1), () => 0.8 + r.next() / 10),
      })),
    });
    this.say({
      type: 'metrics',
      source: 'update',
      version: this.#version,
      lists: { tisHistogram: Array.from({ length: 20 }, (_, i) => (i === 19 ? 40 : r.int(9))) },
      values: { version: this.#version, lr: this.#o.lr, ...updateFigures(r) },
    });
    this.say({
      type: 'metrics',
      source: 'run',
      version: this.#version,
      values: {
        elapsedMs: this.#now - this.#o.begin - (minutes > 12 ? 10 * minute : 0),
        success: 0.5,
        // Measured over another stretch of time than its limit, it may seem to be above it.
        rolloutsPerHour: 200,
        boundRolloutsPerHour: 198,
        stepsPerMinute: 10,
        boundStepsPerMinute: 20,
        trainedActionsPerMinute: 8,
        errors: 0,
        desktopUtilisation: 0.8,
        replicaUtilisation: 0.5,
        trainerUtilisation: 0.2,
      },
    });
    this.spans('trainer', 'trainer', minutes + 0.4, [['update', 4000]]);
    this.spans('replica-1', 'replica', minutes + 0.5, [['sync', 300]]);
  }

  #episode(e: {
    readonly rollout: string;
    readonly family: string;
    readonly seed: number;
    readonly provenance: Provenance;
    readonly version: PolicyVersion;
    readonly won: boolean;
    readonly truncated?: boolean;
    readonly desktop: string;
    readonly group?: GroupId;
  }): Trajectory {
    const r = this.#r,
      rollout = id<RolloutId>(e.rollout),
      family = id<FamilyId>(e.family),
      task = id<TaskId>(`${e.family}#${e.seed}`),
      instruction = instructionOf(e.family, e.seed),
      began = this.#now;
    if (e.provenance.kind !== 'rollout')
      this.say({
        type: 'trajectory.started',
        rollout,
        family,
        task,
        instruction,
        cap: 8,
        provenance: e.provenance.kind,
        version: e.version,
        desktop: e.desktop,
      });
    const steps = actionsOf(e.won, r, e.truncated).map((action, index): Step => {
      this.#now += 700;
      const { step, labels } = stepOf(
        index,
        action,
        this.#screens[(e.seed + index) % this.#screens.length]!,
        e.version,
        r,
      );
      this.say({
        type: 'rollout.step',
        rollout,
        step,
        extra: { labels, alternatives: labels.map(() => []), replica: 'replica-1', desktop: e.desktop },
      });
      return step;
    });
    this.#now += 300;
    const trajectory: Trajectory = {
      id: rollout,
      task,
      family,
      instruction,
      ...(e.group === undefined ? {} : { group: e.group }),
      provenance: e.provenance,
      steps,
      cap: 8,
      startedAt: began,
      endedAt: this.#now,
      resetMs: 90,
      verifyMs: 40,
      outcome: outcomeOf(e.won, e.truncated),
    };
    this.say({ type: 'trajectory.recorded', head: headOf(trajectory) });
    if (e.provenance.kind === 'rollout')
      this.spans(
        e.desktop,
        'desktop',
        (began - this.#o.begin) / minute,
        [
          ['reset', 100],
          ...steps.flatMap(
            () =>
              [
                ['observe', 50],
                ['decide', 150],
                ['act', 100],
                ['settle', 400],
              ] as const,
          ),
          ['verify', 200],
        ],
        rollout,
      );
    return trajectory;
  }
}
