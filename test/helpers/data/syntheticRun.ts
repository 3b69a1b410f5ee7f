import {
  id,
  random,
  type BatchId,
  type FamilyId,
  type GroupId,
  type Outcome,
  type Random,
  type RolloutId,
  type RunId,
  type Step,
  type TaskId,
} from '../../../runtime/domain/index.js';
import type { JournalEvent } from '../../../runtime/data/events.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';

/** What the journal of a synthetic run says of one rollout. */
export interface Told {
  readonly id: string;
  readonly family: string;
  readonly group: string;
  readonly outcome: 'success' | 'failure' | 'error' | 'running';
  readonly reward?: number;
  readonly steps: number;
  readonly entropy: number;
  readonly versions: readonly [number, number];
  readonly reason?: string;
  readonly trained: boolean;
  readonly assisted: boolean;
  readonly endedAt: number;
}
export interface SyntheticRun {
  readonly told: readonly Told[];
  readonly events: number;
  readonly updates: number;
  readonly probes: number;
}
export interface SyntheticOptions {
  readonly groups: number;
  readonly size?: number;
  readonly steps?: number;
  readonly seed?: number;
  readonly families?: readonly string[];
  /** Rollouts left running at the end. */
  readonly running?: number;
  /** Of every so many rollouts a person took one step. */
  readonly assistedEvery?: number;
  readonly close?: string;
  readonly frame?: (r: Random) => string;
  readonly config?: unknown;
  /** As before tokens were recorded: its first update does not say how many it had. */
  readonly untold?: boolean;
}

const hex = (r: Random): string =>
  Array.from({ length: 8 }, () =>
    Math.floor(r.next() * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  ).join('');
export const families = ['desk/press-button', 'desk/term-touch', 'desk/calc-copy'];

const extra = {
  desktop: 'd1',
  replica: 'replica-1',
  labels: ['click', '8,8'],
  alternatives: [
    [
      { label: 'click', probability: 0.9 },
      { label: 'type', probability: 0.05 },
    ],
    [],
  ],
  places: [
    {
      token: 1,
      grid: [0, 0, 320, 200, 8, 40],
      cells: Int32Array.of(0, 41),
      probabilities: Float32Array.of(0.6, 0.3),
    },
  ],
};
const PROBES = 6;

/**
 * A run's journal as a training run writes it, without training: groups, steps, curation, batches, lanes, metrics,
 * evaluations. Same seed, same journal.
 */
export async function writeSyntheticRun(dir: string, o: SyntheticOptions): Promise<SyntheticRun> {
  const w = await SyntheticWriter.open(dir, o);
  for (let i = 0; i < PROBES; i++) w.probe(i);
  w.evaluation();
  for (let g = 0; g < o.groups; g++) {
    const group = w.group(g);
    // The group whose rollouts still run is the last one.
    if (g === o.groups - 1 && (o.running ?? 0) > 0) break;
    w.curate(group);
    if (g % 20 === 19) await w.flush();
  }
  return w.close();
}

/** A rollout of a group that has a verdict. */
interface Member {
  readonly rollout: RolloutId;
  readonly reward: number;
  readonly keep: readonly boolean[];
  /** Of its entry in `told`. */
  readonly index: number;
  readonly steps: number;
}
interface Group {
  readonly group: GroupId;
  readonly family: FamilyId;
  readonly task: TaskId;
  readonly members: readonly Member[];
}
type GroupName = Omit<Group, 'members'>;
/** How a rollout goes; `ends` is absent while it runs. */
interface Course {
  readonly steps: number;
  readonly entropy: number;
  readonly ends: 'success' | 'failure' | 'error' | undefined;
}

/** Writes the journal of one run; its clock stands still but for what is written. */
class SyntheticWriter {
  readonly #o: SyntheticOptions;
  readonly #r: Random;
  readonly #names: readonly string[];
  readonly #pending: Promise<unknown>[] = [];
  readonly #told: Told[] = [];
  #store!: RunStore;
  #now = 1_800_000_000_000;
  #version = 1;
  #rollouts = 0;
  #updates = 0;
  #events = 0;

  private constructor(o: SyntheticOptions) {
    this.#o = o;
    this.#r = random(o.seed ?? 1);
    this.#names = o.families ?? families;
  }
  static async open(dir: string, o: SyntheticOptions): Promise<SyntheticWriter> {
    const w = new SyntheticWriter(o);
    w.#store = await RunStore.open(dir, {
      index: 'local',
      now: () => w.#now,
      snapshotMs: 1e9,
      create: {
        id: id<RunId>('synthetic'),
        createdAt: w.#now,
        name: 'synthetic',
        config: o.config ?? { tasks: { families: ['press-button', 'term-touch', 'calc-copy'] } },
      },
    });
    w.#say({ type: 'run.opened', run: id<RunId>('synthetic'), resumed: false, pid: 1 });
    return w;
  }

  /** Episode `i` of the first evaluation; the first one succeeds. */
  probe(i: number): void {
    const rollout = id<RolloutId>(`probe/untrained/v0/${i}`),
      family = this.#family(i),
      task = id<TaskId>(`${family}#${i}`),
      instruction = `probe ${i}`;
    this.#say({
      type: 'trajectory.started',
      rollout,
      family,
      task,
      instruction,
      cap: 4,
      provenance: 'probe',
      version: 0,
      desktop: 'd1',
    });
    for (let k = 0; k < 2; k++) this.#say({ type: 'rollout.step', rollout, step: this.#step(k, 0.5), extra });
    this.#now += 10;
    this.#say({
      type: 'trajectory.recorded',
      head: {
        id: rollout,
        task,
        family,
        instruction,
        provenance: { kind: 'probe' },
        steps: 2,
        outcome:
          i === 0 ? { kind: 'success', reward: 1, truncated: false } : { kind: 'failure', reward: 0, truncated: true },
        cap: 4,
        startedAt: this.#now - 10,
        endedAt: this.#now,
        resetMs: 1,
        verifyMs: 1,
      },
    });
  }
  /** The result of the probes. */
  evaluation(): void {
    this.#say({
      type: 'eval',
      version: 0,
      episodes: PROBES,
      successes: 1,
      errors: 0,
      low: 0.03,
      high: 0.56,
      perFamily: {},
      label: 'untrained',
    });
  }

  /** Opens group `g` and rolls it out; the newest `running` rollouts of the last group do not end. */
  group(g: number): Group {
    const { groups, size = 8, running = 0 } = this.#o,
      group = id<GroupId>(`g${String(g + 1).padStart(6, '0')}`),
      family = this.#family(g),
      task = id<TaskId>(`${family}#${g}`),
      name: GroupName = { group, family, task };
    this.#say({ type: 'group.opened', ...name, seed: g, size, cap: 12 });
    const members = Array.from({ length: size }, (_, k) =>
      this.#rollout(name, g, size, g === groups - 1 && k >= size - running),
    ).filter((m) => m !== undefined);
    return { ...name, members };
  }
  /** Drops a group that is all alike, and trains every other one. */
  curate(of: Group): void {
    const wins = of.members.filter((m) => m.reward === 1).length;
    if (wins === 0 || wins === of.members.length) this.#drop(of);
    else this.#update(of, wins / of.members.length);
  }

  async flush(): Promise<void> {
    await Promise.all(this.#pending.splice(0));
  }
  async close(): Promise<SyntheticRun> {
    this.#say({ type: 'log', level: 'info', message: 'the end is near' });
    if (this.#o.close) this.#say({ type: 'run.closed', reason: this.#o.close });
    await this.flush();
    await this.#store.close();
    return { told: this.#told, events: this.#events, updates: this.#updates, probes: PROBES };
  }

  #say(e: JournalEvent): void {
    this.#events++;
    this.#pending.push(this.#store.append(e));
  }
  #family(n: number): FamilyId {
    return id<FamilyId>(this.#names[n % this.#names.length]!);
  }
  #step(index: number, entropy: number): Step {
    const r = this.#r;
    return {
      index,
      frame: { hash: (this.#o.frame ?? hex)(r), width: 640, height: 400 },
      actions: [{ type: 'click', at: { x: r.int(640), y: r.int(400) } }],
      origin: 'policy',
      settled: true,
      version: this.#version,
      tokens: {
        logprobs: Float32Array.of(-0.1, -r.next()),
        entropies: Float32Array.of(entropy, entropy),
        ids: Int32Array.of(0, 12 + r.int(1000)),
      },
      timings: { observe: 1, decide: 10, queue: 2, perform: 20, settle: 30 },
    };
  }

  /** Undefined for a rollout that runs on, or that an error ended. */
  #rollout(name: GroupName, seed: number, groupSize: number, runs: boolean): Member | undefined {
    const rollout = id<RolloutId>(`r${String(++this.#rollouts).padStart(6, '0')}`),
      desktop = `d${1 + (this.#rollouts % 4)}`,
      instruction = `do number ${this.#rollouts} of ${name.task}`,
      began = this.#now,
      course = this.#course(runs),
      { steps, entropy, ends } = course;
    this.#say({ type: 'rollout.queued', order: { rollout, ...name, seed, cap: 12, groupSize } });
    this.#say({ type: 'rollout.started', rollout, version: this.#version, desktop, instruction });
    for (let s = 0; s < steps; s++) {
      this.#now += 60;
      this.#say({ type: 'rollout.step', rollout, step: this.#step(s, entropy), extra });
    }
    if (ends !== undefined) this.#recorded(name, { rollout, desktop, instruction, began, steps, ends });
    const index = this.#told.length,
      reward = ends === 'success' ? 1 : 0;
    this.#tell(name, rollout, course);
    if (ends === undefined || ends === 'error') return undefined;
    return { rollout, reward, keep: Array.from({ length: steps }, (_, j) => j % 5 !== 4), index, steps };
  }
  #course(runs: boolean): Course {
    const r = this.#r,
      steps = 1 + r.int((this.#o.steps ?? 15) * 2 - 1),
      entropy = r.next(),
      broke = !runs && r.next() < 0.05,
      won = !broke && r.next() < 0.4;
    return { steps, entropy, ends: runs ? undefined : broke ? 'error' : won ? 'success' : 'failure' };
  }
  #recorded(
    { group, family, task }: GroupName,
    x: {
      readonly rollout: RolloutId;
      readonly desktop: string;
      readonly instruction: string;
      readonly began: number;
      readonly steps: number;
      readonly ends: NonNullable<Course['ends']>;
    },
  ): void {
    const length = x.steps * 2;
    this.#now += 40;
    this.#say({
      type: 'trajectory.recorded',
      head: {
        id: x.rollout,
        task,
        family,
        instruction: x.instruction,
        group,
        provenance: { kind: 'rollout' },
        steps: x.steps,
        ...(this.#assisted ? { human: 1 } : {}),
        outcome: outcomeOf(x.ends),
        cap: 12,
        startedAt: x.began,
        endedAt: this.#now,
        resetMs: 5,
        verifyMs: 6,
      },
    });
    this.#say({
      type: 'spans',
      lane: x.desktop,
      kind: 'desktop',
      t0: x.began,
      rollouts: [x.rollout],
      what: Uint8Array.from({ length }, (_, j) => (j % 2 === 0 ? 3 : 5)),
      start: Float32Array.from({ length }, (_, j) => j * 30),
      ms: Float32Array.from({ length }, () => 29),
      of: new Uint8Array(length),
    });
  }
  #tell({ group, family }: GroupName, rollout: RolloutId, { steps, entropy, ends }: Course): void {
    this.#told.push({
      id: rollout,
      family,
      group,
      outcome: ends ?? 'running',
      ...(ends === 'success' || ends === 'failure' ? { reward: ends === 'success' ? 1 : 0 } : {}),
      steps,
      entropy,
      versions: [this.#version, this.#version],
      ...(ends === 'error' ? { reason: 'error' } : {}),
      trained: false,
      assisted: ends !== undefined && this.#assisted,
      endedAt: this.#now,
    });
  }
  /** Of the newest rollout. */
  get #assisted(): boolean {
    return this.#o.assistedEvery !== undefined && this.#rollouts % this.#o.assistedEvery === 0;
  }

  #drop({ group, family, task, members }: Group): void {
    this.#say({
      type: 'group.dropped',
      group,
      family,
      task,
      rewards: members.map((m) => m.reward),
      retired: members.map((m) => ({ rollout: m.rollout, reason: 'no-variance' as const })),
      reason: 'no-variance',
    });
    this.#mark(members, { reason: 'no-variance' });
  }
  /** Forms the group, claims it as a batch and trains it. */
  #update({ group, family, task, members }: Group, mean: number): void {
    const batch = id<BatchId>(`b${String(++this.#updates).padStart(5, '0')}`),
      rollouts = members.map((m) => m.rollout);
    this.#say({
      type: 'group.formed',
      group,
      family,
      task,
      version: this.#version,
      retired: [],
      threshold: 0.2,
      members: members.map((m) => ({ rollout: m.rollout, injected: false, reward: m.reward, keep: m.keep })),
    });
    this.#say({
      type: 'batch.claimed',
      batch,
      groups: [{ group, rollouts }],
      version: this.#version,
      lags: members.map(() => this.#updates % 3),
      steps: members.reduce((a, m) => a + m.steps, 0),
    });
    this.#now += 200;
    this.#version++;
    this.#say({
      type: 'batch.trained',
      batch,
      rollouts,
      version: this.#version,
      trajectories: members.map((m) => ({
        rollout: m.rollout,
        advantage: m.reward - mean,
        steps: Int32Array.from(m.keep.flatMap((x, j) => (x ? [j] : []))),
        weights: Float32Array.from(m.keep.filter(Boolean), () => 0.75),
      })),
    });
    this.#span('trainer', 'trainer', 7, { t0: this.#now - 200, ms: 200 });
    this.#span('replica-1', 'replica', 9, { t0: this.#now, ms: 15 });
    this.#say({
      type: 'metrics',
      source: 'update',
      version: this.#version,
      values: { loss: this.#r.normal(), refKl: 0.1, ...(this.#o.untold && this.#updates === 1 ? {} : { tokens: 96 }) },
      lists: { tisHistogram: Array.from({ length: 20 }, (_, i) => i) },
    });
    this.#mark(members, { trained: true });
  }
  #span(
    lane: string,
    kind: 'trainer' | 'replica',
    what: number,
    o: { readonly t0: number; readonly ms: number },
  ): void {
    this.#say({
      type: 'spans',
      lane,
      kind,
      t0: o.t0,
      rollouts: [],
      version: this.#version,
      what: Uint8Array.of(what),
      start: Float32Array.of(0),
      ms: Float32Array.of(o.ms),
      of: Uint8Array.of(255),
    });
  }
  #mark(members: readonly Member[], now: Partial<Told>): void {
    for (const m of members) this.#told[m.index] = { ...this.#told[m.index]!, ...now };
  }
}

const outcomeOf = (ends: NonNullable<Course['ends']>): Outcome => {
  if (ends === 'error') return { kind: 'error', error: { kind: 'desktop.lost', message: 'gone', remedy: 'none' } };
  const reward = ends === 'success' ? 1 : 0;
  return {
    kind: ends,
    reward,
    truncated: reward === 0,
    report: { checks: [{ what: 'w', expected: 'e', found: 'f', score: reward }] },
  };
};
