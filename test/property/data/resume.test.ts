import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { random } from '../../../runtime/domain/index.js';
import type { Random, RolloutId, Step } from '../../../runtime/domain/index.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import { ledgerMoves } from '../../../runtime/data/events.js';
import { Ledger } from '../../../runtime/data/ledger.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import {
  broken,
  dataConfig,
  diverged,
  failure,
  makeTrajectory,
  openManager,
  success,
  withDir,
} from '../../helpers/data/manager.js';

const config = dataConfig({
  dynamicRollouts: { max: 3, window: 4 },
  staleness: { eta: 1, perUpdate: 8 },
  pool: { maxPerFamily: 3 },
  highEntropy: { keep: 0.7 },
  planner: { retries: 1 },
  // Of the three rollouts of a group the last begins in the middle of another.
  branches: { enabled: true, count: 1 },
});

function closes(m: DataManager): void {
  const { ledger, stepLedger: steps } = m.stats();
  expect(steps.generated).toBe(
    steps.trained +
      steps.masked +
      steps.human +
      steps.inFlight +
      Object.values(steps.retired).reduce((a, b) => a + b, 0),
  );
  expect(ledger.generated).toBe(
    ledger.trained + ledger.inFlight + Object.values(ledger.retired).reduce((a, b) => a + b, 0),
  );
}

const personStep = ({ tokens: _t, version: _v, ...s }: Step): Step => ({ ...s, origin: 'human' });
/** Random use of the manager: orders, steps, ends of every kind, claims trained and given back, stops. */
async function live(m: DataManager, r: Random, turns: number): Promise<void> {
  const running: RolloutOrder[] = [],
    won: RolloutId[] = [];
  let version = m.stats().version,
    batch: string | undefined;
  for (let i = 0; i < turns; i++) {
    const u = r.next();
    if (u < 0.4) {
      const o = await m.nextOrder({ maxConcurrent: 6, version });
      if (o) {
        running.push(o);
        if (r.next() < 0.9) await m.started(o.rollout, version);
        else running.pop();
      }
    } else if (u < 0.85 && running.length > 0) {
      const o = running.splice(r.int(running.length), 1)[0]!;
      const made = makeTrajectory(o, r.pick([success, failure, failure, broken, ...(o.branch ? [diverged] : [])]), {
        version,
        seed: r.int(1e6),
        steps: 1 + r.int(3),
      });
      // Some were taken over: a person acted in some of their steps.
      const t = r.next() < 0.2 ? { ...made, steps: made.steps.map((s) => (r.next() < 0.6 ? personStep(s) : s)) } : made;
      if (won.length > 0 && r.next() < 0.3)
        await r.pick([
          () => m.switchPool([r.pick(won)], r.next() < 0.5),
          () => m.removeFromPool([r.pick(won)], 'a person says so'),
        ])();
      if (r.next() < 0.3) await m.recordStep(o.rollout, t.steps[0]!);
      if (r.next() < 0.9) {
        await m.record(t, t.outcome.kind === 'failure' && r.next() < 0.1 ? { override: 'it was right' } : 'auto');
        won.push(t.id);
      } else await m.retire(o.rollout, r.pick(['stopped', 'error']));
    } else if (batch) {
      if (r.next() < 0.8) await m.trained(batch as never, ++version);
      else await m.release(batch as never, 'test');
      batch = undefined;
    } else batch = (await m.claimBatch({ version, minGroups: 1 + r.int(2) }))?.id;
    closes(m);
  }
}

describe('resume', () => {
  it('from the journal cut at any byte: counts close, nothing recorded is lost, nothing is trained twice, and the run goes on', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.integer({ min: 30, max: 90 }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 }),
        (seed, turns, cuts) =>
          withDir(async (dir) => {
            const a = join(dir, 'a'),
              m = await openManager(a, config);
            await live(m, random(seed), turns);
            await m.close();
            const bytes = await readFile(join(a, 'journal', '00000000.journal'));
            for (const [i, cut] of cuts.entries()) {
              const b = join(dir, `b${i}`);
              await mkdir(join(b, 'journal'), { recursive: true });
              await writeFile(join(b, 'run.json'), await readFile(join(a, 'run.json')));
              await writeFile(
                join(b, 'journal', '00000000.journal'),
                bytes.subarray(0, Math.floor(cut * bytes.length)),
              );
              const before = new Ledger(),
                reader = await RunReader.open(b, { index: 'local' });
              for await (const e of reader.events()) before.moveAll(ledgerMoves(e));
              await reader.close();
              const was = before.counts();

              const r = await openManager(b, config),
                now = r.stats().ledger;
              expect(r.recovery).toMatchObject({ skipped: 0, unreadable: [] });
              closes(r);
              expect(now.byState).toMatchObject({ queued: 0, running: 0, claimed: 0 });
              expect([now.generated, now.trained]).toEqual([was.generated, was.trained]);
              expect((now.retired.lost ?? 0) - (was.retired.lost ?? 0)).toBe(was.byState.queued + was.byState.running);
              for (const x of ['recorded', 'grouped', 'claimed'] as const)
                for (const id of before.rollouts(x)) {
                  const t = await r.store.readTrajectory(id);
                  expect(t?.id).toBe(id);
                }
              const settled = r.stats();
              await r.close();
              // Resuming a run that ended cleanly changes nothing.
              const again = await openManager(b, config);
              expect(again.stats()).toEqual(settled);
              await live(again, random(seed + i), 25);
              await again.close();
            }
          }),
      ),
      { numRuns: 8 },
    );
  });
});
