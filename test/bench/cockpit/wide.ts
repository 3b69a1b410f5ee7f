import { headOf, type JournalEvent } from '../../../runtime/data/events.js';
import { schemaVersion } from '../../../runtime/data/store/indexSchema.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import {
  id,
  random,
  type BatchId,
  type FamilyId,
  type GroupId,
  type RolloutId,
  type RunId,
  type Step,
  type TaskId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { drawFrames, madeOnce } from './made.js';

/** A long run of short rollouts: what the table is measured on. */
export const wide = { rollouts: 100_000, groupSize: 8, frames: 60 } as const;
const version = `1-${schemaVersion}`;
const families = ['press-button', 'dialog-answer', 'form-fill', 'menu-choose', 'slider-set', 'window-close'];

/** The run folder under `dir`, made when it is not there (about a minute). */
export const wideRun = (dir: string): Promise<string> => madeOnce(dir, 'wide', version, write);

async function write(dir: string): Promise<void> {
  const begin = Date.now() - 7 * 24 * 3.6e6;
  let now = begin;
  const store = await RunStore.open(dir, {
    index: 'local',
    now: () => now,
    snapshotMs: 3.6e6,
    frames: { sync: false },
    create: { id: id<RunId>('wide'), createdAt: begin, name: 'wide', config: { name: 'wide', tasks: { families } } },
  });
  const frames = await drawFrames(store, wide.frames),
    r = random('wide');
  let waiting: Promise<unknown>[] = [];
  const put = (e: JournalEvent): void => {
    waiting.push(store.append(e));
  };
  put({ type: 'run.opened', run: id<RunId>('wide'), resumed: false, pid: 1 });
  for (let g = 0; g < wide.rollouts / wide.groupSize; g++) {
    const name = families[g % families.length]!,
      family = id<FamilyId>(`desk/${name}`),
      task = id<TaskId>(`desk/${name}#${g % 2048}`),
      group = id<GroupId>(`g${g}`),
      policy = Math.floor(g / 64),
      all: Trajectory[] = [];
    put({ type: 'group.opened', group, family, task, seed: g, size: wide.groupSize, cap: 30 });
    for (let i = 0; i < wide.groupSize; i++) {
      const rollout = id<RolloutId>(`r${g * wide.groupSize + i}`),
        instruction = `${name.replace('-', ' ')}: number ${g % 2048}`,
        step: Step = {
          index: 0,
          frame: frames[(g + i) % frames.length]!,
          actions: [{ type: 'click', at: { x: r.int(600), y: r.int(380) } }],
          origin: 'policy',
          version: policy,
          settled: true,
          timings: { observe: 20, queue: 10, decide: 80, perform: 40, settle: 250 },
          tokens: { logprobs: Float32Array.of(-r.next()), entropies: Float32Array.of(r.next() * 2) },
        };
      now += 700;
      put({
        type: 'rollout.queued',
        order: { rollout, group, family, task, seed: g, cap: 30, groupSize: wide.groupSize },
      });
      put({ type: 'rollout.started', rollout, version: policy, desktop: `desktop-${i}`, instruction });
      put({ type: 'rollout.step', rollout, step });
      const success = r.next() < 0.5,
        t: Trajectory = {
          id: rollout,
          task,
          family,
          instruction,
          group,
          provenance: { kind: 'rollout' },
          steps: [step],
          cap: 30,
          startedAt: now,
          endedAt: now + 400,
          resetMs: 90,
          verifyMs: 40,
          outcome: { kind: success ? 'success' : 'failure', reward: success ? 1 : 0, truncated: false },
        };
      put({ type: 'trajectory.recorded', head: headOf(t) });
      all.push(t);
    }
    put({
      type: 'group.formed',
      group,
      family,
      task,
      threshold: 0.4,
      version: policy,
      retired: [],
      members: all.map((t) => ({
        rollout: t.id,
        injected: false,
        reward: t.outcome.kind === 'success' ? 1 : 0,
        keep: [true],
      })),
    });
    if (g % 3 > 0) {
      const batch = id<BatchId>(`b${g}`);
      put({
        type: 'batch.trained',
        batch,
        version: policy + 1,
        rollouts: all.map((t) => t.id),
        trajectories: all.map((t) => ({
          rollout: t.id,
          advantage: r.normal(),
          steps: Int32Array.of(0),
          weights: Float32Array.of(Math.min(1, 0.7 + r.next() * 0.5)),
        })),
      });
    }
    if (waiting.length > 4000) {
      await Promise.all(waiting);
      waiting = [];
    }
  }
  put({ type: 'run.closed', reason: 'stopped' });
  await Promise.all(waiting);
  await store.close();
}
