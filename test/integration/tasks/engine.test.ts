import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLocalProvider } from '../../../runtime/cluster/index.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import type { Action } from '../../../runtime/domain/index.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { createTaskEngine, metricWorkers, openAssets } from '../../../runtime/tasks/index.js';
import type { TaskEngine } from '../../../runtime/tasks/types.js';
import { osworldExamples } from '../../helpers/tasks/osworld.js';
import { never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { cacheName, loadTaskFile } from '../../helpers/tasks/files.js';

const provider = createLocalProvider(),
  metrics = metricWorkers({ file: resolve('dist/runtime.js') });
const status = await provider.status();
if (!status.ok) console.log(`skipped: tasks on a real desktop (${status.detail} ${status.problem?.remedy ?? ''})`);

/** Hand-made tasks in OSWorld's format, on a real desktop. */
describe.skipIf(!status.ok)('tasks on a local desktop', () => {
  let desktop: Desktop, dir: string, engine: TaskEngine;
  const done: Action = { type: 'finished' },
    fail: Action = { type: 'fail' };
  const xlsx = 'https://files.example/cache/notes.txt';
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'assets-'));
    await writeFile(join(dir, cacheName(xlsx, 'notes.txt')), 'buy milk\n');
    engine = createTaskEngine({ metrics, assets: await openAssets(dir) });
    desktop = await provider.create({ screen: { width: 640, height: 400 }, memoryMb: 512, pids: 256 });
  });
  afterAll(async () => {
    await provider.dispose();
    await rm(dir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    desktop = await provider.reset(desktop);
  });
  const step = (type: string, parameters: unknown): unknown => ({ type, parameters });
  const key = (...keys: string[]): Promise<unknown> =>
    desktop.perform({ type: 'hotkey', keys }).then(() => desktop.settle({ horizonMs: 100 }));
  async function kindOf(p: Promise<unknown>): Promise<string> {
    try {
      await p;
      return 'no error';
    } catch (e) {
      return e instanceof StudioError ? `${e.kind}: ${e.message}` : String(e);
    }
  }

  const note = taskOf(
    {
      func: ['compare_text_file', 'check_include_exclude'],
      result: [
        { type: 'vm_file', path: '/home/user/Documents/notes.txt', dest: 'notes.txt' },
        { type: 'vm_command_line', command: 'wc -l ~/Documents/notes.txt', shell: true },
      ],
      expected: [
        { type: 'cloud_file', path: xlsx, dest: 'gold.txt' },
        { type: 'rule', rules: { include: ['1 '] } },
      ],
      options: [{ ignore_blanks: true }, {}],
      postconfig: [
        step('activate_window', { window_name: 'notes.txt' }),
        step('execute', { command: ['xdotool', 'key', 'ctrl+s'] }),
        step('sleep', { seconds: 0.3 }),
      ],
    },
    [
      step('download', { files: [{ url: xlsx, path: '/home/user/Documents/notes.txt' }] }),
      step('execute', { command: 'echo "   wrong " > Documents/notes.txt', shell: true }),
      step('open', { path: '~/Documents/notes.txt' }),
    ],
  );

  it('opens a file in the editor; what the agent typed is saved by postconfig and judged a success', async () => {
    await engine.setup(note, desktop, never);
    await key('ctrl', 'a');
    await desktop.perform({ type: 'type', text: 'buy milk\n' });
    await desktop.settle({ horizonMs: 100 });
    const o = await engine.verify(note, desktop, done, never);
    expect(o.report?.checks.map((c) => c.score)).toEqual([1, 1]);
    expect(o).toMatchObject({ kind: 'success', reward: 1 });
  });
  it('doing nothing is failure, with what was found', async () => {
    await engine.setup(note, desktop, never);
    const o = await engine.verify(note, desktop, done, never);
    expect(o).toMatchObject({ kind: 'failure', reward: 0 });
    expect(o.report?.checks[0]).toMatchObject({
      expected: expect.stringContaining('buy milk') as string,
      found: expect.stringContaining('wrong') as string,
    });
  });
  it('a missing file is failure, not a fault', async () => {
    const t = taskOf({
      func: 'compare_text_file',
      result: { type: 'vm_file', path: '/home/user/none.txt', dest: 'a' },
      expected: { type: 'cloud_file', path: xlsx, dest: 'b' },
    });
    await engine.setup(t, desktop, never);
    expect(await engine.verify(t, desktop, done, never)).toMatchObject({ kind: 'failure', reward: 0 });
    const folder = taskOf({
      func: 'compare_config',
      result: { type: 'vm_file', path: '/home/user', dest: 'a' },
      expected: { type: 'rule', rules: { expected: 'x' } },
    });
    expect(await engine.verify(folder, desktop, done, never)).toMatchObject({ kind: 'failure', reward: 0 });
  });
  it('infeasible: giving up is right, anything else is not', async () => {
    const t = taskOf({ func: 'infeasible' });
    expect(await engine.verify(t, desktop, fail, never)).toMatchObject({ kind: 'success', reward: 1 });
    expect(await engine.verify(t, desktop, done, never)).toMatchObject({ kind: 'failure', reward: 0 });
  });
  it('lists folders, sizes, command errors; windows close by class', async () => {
    const t = taskOf(
      {
        func: ['check_moved_jpgs', 'exact_match', 'check_include_exclude', 'exact_match', 'exact_match'],
        result: [
          { type: 'list_directory', path: '/home/user/Pictures' },
          { type: 'vm_screen_size' },
          { type: 'vm_command_error', command: ['ls', '/nowhere'] },
          { type: 'vm_command_line', command: ['no-such-program'] },
          { type: 'vm_window_size', app_class_name: 'galculator' },
        ],
        expected: [
          { expected: ['a.jpg', 'sub'] },
          { expected: { width: 640, height: 400 } },
          { include: ['/nowhere'] },
          { expected: null },
          { expected: null },
        ].map((rules) => ({ type: 'rule', rules })),
        postconfig: [step('close_window', { window_name: 'galculator', by_class: true })],
      },
      [
        step('execute', { command: 'mkdir -p Pictures/sub; touch Pictures/a.jpg Pictures/sub/b.jpg', shell: true }),
        step('launch', { command: ['galculator'] }),
      ],
    );
    await engine.setup(t, desktop, never);
    const up = taskOf({
      func: 'check_include_exclude',
      result: { type: 'vm_command_line', command: 'wmctrl -lx' },
      expected: { type: 'rule', rules: { include: ['galculator'] } },
    });
    expect((await engine.verify(up, desktop, done, never)).reward).toBe(1);
    const o = await engine.verify(t, desktop, done, never);
    expect(o.report?.checks.map((c) => [c.score, c.found])).toEqual(
      [1, 1, 1, 1, 1].map((s) => [s, expect.any(String)]),
    );
    expect(o.reward).toBe(1);
  });
  it("open finds a folder's and a table's window", async () => {
    for (const path of ['/home/user/Documents', '/home/user/t.csv']) {
      const t = taskOf({ func: 'infeasible' }, [
        step('execute', { command: 'printf "a,b\\n1,2\\n" > t.csv', shell: true }),
        step('open', { path }),
      ]);
      await engine.setup(t, desktop, never);
    }
    const list = (await desktop.exec(['wmctrl', '-lx'])).stdout.toString();
    expect(list).toMatch(/pcmanfm[^]*gnumeric/i);
  });
  it('faults have their kind and are never a reward', async () => {
    expect(
      await kindOf(
        engine.setup(taskOf({ func: 'infeasible' }, [step('open', { path: '/home/user/none.txt' })]), desktop, never),
      ),
    ).toMatch(/^task.setup: .*no file/);
    expect(
      await kindOf(
        engine.setup(
          taskOf({ func: 'infeasible' }, [step('execute', { command: ['no-such-program'] })]),
          desktop,
          never,
        ),
      ),
    ).toMatch(/^task.setup: /);
    expect(
      await kindOf(
        engine.setup(
          taskOf({ func: 'infeasible' }, [step('launch', { command: ['no-such-program'] })]),
          desktop,
          never,
        ),
      ),
    ).toMatch(/^task.setup: /);
    expect(
      await kindOf(
        engine.setup(
          taskOf({ func: 'infeasible' }, [step('launch', { command: 'no-such-program --x', shell: true })]),
          desktop,
          never,
        ),
      ),
    ).toMatch(/^task.setup: .*no-such-program/);
    expect(await kindOf(engine.setup(taskOf({ func: 'compare_table' }), desktop, never))).toMatch(
      /^task.unsupported: .*metric:compare_table/,
    );
    const slow = createTaskEngine({ metrics, settings: { commandMs: 200 } });
    expect(
      await kindOf(
        slow.setup(taskOf({ func: 'infeasible' }, [step('execute', { command: 'sleep 5' })]), desktop, never),
      ),
    ).toMatch(/^task.setup: .*did not end/);
    // What a policy left behind can keep a command of the verifier waiting: that is its failure, and not tried again.
    const waits = {
      func: 'exact_match',
      result: { type: 'vm_command_line', command: 'sleep 5' },
      expected: { type: 'rule', rules: { expected: '' } },
    };
    expect(await slow.verify(taskOf(waits), desktop, done, never)).toMatchObject({
      kind: 'failure',
      report: { checks: [{ found: expect.stringMatching(/did not end/) as string }] },
    });
    // But one that was stopped from outside is not.
    const stopped = { ...waits, result: { type: 'vm_command_line', command: 'kill -STOP $$', shell: true } };
    // It has stopped itself by then.
    const patient = createTaskEngine({ metrics, settings: { commandMs: 5000 } });
    expect(await kindOf(patient.verify(taskOf(stopped), desktop, done, never))).toMatch(/^task.verify: .*did not end/);
    const stop = new AbortController();
    const waiting = kindOf(
      engine.setup(taskOf({ func: 'infeasible' }, [step('execute', { command: 'sleep 20' })]), desktop, stop.signal),
    );
    setTimeout(() => stop.abort(), 50);
    expect(await waiting).toMatch(/^cancelled: /);
  });
  it('commands may use python and pyautogui, which the image does not have', async () => {
    const t = taskOf(
      {
        func: ['check_include_exclude', 'exact_match'],
        result: [
          { type: 'vm_file', path: 'out.txt', dest: 'out' },
          { type: 'vm_command_line', command: 'python -c "import pyautogui; print(*pyautogui.size())"', shell: true },
        ],
        expected: [
          { type: 'rule', rules: { include: ['Typed by it; (x) & so ~on'] } },
          { type: 'rule', rules: { expected: '640 400\n' } },
        ],
      },
      [
        step('launch', { command: ['xterm', '-e', 'sh', '-c', 'cat > out.txt'] }),
        step('execute', { command: ['wmctrl', '-l'], until: { stdout: 'sh' } }),
        step('execute', {
          command: [
            'python',
            '-c',
            'import pyautogui, time; pyautogui.click({SCREEN_WIDTH_HALF}, {SCREEN_HEIGHT_HALF}); pyautogui.write("Typed by it; (x) & so ~on"); pyautogui.press(["enter"]); pyautogui.hotkey("ctrl", "d"); time.sleep(0.2)',
          ],
        }),
        step('execute', { command: 'grep -c it out.txt', shell: true, until: { returncode: 0 } }),
      ],
    );
    await engine.setup(t, desktop, never);
    const o = await engine.verify(t, desktop, done, never);
    expect(o.report?.checks.map((c) => [c.score, c.found])).toEqual([
      [1, expect.any(String)],
      [1, '640 400 ⏎ '],
    ]);
  });
  it('a task of OSWorld itself, its downloads from local assets: nothing done, almost, done', async () => {
    const examples = await osworldExamples();
    const task = await loadTaskFile(join(examples, 'os/23393935-50c7-4a86-aeea-2b78fd089c5c.json'));
    await rm(examples, { recursive: true });
    expect(engine.check(task).every((n) => n.startsWith('asset:'))).toBe(true);
    for (const s of task.config)
      for (const f of (s.parameters['files'] ?? []) as { url: string; path: string }[])
        await writeFile(join(dir, cacheName(f.url, f.path)), `picture ${f.path}`);
    const full = createTaskEngine({ metrics, assets: await openAssets(dir) });
    expect(full.check(task)).toEqual([]);
    await full.setup(task, desktop, never);
    const reward = async (): Promise<number> => (await full.verify(task, desktop, done, never)).reward;
    expect(await reward()).toBe(0);
    await desktop.exec(['sh', '-c', 'cp "$(find ~/Desktop/photos -name "*.jpg" | head -1)" ~/Desktop/cpjpg']);
    expect(await reward()).toBe(0);
    await desktop.exec(['sh', '-c', 'find ~/Desktop/photos -name "*.jpg" -exec cp -t ~/Desktop/cpjpg {} +']);
    expect(await reward()).toBe(1);
  });
  it('a desktop that is gone is lost', async () => {
    const other = await provider.create({ screen: { width: 640, height: 400 }, memoryMb: 512, pids: 256 });
    await provider.destroy(other);
    expect(await kindOf(engine.verify(note, other, done, never))).toMatch(/^desktop.lost: /);
    expect(await kindOf(engine.setup(note, other, never))).toMatch(/^desktop.lost: /);
  });
});
