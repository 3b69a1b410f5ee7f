import { mkdir, readdir, symlink } from 'node:fs/promises';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lockRun } from '../../../runtime/data/store/runLock.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { newRun } from '../../../runtime/data/collections.js';
import { importInto } from '../../../runtime/interchange/importer.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { exportRun, type ExportRequest } from '../../../runtime/interchange/exporter.js';
import { importLines } from '../../../runtime/interchange/words.js';
import { fileName } from '../../../runtime/interchange/writers/write.js';
import { dataConfig, openManager } from '../../helpers/data/manager.js';
import {
  agentnetFile,
  importedOf,
  inFolder,
  makeRun,
  osworldTask,
  png,
  poolOf,
  put,
  success,
} from '../../helpers/interchange/make.js';
import { jpegWorker, look, take } from '../../helpers/interchange/take.js';

describe('an import as a whole', () => {
  const codes = ['pyautogui.click(x=0.5, y=0.25)', "computer.terminate(status='success')"];
  test('doing it twice changes nothing; more of the same source is added to; a copy elsewhere is recognised by its content', () =>
    inFolder(async (dir) => {
      const src = join(dir, 'src');
      await agentnetFile(src, [
        { task_id: 't1', codes },
        { task_id: 't2', codes },
      ]);
      expect(await take(dir, src)).toMatchObject({ imported: 2, pooled: 2 });
      expect(await take(dir, src)).toMatchObject({ imported: 0, already: 2, duplicateCount: 0 });
      await agentnetFile(src, [
        { task_id: 't1', codes },
        { task_id: 't2', codes },
        { task_id: 't3', codes },
      ]);
      expect(await take(dir, src)).toMatchObject({ imported: 1, already: 2 });
      await agentnetFile(join(dir, 'copy'), [{ task_id: 't1', codes }]);
      const again = await take(dir, join(dir, 'copy'));
      expect(again).toMatchObject({ imported: 0, duplicateCount: 1 });
      expect((await importedOf(join(dir, 'run'))).map((t) => t.id)).toContain(again.duplicates[0]!.of);
      expect(await importedOf(join(dir, 'run'))).toHaveLength(3);
    }));
  test('into a run that has trajectories of its own: they are recognised too, and --no-pool keeps the pool as it is', () =>
    inFolder(async (dir) => {
      await makeRun(join(dir, 'run'), [
        {
          task: 't1',
          family: 't1',
          instruction: 'do t1',
          outcome: success,
          steps: [
            { screen: 200, actions: [{ type: 'click', at: { x: 80, y: 25 } }] },
            { screen: 201, actions: [{ type: 'finished' }] },
          ],
        },
      ]);
      await agentnetFile(join(dir, 's'), [
        { task_id: 't1', codes },
        { task_id: 't2', codes },
      ]);
      const r = await take(dir, join(dir, 's'), {}, { pool: false });
      expect(r).toMatchObject({ imported: 1, pooled: 0, duplicateCount: 1, duplicates: [{ of: 'demo/0' }] });
      expect(await poolOf(join(dir, 'run'))).toEqual([]);
    }));
  test('stopped in the middle it keeps whole trajectories only, and goes on where it was', () =>
    inFolder(async (dir) => {
      const src = join(dir, 'src'),
        stop = new AbortController(),
        run = join(dir, 'run');
      await agentnetFile(
        src,
        Array.from({ length: 6 }, (_, i) => ({ task_id: `t${i}`, codes })),
      );
      let frames = 0;
      const r = await importInto(
        { path: src, format: 'auto', options: {} },
        { dir: run, index: 'local', entry: await jpegWorker(), create: newRun('run', 1) },
        {
          pool: true,
          signal: stop.signal,
          onProgress: (p) => {
            if (p.frames === 5 && frames !== 5) stop.abort();
            frames = p.frames;
          },
        },
      );
      expect(r).toMatchObject({ stopped: true, imported: 2 });
      const half = await importedOf(run);
      expect(half.map((t) => t.steps.length)).toEqual([2, 2]);
      expect(await take(dir, src)).toMatchObject({ imported: 4, already: 2, stopped: false });
      expect(await importedOf(run)).toHaveLength(6);
    }));
  test('a run that somebody writes is not touched', () =>
    inFolder(async (dir) => {
      await makeRun(join(dir, 'run'), []);
      await agentnetFile(join(dir, 's'), [{ task_id: 't1', codes }]);
      const lock = await lockRun(join(dir, 'run'));
      try {
        await expect(take(dir, join(dir, 's'))).rejects.toMatchObject({ kind: 'run.busy' });
      } finally {
        await lock.release();
      }
    }));
  test('the data manager of a run takes what was imported: the pool holds it and can inject it', () =>
    inFolder(async (dir) => {
      await agentnetFile(join(dir, 's'), [
        { task_id: 'alpha#1', codes },
        { task_id: 'beta#1', codes, task_completed: false },
      ]);
      await take(dir, join(dir, 's'));
      const [t] = await importedOf(join(dir, 'run')),
        data = await openManager(join(dir, 'run'), dataConfig());
      try {
        expect(data.recovery.unreadable).toEqual([]);
        expect(data.stats().pool).toMatchObject({ entries: 1, usable: 1, byProvenance: { imported: 1 } });
        expect((await data.store.readTrajectory(t!.id))?.steps).toEqual(t!.steps);
      } finally {
        await data.close();
      }
    }));
  test('nothing importable makes no run; archives are refused with what to do', () =>
    inFolder(async (dir) => {
      await mkdir(join(dir, 'empty'));
      await expect(look(join(dir, 'empty'))).rejects.toMatchObject({ kind: 'config.invalid' });
      await put(join(dir, 'x.zip'), Buffer.from([0x50, 0x4b, 0x03, 0x04, ...Buffer.alloc(100)]));
      await expect(look(join(dir, 'x.zip'))).rejects.toMatchObject({
        message: expect.stringMatching(/zip archive/) as string,
      });
      await agentnetFile(join(dir, 's'), [{ task_id: 't1', codes, image: () => 'gone.png' }]);
      expect(await take(dir, join(dir, 's'))).toMatchObject({ imported: 0, problemCount: 1 });
      expect(existsSync(join(dir, 'run'))).toBe(false);
      await expect(look(join(dir, 'nowhere'))).rejects.toMatchObject({ kind: 'config.invalid' });
    }));
});

describe('an export as a whole', () => {
  const made = async (dir: string): Promise<void> => {
    const codes = ["computer.terminate(status='success')"];
    await agentnetFile(join(dir, 'src'), [
      { task_id: 't1', codes },
      { task_id: 't2', codes },
    ]);
    await take(dir, join(dir, 'src'));
  };
  const request = (dir: string): ExportRequest => ({
    run: join(dir, 'run'),
    to: join(dir, 'out'),
    format: 'traj',
    options: { coordinates: 'absolute' },
  });
  const refused = {
    kind: 'config.invalid',
    message: expect.stringMatching(/out came to exist while this export was written/) as string,
  };
  test('two at once to one place: the first one that is done has it whole, the other is refused with the reason', () =>
    inFolder(async (dir) => {
      await made(dir);
      const ends = await Promise.allSettled([0, 1].map(() => exportRun(request(dir), recordedView)));
      expect(ends.filter((e) => e.status === 'fulfilled')).toHaveLength(1);
      const lost = ends.find((e) => e.status === 'rejected')!;
      expect(lost.reason).toMatchObject(refused);
      expect((await readdir(join(dir, 'out'))).filter((f) => f.endsWith('.traj.jsonl'))).toHaveLength(2);
      expect((await readdir(dir)).filter((f) => f.includes('partial'))).toEqual([]);
    }));
  test('what another program makes in its place meanwhile is left as it is', () =>
    inFolder(async (dir) => {
      await made(dir);
      const other = join(dir, 'out', 'other.txt');
      const written = exportRun(
        {
          ...request(dir),
          onProgress: (done) => {
            if (done !== 1) return;
            mkdirSync(join(dir, 'out'));
            writeFileSync(other, 'mine');
          },
        },
        recordedView,
      );
      await expect(written).rejects.toMatchObject(refused);
      expect(await readdir(join(dir, 'out'))).toEqual(['other.txt']);
      expect((await readdir(dir)).filter((f) => f.includes('partial'))).toEqual([]);
    }));
});

describe('hostile sources', () => {
  const code = ['pyautogui.click(x=0.5, y=0.5)'];
  test('paths that lead out, absolute paths, links out and devices are problems; nothing outside is read', () =>
    inFolder(async (dir) => {
      const src = join(dir, 'src');
      await put(join(dir, 'secret.png'), await png(1));
      await mkdir(join(src, 'images'), { recursive: true });
      await symlink(join(dir, 'secret.png'), join(src, 'images', 'link.png'));
      await symlink(dir, join(src, 'up'));
      execFileSync('mkfifo', [join(src, 'images', 'pipe.png')]);
      const names = [
        '../secret.png',
        join(dir, 'secret.png'),
        'link.png',
        'up/secret.png',
        'images/../../secret.png',
        '..\\secret.png',
        'C:\\secret.png',
        'pipe.png',
        'a\0b.png',
        `${'x'.repeat(5000)}.png`,
      ];
      await agentnetFile(
        src,
        names.map((n, i) => ({ task_id: `t${i}`, codes: code, image: () => n })),
      );
      const p = await look(src);
      expect(p.trajectories).toBe(0);
      expect(p.problems).toHaveLength(names.length);
      for (const q of p.problems) expect(q.what).toMatch(/leads out|link out|not a regular file|missing|file name/);
      expect(await take(dir, src)).toMatchObject({ imported: 0 });
      expect(existsSync(join(dir, 'run'))).toBe(false);
    }));
  test('names and words of strangers: control characters, lone surrogates, endless ids, answers made to be slow', () =>
    inFolder(async (dir) => {
      const image = (): string => 'a.png';
      await put(join(dir, 's', 'images', 'a.png'), await png(1));
      await agentnetFile(join(dir, 's'), [
        { task_id: 'bad \ud800/..\\:*', codes: ["computer.terminate(status='success')"], image },
        { task_id: 'x'.repeat(400), codes: code, image },
        { task_id: '\x1b[2J', codes: ['\x1b[31mboo()'], image },
      ]);
      await osworldTask(
        join(dir, 's', 'os'),
        'os',
        'slow',
        [{ action: 'DONE', response: "Thought: x Action: a(b='".repeat(8000) }],
        { initial: true },
      );
      const r = await take(dir, join(dir, 's'));
      expect(r).toMatchObject({ imported: 2, problemCount: 2 });
      expect(importLines(r).join('')).not.toMatch(/[\x00-\x1f]/);
      for (const format of ['osworld', 'traj'] as const)
        expect(
          await exportRun(
            { run: join(dir, 'run'), to: join(dir, format), format, options: { coordinates: 'qwen25' } },
            recordedView,
          ),
        ).toMatchObject({ trajectories: 2, problems: [] });
      expect(
        new Set([
          fileName('a'.repeat(300)),
          fileName(`${'a'.repeat(299)}b`),
          fileName('..'),
          fileName('.'),
          fileName(''),
          fileName('a/b'),
        ]).size,
      ).toBe(6);
      for (const n of ['..', '.', '', 'a/../b', 'a\\b']) expect(fileName(n)).toMatch(/^[\w%-][\w%.-]*$/);
    }));
  test('a loop of links does not hang the walk', () =>
    inFolder(async (dir) => {
      await agentnetFile(join(dir, 's', 'a'), [{ task_id: 't', codes: code }]);
      await symlink(join(dir, 's'), join(dir, 's', 'a', 'again'));
      expect(await look(join(dir, 's'))).toMatchObject({ trajectories: 1 });
    }));
  test('a picture that lies about its size, or breaks when decoded, keeps its trajectory out of the journal', () =>
    inFolder(async (dir) => {
      const src = join(dir, 'src'),
        good = await png(5),
        lying = Buffer.from(good);
      lying.writeUInt32BE(90_000, 16);
      await agentnetFile(src, [
        { task_id: 'ok', codes: code },
        { task_id: 'lie', codes: [...code, ...code], image: (i) => (i === 0 ? 'ok-0.png' : 'lie.png') },
        { task_id: 'torn', codes: [...code, ...code], image: (i) => (i === 0 ? 'ok-0.png' : 'torn.png') },
      ]);
      await put(join(src, 'images', 'lie.png'), lying);
      await put(join(src, 'images', 'torn.png'), good.subarray(0, good.length - 40));
      const r = await take(dir, src);
      expect(r).toMatchObject({ imported: 1, problemCount: 2 });
      expect(r.problems.map((p) => p.what).sort()).toEqual([
        expect.stringMatching(/step 1: .*claims to be 90000x/),
        expect.stringMatching(/torn.png is cut short/),
      ]);
      const run = await RunReader.open(join(dir, 'run'), { index: 'local' });
      try {
        expect((await run.index.query('SELECT count(*) AS c FROM tracks', []))[0]).toEqual({ c: 1 });
      } finally {
        await run.close();
      }
    }));
  test('endless lines, deep nesting, huge counts, wrong types', () =>
    inFolder(async (dir) => {
      const src = join(dir, 's');
      await put(
        join(src, 'a.jsonl'),
        [
          `{"traj":[],"x":"${'y'.repeat(5 << 20)}"}`,
          `{"traj":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
          '{"traj":[1]}',
          '{"traj":[{"index":0,"image":5,"value":{"code":"x"}}]}',
          '{"traj":{}}',
          'null',
          '[]',
          '{"traj":[{"image":"a.png","value":{"code":{"a":1}}}]}',
          '{"__proto__":{"polluted":1},"traj":[]}',
          '{"traj":[],"dart_studio":{"reward":5}}',
          JSON.stringify({ traj: [], instruction: 'x'.repeat(300_000) }),
        ].join('\n'),
      );
      await put(join(src, 'deep.json'), `{"conversations":${'['.repeat(200_000)}${']'.repeat(200_000)}}`);
      await put(join(src, 'open.json'), `{"conversations":[{"value":"${'z'.repeat(100_000)}`);
      await put(join(src, 'bulk.json'), `{"conversations":[${'{"from":"human"},'.repeat(300_000)}{}]}`);
      const p = await look(src, { verdict: 'success' });
      expect(p.trajectories).toBe(0);
      expect(p.problemCount).toBe(14);
      expect(p.problems.map((q) => q.what).join('\n')).toMatch(/longer than 4 MB[\s\S]*a text is not closed/);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    }));
});
