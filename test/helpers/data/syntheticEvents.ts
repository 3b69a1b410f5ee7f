import {
  id,
  random,
  type BatchId,
  type FamilyId,
  type GroupId,
  type RolloutId,
  type RunId,
  type TaskId,
} from '../../../runtime/domain/index.js';
import type { GroupMember, JournalEvent, StoredEvent } from '../../../runtime/data/events.js';

export interface SyntheticJournal {
  readonly rollouts: number;
  readonly seed: number;
  readonly size?: number;
  readonly steps?: number;
  readonly families?: number;
  /** Between two rollouts. */
  readonly ms?: number;
  readonly desktops?: number;
  /** Spans of so many activities a step. */
  readonly activities?: number;
  /** Values of each update. */
  readonly metrics?: number;
  /** Processes that wrote it, one after another. */
  readonly processes?: number;
}

/** What a training run journals, batch by batch, for its index: steps without pixels or tokens' ids. */
export function* syntheticEvents(o: SyntheticJournal): Generator<StoredEvent[], void, undefined> {
  const r = random(String(o.seed)),
    size = o.size ?? 8,
    ms = o.ms ?? 1000,
    processes = o.processes ?? 1,
    groups = Math.ceil(o.rollouts / size);
  let seq = 0,
    at = 1_800_000_000_000,
    version = 1,
    batches = 0,
    n = 0,
    batch: StoredEvent[] = [],
    pooled: string[] = [];
  const say = (e: JournalEvent): void => {
    batch.push({ ...e, seq: seq++, at } as StoredEvent);
  };
  const open = (resumed: boolean): void => say({ type: 'run.opened', run: id<RunId>('run'), resumed, pid: 1 });
  open(false);
  for (let g = 0; g < groups; g++) {
    if (g > 0 && g % Math.ceil(groups / processes) === 0) {
      at += 60_000;
      open(true);
    }
    const group = id<GroupId>(`g${String(g).padStart(6, '0')}`),
      family = id<FamilyId>(`desk/family-${r.int(o.families ?? 3)}`),
      task = id<TaskId>(`${family}#${r.int(100)}`),
      members: GroupMember[] = [];
    say({ type: 'group.opened', group, family, task, seed: g, size, cap: 10 + r.int(9) });
    for (let k = 0; k < size && n < o.rollouts; k++) {
      const rollout = id<RolloutId>(`r${String(n++).padStart(7, '0')}`),
        desktop = `desktop-${r.int(o.desktops ?? 4)}`,
        steps = 1 + r.int(2 * (o.steps ?? 3) - 1),
        instruction = `do number ${r.int(1000)} of ${task}`,
        began = at;
      say({ type: 'rollout.queued', order: { rollout, group, family, task, seed: g, cap: 12, groupSize: size } });
      const fate = r.next();
      if (fate < 0.03) {
        say({ type: 'rollout.retired', rollout, group, reason: 'stopped' });
        continue;
      }
      say({ type: 'rollout.started', rollout, version, desktop, instruction });
      const give = r.next() < 0.05;
      for (let s = 0; s < steps; s++) {
        at += ms / steps;
        say({
          type: 'rollout.step',
          rollout,
          step: {
            index: s,
            frame: { hash: 'f'.repeat(64), width: 1280, height: 720 },
            actions: [give && s === steps - 1 ? { type: 'fail' } : { type: 'wait' }],
            origin: 'policy',
            settled: true,
            version,
            tokens: { logprobs: Float32Array.of(-0.5), entropies: Float32Array.of(r.next()) },
            timings: { observe: 1, decide: 10, queue: 2, perform: 20, settle: 30 },
          },
        } as unknown as JournalEvent);
      }
      const broke = fate < 0.08,
        won = !broke && r.next() < 0.4,
        reward = won ? 1 : r.next() < 0.2 ? 0.25 : 0;
      say({
        type: 'trajectory.recorded',
        head: {
          id: rollout,
          task,
          family,
          instruction,
          group,
          provenance: { kind: 'rollout' },
          steps,
          outcome: broke
            ? { kind: 'error', error: { kind: 'desktop.lost', message: 'gone', remedy: 'none' } }
            : { kind: won ? 'success' : 'failure', reward, truncated: !won && r.next() < 0.5, report: { checks: [] } },
          cap: 12,
          startedAt: began,
          endedAt: Math.round(at),
          resetMs: 5,
          verifyMs: 6,
          ...(r.next() < 0.02 ? { human: 1 } : {}),
        },
      });
      const spans = steps * (o.activities ?? 2),
        each = (at - began) / spans;
      say({
        type: 'spans',
        lane: desktop,
        kind: 'desktop',
        t0: began,
        rollouts: [rollout],
        what: Uint8Array.from({ length: spans }, (_, j) => j % 6),
        start: Float32Array.from({ length: spans }, (_, j) => j * each),
        ms: new Float32Array(spans).fill(each),
        of: new Uint8Array(spans),
      });
      if (broke) continue;
      members.push({ rollout, injected: false, reward, keep: Array.from({ length: steps }, () => r.next() < 0.8) });
      if (won && r.next() < 0.05) {
        pooled.push(rollout);
        say({
          type: 'pool.added',
          entry: { id: rollout, family, task, steps, provenance: 'rollout', version, signature: [] },
        } as unknown as JournalEvent);
      }
    }
    if (pooled.length > 8) {
      say({ type: 'pool.removed', entry: id<RolloutId>(pooled[0]!), reason: 'old' });
      pooled = pooled.slice(1);
    }
    at += 200;
    const won = members.filter((m) => m.reward === 1).length;
    if (members.length < 2 || (won === 0 && pooled.length === 0) || won === members.length)
      say({
        type: 'group.dropped',
        group,
        family,
        task,
        rewards: members.map((m) => m.reward),
        retired: members.map((m) => ({ rollout: m.rollout, reason: 'no-variance' })),
        reason: 'no-variance',
      });
    else {
      const out = won === 0 ? members.shift() : undefined,
        joined = {
          rollout: id<RolloutId>(pooled[r.int(pooled.length)] ?? ''),
          injected: true,
          reward: 1,
          keep: [true],
        };
      say({
        type: 'group.formed',
        group,
        family,
        task,
        version,
        members: out ? [...members, joined] : members,
        retired: out ? [{ rollout: out.rollout, reason: 'replaced' }] : [],
        threshold: 0.2,
      });
      const name = id<BatchId>(`b${String(++batches).padStart(6, '0')}`),
        rollouts = members.map((m) => m.rollout);
      say({
        type: 'batch.claimed',
        batch: name,
        groups: [{ group, rollouts }],
        version,
        lags: rollouts.map(() => 1),
        steps: 9,
      });
      version++;
      say({ type: 'batch.trained', batch: name, rollouts, version });
      const values = Array.from({ length: o.metrics ?? 1 }, (_, i) => [
        i === 0 ? 'tokens' : `measure-${i}`,
        r.int(1000),
      ]);
      say({ type: 'metrics', source: 'update', version, values: Object.fromEntries(values) as Record<string, number> });
    }
    if (batch.length > 150) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
