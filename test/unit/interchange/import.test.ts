import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { random } from '../../../runtime/domain/index.js';
import { lockRun } from '../../../runtime/data/store/runLock.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { newRun } from '../../../runtime/data/collections.js';
import { importInto, preview } from '../../../runtime/interchange/importer.js';
import type { ImportReport, Preview } from '../../../runtime/interchange/importer.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { exportRun } from '../../../runtime/interchange/exporter.js';
import { importLines } from '../../../runtime/interchange/words.js';
import { fileName } from '../../../runtime/interchange/writers/write.js';
import type { ImportFormat, ReadOptions } from '../../../runtime/interchange/types.js';
import { bundle, dataConfig, openManager } from '../../helpers/data/manager.js';
import { jpegs } from '../../fixtures/interchange/jpegs.js';
import {
  agentnetFile,
  dartRollout,
  importedOf,
  inFolder,
  makeRun,
  osworldTask,
  png,
  poolOf,
  put,
  screen,
  success,
  uiTarsFile,
} from '../../helpers/interchange/make.js';

let entry: { file: string };
beforeAll(async () => {
  entry = await bundle('test/helpers/interchange/jpegWorker.ts', 'import-jpeg');
});

const uuid = 'bb5e4c0d-f964-439c-97b6-bdb9747de3f4';
const look = (path: string, options: ReadOptions = {}, format: ImportFormat | 'auto' = 'auto'): Promise<Preview> =>
  preview({ path, format, options });
/** Into `<dir>/run`, made when it is not there. */
async function take(
  dir: string,
  path: string,
  options: ReadOptions = {},
  o: { pool?: boolean; signal?: AbortSignal } = {},
): Promise<ImportReport> {
  const run = join(dir, 'run');
  return importInto(
    { path, format: 'auto', options },
    { dir: run, index: 'local', entry, ...(existsSync(run) ? {} : { create: newRun('run', 1) }) },
    { pool: o.pool ?? true, ...(o.signal ? { signal: o.signal } : {}) },
  );
}
const frames = async (dir: string, path: string): Promise<(readonly Buffer[])[]> => {
  const all = await importedOf(path),
    run = await RunReader.open(path, { index: 'local' });
  try {
    return await Promise.all(
      all.map((t) => Promise.all(t.steps.map(async (s) => (await run.frames.get(s.frame)).data))),
    );
  } finally {
    await run.close();
  }
};

describe('OSWorld results', () => {
  const rows = [
    { action: 'pyautogui.click(30, 40)', response: "Thought: open it\nAction: click(start_box='(30,40)')" },
    { action: "pyautogui.typewrite('hi')", response: 'I type.\n```python\npyautogui.typewrite("hi")\n```' },
    { action: 'DONE', response: "Thought: done\nAction: finished(content='42')" },
  ];

  test('with the first screen kept, every action has the screen it was decided on', () =>
    inFolder(async (dir) => {
      await osworldTask(join(dir, 'results'), 'chrome', uuid, rows, { initial: true });
      await put(
        join(dir, 'examples', 'chrome', `${uuid}.json`),
        JSON.stringify({ id: uuid, instruction: 'Make Bing the default.' }),
      );
      const r = await take(dir, join(dir, 'results'), { tasks: dir }),
        [t] = await importedOf(join(dir, 'run'));
      expect(r).toMatchObject({
        imported: 1,
        successes: 1,
        steps: 3,
        pooled: 1,
        problemCount: 0,
        formats: { osworld: 1 },
      });
      expect(t).toMatchObject({
        task: uuid,
        family: uuid,
        instruction: 'Make Bing the default.',
        provenance: { kind: 'imported' },
        outcome: { kind: 'success', reward: 1, truncated: false },
      });
      expect(t!.steps.map((s) => [s.thought, s.actions, s.origin, s.tokens])).toEqual([
        ['open it', [{ type: 'click', at: { x: 30, y: 40 } }], 'policy', undefined],
        ['I type.', [{ type: 'type', text: 'hi' }], 'policy', undefined],
        ['done', [{ type: 'finished', answer: '42' }], 'policy', undefined],
      ]);
      expect((await frames(dir, join(dir, 'run')))[0]!.map((f, i) => f.equals(screen(100 + i).data))).toEqual([
        true,
        true,
        true,
      ]);
      expect(await poolOf(join(dir, 'run'))).toEqual([t!.id]);
    }));

  test('without it the first action is left out, and that is said', () =>
    inFolder(async (dir) => {
      await osworldTask(join(dir, 'r'), 'os', 'aaa', rows);
      const p = await look(join(dir, 'r'));
      expect(p).toMatchObject({ trajectories: 1, steps: 2, successes: 1 });
      expect(Object.keys(p.notes).join()).toMatch(/no screenshot from before the first action/);
      await take(dir, join(dir, 'r'));
      const [t] = await importedOf(join(dir, 'run'));
      expect(t!.steps.map((s) => s.actions[0]!.type)).toEqual(['type', 'finished']);
      expect((await frames(dir, join(dir, 'run')))[0]!.map((f, i) => f.equals(screen(101 + i).data))).toEqual([
        true,
        true,
      ]);
    }));

  test('a success whose instruction nobody knows stays out of the pool', () =>
    inFolder(async (dir) => {
      await osworldTask(join(dir, 'r'), 'os', 'aaa', rows);
      expect(await take(dir, join(dir, 'r'))).toMatchObject({
        imported: 1,
        pooled: 0,
        notPooled: { 'its instruction is not known': 1 },
      });
      expect(await poolOf(join(dir, 'run'))).toEqual([]);
      // Told the instruction, the same folder is worth importing again.
      await put(join(dir, 'tasks', 'os', 'aaa.json'), JSON.stringify({ instruction: 'Say hi.' }));
      expect(await take(dir, join(dir, 'r'), { tasks: join(dir, 'tasks') })).toMatchObject({
        imported: 1,
        pooled: 1,
        already: 0,
      });
      expect(await take(dir, join(dir, 'r'), { tasks: join(dir, 'tasks') })).toMatchObject({ imported: 0, already: 1 });
    }));

  test('older and other shapes: objects as actions, partial scores, several lines of one answer, a cut-off end', () =>
    inFolder(async (dir) => {
      await osworldTask(
        join(dir, 'r'),
        'os',
        'c13',
        [
          { action: { action_type: 'CLICK', x: 5, y: 6, button: 'left', num_clicks: 2 } },
          { action: { action_type: 'TYPING', parameters: { text: 'a' } } },
          { action: { action_type: 'HOTKEY', keys: ['ctrl', 's'] } },
          { action: { action_type: 'SCROLL', dx: 0, dy: -3 } },
          { action: 'WAIT' },
        ],
        { initial: true, result: '0.35' },
      );
      await osworldTask(
        join(dir, 'r'),
        'os',
        'multi',
        [
          { action: 'pyautogui.click(1, 2)', response: 'Both at once', step_num: 1 },
          {
            action: 'pyautogui.click(3, 4)',
            response: 'Both at once',
            step_num: 1,
            screenshot_file: 'step_2_20250713@161201000000.png',
          },
          { action: 'FAIL' },
        ],
        { initial: true, result: '0\n' },
      );
      await take(dir, join(dir, 'r'));
      const [a, b] = await importedOf(join(dir, 'run'));
      expect(a).toMatchObject({ outcome: { kind: 'failure', reward: 0.35, truncated: true } });
      expect(a!.steps.map((s) => s.actions)).toEqual([
        [{ type: 'left_double', at: { x: 5, y: 6 } }],
        [{ type: 'type', text: 'a' }],
        [{ type: 'hotkey', keys: ['ctrl', 's'] }],
        [{ type: 'scroll', at: { x: 5, y: 6 }, direction: 'down', amount: 3 }],
        [{ type: 'wait' }],
      ]);
      expect(a!.last?.hash).toBeDefined();
      expect(b!.steps.map((s) => s.thought)).toEqual(['Both at once', undefined, undefined]);
      expect(b).toMatchObject({ outcome: { kind: 'failure', reward: 0, truncated: false } });
    }));

  test('each unusable trajectory is a problem of its own, with file and line, and the others come in', () =>
    inFolder(async (dir) => {
      const r = join(dir, 'r');
      await osworldTask(r, 'os', 'good', rows, { initial: true });
      await osworldTask(r, 'os', 'crashed', [rows[0]!, { Error: 'Traceback: timeout', action: undefined }], {
        initial: true,
        result: '',
      });
      await osworldTask(r, 'os', 'norresult', rows, { initial: true, result: '' });
      await osworldTask(r, 'os', 'triple', [rows[0]!, { action: 'pyautogui.tripleClick(1, 2)' }], { initial: true });
      await osworldTask(r, 'os', 'badscore', rows, { initial: true, result: 'nan' });
      await osworldTask(r, 'os', 'verifier', rows, { initial: true, result: '-1' });
      const cut = await osworldTask(r, 'os', 'cut', rows, { initial: true });
      await writeFile(
        join(cut, 'traj.jsonl'),
        '{"step_num":1,"action":"DONE","screenshot_file":"step_1_20250713@161200000000.png"}\n{"step_num":2,"acti',
      );
      const shot = await osworldTask(r, 'os', 'noshot', rows, { initial: true });
      await rm(join(shot, 'step_2_20250713@161201000000.png'));
      const p = await look(r),
        at = (name: string): string => {
          const x = p.problems.find((q) => q.where.includes(`/${name}/`));
          return x ? `${x.where.split('/').at(-1)}: ${x.what}` : '';
        };
      expect(p).toMatchObject({ trajectories: 1, problemCount: 7 });
      expect(at('crashed')).toMatch(/traj.jsonl:2: its runner stopped with an error/);
      expect(at('norresult')).toMatch(/no result.txt/);
      expect(at('triple')).toMatch(/traj.jsonl:2: there is no action here for pyautogui.tripleClick/);
      expect(at('badscore')).toMatch(/'nan' is not a number/);
      expect(at('verifier')).toMatch(/its verifier failed/);
      expect(at('noshot')).toMatch(/traj.jsonl:2: .*is missing/);
      expect(at('cut')).toMatch(/traj.jsonl:2: the line is not JSON, or was cut short/);
    }));
});

describe('when a step was', () => {
  const stepTimes = async (dir: string): Promise<(number | undefined)[]> =>
    (await importedOf(dir))[0]!.steps.map((s) => s.at);
  test('is what the source says, where it says it', () =>
    inFolder(async (dir) => {
      await osworldTask(
        join(dir, 'o'),
        'os',
        'aaa',
        [
          { action: 'pyautogui.click(1, 2)' },
          { action: 'pyautogui.click(3, 4)', action_timestamp: 'yesterday' },
          { action: 'DONE' },
        ],
        { initial: true },
      );
      await take(join(dir, 'o-run'), join(dir, 'o'));
      expect(await stepTimes(join(dir, 'o-run', 'run'))).toEqual([
        Date.UTC(2025, 6, 13, 16, 12, 0),
        undefined,
        Date.UTC(2025, 6, 13, 16, 12, 2),
      ]);
      // UI-TARS: when the answer was there; a clock that started at 1 says nothing.
      const file = await uiTarsFile(join(dir, 'u', 'a.json'), [
        {
          value: "Action: click(start_box='(10,10)')",
          timing: { start: 1_720_000_001_000, end: 1_720_000_002_500, cost: 1500 },
        },
        { value: 'Action: finished()' },
      ]);
      await take(join(dir, 'u-run'), file, { verdict: 'success', coordinates: 'absolute' });
      expect(await stepTimes(join(dir, 'u-run', 'run'))).toEqual([1_720_000_002_500, undefined]);
      expect((await importedOf(join(dir, 'u-run', 'run')))[0]).toMatchObject({
        startedAt: 1_720_000_001_000,
        endedAt: 1_720_000_002_500,
      });
      await agentnetFile(join(dir, 'n'), [{ task_id: 't1', codes: ['pyautogui.click(x=0.5, y=0.25)'] }]);
      await take(join(dir, 'n-run'), join(dir, 'n'));
      expect(await stepTimes(join(dir, 'n-run', 'run'))).toEqual([undefined]);
    }));
});

describe('AgentNet', () => {
  test('shares of the screen become pixels; people made it; the picture is the screen before', () =>
    inFolder(async (dir) => {
      await agentnetFile(dir, [
        {
          task_id: 't1',
          codes: [
            'pyautogui.click(x=0.5, y=0.25)',
            "pyautogui.write(message='x')",
            "computer.terminate(status='success')",
          ],
        },
        { task_id: 't2', codes: ['pyautogui.scroll(-5)'], task_completed: false },
        { task_id: 't3', codes: ['pyautogui.press("enter")'], task_completed: false },
      ]);
      const r = await take(dir, dir),
        [a, b] = await importedOf(join(dir, 'run'));
      expect(r).toMatchObject({ imported: 2, successes: 1, pooled: 1, problemCount: 1 });
      expect(r.problems[0]).toMatchObject({ where: 'agentnet_ubuntu_5k.jsonl:2' });
      expect(a!.steps.map((s) => [s.actions[0], s.origin, s.thought])).toEqual([
        [{ type: 'click', at: { x: 80, y: 25 } }, 'human', 'thinking 0'],
        [{ type: 'type', text: 'x' }, 'human', 'thinking 1'],
        [{ type: 'finished' }, 'human', 'thinking 2'],
      ]);
      expect(a).toMatchObject({ task: 't1', instruction: 'do t1', outcome: { kind: 'success', truncated: false } });
      expect(b).toMatchObject({ outcome: { kind: 'failure', reward: 0 } });
      expect((await frames(dir, join(dir, 'run')))[0]![1]!.equals(screen(201).data)).toBe(true);
    }));
  test('a single file can be named; a broken line names its number; a missing verdict is asked for', () =>
    inFolder(async (dir) => {
      const file = await agentnetFile(
        dir,
        [{ task_id: 't1', codes: ['pyautogui.click(x=0.5, y=0.25)'], task_completed: 'maybe' }],
        'agentnet_ubuntu_5k',
      );
      await writeFile(file, `${(await import('node:fs')).readFileSync(file, 'utf8')}{"task_id": "t2", "traj": [{"ind`);
      const p = await look(file);
      expect(p.problems.map((x) => x.where)).toEqual(['agentnet_ubuntu_5k.jsonl:1', 'agentnet_ubuntu_5k.jsonl:2']);
      expect(p.problems[0]!.remedy).toMatch(/--verdict/);
      expect(await look(file, { verdict: 'failure' })).toMatchObject({ trajectories: 1, failures: 1, problemCount: 1 });
    }));
});

describe('DART rollouts', () => {
  const answers = [
    "Thought: look\nAction: click(start_box='<|box_start|>(150,80)<|box_end|>')",
    "Thought: write\nAction: type(content='hi\\n')",
    "Thought: so\nAction: finished(content='ok')",
  ];
  test('text coordinates are those of the resized image; log-probs are not read', () =>
    inFolder(async (dir) => {
      await dartRollout(join(dir, 'd', 'task-7_trace'), answers);
      await take(dir, join(dir, 'd'));
      const [t] = await importedOf(join(dir, 'run'));
      // 280x140 is resized to 420x224 (multiples of 28, at least 78,400 pixels): 150,80 there is 100,50 here.
      expect(t!.steps.map((s) => [s.actions[0], s.thought, s.tokens])).toEqual([
        [{ type: 'click', at: { x: 100, y: 50 } }, 'look', undefined],
        [{ type: 'type', text: 'hi\n' }, 'write', undefined],
        [{ type: 'finished', answer: 'ok' }, 'so', undefined],
      ]);
      expect(t).toMatchObject({ task: 'task-7', instruction: 'Open the note.', outcome: { kind: 'success' } });
    }));
  test('errors of its services have no outcome; at the step cap the last screen is kept', () =>
    inFolder(async (dir) => {
      await dartRollout(join(dir, 'd', 'a'), answers, { reward: '-2' });
      await dartRollout(join(dir, 'd', 'b'), answers.slice(0, 2), {
        reward: '0.0',
        trailing: true,
        url: (k) => ({ url: `/mnt/elsewhere/image_000${k}.png` }),
      });
      await dartRollout(join(dir, 'd', 'c'), ['Thought: hm\nAction: fly(away=1)']);
      await dartRollout(join(dir, 'd', 'e'), answers, { url: () => ({ url: '/etc/passwd' }) });
      const r = await take(dir, join(dir, 'd')),
        [t] = await importedOf(join(dir, 'run'));
      expect(r.problems.map((p) => `${p.where} ${p.what}`)).toEqual([
        expect.stringMatching(/^a\/.*model server failed/),
        expect.stringMatching(/^c\/.*message 2 is no action we have \(fly\)/),
        expect.stringMatching(/^e\/.*leads out of the import folder/),
      ]);
      expect(t).toMatchObject({ outcome: { kind: 'failure', reward: 0, truncated: true } });
      expect(t!.last).toBeDefined();
    }));
});

describe('UI-TARS recordings', () => {
  test('the coordinate system is found from the points its recorder noted', () =>
    inFolder(async (dir) => {
      // (150,80) of 420x224, and 0..1000.
      await uiTarsFile(join(dir, 'u', 'a.json'), [
        { value: "Thought: a\nAction: click(start_box='(150,80)')", box: [0.357, 0.357, 0.357, 0.357] },
        { value: 'Action: finished()' },
      ]);
      await uiTarsFile(join(dir, 'u', 'b.json'), [
        { value: "Thought: a\nAction: click(start_box='(500,250)')", box: [0.5, 0.25, 0.5, 0.25] },
      ]);
      await uiTarsFile(join(dir, 'u', 'c.json'), [
        { value: "Thought: a\nAction: click(start_box='(500,250)')", box: [0.9, 0.9, 0.9, 0.9] },
      ]);
      await uiTarsFile(join(dir, 'u', 'd.json'), [{ value: "Thought: a\nAction: click(start_box='(500,250)')" }]);
      expect((await look(join(dir, 'u'))).problems.map((p) => p.remedy)).toEqual(
        Array(4).fill('Say it for all of them with --verdict success or --verdict failure.'),
      );
      const r = await take(dir, join(dir, 'u'), { verdict: 'success' }),
        all = await importedOf(join(dir, 'run'));
      expect(all.map((t) => t.steps[0]!.actions[0])).toEqual([
        { type: 'click', at: { x: 100, y: 50 } },
        { type: 'click', at: { x: 140, y: 35 } },
      ]);
      expect(r.problems.map((p) => p.what)).toEqual([
        expect.stringMatching(/disagree/),
        expect.stringMatching(/coordinates of the model 'some-model'/),
      ]);
      expect(await look(join(dir, 'u'), { verdict: 'success', coordinates: 'relative1000' })).toMatchObject({
        trajectories: 4,
      });
    }));
  test('large screenshots stay in the file; JPEG ones are read, others named', () =>
    inFolder(async (dir) => {
      const big = await png(9, 700, 500);
      expect(big.toString('base64').length).toBeGreaterThan(0);
      const noise = Buffer.alloc(280 * 140 * 4, 0);
      const r0 = random('noise');
      for (let i = 0; i < noise.length; i++) noise[i] = r0.int(256);
      const { pngOf } = await import('../../../runtime/data/store/png.js'),
        noisy = await pngOf({ width: 280, height: 140, data: noise, capturedAt: 0 });
      expect(noisy.toString('base64').length).toBeGreaterThan(32 * 1024);
      await uiTarsFile(join(dir, 'u', 'a.json'), [{ value: 'Action: wait()' }, { value: 'Action: finished()' }], {
        modelName: 'UI-TARS-1.5-7B',
        picture: (k) => Promise.resolve(k === 0 ? noisy : big),
      });
      await uiTarsFile(join(dir, 'u', 'b.json'), [{ value: 'Action: wait()' }], {
        modelName: 'UI-TARS-1.5-7B',
        picture: () => Promise.resolve(Buffer.from([0xff, 0xd8, 0xff, 0xe0, ...Buffer.alloc(200)])),
      });
      await uiTarsFile(join(dir, 'u', 'c.json'), [{ value: 'Action: wait()' }], {
        modelName: 'UI-TARS-1.5-7B',
        mime: 'image/jpeg',
        picture: () => Promise.resolve(Buffer.from(jpegs['420']!.base64, 'base64')),
      });
      const r = await take(dir, join(dir, 'u'), { verdict: 'failure' });
      expect(r).toMatchObject({ imported: 2, steps: 3 });
      expect(r.problems.map((p) => p.what)).toEqual([expect.stringMatching(/the picture of conversation 1 is a JPEG/)]);
      expect((await importedOf(join(dir, 'run')))[1]!.steps[0]!.frame).toMatchObject({ width: 45, height: 27 });
      const [pixels] = await frames(dir, join(dir, 'run'));
      for (let i = 3; i < noise.length; i += 4) noise[i] = 0;
      expect(pixels![0]!.equals(noise)).toBe(true);
    }));
});

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
        { dir: run, index: 'local', entry, create: newRun('run', 1) },
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
        expect((await run.index.query('SELECT count(DISTINCT rollout) AS c FROM steps', []))[0]).toEqual({ c: 1 });
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
