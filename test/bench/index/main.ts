// npm run bench:index [-- --rollouts N] [-- --bound MB] [-- --json FILE]: what a rollout takes of a run's index, and what
// an index holds that has a bound.
import { writeFile } from 'node:fs/promises';
import { INDEX_BOUND } from '../../../runtime/data/store/indexTrim.js';
import { MemoryIndex } from '../../helpers/data/memoryIndex.js';
import { syntheticEvents } from '../../helpers/data/syntheticEvents.js';

const argument = (name: string): string | undefined => process.argv[process.argv.indexOf(name) + 1 || Infinity];
const rollouts = Number(argument('--rollouts') ?? 100_000),
  bound = Number(argument('--bound') ?? 64) * 1e6,
  STEPS = 15,
  METRICS = 30,
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
const small = await filled(rollouts, { bound }),
  held = small.index.rows.number('SELECT COUNT(*) FROM rollouts'),
  counted = room(small.index, ['past_outcomes', 'past', 'past_groups', 'past_families']) / (rollouts - held),
  total = Object.values(each).reduce((a, b) => a + b, 0),
  stays = (each['rollouts'] ?? 0) + (each['tracks'] ?? 0) + (each['groups'] ?? 0),
  weekMb = (bytes: number): number => Math.round((bytes * WEEK) / 1e6),
  report = {
    rollouts,
    bytesOfARollout: { ...each, all: total, withoutSpans: stays, counted },
    bytesOfAnUpdate: update,
    msOfARollout: { unbounded: whole.ms, bounded: small.ms },
    bound,
    most: small.most,
    held,
    /** Of six million rollouts, an update for every 32 of them. */
    aWeekMb: { unbounded: weekMb(total + update / 32), counted: weekMb(counted), updates: weekMb(update / 32) },
    heldAfterAWeek: Math.floor((INDEX_BOUND - (counted + update / 32) * WEEK) / stays),
  };
console.log(JSON.stringify(report, undefined, 2));
const file = argument('--json');
if (file) await writeFile(file, JSON.stringify(report, undefined, 2));
