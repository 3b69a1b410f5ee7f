import { cp, mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import { RunAppender } from '../../../runtime/data/runAppender.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import { openScratch } from '../../../runtime/data/store/scratch.js';
import type { DiskRoom } from '../../../runtime/data/store/room.js';
import { trainingTasks } from '../../../runtime/run/collect/chosen.js';
import { collect } from '../../../runtime/run/collect/collect.js';
import { evaluateCheckpoint, type EvaluateProgress } from '../../../runtime/run/evaluateCheckpoint.js';
import { bundle } from '../../helpers/data/manager.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

/** Evaluations and collections on a disk that is full for a moment; what acts is the test's. */
let room: DiskRoom, scratch: string;
const fullOnce = async (): Promise<void> => {
  let tries = 0;
  await room.write(() =>
    ++tries < 2 ? Promise.reject(Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })) : Promise.resolve(),
  );
};
/** Fails the collection when its disk was full. */
const begin = vi.fn((r: { readonly dir: string }): Promise<object> => {
  scratch = r.dir;
  return Promise.resolve({ pool: {}, policy: {}, close: () => Promise.resolve() });
});
vi.mock('../../../runtime/run/engine.js', () => ({ startEngine: (r: { readonly dir: string }) => begin(r) }));
vi.mock('../../../runtime/run/evaluateEpisodes.js', () => ({
  evaluateNow: async () => {
    await fullOnce();
    return { label: 'heldout', version: 0, episodes: 0, successes: 0, errors: 0, low: 0, high: 1, perFamily: {} };
  },
}));

let dir = '',
  entry: { file: string };
beforeAll(async () => {
  entry = await bundle('runtime/main.ts', 'runtime');
});
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-scratch-'));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(dir, { recursive: true, force: true });
});
const signal = new AbortController().signal,
  full = expect.stringMatching(/^The disk of .*\/(run|tried) is full\. Nothing is lost/) as string,
  again = expect.stringContaining('There is space on the disk again') as string;

describe('a full disk', () => {
  it('is said by an evaluation, which waits in the run folder and leaves nothing there', async () => {
    const run = join(dir, 'run'),
      notes: string[] = [],
      progress: EvaluateProgress[] = [];
    await writeSyntheticRun(run, { groups: 1, size: 2, steps: 1, close: 'finished', config: {} });
    const before = (await readdir(run)).sort();
    const open = DataManager.open.bind(DataManager);
    vi.spyOn(DataManager, 'open').mockImplementation(async (o) => {
      const data = await open(o);
      ({ room } = data);
      return data;
    });
    await evaluateCheckpoint({
      dir: run,
      version: 0,
      entry,
      signal,
      onProgress: (p) => progress.push(p),
      onNote: (text) => notes.push(text),
    });
    expect(notes).toEqual([full, again]);
    expect(progress.map((p) => p.diskFull)).toEqual([true, undefined]);
    expect(dirname(dirname(scratch))).toBe(run);
    expect((await readdir(run)).sort()).toEqual(before);
  });
  it('is reported by a collection', async () => {
    const notes: string[] = [],
      open = RunAppender.open.bind(RunAppender);
    vi.spyOn(RunAppender, 'open').mockImplementation(async (...a) => {
      const run = await open(...a);
      ({ room } = run.store);
      return run;
    });
    begin.mockImplementationOnce(async (r) => {
      scratch = r.dir;
      await fullOnce();
      throw new Error('enough seen');
    });
    const made = collect({
      config: parseRunFile({}),
      policy: 'a test',
      dir: join(dir, 'tried'),
      name: 'tried',
      attempts: 1,
      stopAfter: 1,
      choose: trainingTasks(1),
      measures: false,
      entry,
      signal,
      onNote: (text) => notes.push(text),
    });
    await expect(made).rejects.toThrow('enough seen');
    expect(notes).toEqual([full, again]);
    expect(dirname(dirname(scratch))).toBe(join(dir, 'tried'));
    expect((await readdir(join(dir, 'tried'))).filter((name) => name.endsWith('.scratch'))).toEqual([]);
  });
});

describe('a scratch folder', () => {
  it('is among the temporary files where the run folder takes none', async () => {
    const file = join(dir, 'file');
    await writeFile(file, '');
    const made = await openScratch(file, 'evaluation');
    expect(dirname(dirname(made.dir))).toBe(tmpdir());
    await made.remove();
    await expect(readdir(dirname(made.dir))).rejects.toMatchObject({ code: 'ENOENT' });
    const there = await openScratch(dir, 'evaluation');
    expect(dirname(dirname(there.dir))).toBe(dir);
    // A process in another container may have our number.
    expect(basename(there.dir)).toMatch(/^evaluation-[\da-f]{12}$/);
    await there.remove();
  });
  it('of a killed process goes, one in use stays, whoever opens the run or another one', async () => {
    const run = join(dir, 'run');
    await writeSyntheticRun(run, { groups: 1, size: 2, steps: 1, close: 'finished', config: {} });
    const used = await openScratch(run, 'evaluation'),
      usedAt = dirname(used.dir),
      scratches = async (): Promise<string[]> =>
        (await readdir(run)).filter((name) => name.endsWith('.scratch')).toSorted(),
      /** A claim on a copy is nobody's. `minutes`: how old it is. */
      killed = async (hex: string, minutes: number): Promise<string> => {
        const name = `evaluation-${hex.repeat(12)}.scratch`;
        await cp(usedAt, join(run, name), { recursive: true });
        for (const path of [usedAt, join(run, name)]) {
          const at = new Date(Date.now() - minutes * 60_000);
          await utimes(path, at, at);
        }
        return name;
      };
    // Nothing behind a link is touched.
    const linked = `evaluation-${'d'.repeat(12)}.scratch`,
      mine = join(dir, 'mine');
    await mkdir(mine);
    await symlink(mine, join(run, linked));
    await killed('a', 5);
    const next = await openScratch(run, 'collection');
    expect(await scratches()).toEqual([basename(dirname(next.dir)), basename(usedAt), linked].toSorted());
    await next.remove();
    await killed('b', 5);
    const young = await killed('c', 0);
    const store = await RunStore.open(run, { index: 'local' });
    await store.close();
    expect(await scratches()).toEqual([young, basename(usedAt), linked].toSorted());
    await used.remove();
    expect(await scratches()).toEqual([young, linked].toSorted());
    expect(await readdir(mine)).toEqual([]);
  });
});
