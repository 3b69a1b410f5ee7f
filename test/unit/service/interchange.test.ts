import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import * as m from '../../../runtime/protocol/methods.js';
import type {
  ExportResult,
  ImportPreview,
  ImportResult,
  InterchangeProgress,
  PoolView,
  RunDetail,
  RunSummary,
  TaskRow,
  TrajectoryRow,
} from '../../../runtime/protocol/types.js';
import { exportFormats } from '../../../runtime/interchange/types.js';
import { createStudioService, type Broadcast, type StudioService } from '../../../runtime/service/index.js';
import {
  agentnetFile,
  failure,
  importedOf,
  makeRun,
  osworldTask,
  put,
  success,
} from '../../helpers/interchange/make.js';
import { bundle } from '../../helpers/data/manager.js';

/** Import and export through the service, with its real worker. */
let dir: string, entry: { file: string };
const open: StudioService[] = [];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-interchange-service-'));
  entry = await bundle('runtime/main.ts', 'interchange-service');
});
afterEach(async () => {
  for (const s of open.splice(0)) await s.close({ now: true });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

interface Client {
  readonly service: StudioService;
  readonly told: Broadcast[];
  readonly progress: InterchangeProgress[];
  call<R>(
    method: { readonly method: string },
    params: unknown,
    signal?: AbortSignal,
    onProgress?: (p: InterchangeProgress) => void,
  ): Promise<R>;
}
function client(): Client {
  const service = createStudioService({ entry, cacheDir: join(dir, 'cache'), log: () => undefined }),
    told: Broadcast[] = [],
    progress: InterchangeProgress[] = [];
  open.push(service);
  service.onBroadcast((b) => told.push(b));
  return {
    service,
    told,
    progress,
    call: async <R>(
      method: { readonly method: string },
      params: unknown,
      signal = new AbortController().signal,
      onProgress?: (p: InterchangeProgress) => void,
    ) =>
      service.handlers.get(method.method)!(params, {
        signal,
        notify: (name, p) => {
          if (name === m.interchangeProgress.method) {
            progress.push(p as InterchangeProgress);
            onProgress?.(p as InterchangeProgress);
          }
        },
      }) as Promise<R>,
  };
}
const codes = ['pyautogui.click(x=0.5, y=0.25)', "computer.terminate(status='success')"];

describe('import', () => {
  it('is looked at first, goes into a new run by name, and says what it did', async () => {
    const c = client(),
      src = join(dir, 'results'),
      runs = join(dir, 'runs-a');
    await osworldTask(
      src,
      'os',
      'aaa',
      [
        { action: 'pyautogui.click(30, 40)', response: "Thought: open\nAction: click(start_box='(30,40)')" },
        { action: 'DONE' },
      ],
      { initial: true },
    );
    await osworldTask(src, 'os', 'bbb', [{ action: 'pyautogui.tripleClick(30, 40)' }], { initial: true });
    await put(join(dir, 'tasks', 'os', 'aaa.json'), JSON.stringify({ instruction: 'Open it.' }));
    const options = { tasks: join(dir, 'tasks') },
      look = await c.call<ImportPreview>(m.previewImport, { path: src, options });
    expect(look).toMatchObject({
      trajectories: 1,
      steps: 2,
      successes: 1,
      already: 0,
      problemCount: 1,
      formats: { osworld: 1 },
      problems: [
        { where: expect.stringContaining('bbb') as string, what: expect.stringContaining('tripleClick') as string },
      ],
    });
    expect(existsSync(runs)).toBe(false);
    const done = await c.call<ImportResult>(m.importTrajectories, {
      path: src,
      base: runs,
      name: 'my import',
      options,
    });
    expect(done).toMatchObject({
      run: join(runs, 'my import'),
      imported: 1,
      successes: 1,
      pooled: 1,
      problemCount: 1,
      stopped: false,
    });
    expect(c.progress.at(-1)).toMatchObject({ done: 2, of: 2, imported: 1, problems: 1 });
    expect(c.service.busy).toBe(false);
    expect((await c.call<PoolView>(m.listPool, { run: done.run })).families).toMatchObject([
      { entries: [{ source: 'imported', from: expect.stringContaining('osworld') as string }] },
    ]);
    expect((await c.call<{ runs: RunSummary[] }>(m.listRuns, { roots: [runs] })).runs).toMatchObject([
      { state: 'finished', name: 'my import' },
    ]);
    expect(c.told.map((b) => b.method)).toEqual(expect.arrayContaining(['run/changed', 'pool/changed']));
    // Again, by the same request and into the run: nothing twice.
    for (const where of [{ base: runs, name: 'my import' }, { run: done.run }])
      expect(await c.call<ImportResult>(m.importTrajectories, { path: src, options, ...where })).toMatchObject({
        imported: 0,
        already: 1,
      });
    expect(await c.call<ImportPreview>(m.previewImport, { path: src, options, run: done.run })).toMatchObject({
      already: 1,
    });
  });

  it('lists the tasks its trajectories have, with how many succeeded; what can be demonstrated in it is the suite', async () => {
    const c = client(),
      src = join(dir, 'listed'),
      base = join(dir, 'runs-l');
    await agentnetFile(src, [
      { task_id: 't1', codes },
      { task_id: 't1', codes: ['pyautogui.click(x=0.25, y=0.25)', ...codes], task_completed: false },
      { task_id: 't2', codes, task_completed: false },
    ]);
    const { run } = await c.call<ImportResult>(m.importTrajectories, { path: src, base, name: 'r' }),
      of = async (params: object): Promise<TaskRow[]> =>
        (await c.call<{ tasks: TaskRow[] }>(m.listTasks, params)).tasks;
    const rows = await of({ run });
    expect(rows).toEqual([
      {
        family: 't1',
        title: 'do t1',
        external: true,
        rollouts: 2,
        successes: 1,
        rate: 0.5,
        meanSteps: 2.5,
        poolEntries: 1,
        spark: [],
      },
      { family: 't2', title: 'do t2', external: true, rollouts: 1, successes: 0, rate: 0, meanSteps: 2, spark: [] },
    ]);
    expect((await c.call<RunDetail>(m.getRun, { run })).tasks).toEqual(rows);
    const suite = await of({ run, runnable: true });
    expect(suite.map((t) => t.family)).toEqual(expect.arrayContaining(['desk/list-pick']));
    expect(suite.some((t) => t.family === 't1' || t.external)).toBe(false);
  });

  it('stops between two trajectories when cancelled, and the same request goes on', async () => {
    const c = client(),
      src = join(dir, 'many'),
      base = join(dir, 'runs-b'),
      n = 40,
      stop = new AbortController();
    await agentnetFile(
      src,
      Array.from({ length: n }, (_, i) => ({
        task_id: `t${i}`,
        codes: [...Array<string>(4).fill(codes[0]!), codes[1]!],
      })),
    );
    const request = { path: src, base, name: 'r' };
    const half = await c.call<ImportResult>(m.importTrajectories, request, stop.signal, (p) => {
      if ((p.imported ?? 0) > 0) stop.abort();
    });
    expect(half.stopped).toBe(true);
    expect(half.imported).toBeGreaterThan(0);
    expect(half.imported).toBeLessThan(n);
    expect(await c.call<ImportResult>(m.importTrajectories, request)).toMatchObject({
      imported: n - half.imported,
      already: half.imported,
      stopped: false,
    });
    const all = await importedOf(join(base, 'r'));
    expect(all).toHaveLength(n);
    expect(all.every((t) => t.steps.length === 5)).toBe(true);
  });

  it('says what is wrong, and makes nothing', async () => {
    const c = client(),
      base = join(dir, 'runs-c'),
      src = join(dir, 'one');
    await agentnetFile(src, [{ task_id: 't', codes }]);
    await expect(c.call(m.previewImport, { path: join(dir, 'nowhere') })).rejects.toMatchObject({
      error: { kind: 'config.invalid', message: expect.stringContaining('ENOENT') as string },
    });
    await expect(c.call(m.previewImport, { path: 'relative' })).rejects.toMatchObject({ kind: 'params.invalid' });
    for (const [params, kind] of [
      [{ path: src }, 'params.invalid'],
      [{ path: src, base, name: '../up' }, 'params.invalid'],
      [{ path: src, run: join(dir, 'nowhere') }, 'not.found'],
    ] as const)
      await expect(c.call(m.importTrajectories, params)).rejects.toMatchObject({ kind });
    await expect(c.call(m.importTrajectories, { path: join(dir, 'nowhere'), base, name: 'n' })).rejects.toMatchObject({
      error: { kind: 'config.invalid' },
    });
    expect(existsSync(join(base, 'n'))).toBe(false);
    await c.call(m.importTrajectories, { path: src, base, name: 'held' });
    const store = await RunStore.open(join(base, 'held'), { index: 'local' });
    try {
      await expect(c.call(m.importTrajectories, { path: src, base, name: 'held' })).rejects.toMatchObject({
        error: { kind: 'run.busy' },
      });
    } finally {
      await store.close();
    }
    expect((await readdir(base)).sort()).toEqual(['held']);
  });
});

describe('export', () => {
  it('writes what was asked: format, rollouts, a split, and nothing of a half-written one', async () => {
    const c = client(),
      run = join(dir, 'run-x');
    await makeRun(
      run,
      Array.from({ length: 8 }, (_, i) => ({
        rollout: `demo/${i}`,
        task: `suite/f${i % 4}#${i % 4}`,
        family: `suite/f${i % 4}`,
        instruction: 'x',
        outcome: i < 4 ? success : failure,
        steps: [
          { screen: i, actions: [{ type: 'click' as const, at: { x: i, y: 1 } }] },
          { screen: i + 20, actions: [{ type: 'finished' as const }] },
        ],
      })),
    );
    const split = await c.call<ExportResult>(m.exportTrajectories, {
      run,
      to: join(dir, 'x1'),
      format: 'agentnet',
      split: { share: 0.75, seed: 5 },
    });
    expect(split).toMatchObject({
      to: join(dir, 'x1'),
      trajectories: 8,
      steps: 16,
      parts: { train: 6, test: 2 },
      problems: [],
    });
    expect(c.progress.at(-1)).toEqual({ done: 8, of: 8 });
    expect(
      await c.call<ExportResult>(m.exportTrajectories, {
        run,
        to: join(dir, 'x2'),
        format: 'osworld',
        rollouts: ['demo/1', 'demo/5'],
        outcome: 'success',
      }),
    ).toMatchObject({ trajectories: 1 });
    for (const format of exportFormats)
      expect(
        await c.call<ExportResult>(m.exportTrajectories, { run, to: join(dir, `as-${format}`), format }),
      ).toMatchObject({ trajectories: 8, problems: [] });
    await expect(c.call(m.exportTrajectories, { run, to: join(dir, 'x2'), format: 'traj' })).rejects.toMatchObject({
      error: { kind: 'config.invalid', message: expect.stringContaining('not empty') as string },
    });
    await expect(
      c.call(m.exportTrajectories, { run, to: join(dir, 'x3'), format: 'traj', rollouts: ['nobody'] }),
    ).rejects.toMatchObject({ error: { kind: 'config.invalid' } });
    await expect(
      c.call(m.exportTrajectories, { run: join(dir, 'nowhere'), to: join(dir, 'x3'), format: 'traj' }),
    ).rejects.toMatchObject({ kind: 'not.found' });
    const stopped = new AbortController();
    stopped.abort();
    await expect(
      c.call(m.exportTrajectories, { run, to: join(dir, 'x3'), format: 'traj' }, stopped.signal),
    ).rejects.toMatchObject({ error: { kind: 'cancelled' } });
    expect((await readdir(dir)).filter((n) => n.startsWith('x')).sort()).toEqual(['x1', 'x2']);
  });

  it('follows what people said: tags, reviews, corrected outcomes, edits, marked steps, parts', async () => {
    const c = client(),
      run = join(dir, 'run-y'),
      click = (x: number) => ({ type: 'click' as const, at: { x, y: 9 } });
    await makeRun(
      run,
      [0, 1, 2, 3].map((i) => ({
        rollout: `demo/${i}`,
        task: `t${i}`,
        family: 'f',
        instruction: 'do it',
        outcome: i === 3 ? failure : success,
        steps: [
          { screen: 1, actions: [click(1)], thought: 'first' },
          { screen: 2, actions: [click(2)] },
          { screen: 3, actions: [click(3)] },
          { screen: 4, actions: [{ type: 'finished' as const }] },
        ],
      })),
    );
    const say = async (rollout: string, ops: unknown[]): Promise<void> => {
      await c.call(m.editAnnotations, { run, rollout, base: 0, ops });
    };
    await say('demo/0', [
      { op: 'tags', tags: ['good'] },
      { op: 'reviewed', value: true },
      { op: 'mark', step: 1, mark: 'redundant', on: true },
      { op: 'action', step: 2, action: 0, value: click(77) },
      { op: 'thought', step: 0, text: 'said better' },
    ]);
    await say('demo/1', [
      { op: 'outcome', value: 'failure', reason: 'the file is empty' },
      { op: 'tags', tags: ['bad'] },
    ]);
    await say('demo/3', [
      { op: 'outcome', value: 'success', reason: 'it was right' },
      { op: 'delete', steps: [0] },
    ]);
    const names = async (to: string, o: object): Promise<{ names: string[]; result: ExportResult }> => {
      const result = await c.call<ExportResult>(m.exportTrajectories, { run, to: join(dir, to), format: 'traj', ...o });
      return {
        names: (await readdir(join(dir, to)))
          .filter((n) => n.endsWith('.traj.jsonl'))
          .map((n) => decodeURIComponent(n.slice(0, -'.traj.jsonl'.length)))
          .sort(),
        result,
      };
    };
    expect((await names('y1', { annotations: { tags: ['good', 'none'] } })).names).toEqual(['demo/0']);
    expect((await names('y2', { annotations: { reviewed: true } })).names).toEqual(['demo/0']);
    expect((await names('y3', { outcome: 'success' })).names).toEqual(['demo/0', 'demo/2', 'demo/3']);
    expect((await names('y4', { outcome: 'success', annotations: { revised: false } })).names).toEqual([
      'demo/0',
      'demo/1',
      'demo/2',
    ]);
    const { result } = await names('y5', { rollouts: ['demo/0', 'demo/3'], annotations: { without: ['redundant'] } });
    expect(result).toMatchObject({ trajectories: 2, steps: 6 });
    // Imported elsewhere it is what was said, screens and all.
    const back = await c.call<ImportResult>(m.importTrajectories, {
      path: join(dir, 'y5'),
      base: join(dir, 'runs-y'),
      name: 'back',
    });
    expect(back).toMatchObject({ imported: 2, successes: 2, problemCount: 0 });
    const [zero, three] = await importedOf(back.run);
    expect(zero!.steps.map((s) => [s.thought, s.actions[0]])).toEqual([
      ['said better', click(1)],
      [undefined, click(77)],
      [undefined, { type: 'finished' }],
    ]);
    expect(three!.steps.map((s) => s.actions[0])).toEqual([click(2), click(3), { type: 'finished' }]);
    expect((await c.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run })).rows).toHaveLength(4);
  });
});
