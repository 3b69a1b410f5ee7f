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

/**
 * A run's journal as a training run writes it, without training: groups, steps, curation, batches, lanes, metrics,
 * evaluations. Same seed, same journal.
 */
export async function writeSyntheticRun(dir: string, o: SyntheticOptions): Promise<SyntheticRun> {
  const r = random(o.seed ?? 1),
    told: Told[] = [],
    size = o.size ?? 8,
    names = o.families ?? families;
  let now = 1_800_000_000_000,
    version = 1,
    n = 0,
    updates = 0,
    events = 0;
  const store = await RunStore.open(dir, {
    index: 'local',
    now: () => now,
    snapshotMs: 1e9,
    create: {
      id: id<RunId>('synthetic'),
      createdAt: now,
      name: 'synthetic',
      config: o.config ?? { tasks: { families: ['press-button', 'term-touch', 'calc-copy'] } },
    },
  });
  const pending: Promise<unknown>[] = [];
  const say = (e: JournalEvent): void => {
    events++;
    pending.push(store.append(e));
  };
  const flush = async (): Promise<void> => {
    await Promise.all(pending.splice(0));
  };
  const stepOf = (index: number, entropy: number): Step => ({
    index,
    frame: { hash: (o.frame ?? hex)(r), width: 640, height: 400 },
    actions: [{ type: 'click', at: { x: r.int(640), y: r.int(400) } }],
    origin: 'policy',
    settled: true,
    version,
    tokens: {
      logprobs: Float32Array.of(-0.1, -r.next()),
      entropies: Float32Array.of(entropy, entropy),
      ids: Int32Array.of(0, 12 + r.int(1000)),
    },
    timings: { observe: 1, decide: 10, queue: 2, perform: 20, settle: 30 },
  });
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

  say({ type: 'run.opened', run: id<RunId>('synthetic'), resumed: false, pid: 1 });
  for (let i = 0; i < 6; i++) {
    const rollout = id<RolloutId>(`probe/untrained/v0/${i}`),
      family = id<FamilyId>(names[i % names.length]!),
      task = id<TaskId>(`${family}#${i}`),
      won = i === 0;
    say({
      type: 'trajectory.started',
      rollout,
      family,
      task,
      instruction: `probe ${i}`,
      cap: 4,
      provenance: 'probe',
      version: 0,
      desktop: 'd1',
    });
    for (let k = 0; k < 2; k++) say({ type: 'rollout.step', rollout, step: stepOf(k, 0.5), extra });
    now += 10;
    say({
      type: 'trajectory.recorded',
      head: {
        id: rollout,
        task,
        family,
        instruction: `probe ${i}`,
        provenance: { kind: 'probe' },
        steps: 2,
        outcome: won
          ? { kind: 'success', reward: 1, truncated: false }
          : { kind: 'failure', reward: 0, truncated: true },
        cap: 4,
        startedAt: now - 10,
        endedAt: now,
        resetMs: 1,
        verifyMs: 1,
      },
    });
  }
  say({
    type: 'eval',
    version: 0,
    episodes: 6,
    successes: 1,
    errors: 0,
    low: 0.03,
    high: 0.56,
    perFamily: {},
    label: 'untrained',
  });
  for (let g = 0; g < o.groups; g++) {
    const group = id<GroupId>(`g${String(g + 1).padStart(6, '0')}`),
      family = id<FamilyId>(names[g % names.length]!),
      task = id<TaskId>(`${family}#${g}`),
      members: { rollout: RolloutId; reward: number; keep: boolean[]; index: number; steps: number }[] = [];
    say({ type: 'group.opened', group, family, task, seed: g, size, cap: 12 });
    for (let k = 0; k < size; k++) {
      const rollout = id<RolloutId>(`r${String(++n).padStart(6, '0')}`),
        steps = 1 + r.int((o.steps ?? 15) * 2 - 1),
        began = now,
        entropy = r.next();
      const last = g === o.groups - 1 && k >= size - (o.running ?? 0),
        broke = !last && r.next() < 0.05,
        won = !broke && r.next() < 0.4,
        index = told.length;
      say({ type: 'rollout.queued', order: { rollout, group, family, task, seed: g, cap: 12, groupSize: size } });
      say({
        type: 'rollout.started',
        rollout,
        version,
        desktop: `d${1 + (n % 4)}`,
        instruction: `do number ${n} of ${task}`,
      });
      for (let s = 0; s < steps; s++) {
        now += 60;
        say({ type: 'rollout.step', rollout, step: stepOf(s, entropy), extra });
      }
      if (last) {
        told.push({
          id: rollout,
          family,
          group,
          outcome: 'running',
          steps,
          entropy,
          versions: [version, version],
          trained: false,
          endedAt: now,
        });
        continue;
      }
      const outcome: Outcome = broke
        ? { kind: 'error', error: { kind: 'desktop.lost', message: 'gone', remedy: 'none' } }
        : {
            kind: won ? 'success' : 'failure',
            reward: won ? 1 : 0,
            truncated: !won,
            report: { checks: [{ what: 'w', expected: 'e', found: 'f', score: won ? 1 : 0 }] },
          };
      now += 40;
      say({
        type: 'trajectory.recorded',
        head: {
          id: rollout,
          task,
          family,
          instruction: `do number ${n} of ${task}`,
          group,
          provenance: { kind: 'rollout' },
          steps,
          outcome,
          cap: 12,
          startedAt: began,
          endedAt: now,
          resetMs: 5,
          verifyMs: 6,
        },
      });
      say({
        type: 'spans',
        lane: `d${1 + (n % 4)}`,
        kind: 'desktop',
        t0: began,
        rollouts: [rollout],
        what: Uint8Array.from({ length: steps * 2 }, (_, j) => (j % 2 === 0 ? 3 : 5)),
        start: Float32Array.from({ length: steps * 2 }, (_, j) => j * 30),
        ms: Float32Array.from({ length: steps * 2 }, () => 29),
        of: new Uint8Array(steps * 2),
      });
      told.push({
        id: rollout,
        family,
        group,
        outcome: broke ? 'error' : won ? 'success' : 'failure',
        ...(broke ? {} : { reward: won ? 1 : 0 }),
        steps,
        entropy,
        versions: [version, version],
        ...(broke ? { reason: 'error' } : {}),
        trained: false,
        endedAt: now,
      });
      if (!broke)
        members.push({
          rollout,
          reward: won ? 1 : 0,
          keep: Array.from({ length: steps }, (_, j) => j % 5 !== 4),
          index,
          steps,
        });
    }
    if (g === o.groups - 1 && (o.running ?? 0) > 0) {
      await flush();
      break;
    }
    const wins = members.filter((m) => m.reward === 1).length;
    if (wins === 0 || wins === members.length) {
      say({
        type: 'group.dropped',
        group,
        family,
        task,
        rewards: members.map((m) => m.reward),
        retired: members.map((m) => ({ rollout: m.rollout, reason: 'no-variance' as const })),
        reason: 'no-variance',
      });
      for (const m of members) told[m.index] = { ...told[m.index]!, reason: 'no-variance' };
    } else {
      const batch = id<BatchId>(`b${String(++updates).padStart(5, '0')}`);
      say({
        type: 'group.formed',
        group,
        family,
        task,
        version,
        retired: [],
        threshold: 0.2,
        members: members.map((m) => ({ rollout: m.rollout, injected: false, reward: m.reward, keep: m.keep })),
      });
      say({
        type: 'batch.claimed',
        batch,
        groups: [{ group, rollouts: members.map((m) => m.rollout) }],
        version,
        lags: members.map(() => updates % 3),
        steps: members.reduce((a, m) => a + m.steps, 0),
      });
      now += 200;
      version++;
      say({
        type: 'batch.trained',
        batch,
        rollouts: members.map((m) => m.rollout),
        version,
        trajectories: members.map((m) => ({
          rollout: m.rollout,
          advantage: m.reward - wins / members.length,
          steps: Int32Array.from(m.keep.flatMap((x, j) => (x ? [j] : []))),
          weights: Float32Array.from(m.keep.filter(Boolean), () => 0.75),
        })),
      });
      say({
        type: 'spans',
        lane: 'trainer',
        kind: 'trainer',
        t0: now - 200,
        rollouts: [],
        version,
        what: Uint8Array.of(7),
        start: Float32Array.of(0),
        ms: Float32Array.of(200),
        of: Uint8Array.of(255),
      });
      say({
        type: 'spans',
        lane: 'replica-1',
        kind: 'replica',
        t0: now,
        rollouts: [],
        version,
        what: Uint8Array.of(9),
        start: Float32Array.of(0),
        ms: Float32Array.of(15),
        of: Uint8Array.of(255),
      });
      say({
        type: 'metrics',
        source: 'update',
        version,
        values: { loss: r.normal(), refKl: 0.1, ...(o.untold && updates === 1 ? {} : { tokens: 96 }) },
        lists: { tisHistogram: Array.from({ length: 20 }, (_, i) => i) },
      });
      for (const m of members) told[m.index] = { ...told[m.index]!, trained: true };
    }
    if (g % 20 === 19) await flush();
  }
  say({ type: 'log', level: 'info', message: 'the end is near' });
  if (o.close) say({ type: 'run.closed', reason: o.close });
  await flush();
  await store.close();
  return { told, events, updates, probes: 6 };
}
