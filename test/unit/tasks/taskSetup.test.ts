import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DesktopInput, SettleOptions, SettleReport } from '../../../runtime/cluster/types.js';
import { createTaskEngine, openAssets } from '../../../runtime/tasks/index.js';
import { showsFile } from '../../../runtime/tasks/setup/windows.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { cacheName } from '../../helpers/tasks/files.js';
import { engine, rule, verify, errorOf, kindOf } from '../../helpers/tasks/engine.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';

/** A desktop that takes input events; settling says how long it may take and what counts as activity. */
class ActingDesktop extends FakeDesktop {
  input(events: readonly DesktopInput[]): Promise<void> {
    const brief = (e: DesktopInput): string => {
      if (e.type === 'key') return `${e.key} ${e.down ? 'down' : 'up'}`;
      return e.type === 'wheel' ? `wheel ${e.x},${e.y} ${e.dx},${e.dy}` : e.type;
    };
    this.log.push(`input ${events.map(brief).join(', ')}`);
    return Promise.resolve();
  }
  override async settle(o: SettleOptions = {}): Promise<SettleReport> {
    const report = await super.settle(o);
    this.log[this.log.length - 1] = ['settle', o.maxMs, o.horizonMs].filter((n) => n !== undefined).join(' ');
    return report;
  }
}

describe('set-up', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tasks-'));
  });
  afterEach(() => rm(dir, { recursive: true }));
  const steps = (...config: unknown[]): Task => taskOf({ func: 'infeasible' }, config);
  const step = (type: string, parameters: unknown): unknown => ({ type, parameters });

  it("download puts assets into the desktop, by OSWorld's cache name; relative paths start at home", async () => {
    const url = 'https://files.example/a b.xlsx';
    await writeFile(join(dir, cacheName(url, 'Desktop/in.xlsx')), 'data');
    const d = new FakeDesktop();
    await createTaskEngine({ assets: await openAssets(dir) }).setup(
      steps(step('download', { files: [{ url, path: 'Desktop/../Desktop/in.xlsx' }] })),
      d,
      never,
    );
    expect(d.files.get('/home/user/Desktop/in.xlsx')?.toString()).toBe('data');
  });
  it('download finds what the check finds: a file by task and name, too', async () => {
    const files = [{ url: 'https://files.example/x?id=1', path: '/home/user/in.xlsx' }],
      t = steps(step('download', { files }));
    await mkdir(join(dir, t.id));
    await writeFile(join(dir, t.id, 'in.xlsx'), 'data');
    const d = new FakeDesktop(),
      having = createTaskEngine({ assets: await openAssets(dir) });
    expect(having.check(t)).toEqual([]);
    await having.setup(t, d, never);
    expect(d.files.get('/home/user/in.xlsx')?.toString()).toBe('data');
  });
  it('what was launched and is still at work is waited for until it shows a window, or rests', async () => {
    class Slow extends ActingDesktop {
      looks = 0;
      settles = 0;
      readonly restsAt: number;
      constructor(shownAt: number, restsAt: number) {
        super((argv) => (argv[0] === 'wmctrl' ? { stdout: this.looks++ < shownAt ? '' : WINDOW } : undefined));
        this.restsAt = restsAt;
      }
      override async settle(o: SettleOptions = {}): Promise<SettleReport> {
        return { ...(await super.settle(o)), settled: this.settles++ >= this.restsAt };
      }
    }
    const WINDOW = '0x02a00007  0 100 100 640 400 gimp.Gimp  desktop GIMP\n',
      gimp = steps(step('launch', { command: 'gimp' })),
      looksOf = async (d: Slow, task = gimp): Promise<number> => {
        await engine.setup(task, d, never);
        return d.looks;
      };
    expect(await looksOf(new Slow(3, 99))).toBe(4);
    expect(await looksOf(new Slow(99, 3))).toBe(3);
    // What rests at once is not looked at, nor a desktop on which nothing was launched.
    expect(await looksOf(new Slow(0, 0))).toBe(0);
    expect(await looksOf(new Slow(99, 99), steps(step('execute', { command: 'true' })))).toBe(0);
  });
  it('launch starts programs: words, shell, a list, ~/', async () => {
    const d = new FakeDesktop();
    await engine.setup(
      steps(
        step('launch', { command: 'xterm -e top' }),
        step('launch', { command: 'a | b', shell: true }),
        step('launch', { command: ['a b', '~/c'] }),
      ),
      d,
      never,
    );
    expect(d.log).toEqual(['spawn xterm -e top', 'spawn /bin/sh -c a | b', 'spawn a b /home/user/c', 'settle']);
  });
  it('a launched shell that cannot find its program is a fault; one that ends otherwise is not', async () => {
    const ending = (code: number): FakeDesktop => {
      const d = new FakeDesktop();
      d.spawn = () => {
        for (const l of d.listeners) l({ type: 'exit', pid: 7, name: 'sh', code, signal: null });
        return Promise.resolve(7);
      };
      return d;
    };
    const t = steps(step('launch', { command: 'no-such-program --x', shell: true }));
    const d = ending(127);
    expect((await errorOf(engine.setup(t, d, never))).error).toMatchObject({
      kind: 'task.setup',
      message: expect.stringContaining('no-such-program --x') as string,
    });
    expect(d.listeners.size).toBe(0);
    await engine.setup(t, ending(1), never);
  });
  it("learns of a shell's end that is known inside but was not told yet", async () => {
    const t = steps(step('launch', { command: 'no-such-program --x', shell: true }));
    const d: FakeDesktop = new FakeDesktop((argv) => {
      if (argv[0] === 'true')
        for (const l of d.listeners) l({ type: 'exit', pid: 1, name: 'sh', code: 127, signal: null });
      return {};
    });
    expect((await errorOf(engine.setup(t, d, never))).error).toMatchObject({
      kind: 'task.setup',
      message: expect.stringContaining('no-such-program --x') as string,
    });
    const program = new FakeDesktop();
    await engine.setup(steps(step('launch', { command: ['xterm'] })), program, never);
    expect(program.log).toEqual(['spawn xterm', 'settle']);
  });
  it('execute fills in placeholders; command is the same; launch has none', async () => {
    const d = new FakeDesktop();
    await engine.setup(
      steps(
        step('execute', { command: 'echo {CLIENT_PASSWORD} {SCREEN_WIDTH}x{SCREEN_HEIGHT}', shell: 'true' }),
        step('command', { command: ['click', '{SCREEN_WIDTH_HALF}', '{SCREEN_HEIGHT_HALF}'] }),
        step('launch', { command: ['{SCREEN_WIDTH}'] }),
      ),
      d,
      never,
    );
    expect(d.log.slice(0, 3)).toEqual([
      'exec /bin/sh -c echo password 640x401',
      'exec click 320 200',
      'spawn {SCREEN_WIDTH}',
    ]);
  });
  it('saved output is a cache file for the verifier, and gone with the next set-up', async () => {
    const t = taskOf(
      { func: 'check_list', result: { type: 'cache_file', path: 'out' }, expected: rule({ expect: ['^hello$'] }) },
      [step('execute', { command: ['x'], stdout: 'out', stderr: 'err' })],
    );
    const d = new FakeDesktop(() => ({ stdout: 'hello\n', code: 3 }));
    await engine.setup(t, d, never);
    expect(await verify(t, d)).toBe(1);
    d.answer = () => ({ stdout: '' });
    await engine.setup(t, d, never);
    expect(await verify(t, d)).toBe(0);
  });
  it("output that is not text is nobody's fault: it is saved as it is, and says nothing that is waited for", async () => {
    const bytes = Buffer.from([0x61, 0xff, 0x0d, 0x0a]),
      d = new FakeDesktop(() => ({ stdout: bytes, stderr: bytes })),
      execute = (more: object): unknown => step('execute', { command: 'ls -R', ...more });
    await engine.setup(steps(execute({})), d, never);
    const t = taskOf(
      {
        func: 'check_image_file_size',
        result: { type: 'cache_file', path: 'out' },
        expected: rule({ max_size: bytes.length + 1 }),
        postconfig: [execute({}), execute({ stdout: 'out' })],
      },
      [],
    );
    expect((await engine.verify(t, d, undefined, never)).report!.checks[0]).toMatchObject({
      found: '4 bytes',
      score: 1,
    });
    const awaited = createTaskEngine({ metrics: localMetrics, settings: { waitMs: 0 } });
    const until = taskOf({ func: 'infeasible', postconfig: [execute({ until: { stdout: 'a' } })] });
    expect(await awaited.verify(until, d, undefined, never)).toMatchObject({
      kind: 'failure',
      report: { checks: [{ what: 'what is done before judging' }] },
    });
  });
  it('a command that cannot be run is a fault; one that fails is not', async () => {
    expect(
      (
        await errorOf(
          engine.setup(steps(step('execute', { command: ['nope', 'x'] })), new FakeDesktop(() => 'not found'), never),
        )
      ).error,
    ).toMatchObject({
      kind: 'task.setup',
      message: expect.stringMatching(/step 1 of 1 \(execute\).*nope x/) as string,
    });
    await engine.setup(steps(step('execute', { command: 'false' })), new FakeDesktop(() => ({ code: 1 })), never);
    expect(
      await kindOf(
        engine.setup(steps(step('execute', { command: 'x' })), new FakeDesktop(() => ({ timedOut: true })), never),
      ),
    ).toBe('task.setup');
  });
  it('until repeats the command until one of its conditions holds, and no longer than it may', async () => {
    let n = 0,
      clock = 0;
    const timed = createTaskEngine({
      settings: {
        waitMs: 10_000,
        now: () => clock,
        sleep: (ms) => {
          clock += ms;
          return Promise.resolve();
        },
      },
    });
    const t = steps(step('execute', { command: 'x', until: { stdout: 'ready', returncode: 7 } }));
    await timed.setup(t, new FakeDesktop(() => ({ stdout: ++n === 3 ? 'is ready' : 'not yet', code: 1 })), never);
    expect([n, clock]).toEqual([3, 600]);
    await timed.setup(t, new FakeDesktop(() => ({ code: 7 })), never);
    expect(await kindOf(timed.setup(t, new FakeDesktop(() => ({ code: 1 })), never))).toBe('task.setup');
    expect(clock).toBeLessThanOrEqual(600 + 10_300);
  });
  it('an until command with a number of attempts is not run more often', async () => {
    let runs = 0;
    const t = steps(step('execute', { command: 'x', until: { returncode: 0 }, attempts: 2 })),
      desktop = (good: number): FakeDesktop => new FakeDesktop(() => ({ code: ++runs === good ? 0 : 137 }));
    await engine.setup(t, desktop(2), never);
    expect(runs).toBe(2);
    runs = 0;
    await expect(engine.setup(t, desktop(3), never)).rejects.toMatchObject({
      kind: 'task.setup',
      message: expect.stringContaining('exit code 137') as string,
    });
    expect(runs).toBe(2);
  });
  it('sleep waits as the file says, capped; in settle mode only until the desktop is idle', async () => {
    const waits: number[] = [];
    const settings = {
      sleepCapMs: 5000,
      sleep: (ms: number) => {
        waits.push(ms);
        return Promise.resolve();
      },
    };
    const t = steps(step('sleep', { seconds: 0.5 }), step('sleep', { seconds: 60 }));
    await createTaskEngine({ settings }).setup(t, new FakeDesktop(), never);
    expect(waits).toEqual([500, 5000]);
    await createTaskEngine({ settings: { ...settings, sleepMode: 'settle' } }).setup(t, new FakeDesktop(), never);
    expect(waits).toHaveLength(2);
  });
  it('pyautogui in Python is performed without Python, its sleeps waits for an idle desktop; nothing else is', async () => {
    const acting = new ActingDesktop(),
      settle = createTaskEngine({ settings: { sleepMode: 'settle', sleepCapMs: 9000 } }),
      python = (code: string, more = {}): unknown => step('execute', { command: ['python', '-c', code], ...more }),
      code = "import pyautogui; import time; time.sleep(15); pyautogui.press('down', presses=2); time.sleep(0.3);";
    await settle.setup(steps(python(code)), acting, never);
    expect(acting.log).toEqual([
      'settle 9000 500',
      'input ArrowDown down, ArrowDown up, ArrowDown down, ArrowDown up',
      'settle 100 100',
      'settle 300 300',
      'settle 3000', // the engine's own, at the end of set-up
    ]);
    // Where the pointer is, is asked.
    acting.log.length = 0;
    acting.answer = (c) => (c[0] === 'xdotool' ? { stdout: 'X=7\nY=8\nSCREEN=0\n' } : undefined);
    await settle.setup(steps(python('import pyautogui; pyautogui.scroll(-2)')), acting, never);
    expect(acting.log.slice(0, 2)).toEqual(['exec xdotool getmouselocation --shell', 'input wheel 7,8 0,2']);
    // What a step holds is held in those after it, until the next set-up.
    const press = python("import pyautogui; pyautogui.press('a')");
    acting.log.length = 0;
    await settle.setup(steps(python("import pyautogui; pyautogui.keyDown('shift')"), press), acting, never);
    await settle.setup(steps(press), acting, never);
    expect(acting.log.filter((l) => l.startsWith('input'))).toEqual([
      'input Shift down',
      'input A down, A up',
      'input a down, a up',
    ]);
    // A program that says more, one whose output is kept, exact waits, and a desktop without input: run as they are.
    const asIs: [unknown, FakeDesktop, typeof engine][] = [
      [python(`${code} print(1)`), acting, settle],
      [python(code, { stdout: 'out' }), acting, settle],
      [python(code, { until: { returncode: 0 } }), acting, settle],
      [python(code), acting, engine],
      [python(code), new FakeDesktop(), settle],
    ];
    for (const [s, d, e] of asIs) {
      d.log.length = 0;
      await e.setup(steps(s), d, never);
      expect(d.log.filter((l) => l.startsWith('exec'))).toEqual([expect.stringContaining('import pyautogui')]);
      expect(d.log.filter((l) => l.startsWith('input'))).toEqual([]);
    }
  });
  it('windows are activated and closed by name or class, exactly or not', async () => {
    const d = new FakeDesktop();
    await engine.setup(
      steps(
        step('activate_window', { window_name: 'Calc' }),
        step('activate_window', { window_name: 'a', strict: true }),
        step('close_window', { window_name: 'Mail.thunderbird', strict: true, by_class: true }),
      ),
      d,
      never,
    );
    expect(d.log.filter((l) => l.startsWith('exec'))).toEqual([
      'exec wmctrl -a Calc',
      'exec wmctrl -Fa a',
      'exec wmctrl -xFc Mail.thunderbird',
    ]);
    await engine.setup(
      steps(step('activate_window', { window_name: 'gone' })),
      new FakeDesktop(() => ({ code: 1 })),
      never,
    );
    expect(
      await kindOf(
        engine.setup(
          steps(step('activate_window', { window_name: 'x' })),
          new FakeDesktop(() => ({ code: 127 })),
          never,
        ),
      ),
    ).toBe('task.setup');
  });

  const opening = (kind: string, installed: string, titles: (n: number) => string): FakeDesktop => {
    let looks = 0;
    return new FakeDesktop((argv) =>
      argv[0] === 'stat'
        ? { stdout: kind, code: kind === '' ? 1 : 0 }
        : argv[0] === '/bin/sh'
          ? { stdout: argv.includes(installed) ? installed : '', code: argv.includes(installed) ? 0 : 1 }
          : argv[1] === '-lGx'
            ? { stdout: titles(++looks) }
            : {},
    );
  };
  const line = (title: string): string => `0x02a00007  0 10 20 400 300 mousepad.Mousepad     desktop ${title}\n`;
  it('open starts the application for the type, waits for its window and activates it', async () => {
    const d = opening('regular file', 'mousepad', (n) => (n < 3 ? line('starting') : line('notes.txt - Mousepad')));
    await engine.setup(steps(step('open', { path: '~/Documents/notes.txt' })), d, never);
    expect(d.log).toContain('spawn mousepad /home/user/Documents/notes.txt');
    expect(d.log).toContain('exec wmctrl -i -a 0x02a00007');
    expect(d.log.filter((l) => l.includes('-lGx'))).toHaveLength(3);
  });
  it('a folder opens in the file manager, a table in the spreadsheet', async () => {
    const folder = opening('directory', 'pcmanfm', () => line('Documents'));
    await engine.setup(steps(step('open', { path: '/home/user/Documents' })), folder, never);
    expect(folder.log).toContain('spawn pcmanfm /home/user/Documents');
    const sheet = opening('regular file', 'gnumeric', () => line('a - Gnumeric'));
    await engine.setup(steps(step('open', { path: '/home/user/a.xlsx' })), sheet, never);
    expect(sheet.log).toContain('spawn gnumeric /home/user/a.xlsx');
  });
  it.each([
    ['notes.txt - Mousepad', 'notes.txt', true],
    ['*notes - Editor', 'notes.txt', true],
    ['Terminal', 't.csv', false],
    ['t.csv - Gnumeric', 't.csv', true],
    ['budget (2).xlsx', 'budget (2).xlsx', true],
    ['.profile', '.profile', true],
    ['a', '.profile', false],
    ['xnotes notes', 'notes.txt', true],
    ['\u{1d400}notes', 'notes.txt', false],
    ['---a--b', '--b.txt', false],
    ['---a---b', '--b.txt', true],
  ])('title "%s" shows %s: %s', (title, name, yes) => {
    expect(showsFile(title, name)).toBe(yes);
  });
  it('open fails when the file, the application or the window is not there', async () => {
    const open = steps(step('open', { path: '/home/user/a.txt' }));
    expect(
      (
        await errorOf(
          engine.setup(
            open,
            opening('', 'mousepad', () => ''),
            never,
          ),
        )
      ).message,
    ).toMatch(/no file \/home\/user\/a.txt/);
    expect(
      (
        await errorOf(
          engine.setup(
            open,
            opening('regular file', 'none', () => ''),
            never,
          ),
        )
      ).message,
    ).toMatch(/no application/);
    let clock = 0;
    const timed = createTaskEngine({ settings: { waitMs: 1000, now: () => (clock += 100) } });
    expect(
      (
        await errorOf(
          timed.setup(
            open,
            opening('regular file', 'mousepad', () => line('other')),
            never,
          ),
        )
      ).message,
    ).toMatch(/no window named a.txt/);
  });
});
