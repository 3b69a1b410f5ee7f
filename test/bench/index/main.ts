// npm run bench:index [-- --rollouts N] [-- --bound MB] [-- --json FILE]: what a rollout takes of a run's index, and what
// an index holds that has a bound.
import { writeFile } from 'node:fs/promises';
import type { StoredEvent } from '../../../runtime/data/events.js';
import { INDEX_BOUND } from '../../../runtime/data/store/indexTrim.js';
import { MemoryIndex } from '../../helpers/data/memoryIndex.js';
import { syntheticEvents } from '../../helpers/data/syntheticEvents.js';

const argument = (name: string): string | undefined => process.argv[process.argv.indexOf(name) + 1 || Infinity];
const rollouts = Number(argument('--rollouts') ?? 100_000),
  bound = Number(argument('--bound') ?? 64) * 1e6,
  STEPS = 15,
  METRICS = 44,
  /** Enough that buckets are as many as they get. */
  UPDATES = 20_000,
  WEEK = 6_000_000;

/** `ms`: of processor time a rollout. */
async function filled(
  n: number,
  o: { readonly bound: number },
): Promise<{ index: MemoryIndex; ms: number; most: number }> {
  const index = await MemoryIndex.open(o),
    began = process.cpuUsage().user;
  let most = 0;
  for (const batch of syntheticEvents({
    rollouts: n,
    seed: 1,
    steps: STEPS,
    activities: 2,
    desktops: 16,
    metrics: METRICS,
    ms: 90_000 / 16,
  })) {
    index.write(batch);
    most = Math.max(most, index.bytes);
  }
  return { index, ms: (process.cpuUsage().user - began) / 1e3 / n, most };
}

/** Bytes that these tables and their indexes take: what is in use less what is in use without them. */
function room(index: MemoryIndex, tables: readonly string[]): number {
  const before = index.bytes;
  for (const t of tables) index.rows.run(`DELETE FROM ${t}`);
  return before - index.bytes;
}

const part = Math.min(rollouts, 20_000),
  whole = await filled(part, { bound: Infinity }),
  updates = whole.index.rows.number('SELECT COUNT(*) FROM batches'),
  each = Object.fromEntries(
    ['spans', 'rollouts', 'tracks', 'groups', 'span_minutes'].map((t) => [t, room(whole.index, [t]) / part]),
  ),
  update = room(whole.index, ['metrics', 'batches', 'events']) / updates;
/** What updates take, from when on the index is full: so much at most, and so much an update that is added up. */
async function updatesAlone(): Promise<{ most: number; addedUp: number; msOfAnUpdate: number }> {
  const index = await MemoryIndex.open({ bound: 0 }),
    began = process.cpuUsage().user,
    values = (i: number, names: number): Record<string, number> =>
      Object.fromEntries(Array.from({ length: names }, (_, k) => [`measure-of-${k}`, Math.sin(i * (k + 1))]));
  let most = 0;
  const stays = index.bytes;
  for (let i = 1, seq = 0; i <= UPDATES; i++) {
    const e = (o: object): StoredEvent => ({ ...o, seq: ++seq, at: 1.8e12 + i * 5000 }) as StoredEvent;
    index.write([
      e({ type: 'batch.claimed', batch: `b-${i}`, groups: [], version: i - 1, lags: [1, 1], steps: 9 }),
      e({ type: 'batch.trained', batch: `b-${i}`, rollouts: [], version: i }),
      e({ type: 'metrics', source: 'update', version: i, values: values(i, METRICS - 16) }),
      e({ type: 'metrics', source: 'sync', version: i, values: values(i, 4) }),
      e({ type: 'metrics', source: 'run', version: i, values: values(i, 12) }),
    ]);
    most = Math.max(most, index.bytes - stays);
  }
  return {
    most,
    addedUp: room(index, ['past_updates', 'past_metrics']) / UPDATES,
    msOfAnUpdate: (process.cpuUsage().user - began) / 1e3 / UPDATES,
  };
}

const small = await filled(rollouts, { bound }),
  updatesOf = await updatesAlone(),
  held = small.index.rows.number('SELECT COUNT(*) FROM rollouts'),
  counted = room(small.index, ['past_outcomes', 'past', 'past_groups', 'past_families']) / (rollouts - held),
  total = Object.values(each).reduce((a, b) => a + b, 0),
  stays = (each['rollouts'] ?? 0) + (each['tracks'] ?? 0) + (each['groups'] ?? 0),
  weekMb = (bytes: number): number => Math.round((bytes * WEEK) / 1e6),
  report = {
    rollouts,
    bytesOfARollout: { ...each, all: total, withoutSpans: stays, counted },
    bytesOfAnUpdate: update,
    updates: updatesOf,
    msOfARollout: { unbounded: whole.ms, bounded: small.ms },
    bound,
    most: small.most,
    held,
    /** Of six million rollouts, an update for every 32 of them. */
    aWeekMb: {
      unbounded: weekMb(total + update / 32),
      counted: weekMb(counted),
      updates: weekMb(update / 32),
      updatesAddedUp: weekMb(updatesOf.addedUp / 32),
    },
    heldAfterAWeek: Math.floor((INDEX_BOUND - updatesOf.most - (counted + updatesOf.addedUp / 32) * WEEK) / stays),
  };
console.log(JSON.stringify(report, undefined, 2));
const file = argument('--json');
if (file) await writeFile(file, JSON.stringify(report, undefined, 2));
