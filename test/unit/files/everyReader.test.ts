import { cp, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { FollowedRun } from '../../../runtime/data/store/followedRun.js';
import { IndexEngine, sqlJs } from '../../../runtime/data/store/indexEngine.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import { id, type FrameRef, type RolloutId, type RunId } from '../../../runtime/domain/index.js';
import { preview } from '../../../runtime/interchange/importer.js';
import { exportRun } from '../../../runtime/interchange/exporter.js';
import { lines, readSlice, readSmall } from '../../../runtime/interchange/folder.js';
import { listRunFolders } from '../../../runtime/run/runFolders.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { planResume } from '../../../runtime/service/runSession.js';
import { writeTrajectory } from '../../../runtime/service/trajectories.js';
import { openAssets } from '../../../runtime/tasks/assets.js';
import { checkFolder } from '../../../runtime/tasks/check.js';
import { readCheckpoint, writeCheckpoint } from '../../../runtime/trainer/checkpoint.js';
import { desk } from '../../helpers/tasks/images.js';
import { ending, fifo, scratch, sparse } from '../../helpers/files/hostile.js';
import { agentnetFile, makeRun, onePress, osworldTask, screen } from '../../helpers/interchange/make.js';

/** In place of each file that a stranger may have made, a FIFO: nobody waits for it, and the error says what it is. */

/** `files`: with screens as older versions kept them. */
async function run(dir: string, files = false): Promise<{ readonly dir: string; readonly frame: FrameRef }> {
  await makeRun(dir, [onePress], undefined, { sync: false, files });
  const r = await RunReader.open(dir, { index: 'local' });
  try {
    return { dir, frame: (await r.readTrajectory(id<RolloutId>('r1')))!.steps[0]!.frame };
  } finally {
    await r.close();
  }
}
async function replace(path: string): Promise<void> {
  await rename(path, `${path}.was`);
  fifo(path);
}
async function reading<T>(dir: string, f: (r: RunReader) => Promise<T>): Promise<T> {
  const r = await RunReader.open(dir, { index: 'local' });
  try {
    return await f(r);
  } finally {
    await r.close();
  }
}
async function all(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const out: unknown[] = [];
  for await (const x of items) out.push(x);
  return out;
}
const damaged = { kind: 'store.damaged', message: expect.stringContaining('is not a regular file') as string };

beforeAll(async () => {
  await sqlJs();
});

describe('of a run folder', () => {
  it('run.json', () =>
    scratch(async (base) => {
      const dir = join(base, 'a');
      await run(dir);
      await replace(join(dir, 'run.json'));
      const refused = { kind: 'store.io', message: expect.stringContaining('is not a regular file') as string };
      expect(await ending(RunReader.open(dir, { index: 'local' }))).toMatchObject(refused);
      expect(await ending(FollowedRun.open(dir, { index: 'local' }))).toMatchObject(refused);
      expect(await ending(RunStore.open(dir, { index: 'local' }))).toMatchObject(refused);
      expect(await ending(planResume(dir))).toMatchObject({ kind: 'store.io' });
      expect(await ending(listRunFolders(base))).toBe('done');
      expect(await listRunFolders(base)).toEqual([]);
    }));

  it('a journal segment', () =>
    scratch(async (base) => {
      const dir = join(base, 'a');
      await run(dir);
      await rm(join(dir, 'index.sqlite'));
      await replace(join(dir, 'journal', '00000000.journal'));
      expect(await ending(reading(dir, (r) => r.at(16)))).toMatchObject(damaged);
      expect(await ending(reading(dir, (r) => all(r.events())))).toMatchObject(damaged);
      expect(await ending(reading(dir, (r) => r.index.query('SELECT 1')))).toMatchObject({ kind: 'store.damaged' });
      expect(await ending(RunStore.open(dir, { index: 'local' }))).toMatchObject(damaged);
    }));

  it('the index, which is then made anew', () =>
    scratch(async (base) => {
      const dir = join(base, 'a');
      await run(dir);
      await replace(join(dir, 'index.sqlite'));
      expect(await reading(dir, (r) => r.index.query('SELECT count(*) AS n FROM rollouts'))).toEqual([{ n: 1 }]);
    }));

  it.each(['pack', 'file'])('the %s of a frame: read, exported in every format, stored again', (kind) =>
    scratch(async (base) => {
      const dir = join(base, 'a'),
        { frame } = await run(dir, kind === 'file'),
        name = kind === 'pack' ? 'frames-000001.pack' : `${frame.hash.slice(0, 2)}/${frame.hash}.png`,
        path = join(dir, 'frames', name);
      await replace(path);
      expect(await ending(reading(dir, (r) => r.frames.get(frame)))).toMatchObject(damaged);
      for (const format of ['osworld', 'agentnet', 'dart', 'openai', 'traj'] as const) {
        const request = { run: dir, to: join(base, format), format, options: { coordinates: 'absolute' } } as const;
        expect(await ending(exportRun(request, recordedView)), format).toMatchObject({ kind: 'config.invalid' });
      }
      const view = await reading(dir, (r) => recordedView(r, id<RolloutId>('r1')));
      expect(
        await ending(
          writeTrajectory(view, join(base, 'x.traj.jsonl'), async (f) => reading(dir, (r) => r.frames.read(f))),
        ),
      ).toMatchObject({
        kind: 'store.io',
        message: expect.stringContaining('is not a regular file') as string,
      });
      const store = await RunStore.open(dir, { index: 'local' });
      expect((await store.frames.put(screen(1))).hash).toBe(frame.hash);
      await store.close();
      expect((await reading(dir, (r) => r.frames.get(frame))).width).toBe(160);
    }),
  );

  it('an index whose tables somebody else defined, which is then made anew', () =>
    scratch(async (base) => {
      const dir = join(base, 'a');
      await run(dir);
      const SQL = await sqlJs(),
        db = new SQL.Database(await readFile(join(dir, 'index.sqlite')));
      // Every question about rollouts would run for ever.
      db.exec('DROP TABLE rollouts');
      db.exec(
        "CREATE VIEW rollouts AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 'x' AS outcome FROM n",
      );
      const bytes = Buffer.from(db.export());
      bytes.writeUInt32BE(0, 68); // without a seal, as an older version left it
      await writeFile(join(dir, 'index.sqlite'), bytes);
      const engine = await IndexEngine.open(join(dir, 'journal'), join(dir, 'index.sqlite'));
      expect(engine.status()).toMatchObject({
        start: 'rebuilt',
        because: 'its tables are not those of DART Studio',
      });
      expect(engine.query('SELECT count(*) AS n FROM rollouts')).toEqual([{ n: 1 }]);
      engine.close();
    }));
});

describe('of a checkpoint', () => {
  const head = { policy: 'p', layout: 'l', values: {} };
  it('its manifest and its files', () =>
    scratch(async (dir) => {
      for (const name of ['manifest.json', 'weights.f32']) {
        const at = join(dir, name);
        await writeCheckpoint(at, head, { 'weights.f32': Buffer.alloc(8) });
        await replace(join(at, name));
        expect(await ending(readCheckpoint(at, head))).toMatchObject({ kind: 'trainer.invalid' });
      }
    }));
  it('names that lead elsewhere, and sizes that are none', () =>
    scratch(async (dir) => {
      await writeFile(join(dir, 'secret'), 'x');
      const at = join(dir, 'v1'),
        bad: object[] = [
          { '../secret': { bytes: 1, sha256: '' } },
          { '/etc/hostname': { bytes: 1, sha256: '' } },
          { '.hidden': { bytes: 1, sha256: '' } },
          { a: { bytes: 1e15, sha256: '' } },
          { a: { bytes: -1, sha256: '' } },
          { a: null },
          Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`f${i}`, { bytes: 0, sha256: '' }])),
        ];
      await mkdir(at);
      for (const files of bad) {
        await writeFile(join(at, 'manifest.json'), JSON.stringify({ format: 1, ...head, files }));
        await expect(readCheckpoint(at, head), JSON.stringify(files).slice(0, 80)).rejects.toMatchObject({
          kind: 'trainer.invalid',
          message: expect.stringContaining('its manifest') as string,
        });
      }
      for (const odd of [{ toString: 7 }, 7, null]) {
        await writeFile(join(at, 'manifest.json'), JSON.stringify({ format: 1, ...head, policy: odd, files: {} }));
        await expect(readCheckpoint(at, head)).rejects.toMatchObject({ kind: 'trainer.invalid' });
      }
      const deep = `${'['.repeat(50)}${']'.repeat(50)}`;
      await writeFile(
        join(at, 'manifest.json'),
        `{"format":1,"policy":"p","layout":"l","values":{"a":${deep}},"files":{}}`,
      );
      await expect(readCheckpoint(at, head)).rejects.toMatchObject({ kind: 'trainer.invalid' });
      await writeFile(join(at, 'manifest.json'), 'null');
      await expect(readCheckpoint(at, head)).rejects.toMatchObject({ kind: 'trainer.invalid' });
    }));
  it('that was being replaced when its process was killed comes back when the run is opened', () =>
    scratch(async (dir) => {
      const store = await RunStore.open(dir, { index: 'local', create: { id: id<RunId>('r'), createdAt: 0 } });
      await store.close();
      const at = join(dir, 'checkpoints', 'v000001');
      for (const n of [1, 2]) await writeCheckpoint(at, { ...head, values: { n } }, {});
      expect((await readCheckpoint(at, head)).values).toEqual({ n: 2 });
      await rename(at, `${at}.replaced`);
      await (await RunStore.open(dir, { index: 'local' })).close();
      expect((await readCheckpoint(at, head)).values).toEqual({ n: 2 });
      // Killed just after the new one was in place: the old one goes.
      await mkdir(`${at}.replaced`);
      await writeFile(join(`${at}.replaced`, 'manifest.json'), '{}');
      await writeCheckpoint(at, { ...head, values: { n: 3 } }, {});
      await mkdir(`${at}.replaced`);
      await (await RunStore.open(dir, { index: 'local' })).close();
      await expect(readFile(join(`${at}.replaced`, 'manifest.json'))).rejects.toMatchObject({ code: 'ENOENT' });
      expect((await readCheckpoint(at, head)).values).toEqual({ n: 3 });
    }));
});

describe('of tasks', () => {
  it('a task file, also one that is far too large', () =>
    scratch(async (dir) => {
      fifo(join(dir, 'a.json'));
      await sparse(join(dir, 'b.json'), 2 ** 40);
      expect(await ending(checkFolder(dir, { image: desk }))).toBe('done');
      const rows = await checkFolder(dir, { image: desk });
      // A FIFO is no file of the folder at all.
      expect(rows.map((r) => r.error?.message)).toEqual([expect.stringContaining('at most 1048576 are read')]);
    }));
  it('an asset', () =>
    scratch(async (dir) => {
      await mkdir(join(dir, 'host'));
      await writeFile(join(dir, 'host', 'a.txt'), 'x');
      const assets = await openAssets(dir);
      await replace(join(dir, 'host', 'a.txt'));
      expect(await ending(assets.read('https://host/a.txt'))).toMatchObject({ kind: 'task.unsupported' });
    }));
});

describe('of an import', () => {
  const look = (path: string): ReturnType<typeof preview> => preview({ path, format: 'auto', options: {} });
  const names = ['traj.jsonl', 'final_messages.json', 'a.traj.jsonl', 'b.jsonl', 'c.json'];
  const here = (dir: string, name: string): string => join(dir, `of-${name}`, name);

  it('the file that names trajectories, whatever its format', () =>
    scratch(async (dir) => {
      for (const name of names) {
        await mkdir(join(dir, `of-${name}`));
        fifo(here(dir, name));
      }
      const found = look(dir);
      expect(await ending(found)).toBe('done');
      expect((await found).problems.map((p) => [p.where, p.what])).toEqual(
        names
          .map((n) => `of-${n}/${n}`)
          .sort()
          .map((where) => [where, expect.stringContaining('is not a regular file')]),
      );
    }));

  it('one that is a link out of the folder is not read', () =>
    scratch(async (dir) => {
      const src = join(dir, 'src'),
        outside = join(dir, 'outside');
      await osworldTask(outside, 'os', 'task', [{ action: 'pyautogui.press("a")' }, { action: 'DONE' }], {
        initial: true,
      });
      await agentnetFile(outside, [{ task_id: 't', codes: ["computer.terminate(status='success')"] }]);
      const task = join(outside, 'pyautogui', 'screenshot', 'agent', 'os', 'task');
      expect((await look(outside)).trajectories).toBe(2);
      await mkdir(src);
      await symlink(join(task, 'traj.jsonl'), join(src, 'traj.jsonl'));
      expect(await look(src)).toMatchObject({
        trajectories: 0,
        problems: [
          { where: 'traj.jsonl', what: expect.stringContaining('is a link out of the import folder') as string },
        ],
      });
      await rm(join(src, 'traj.jsonl'));
      await symlink(join(outside, 'agentnet_ubuntu_5k.jsonl'), join(src, 'agentnet.jsonl'));
      await symlink(join(outside, 'images'), join(src, 'images'));
      expect(await look(src)).toMatchObject({ trajectories: 0, problemCount: 1 });
      // A link to another place of the folder is as good as the file.
      await cp(outside, join(src, 'in'), { recursive: true });
      await rm(join(src, 'agentnet.jsonl'));
      await symlink(join('in', 'agentnet_ubuntu_5k.jsonl'), join(src, 'again.jsonl'));
      await rm(join(src, 'images'));
      await cp(join(outside, 'images'), join(src, 'images'), { recursive: true });
      expect(await look(src)).toMatchObject({ trajectories: 3, problemCount: 0 });
    }));

  it('of which a file is replaced between the look and the reading', () =>
    scratch(async (dir) => {
      const path = join(dir, 'a.jsonl');
      await writeFile(join(dir, 'secret'), 'x');
      await symlink(join(dir, 'secret'), path);
      await expect(readSmall(path, 100)).rejects.toThrow('is not a regular file');
      await expect(all(lines(path))).rejects.toThrow('is not a regular file');
      await expect(readSlice(path, 0, 1)).rejects.toThrow('is not a regular file');
    }));
});
