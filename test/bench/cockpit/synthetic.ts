import { copyFile, link, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { headOf, type JournalEvent, type StepExtra } from '../../../runtime/data/events.js';
import { schemaVersion } from '../../../runtime/data/store/indexSchema.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import {
  GLYPH_SPEC,
  HEADS_OF_TYPE,
  headOffsets,
  headSizes,
  id,
  random,
  type Action,
  type BatchId,
  type FamilyId,
  type FrameRef,
  type GroupId,
  type PolicyVersion,
  type Random,
  type RolloutId,
  type RunId,
  type Step,
  type TaskId,
  type Trajectory,
  activities,
} from '../../../runtime/domain/index.js';
import { drawFrames, madeOnce } from './made.js';

/** A day of training of six desktops, written through the store as a run writes it. */
export const size = {
  rollouts: 10_000,
  steps: 150_000,
  hours: 24,
  groupSize: 8,
  groupsPerUpdate: 4,
  desktops: 6,
  frames: 400,
} as const;
/** Raise when what is written changes. The folder of another version, or whose index has other tables, is not used. */
const version = `3-${schemaVersion}`;
const families = [
  'press-button',
  'dialog-answer',
  'form-fill',
  'menu-choose',
  'slider-set',
  'window-close',
  'list-pick',
  'tabs-switch',
  'text-replace',
  'term-touch',
  'drag-card',
  'calc-sum',
];

/** The run folder under `dir`, made when it is not there (about 20 s), and the rollout of exactly 100 steps in it. */
export async function syntheticRun(dir: string): Promise<{ readonly run: string; readonly longRollout: string }> {
  const longRollout = 'r-long',
    run = await madeOnce(dir, 'day', version, (making) => write(making, longRollout));
  return { run, longRollout };
}

/**
 * Runs like this one, with other seeds and half of them with another learning rate, to compare it with: journals are
 * links, since nobody writes them, indexes are copies.
 */
export async function runsLike(run: string, dir: string, count: number): Promise<string[]> {
  await rm(dir, { recursive: true, force: true });
  const meta = JSON.parse(await readFile(join(run, 'run.json'), 'utf8')) as { readonly config: object };
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const copy = join(dir, `like-${i}`);
      await mkdir(join(copy, 'journal'), { recursive: true });
      for (const f of await readdir(join(run, 'journal')))
        await link(join(run, 'journal', f), join(copy, 'journal', f));
      await copyFile(join(run, 'index.sqlite'), join(copy, 'index.sqlite'));
      const config = { ...meta.config, seed: i + 2, trainer: { lr: i % 2 === 0 ? 5e-4 : 1e-3 } };
      await writeFile(join(copy, 'run.json'), JSON.stringify({ ...meta, id: `like-${i}`, config }));
      return copy;
    }),
  );
}

async function write(dir: string, longRollout: string): Promise<void> {
  const end = Date.now(),
    begin = end - size.hours * 3.6e6;
  let now = begin;
  const config = {
    name: 'day',
    tasks: { families },
    desktops: { count: size.desktops },
    policy: { replicas: 2 },
    rollout: { maxSteps: 30 },
  };
  const store = await RunStore.open(dir, {
    index: 'local',
    now: () => now,
    snapshotMs: 3.6e6,
    frames: { sync: false },
    create: { id: id<RunId>('day'), createdAt: begin, name: 'day', config },
  });
  const frames = await drawFrames(store, size.frames),
    r = random('cockpit');
  // Order of calls is order in the journal; waiting once in a while keeps memory small and the writes long.
  let waiting: Promise<unknown>[] = [];
  const put = (e: JournalEvent): void => {
    waiting.push(store.append(e));
  };
  const flush = async (): Promise<void> => {
    await Promise.all(waiting);
    waiting = [];
  };

  put({ type: 'run.opened', run: id<RunId>('day'), resumed: false, pid: 1 });
  let policy: PolicyVersion = 1,
    made = 0,
    steps = 0,
    lastNote = 0,
    lastEval = -1;
  const ready: { group: GroupId; rollouts: RolloutId[]; trajectories: Trajectory[] }[] = [];
  const perGroup = (size.hours * 3.6e6) / Math.ceil(size.rollouts / size.groupSize);
  for (let g = 0; made < size.rollouts; g++) {
    const groupAt = begin + g * perGroup,
      share = (g * size.groupSize) / size.rollouts;
    now = groupAt;
    const name = families[g % families.length]!,
      family = id<FamilyId>(`desk/${name}`),
      task = id<TaskId>(`desk/${name}#${g % 256}`),
      group = id<GroupId>(`g${g}`),
      n = Math.min(size.groupSize, size.rollouts - made),
      cap = 30;
    put({ type: 'group.opened', group, family, task, seed: g, size: n, cap });
    const trajectories: Trajectory[] = [],
      rollouts: RolloutId[] = [];
    for (let i = 0; i < n; i++, made++) {
      const long = made === 5000,
        rollout = id<RolloutId>(long ? longRollout : `r${made}`),
        left = size.rollouts - made;
      const count = long
        ? 100
        : left === 1
          ? size.steps - steps
          : Math.max(1, Math.min(30, Math.round((size.steps - steps) / left) + r.int(11) - 5));
      const desktop = `desktop-${made % size.desktops}`,
        start = groupAt + i * (perGroup / n);
      now = start;
      put({
        type: 'rollout.queued',
        order: { rollout, group, family, task, seed: g, cap: long ? 100 : cap, groupSize: n },
      });
      put({
        type: 'rollout.started',
        rollout,
        version: policy,
        desktop,
        instruction: `${name.replace('-', ' ')}: number ${g % 256}`,
      });
      const path = r.int(size.frames),
        list: Step[] = [];
      for (let k = 0; k < count; k++) {
        now = start + 150 + k * 400;
        const { step, extra } = makeStep(k, frames[(path + k) % frames.length]!, r, policy, k === count - 1, desktop);
        list.push(step);
        put({ type: 'rollout.step', rollout, step, extra });
      }
      steps += count;
      now = start + 150 + count * 400;
      const success = r.next() < 0.3 + 0.5 * share;
      const t: Trajectory = {
        id: rollout,
        task,
        family,
        instruction: `${name.replace('-', ' ')}: number ${g % 256}`,
        group,
        provenance: { kind: 'rollout' },
        steps: list,
        cap: long ? 100 : cap,
        startedAt: start,
        endedAt: now,
        resetMs: 90,
        verifyMs: 40,
        outcome: {
          kind: success ? 'success' : 'failure',
          reward: success ? 1 : 0,
          truncated: !success && r.next() < 0.5,
          report: {
            checks: [
              { what: 'window state', expected: 'done', found: success ? 'done' : 'open', score: success ? 1 : 0 },
            ],
          },
        },
      };
      put({ type: 'trajectory.recorded', head: headOf(t) });
      put(lanes(desktop, rollout, start, count, policy));
      trajectories.push(t);
      rollouts.push(rollout);
    }
    const rewards = trajectories.map((t) => (t.outcome.kind === 'error' ? 0 : t.outcome.reward));
    if (new Set(rewards).size === 1)
      put({
        type: 'group.dropped',
        group,
        family,
        task,
        rewards,
        reason: 'no-variance',
        retired: rollouts.map((x) => ({ rollout: x, reason: 'no-variance' as const })),
      });
    else {
      put({
        type: 'group.formed',
        group,
        family,
        task,
        threshold: 0.4,
        version: policy,
        retired: [],
        members: trajectories.map((t, i) => ({
          rollout: t.id,
          injected: false,
          reward: rewards[i]!,
          keep: t.steps.map((s) => mean(s.tokens!.entropies) > 0.4),
        })),
      });
      ready.push({ group, rollouts, trajectories });
    }
    if (ready.length >= size.groupsPerUpdate) policy = update(put, ready.splice(0), policy, r);
    while (lastNote + 20_000 <= now - begin) {
      lastNote += 20_000;
      put({
        type: 'metrics',
        source: 'run',
        version: policy,
        values: {
          elapsedMs: lastNote,
          success: 0.3 + 0.5 * share,
          rolloutsPerHour: 400 + r.int(60),
          stepsPerMinute: 100 + r.int(20),
          trainedActionsPerMinute: 80 + r.int(20),
          desktopUtilisation: 0.8,
          replicaUtilisation: 0.6,
          trainerUtilisation: 0.5,
          errors: 0,
        },
      });
    }
    if (Math.floor((now - begin) / 900_000) > lastEval) {
      lastEval = Math.floor((now - begin) / 900_000);
      const successes = Math.min(64, Math.round(64 * (0.3 + 0.5 * share)));
      put({
        type: 'eval',
        version: policy,
        episodes: 64,
        successes,
        errors: 0,
        low: successes / 64 - 0.1,
        high: Math.min(1, successes / 64 + 0.1),
        label: 'probe',
      });
    }
    if (waiting.length > 4000) await flush();
  }
  put({ type: 'run.closed', reason: 'stopped' });
  await flush();
  await store.close();
}

const mean = (xs: Float32Array): number => xs.reduce((a, b) => a + b, 0) / xs.length;

function update(
  put: (e: JournalEvent) => void,
  groups: readonly { group: GroupId; rollouts: RolloutId[]; trajectories: readonly Trajectory[] }[],
  policy: PolicyVersion,
  r: Random,
): PolicyVersion {
  const batch = id<BatchId>(`b${policy}`),
    next = policy + 1,
    all = groups.flatMap((g) => g.trajectories),
    rollouts = groups.flatMap((g) => g.rollouts);
  put({
    type: 'batch.claimed',
    batch,
    groups: groups.map((g) => ({ group: g.group, rollouts: g.rollouts })),
    version: policy,
    lags: rollouts.map(() => r.int(3)),
    steps: all.reduce((a, t) => a + t.steps.length, 0),
  });
  put({
    type: 'batch.trained',
    batch,
    rollouts,
    version: next,
    trajectories: all.map((t) => ({
      rollout: t.id,
      advantage: r.normal(),
      steps: Int32Array.from(t.steps, (s) => s.index),
      weights: Float32Array.from(t.steps, () => Math.min(1, 0.7 + r.next() * 0.5)),
    })),
  });
  const tisHistogram = Array.from({ length: 20 }, (_, i) => (i === 19 ? 900 : r.int(40)));
  put({
    type: 'metrics',
    source: 'update',
    version: next,
    lists: { tisHistogram },
    values: {
      version: next,
      ms: 2000 + r.int(900),
      samples: 400,
      tokens: 800,
      states: 390,
      optimizerSteps: 18,
      loss: r.normal(),
      policyLoss: r.normal(),
      imitationLoss: r.next(),
      entropy: 1 + r.next(),
      klK1: r.next() / 100,
      klK3: r.next() / 100,
      refKl: r.next(),
      ratioMean: 1,
      ratioMax: 2,
      clipLow: r.next() / 10,
      clipHigh: r.next() / 10,
      dualClip: 0,
      tisMean: 0.95,
      tisCapped: 0.8,
      ess: 0.97,
      gradNorm: r.next(),
      skippedNonFinite: 0,
      batchSteps: 480,
      batchGroups: 4,
    },
  });
  put({ type: 'metrics', source: 'sync', version: next, values: { failed: 0, replicas: 2, drainMs: 20, swapMs: 30 } });
  return next;
}

/** What one desktop did during a rollout: a reset, then four spans a step. */
function lanes(lane: string, rollout: RolloutId, t0: number, steps: number, policy: PolicyVersion): JournalEvent {
  const parts: readonly [(typeof activities)[number], number][] = [
    ['observe', 20],
    ['decide', 90],
    ['act', 40],
    ['settle', 250],
  ];
  const n = 2 + steps * parts.length,
    what = new Uint8Array(n),
    start = new Float32Array(n),
    ms = new Float32Array(n);
  let at = 0,
    i = 0;
  const span = (name: (typeof activities)[number], length: number): void => {
    what[i] = activities.indexOf(name);
    start[i] = at;
    ms[i] = length;
    at += length;
    i++;
  };
  span('reset', 150);
  for (let k = 0; k < steps; k++) for (const [name, length] of parts) span(name, length);
  span('verify', 40);
  return {
    type: 'spans',
    lane,
    kind: 'desktop',
    t0,
    what,
    start,
    ms,
    of: new Uint8Array(n),
    rollouts: [rollout],
    version: policy,
  };
}

function makeStep(
  index: number,
  frame: FrameRef,
  r: Random,
  policy: PolicyVersion,
  last: boolean,
  desktop: string,
): { step: Step; extra: StepExtra } {
  const type = last ? 'finished' : r.pick(['click', 'click', 'type', 'key', 'drag'] as const),
    heads = ['type', ...HEADS_OF_TYPE[type]] as const,
    off = headOffsets(GLYPH_SPEC),
    sizes = headSizes(GLYPH_SPEC);
  const at = { x: 20 + r.int(600), y: 20 + r.int(360) };
  const actions: Action[] = [
    type === 'click'
      ? { type, at }
      : type === 'type'
        ? { type, text: 'hello' }
        : type === 'key'
          ? { type: 'hotkey', keys: ['enter'] }
          : type === 'drag'
            ? { type, from: at, to: { x: 320, y: 200 } }
            : { type: 'finished' },
  ];
  const entropies = Float32Array.from(heads, () => r.next()),
    logprobs = Float32Array.from(heads, () => -r.next()),
    labels = heads.map((h) => (h === 'type' ? type : h));
  const cells = heads.flatMap((h, token) =>
    h === 'cell' || h === 'cell2'
      ? [
          {
            token,
            grid: [0, 0, 320, 200, 8, 40],
            cells: Int32Array.from({ length: 24 }, () => r.int(1000)),
            probabilities: Float32Array.from({ length: 24 }, (_, i) => 0.5 / 2 ** (i + 1)),
          },
        ]
      : [],
  );
  return {
    step: {
      index,
      frame,
      actions,
      origin: 'policy',
      version: policy,
      settled: true,
      timings: { observe: 20, queue: 10, decide: 80, perform: 40, settle: 250 },
      tokens: { logprobs, entropies, ids: Int32Array.from(heads, (h) => off[h] + r.int(sizes[h])) },
    },
    extra: {
      labels,
      alternatives: heads.map((h) =>
        h === 'cell' || h === 'cell2'
          ? []
          : GLYPH_SPEC.types.slice(0, 4).map((label, i) => ({ label, probability: 0.6 / 2 ** i })),
      ),
      ...(cells.length ? { places: cells } : {}),
      replica: 'replica-0',
      desktop,
    },
  };
}
