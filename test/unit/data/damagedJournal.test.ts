import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import type { StoredEvent } from '../../../runtime/data/events.js';
import { readJournal } from '../../../runtime/data/store/journalReader.js';
import { dataConfig, failure, makeTrajectory, openManager, success, withDir } from '../../helpers/data/manager.js';

const config = dataConfig({ dynamicRollouts: { max: 2 }, groupFilter: { minSize: 2 }, staleness: { enabled: false } });
let version = 0;

/** Rolls out two groups at a time, and trains one. */
async function work(m: DataManager, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < 4; i++) {
      const o = (await m.nextOrder({ maxConcurrent: 100, version }))!;
      await m.started(o.rollout, version);
      const t = makeTrajectory(o, i % 2 ? failure : success, { steps: 2, version });
      for (const s of t.steps) await m.recordStep(o.rollout, s);
      await m.record(t);
    }
    const b = await m.claimBatch({ version, minGroups: 1 });
    if (b) await m.trained(b.id, ++version, undefined, `/checkpoints/v${version}`);
  }
}
async function events(dir: string): Promise<(StoredEvent & { readonly from: number; readonly to: number })[]> {
  const out = [];
  for await (const batch of readJournal(join(dir, 'journal')))
    for (const e of batch)
      out.push({
        ...(e.event() as StoredEvent),
        seq: e.seq,
        from: e.position % 2 ** 32,
        to: e.next % 2 ** 32,
      });
  return out;
}
const trainedIn = (of: readonly StoredEvent[]): string[] =>
  of.flatMap((e) => (e.type === 'batch.trained' ? e.rollouts : []));

describe('a journal with one damaged record, whichever it is', () => {
  it('is resumed: nothing is trained twice, no id is given twice, the ledger closes, and the run goes on', () =>
    withDir(async (dir) => {
      version = 0;
      const whole = join(dir, 'whole');
      const m = await openManager(whole, config);
      await work(m, 2);
      await m.store.close(); // as if killed: nothing says that it ended
      const before = await events(whole),
        file = join('journal', '00000000.journal'),
        bytes = await readFile(join(whole, file));
      // Steps and the like are many and alike: two of each kind that changes nothing, all of the others.
      const seen = new Map<string, number>();
      const some = before.filter((e) => {
        const n = (seen.get(e.type) ?? 0) + 1;
        seen.set(e.type, n);
        return e.type !== 'rollout.step' || n <= 2;
      });
      expect(some.length).toBeGreaterThan(25);
      for (const bad of some) {
        const copy = join(dir, `without-${bad.seq}`);
        await cp(whole, copy, { recursive: true });
        const cut = Buffer.from(bytes);
        cut[bad.from + 30]! ^= 1;
        await writeFile(join(copy, file), cut);
        const what = `record ${bad.seq}, ${bad.type}`;
        version = 2;
        const r = await openManager(copy, config);
        const closes = (): void => {
          const { generated, trained, inFlight, retired } = r.stats().ledger;
          expect(generated, what).toBe(trained + inFlight + Object.values(retired).reduce((a, n) => a + n, 0));
        };
        closes();
        await work(r, 1);
        closes();
        await r.close();
        const after = (await events(copy)).slice(before.length - 1),
          again = trainedIn(after).filter((x) => trainedIn(before).includes(x)),
          // What the damaged record said of training is not known: its batch is trained from the weights before.
          forgiven = bad.type === 'batch.trained' && bad === before.findLast((e) => e.type === 'batch.trained');
        if (!forgiven) expect(again, what).toEqual([]);
        expect(new Set(trainedIn(after)).size, what).toBe(trainedIn(after).length);
        const ids = new Set(before.flatMap((e) => (e.type === 'rollout.queued' ? [e.order.rollout as string] : [])));
        const given = after.flatMap((e) => (e.type === 'rollout.queued' ? [e.order.rollout as string] : []));
        expect(
          given.filter((x) => ids.has(x) && !(bad.type === 'rollout.queued' && bad.order.rollout === x)),
          what,
        ).toEqual([]);
        const batches = new Set(before.flatMap((e) => (e.type === 'batch.claimed' ? [e.batch as string] : [])));
        expect(
          after
            .flatMap((e) => (e.type === 'batch.claimed' && batches.has(e.batch) ? [e.batch] : []))
            .filter((b) => !(bad.type === 'batch.claimed' && bad.batch === b)),
          what,
        ).toEqual([]);
      }
    }));
});
