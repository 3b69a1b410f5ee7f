import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { id } from '../../../runtime/domain/index.js';
import type { RunId } from '../../../runtime/domain/index.js';
import { dropSpareIndex, prepareIndex, WorkerIndex } from '../../../runtime/data/store/runIndex.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import {
  bundle,
  dataConfig,
  failure,
  makeTrajectory,
  openManager,
  success,
  withDir,
} from '../../helpers/data/manager.js';

let entry: { file: string };
beforeAll(async () => {
  entry = await bundle('test/helpers/data/indexEntry.ts', 'index');
});
afterAll(async () => {
  if (entry) await rm(dirname(entry.file), { recursive: true, force: true });
});
const create = { id: id<RunId>('run-worker'), createdAt: 1 };
const SILENT = { silentMs: 15_000 };
const metric = (loss: number) => ({ type: 'metrics' as const, source: 'trainer', version: 1, values: { loss } });

describe('index in its worker thread', () => {
  it('follows the journal, answers after each append, and comes back from its snapshot', () =>
    withDir(async (dir) => {
      const s = await RunStore.open(dir, { index: entry, create });
      expect(await s.index.ready).toMatchObject({ start: 'new', events: 0 });
      for (let i = 0; i < 50; i++) {
        await s.append(metric(i));
        expect(await s.index.query('SELECT COUNT(*) AS n, MAX(value) AS top FROM metrics')).toEqual([
          { n: i + 1, top: i },
        ]);
      }
      await s.close();
      const again = await RunStore.open(dir, { index: entry });
      expect(await again.index.ready).toMatchObject({ start: 'snapshot', events: 50 });
      await again.close();
    }));

  it('is rebuilt when its file is missing, damaged, or not of this journal', () =>
    withDir(async (dir) => {
      const s = await RunStore.open(dir, { index: entry, create });
      for (let i = 0; i < 20; i++) await s.append(metric(i));
      await s.close();
      const file = join(dir, 'index.sqlite'),
        good = await readFile(file);
      const half = good.subarray(0, good.length / 2),
        noise = Buffer.from(good),
        bit = Buffer.from(good),
        unsealed = Buffer.from(noise);
      noise.fill(0xaa, 4096, 12_288);
      noise.copy(unsealed);
      unsealed.fill(0, 68, 72);
      bit[good.length - 1]! ^= 1;
      for (const [bytes, because] of [
        [undefined, undefined],
        [half, /./],
        [noise, /checksum/],
        [bit, /checksum/],
        [unsealed, /./],
        [Buffer.from('not a database'), /./],
      ] as const) {
        if (bytes) await writeFile(file, bytes);
        else await rm(file);
        const r = await RunStore.open(dir, { index: entry }),
          status = await r.index.ready;
        expect(status).toMatchObject({ start: 'rebuilt', events: 20 });
        if (because) expect(status.because).toMatch(because);
        expect(await r.index.query('SELECT COUNT(*) AS n FROM metrics')).toEqual([{ n: 20 }]);
        await r.close();
        expect((await stat(file)).size).toBeGreaterThan(4096);
      }
    }));

  it('a worker started ahead of time takes the next run, and one that died is no loss', () =>
    withDir(async (dir) => {
      prepareIndex(entry);
      prepareIndex(entry);
      const s = await RunStore.open(dir, { index: entry, create });
      await s.append(metric(1));
      expect(await s.index.query('SELECT COUNT(*) AS n FROM metrics')).toEqual([{ n: 1 }]);
      await s.close();
      prepareIndex(entry);
      await dropSpareIndex(entry);
      const again = await RunStore.open(dir, { index: entry });
      expect(await again.index.ready).toMatchObject({ start: 'snapshot', events: 1 });
      await again.close();
    }));

  it('refuses to be written by a query, and says what is wrong with one', () =>
    withDir(async (dir) => {
      const s = await RunStore.open(dir, { index: entry, create });
      await s.append(metric(1));
      await expect(s.index.query('DELETE FROM metrics')).rejects.toMatchObject({ kind: 'internal' });
      await expect(s.index.query('SELECT * FROM nowhere')).rejects.toThrow(/no such table/);
      expect(await s.index.query('SELECT COUNT(*) AS n FROM metrics WHERE name = ?', ['trainer.loss'])).toEqual([
        { n: 1 },
      ]);
      await s.close();
    }));

  it('is started again when its thread dies, and answers the query under way', () =>
    withDir(async (dir) => {
      const flaky = await bundle('test/helpers/data/flakyIndexEntry.ts', 'flaky');
      try {
        const s = await RunStore.open(dir, { index: flaky, create });
        await s.append(metric(1));
        expect(await s.index.query('SELECT COUNT(*) AS n FROM metrics')).toEqual([{ n: 1 }]);
        await s.append(metric(2));
        expect(await s.index.query('SELECT COUNT(*) AS n FROM metrics')).toEqual([{ n: 2 }]);
        await s.close();
        expect((await readFile(join(dir, 'starts'), 'utf8')).split('\n').filter(Boolean)).toHaveLength(2);
      } finally {
        await rm(dirname(flaky.file), { recursive: true, force: true });
      }
    }));

  it('says so when it is asked after its end, or after its thread has died too often', () =>
    withDir(async (dir) => {
      const s = await RunStore.open(dir, { index: entry, create });
      await s.append(metric(1));
      await s.close();
      await expect(s.index.query('SELECT 1')).rejects.toMatchObject({ kind: 'store.damaged' });
      const dying = await bundle('test/helpers/data/dyingIndexEntry.ts', 'dying');
      try {
        const index = new WorkerIndex(dying, { journal: join(dir, 'journal'), file: join(dir, 'index.sqlite') });
        // A few times another thread takes its place.
        for (let i = 0; i < 6; i++)
          await expect(index.query('SELECT 1')).rejects.toMatchObject({ kind: 'store.damaged' });
        await index.close({ snapshot: true });
      } finally {
        await rm(dirname(dying.file), { recursive: true, force: true });
      }
    }));

  it('is started again when its thread hangs, as it starts or in the middle of its work, and answers all the same', () =>
    withDir(async (dir) => {
      const hung = await bundle('test/helpers/data/hungIndexEntry.ts', 'hung');
      try {
        const s = await RunStore.open(dir, { index: 'local', create });
        for (let i = 0; i < 3; i++) await s.append(metric(i));
        await s.close();
        await rm(join(dir, 'index.sqlite'));
        // Longer than a worker that lives is ever silent, on a busy machine too.
        const index = new WorkerIndex(hung, { journal: join(dir, 'journal'), file: join(dir, 'index.sqlite') }, SILENT);
        expect(await index.query('SELECT COUNT(*) AS n FROM metrics')).toEqual([{ n: 3 }]);
        expect(await index.ready).toMatchObject({ events: 3 });
        await index.close({ snapshot: false });
        const starts = (await readFile(join(dir, 'starts'), 'utf8')).split('\n').filter(Boolean).length;
        expect(starts).toBeGreaterThanOrEqual(3);
      } finally {
        await rm(dirname(hung.file), { recursive: true, force: true });
      }
    }));

  it('does not stall this thread while it takes in a long journal', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ dynamicRollouts: { max: 4 }, staleness: { enabled: false } }), {
        index: entry,
      });
      const one = async (i: number): Promise<void> => {
        const o = (await m.nextOrder({ maxConcurrent: 1000, version: 0 }))!;
        await m.started(o.rollout, 0);
        await m.record(makeTrajectory(o, i % 3 === 0 ? success : failure, { steps: 10 }));
      };
      await Promise.all(Array.from({ length: 300 }, (_, i) => one(i)));
      expect(
        await m.store.index.query(
          'SELECT COUNT(*) AS n, SUM(r.steps) AS steps FROM rollouts r JOIN tracks t ON t.rollout = r.id',
        ),
      ).toEqual([{ n: 300, steps: 3000 }]);
      const c = m.stats().ledger,
        rows = await m.store.index.query('SELECT state, reason, COUNT(*) AS n FROM rollouts GROUP BY state, reason');
      expect(rows.filter((r) => r['state'] === 'grouped')).toEqual(
        c.byState.grouped > 0 ? [{ state: 'grouped', reason: null, n: c.byState.grouped }] : [],
      );
      for (const [reason, n] of Object.entries(c.retired)) expect(rows).toContainEqual({ state: 'retired', reason, n });
      await m.close();
    }));
});
