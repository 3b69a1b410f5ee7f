import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import initSqlJs from 'sql.js';
import { describe, expect, it } from 'vitest';
import { id } from '../../../runtime/domain/index.js';
import type { RolloutId, RunId } from '../../../runtime/domain/index.js';
import type { StoredEvent } from '../../../runtime/data/events.js';
import { unfinishedName } from '../../../runtime/files/replaceFile.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import { IndexEngine } from '../../../runtime/data/store/indexEngine.js';
import { stepPlaces } from '../../../runtime/data/store/stepPlaces.js';
import {
  broken,
  dataConfig,
  failure,
  familyIds,
  makeTrajectory,
  openManager,
  success,
  taskOf,
  withDir,
} from '../../helpers/data/manager.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';

const create = { id: id<RunId>('run-store'), createdAt: 7, config: { preset: 'quickstart' } };
const open = (dir: string, o = {}): Promise<RunStore> => RunStore.open(dir, { index: 'local', create, ...o });
const metric = (loss: number, more: object = {}) => ({
  type: 'metrics' as const,
  source: 'trainer',
  version: 1,
  values: { loss },
  ...more,
});

/** A short run with every kind of end. */
async function shortRun(m: DataManager, groups = 6): Promise<void> {
  await m.record(
    makeTrajectory(
      { rollout: id<RolloutId>('demo'), family: familyIds[0]!, task: taskOf(familyIds[0]!, 99), cap: 30 },
      success,
      { provenance: { kind: 'human' } },
    ),
  );
  for (let g = 0; g < groups; g++) {
    const all = [];
    for (let i = 0; i < 3; i++) all.push((await m.nextOrder({ maxConcurrent: 99, version: g }))!);
    for (const [i, o] of all.entries()) {
      await m.started(o.rollout, g);
      await m.record(
        makeTrajectory(o, g === 3 && i === 0 ? broken : g % 2 === 0 && i === 0 ? success : failure, { version: g }),
      );
    }
    const b = await m.claimBatch({ version: g });
    if (b) await m.trained(b.id, g + 1);
    await m.note({ type: 'eval', version: g, episodes: 10, successes: g, errors: 0, low: 0, high: 1 });
  }
}
const runConfig = dataConfig({ dynamicRollouts: { max: 3 }, staleness: { enabled: false } });

describe('run store', () => {
  it('makes the run folder and keeps run.json as it was', () =>
    withDir(async (dir) => {
      const s = await open(dir);
      expect((await readdir(dir)).sort()).toEqual(['checkpoints', 'frames', 'journal', 'lock', 'run.json']);
      expect(JSON.parse(await readFile(join(dir, 'run.json'), 'utf8'))).toEqual({ format: 1, ...create });
      await s.close();
      const again = await open(dir, { create: { ...create, id: 'another' } });
      expect(again.meta.id).toBe('run-store');
      await again.append(metric(1));
      await again.close();
      expect((await readdir(dir)).sort()).toEqual([
        'checkpoints',
        'frames',
        'index.sqlite',
        'journal',
        'lock',
        'run.json',
      ]);
    }));

  it('removes what a killed writer did not finish, and nothing of one that lives', () =>
    withDir(async (dir) => {
      const dead = spawnSync(process.execPath, ['-e', '']).pid,
        making = join(dir, 'frames', 'unfinished'),
        checkpoints = join(dir, 'checkpoints');
      await (await open(dir)).close();
      await mkdir(making);
      const left = [
        join(making, `${'a'.repeat(64)}.${dead}-7.tmp`),
        join(checkpoints, `v000002.${dead}.tmp`),
        join(dir, `summary.json.${dead}-1.tmp`),
        unfinishedName(join(dir, 'queue.json')).replace(`.${process.pid}-`, `.${dead}-`),
      ];
      const kept = [
        join(making, `${'b'.repeat(64)}.${process.pid}-7.tmp`),
        join(checkpoints, `v000003.${process.pid}.tmp`),
        join(checkpoints, 'v000001'),
      ];
      for (const f of [...left, ...kept])
        if (f.startsWith(making)) await writeFile(f, 'part of a picture');
        else {
          await mkdir(f);
          await writeFile(join(f, 'theta.bin'), 'part of the weights');
        }
      await (await RunReader.open(dir, { index: 'local' })).close();
      expect([...left, ...kept].filter((f) => !existsSync(f))).toEqual([]);
      await (await open(dir)).close();
      expect([...left, ...kept].filter((f) => existsSync(f))).toEqual(kept);
    }));

  it('says what is wrong with a folder that is no run', () =>
    withDir(async (dir) => {
      await expect(RunReader.open(dir, { index: 'local' })).rejects.toMatchObject({ kind: 'store.io' });
      await expect(RunStore.open(join(dir, 'x'), { index: 'local' })).rejects.toMatchObject({ kind: 'store.io' });
      for (const text of ['{', '{"id":"x","format":0}', '[]']) {
        await writeFile(join(dir, 'run.json'), text);
        await expect(open(dir)).rejects.toMatchObject({ kind: 'store.damaged' });
      }
      // A refused opening leaves no lock behind.
      await rm(join(dir, 'run.json'));
      await (await open(dir)).close();
    }));

  it('is held by one writer, also through another name of the folder', () =>
    withDir(async (dir) => {
      const real = join(dir, 'real'),
        link = join(dir, 'link');
      await mkdir(real);
      await symlink(real, link);
      const s = await open(real);
      await expect(open(link)).rejects.toMatchObject({
        kind: 'run.busy',
        error: { details: { holder: { pid: process.pid } } },
      });
      await s.close();
      await (await open(link)).close();
    }));

  it('stops when its lock is taken over: what was acknowledged is there, nothing more is', () =>
    withDir(async (dir) => {
      const s = await open(dir);
      await s.append(metric(1));
      // A holder on a machine that sees the folder but not our process.
      await mkdir(join(dir, 'lock', '2'));
      await expect(s.append(metric(2))).rejects.toMatchObject({ kind: 'run.lost' });
      await rm(join(dir, 'lock', '2'), { recursive: true });
      await expect(s.append(metric(3))).rejects.toMatchObject({ kind: 'run.lost' });
      await s.close();
      expect(await readdir(dir)).not.toContain('index.sqlite');
      const again = await open(dir);
      expect(again.recovery).toMatchObject({ records: 1, truncated: 0, damage: [] });
      await again.close();
    }));

  it('brings a subscriber everything from a number on, without gap or repeat', () =>
    withDir(async (dir) => {
      const s = await open(dir, { journal: { segmentBytes: 600 } });
      for (let i = 0; i < 20; i++) await s.append(metric(i));
      const early: number[] = [],
        late: number[] = [],
        slow: number[] = [];
      const follow = async (since: number, into: number[], wait: boolean): Promise<void> => {
        for await (const e of s.subscribe(since)) {
          into.push(e.seq);
          if (wait) await new Promise((r) => setImmediate(r));
        }
      };
      const all = Promise.all([follow(0, early, false), follow(17, late, false), follow(5, slow, true)]);
      await Promise.all(Array.from({ length: 60 }, (_, i) => s.append(metric(i))));
      for (let i = 0; i < 20; i++) await s.append(metric(i));
      await s.close();
      await all;
      const range = (a: number): number[] => Array.from({ length: 100 - a }, (_, i) => a + i);
      expect(early).toEqual(range(0));
      expect(late).toEqual(range(17));
      expect(slow).toEqual(range(5));
    }));

  it('ends a subscription when asked', () =>
    withDir(async (dir) => {
      const s = await open(dir),
        stop = new AbortController(),
        got: StoredEvent[] = [];
      const done = (async () => {
        for await (const e of s.subscribe(0, stop.signal)) {
          got.push(e);
          stop.abort();
        }
      })();
      await s.append(metric(1));
      await done;
      expect(got).toMatchObject([{ seq: 0, type: 'metrics', values: { loss: 1 } }]);
      const idle = new AbortController(),
        waiting = (async () => {
          for await (const e of s.subscribe(1, idle.signal)) got.push(e);
        })();
      idle.abort();
      await waiting;
      await s.close();
    }));

  it('can be read beside the writer, from a copy, and from a folder that cannot be written', () =>
    withDir(async (dir) => {
      const a = join(dir, 'a'),
        b = join(dir, 'b'),
        m = await openManager(a, runConfig);
      await shortRun(m);
      const beside = await RunReader.open(a, { index: 'local' });
      const [{ n }] = (await beside.index.query("SELECT COUNT(*) AS n FROM rollouts WHERE provenance = 'rollout'")) as [
        { n: number },
      ];
      expect(n).toBe(m.stats().ledger.generated);
      await beside.close();
      await m.close();
      await cp(a, b, { recursive: true });
      await rm(join(b, 'index.sqlite'));
      await chmod(b, 0o555);
      await chmod(join(b, 'journal'), 0o555);
      const copy = await RunReader.open(b, { index: 'local' });
      expect(await copy.index.ready).toMatchObject({ start: 'rebuilt' });
      const rows = await copy.index.query("SELECT id FROM rollouts WHERE outcome = 'success' ORDER BY id");
      expect(rows.length).toBeGreaterThan(2);
      for (const r of rows) expect((await copy.readTrajectory(r['id'] as RolloutId))!.outcome.kind).toBe('success');
      await copy.close();
      expect(await readdir(b)).not.toContain('index.sqlite');
      await chmod(b, 0o755);
      await chmod(join(b, 'journal'), 0o755);
    }));

  it('says store.damaged for a trajectory whose record is broken, and reads the others', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, runConfig);
      await shortRun(m, 2);
      const step = (await stepPlaces(m.store.index, ['r000001'])).get('r000001')?.[0];
      await m.close();
      const file = join(dir, 'journal', '00000000.journal'),
        bytes = await readFile(file),
        at = step!.position + 40;
      bytes[at] = bytes[at]! ^ 0xff;
      await writeFile(file, bytes);
      const r = await RunReader.open(dir, { index: 'local' });
      await expect(r.readTrajectory(id<RolloutId>('r000001'))).rejects.toMatchObject({ kind: 'store.damaged' });
      expect((await r.readTrajectory(id<RolloutId>('r000002')))!.id).toBe('r000002');
      await r.close();
      // Without the index the loss is seen when it is rebuilt, and the trajectory is still refused rather than
      // shortened.
      await rm(join(dir, 'index.sqlite'));
      const s = await RunReader.open(dir, { index: 'local' });
      await expect(s.readTrajectory(id<RolloutId>('r000001'))).rejects.toMatchObject({ kind: 'store.damaged' });
      await s.close();
    }));
});

describe('index', () => {
  const dump = (e: IndexEngine): unknown =>
    ['runs', 'rollouts', 'steps', 'tracks', 'lanes', 'groups', 'batches', 'metrics', 'evals', 'events'].map((t) =>
      e.query(`SELECT * FROM ${t} ORDER BY 1, 2`),
    );

  it('is the same from a snapshot and its tail as from the whole journal, wherever the snapshot was taken', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, runConfig);
      await shortRun(m);
      await m.close();
      const journal = join(dir, 'journal'),
        whole = await IndexEngine.open(journal, join(dir, 'none.sqlite')),
        want = dump(whole);
      const ends = whole
        .query('SELECT head_position AS position FROM rollouts WHERE recorded IS NOT NULL ORDER BY recorded')
        .map((r) => Number(r['position']));
      for (const until of [ends[1]!, ends[ends.length >> 2]!, ends[ends.length >> 1]!, ends.at(-1)!]) {
        const file = join(dir, `part-${until}.sqlite`),
          part = await IndexEngine.open(journal, file, until);
        await part.snapshot();
        expect(part.dirty).toBe(false);
        expect(await part.snapshot()).toBe(0);
        part.close();
        const rest = await IndexEngine.open(journal, file);
        expect(rest.status().start).toBe('snapshot');
        expect(dump(rest)).toEqual(want);
        rest.close();
      }
      whole.close();
    }));

  it('agrees with the ledger, row by row', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, runConfig);
      await shortRun(m);
      const l = m.stats().ledger,
        q = (sql: string): Promise<readonly Record<string, unknown>[]> => m.store.index.query(sql);
      const states = Object.fromEntries(
        (await q("SELECT state, COUNT(*) AS n FROM rollouts WHERE provenance = 'rollout' GROUP BY state")).map((r) => [
          r['state'],
          r['n'],
        ]),
      );
      for (const [at, n] of Object.entries(l.byState)) expect(states[at] ?? 0, at).toBe(n);
      const reasons = Object.fromEntries(
        (await q("SELECT reason, COUNT(*) AS n FROM rollouts WHERE state = 'retired' GROUP BY reason")).map((r) => [
          r['reason'],
          r['n'],
        ]),
      );
      expect(reasons).toEqual(l.retired);
      expect(await q("SELECT state, provenance, outcome FROM rollouts WHERE id = 'demo'")).toEqual([
        { state: 'kept', provenance: 'human', outcome: 'success' },
      ]);
      expect((await q('SELECT COUNT(*) AS n FROM evals'))[0]!['n']).toBe(6);
      expect(await q("SELECT error_kind FROM rollouts WHERE outcome = 'error'")).toEqual([
        { error_kind: 'desktop.lost' },
      ]);
      const [b] = await q('SELECT * FROM batches ORDER BY id LIMIT 1');
      expect(b).toMatchObject({ state: 'trained', groups: 1, version: 0, trained_version: 1, lag_max: 0 });
      await m.close();
    }));

  it('is not used when it is ahead of the journal or of another schema', () =>
    withDir(async (dir) => {
      const s = await open(dir);
      for (let i = 0; i < 5; i++) await s.append(metric(i));
      await s.close();
      const journal = join(dir, 'journal'),
        file = join(dir, 'index.sqlite');
      const ahead = await IndexEngine.open(journal, file, 40);
      expect(ahead.status()).toMatchObject({ start: 'rebuilt', because: expect.stringMatching(/ahead/) as unknown });
      ahead.close();
      const SQL = await initSqlJs(),
        db = new SQL.Database(await readFile(file));
      db.exec("UPDATE meta SET value = 0 WHERE key = 'schema'; PRAGMA application_id = 0");
      await writeFile(file, db.export());
      db.close();
      const old = await IndexEngine.open(journal, file);
      expect(old.status()).toMatchObject({
        start: 'rebuilt',
        events: 5,
        because: expect.stringMatching(/schema/) as unknown,
      });
      old.close();
    }));
});

describe('sql.js, as runtime/data/README.md#index relies on it', () => {
  it('keeps pragmas, statements and functions over an export, and refuses one inside a transaction', async () => {
    const SQL = await initSqlJs(),
      db = new SQL.Database();
    db.exec('PRAGMA foreign_keys = 1; CREATE TABLE t(x)');
    db.create_function('twice', (x: number) => 2 * x);
    const insert = db.prepare('INSERT INTO t VALUES(?)');
    insert.run([1]);
    db.export();
    insert.run([2]);
    expect(db.exec('PRAGMA foreign_keys')[0]!.values).toEqual([[1]]);
    expect(db.exec('SELECT SUM(twice(x)) FROM t')[0]!.values).toEqual([[6]]);
    db.exec('BEGIN');
    insert.run([3]);
    expect(() => db.export()).toThrow(/busy|locked/i);
    db.exec('COMMIT');
    expect(db.export().length).toBeGreaterThan(0);
    db.close();
  });
});
