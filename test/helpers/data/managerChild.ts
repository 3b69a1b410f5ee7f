/**
 * A process that runs the data manager until it is killed: `node child.js <folder> <bundle> <seed>`. What was
 * acknowledged is written to stdout synchronously, one line each, only after the acknowledgement: whatever the reader
 * sees must be on disk.
 */
import { writeSync } from 'node:fs';
import { random } from '../../../runtime/domain/index.js';
import type { Frame, PolicyVersion } from '../../../runtime/domain/index.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import { broken, dataConfig, failure, makeTrajectory, managerOptions, success } from './manager.js';

const [dir, file, seed] = process.argv.slice(2) as [string, string, string];
const say = (o: object): void => {
  writeSync(1, `${JSON.stringify(o)}\n`);
};
const r = random(seed);
const config = dataConfig({
  dynamicRollouts: { max: 4 },
  staleness: { eta: 2, perUpdate: 16 },
  planner: { retries: 1 },
});
const dm = await DataManager.open(
  managerOptions(dir, config, { index: { file }, journal: { segmentBytes: 40_000 }, snapshotMs: 20 }),
);
let version: PolicyVersion = dm.stats().version;
say({ opened: dm.stats().ledger });

function frame(): Frame {
  const data = Buffer.alloc(48 * 32 * 4, 200);
  data.writeUInt32LE(r.int(1 << 24), 0);
  return { width: 48, height: 32, data, capturedAt: 0 };
}
async function worker(): Promise<void> {
  for (;;) {
    const order = await dm.nextOrder({ maxConcurrent: 6, version });
    if (!order) {
      await new Promise<void>((resolve) => {
        const off = dm.onChange(() => {
          off();
          resolve();
        });
      });
      continue;
    }
    say({ queued: order.rollout });
    await dm.started(order.rollout, version);
    const t = makeTrajectory(order, r.next() < 0.1 ? broken : r.next() < 0.4 ? success : failure, { version });
    const steps = [];
    for (const s of t.steps) {
      const ref = await dm.frames.put(frame()),
        step = { ...s, frame: ref };
      steps.push(step);
      await dm.recordStep(order.rollout, step);
      say({ step: [order.rollout, step.index, ref.hash] });
    }
    await dm.record({ ...t, steps });
    say({ recorded: order.rollout, outcome: t.outcome.kind, steps: steps.length });
  }
}
async function trainer(): Promise<void> {
  for (;;) {
    const batch = await dm.claimBatch({ version, minGroups: 2 });
    if (!batch) {
      await new Promise<void>((resolve) => {
        const off = dm.onChange(() => {
          off();
          resolve();
        });
      });
      continue;
    }
    say({
      claimed: batch.id,
      rollouts: batch.groups.flatMap((g) => g.members.filter((m) => !m.injected).map((m) => m.trajectory.id)),
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await dm.trained(batch.id, version + 1);
    version++;
    say({ trained: batch.id, version });
  }
}
await Promise.all([...Array.from({ length: 6 }, worker), trainer()]);
