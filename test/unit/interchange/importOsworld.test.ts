import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  agentnetFile,
  importedOf,
  inFolder,
  osworldTask,
  poolOf,
  put,
  screen,
  uiTarsFile,
} from '../../helpers/interchange/make.js';
import { frames, look, take } from '../../helpers/interchange/take.js';

const uuid = 'bb5e4c0d-f964-439c-97b6-bdb9747de3f4';

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
      expect((await frames(join(dir, 'run')))[0]!.map((f, i) => f.equals(screen(100 + i).data))).toEqual([
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
      expect((await frames(join(dir, 'run')))[0]!.map((f, i) => f.equals(screen(101 + i).data))).toEqual([true, true]);
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
      const deep = await osworldTask(r, 'os', 'deep', rows, { initial: true });
      await writeFile(join(deep, 'traj.jsonl'), `${'['.repeat(1000)}${']'.repeat(1000)}\n`);
      const odd = await osworldTask(r, 'os', 'odd', rows, { initial: true });
      await writeFile(
        join(odd, 'traj.jsonl'),
        '{"step_num":{"constructor":1,"toString":7},"action":"DONE","screenshot_file":"step_1_20250713@161200000000.png"}\n',
      );
      const shot = await osworldTask(r, 'os', 'noshot', rows, { initial: true });
      await rm(join(shot, 'step_2_20250713@161201000000.png'));
      const p = await look(r),
        at = (name: string): string => {
          const x = p.problems.find((q) => q.where.includes(`/${name}/`));
          return x ? `${x.where.split('/').at(-1)}: ${x.what}` : '';
        };
      expect(p).toMatchObject({ trajectories: 2, problemCount: 8 });
      expect(at('deep')).toMatch(/traj.jsonl:1: the line holds more than 64 lists and objects/);
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
