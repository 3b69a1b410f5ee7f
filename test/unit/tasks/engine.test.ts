import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Action, ErrorKind } from '../../../runtime/domain/index.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { createTaskEngine, openAssets } from '../../../runtime/tasks/index.js';
import { checkName } from '../../../runtime/tasks/checkName.js';
import { parseWindows, showsFile } from '../../../runtime/tasks/setup/windows.js';
import { deskSuite, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { asksApplications } from '../../../runtime/tasks/verdict.js';
import { desk } from '../../helpers/tasks/images.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { cacheName } from '../../helpers/tasks/files.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';

const engine = createTaskEngine({ metrics: localMetrics, image: desk });
const done: Action = { type: 'finished' },
  fail: Action = { type: 'fail' };
const rule = (rules: unknown): unknown => ({ type: 'rule', rules });
const text = (path = '/home/user/a.txt', dest = 'a.txt'): unknown => ({ type: 'vm_file', path, dest });
const includes = (...include: string[]): unknown => rule({ include });
const verify = async (task: Task, d: FakeDesktop, last: Action | undefined = done): Promise<number> =>
  (await engine.verify(task, d, last, never)).reward;
async function errorOf(p: Promise<unknown>): Promise<StudioError> {
  try {
    await p;
  } catch (e) {
    expect(e).toBeInstanceOf(StudioError);
    return e as StudioError;
  }
  throw new Error('it did not reject');
}
const kindOf = async (p: Promise<unknown>): Promise<ErrorKind> => (await errorOf(p)).kind;

describe('evaluate', () => {
  const one = taskOf({ func: 'check_include_exclude', result: text(), expected: includes('yes') });
  const files = { '/home/user/a.txt': 'yes\n', '/home/user/b.txt': 'no\n' };
  it('reward 1 is success, with what was checked', async () => {
    const o = await engine.verify(one, new FakeDesktop(undefined, files), done, never);
    expect(o).toMatchObject({ kind: 'success', reward: 1, truncated: false });
    expect(o.report?.checks).toEqual([
      {
        what: 'check_include_exclude: vm_file /home/user/a.txt',
        expected: '{"include":["yes"]}',
        found: expect.stringContaining('yes') as string,
        score: 1,
        judge: {
          name: 'DART Studio',
          version: '0.0.0',
          ms: expect.any(Number) as number,
          files: ['/home/user/a.txt'],
        },
      },
    ]);
  });
  it('a check by a command is named by its first words; the whole script is told beside it', async () => {
    const command = (script: unknown, more: object = {}): Task =>
      taskOf({
        func: 'exact_match',
        result: { type: 'vm_command_line', command: script, ...more },
        expected: rule({ expected: 'yes' }),
      });
    const check = async (t: Task): Promise<unknown> => {
      const [c] = (await engine.verify(t, new FakeDesktop(() => ({ stdout: 'yes' })), done, never)).report!.checks;
      return [c!.what, c!.detail];
    };
    expect(await check(command(['cat', '/home/user/a.txt']))).toEqual([
      'exact_match: command cat /home/user/a.txt',
      undefined,
    ]);
    const script =
      "python3 - <<'END'\nimport json, pathlib\nprint(json.loads(pathlib.Path('/home/user/.config/app/settings.json').read_text())['view']['zoom'])\nEND";
    expect(await check(command(['bash', '-c', script]))).toEqual([
      "exact_match: command python3 - <<'END' …",
      `bash -c ${script}`,
    ]);
    expect(await check(command(script))).toEqual(["exact_match: command python3 - <<'END' …", script]);
    expect(await check(command(['bash', '-c', 'true']))).toEqual(['exact_match: command true', undefined]);
    const long = `test -f /home/user/a-folder/${'and-another/'.repeat(20)}end.txt`,
      [what, detail] = (await check(command(long))) as [string, string];
    expect([
      what.length <= 60,
      what.startsWith('exact_match: command test -f /home/user/a-folder'),
      what.endsWith('…'),
      detail,
    ]).toEqual([true, true, true, long]);
    // A suite may say what its script looks at.
    expect(await check(command(['bash', '-c', script], { title: 'cat a.txt' }))).toEqual([
      'exact_match: cat a.txt',
      `bash -c ${script}`,
    ]);
    expect(
      ((await check(command(['bash', '-c', `echo ${'x'.repeat(100_000)}`]))) as [string, string])[1].length,
    ).toBeLessThanOrEqual(8000);
  });
  it('a long path keeps its end, where the name is', async () => {
    const path = `/home/user/${'deep/'.repeat(30)}notes.txt`,
      o = await engine.verify(
        taskOf({ func: 'check_include_exclude', result: text(path), expected: includes('yes') }),
        new FakeDesktop(undefined, { [path]: 'yes' }),
        done,
        never,
      ),
      [c] = o.report!.checks;
    expect([c!.what.length <= 60, c!.what.endsWith('deep/notes.txt'), c!.detail]).toEqual([
      true,
      true,
      `vm_file ${path}`,
    ]);
  });
  it('every check of the built-in suite has a short name', () => {
    const suite = deskSuite();
    for (const f of suite.families) {
      const e = suite.task(f.id, trainSeed(0)).evaluator,
        results = Array.isArray(e.result) ? (e.result as unknown[]) : [e.result],
        funcs = typeof e.func === 'string' ? [e.func] : e.func;
      if (!f.infeasible)
        funcs.forEach((func, i) => {
          const { what } = checkName(func, results[i]);
          expect(what.length).toBeLessThanOrEqual(60);
          expect(what).not.toMatch(/\n|look\(\)|⏎/);
        });
    }
  });
  it('reads a file without starting a process', async () => {
    const d = new FakeDesktop(undefined, files);
    await verify(one, d);
    expect(d.log).toEqual([]);
  });
  it('a missing file is failure with reward 0', async () => {
    expect(await engine.verify(one, new FakeDesktop(), done, never)).toMatchObject({ kind: 'failure', reward: 0 });
  });
  it('a feasible task that ended with fail is 0, whatever is there; the metrics are not asked', async () => {
    expect(await verify(one, new FakeDesktop(undefined, files), fail)).toBe(0);
  });
  it('no last action counts as not fail', async () => {
    expect((await engine.verify(one, new FakeDesktop(undefined, files), undefined, never)).reward).toBe(1);
  });
  it('infeasible: 1 exactly when the agent gave up', async () => {
    const t = taskOf({ func: 'infeasible' });
    expect(t.infeasible).toBe(true);
    expect(await verify(t, new FakeDesktop(), fail)).toBe(1);
    expect(await verify(t, new FakeDesktop(), done)).toBe(0);
    expect((await engine.verify(t, new FakeDesktop(), undefined, never)).reward).toBe(0);
  });
  it('a score between 0 and 1 is failure with that reward', async () => {
    const t = taskOf({ func: 'diff_text_file', result: text(), expected: text('/home/user/b.txt', 'b') });
    expect(
      await engine.verify(
        t,
        new FakeDesktop(undefined, { '/home/user/a.txt': 'x\ny', '/home/user/b.txt': 'x\nz' }),
        done,
        never,
      ),
    ).toMatchObject({ kind: 'failure', reward: 0.5 });
  });
  it('postconfig runs first, also for infeasible tasks', async () => {
    const postconfig = [{ type: 'execute', parameters: { command: ['save'] } }];
    const d = new FakeDesktop((argv) => {
      if (argv[0] === 'save') d.files.set('/home/user/a.txt', Buffer.from('yes'));
      return {};
    });
    expect(
      await verify(taskOf({ func: 'check_include_exclude', result: text(), expected: includes('yes'), postconfig }), d),
    ).toBe(1);
    const e = new FakeDesktop();
    await verify(taskOf({ func: 'infeasible', postconfig }), e, fail);
    expect(e.log).toEqual(['exec save']);
  });
});

describe('lists of metrics', () => {
  const score = (s: number): { func: string; result: unknown; expected: unknown } =>
    s === 0.5
      ? { func: 'diff_text_file', result: text(), expected: text('/home/user/b.txt', 'b') }
      : { func: 'check_include_exclude', result: text(), expected: includes(s === 1 ? 'x' : 'never') };
  const d = (): FakeDesktop => new FakeDesktop(undefined, { '/home/user/a.txt': 'x\ny', '/home/user/b.txt': 'x\nz' });
  const task = (conj: string | undefined, ...scores: number[]): Task => {
    const parts = scores.map(score);
    return taskOf({
      func: parts.map((p) => p.func),
      result: parts.map((p) => p.result),
      expected: parts.map((p) => p.expected),
      ...(conj ? { conj } : {}),
    });
  };
  it.each([
    [undefined, [1, 1], 1],
    ['and', [1, 0.5], 0.75],
    ['and', [0.5, 0.5], 0.5],
    ['and', [0.5, 0], 0],
    ['and', [0, 1], 0],
    ['or', [0, 1], 1],
    ['or', [0.5, 0], 0.5],
    ['or', [0, 0], 0],
    ['or', [1, 0], 1],
  ] as const)('%s of %j is %d', async (conj, scores, want) => {
    expect(await verify(task(conj, ...scores), d())).toBe(want);
  });
  it('stops at the metric that decides', async () => {
    expect((await engine.verify(task('and', 0, 1), d(), done, never)).report?.checks).toHaveLength(1);
    expect((await engine.verify(task('or', 1, 0), d(), done, never)).report?.checks).toHaveLength(1);
  });
  it('null and {} entries mean no getter and no options', async () => {
    const t = taskOf({
      func: ['is_utc_0', 'check_include_exclude'],
      result: [{ type: 'vm_command_line', command: 'timedatectl' }, text()],
      expected: [null, includes('x')],
      options: [{}, null],
    });
    const desk = new FakeDesktop(() => ({ stdout: '1\n2\n3\nTime zone: UTC (UTC, +0000)\n' }), {
      '/home/user/a.txt': 'x',
    });
    expect(await verify(t, desk)).toBe(1);
    expect(await verify(taskOf({ func: 'check_text_enlarged', result: {} }), new FakeDesktop())).toBe(0);
  });
  it('a cache file that was never saved is 0 with "and" and does not count with "or"', async () => {
    const parts = {
      func: ['check_list', 'check_include_exclude'],
      result: [{ type: 'cache_file', path: 'none' }, text()],
      expected: [rule({ expect: [] }), includes('x')],
    };
    expect(await verify(taskOf(parts), d())).toBe(0);
    expect(await verify(taskOf({ ...parts, conj: 'or' }), d())).toBe(1);
  });
});

describe('faults are never rewards', () => {
  const one = (expected: unknown, result: unknown = text()): Task =>
    taskOf({ func: 'check_include_exclude', result, expected });
  const d = (): FakeDesktop => new FakeDesktop(undefined, { '/home/user/a.txt': 'x' });
  it('a rule the metric cannot use', async () => {
    expect((await errorOf(engine.verify(one(rule({ include: 'x' })), d(), done, never))).error).toMatchObject({
      kind: 'task.verify',
      message: expect.stringContaining('check_include_exclude') as string,
    });
  });
  it('a rule without rules', async () => {
    expect(await kindOf(engine.verify(one({ type: 'rule' }), d(), done, never))).toBe('task.verify');
  });
  it('a command that was stopped from outside of the desktop', async () => {
    expect(
      await kindOf(
        engine.verify(
          one(includes('x'), { type: 'vm_command_line', command: 'x' }),
          new FakeDesktop(() => ({ timedOut: true, stopped: true })),
          done,
          never,
        ),
      ),
    ).toBe('task.verify');
  });
  it('a file that is there but cannot be read', async () => {
    const broken = d();
    broken.readFile = () =>
      Promise.reject(new StudioError('desktop.exec', 'I/O error', 'x', { details: { code: 'EIO' } }));
    expect(await kindOf(engine.verify(one(includes('x')), broken, done, never))).toBe('task.verify');
  });
  it('a failing postconfig step', async () => {
    expect(
      await kindOf(
        engine.verify(
          taskOf({ func: 'infeasible', postconfig: [{ type: 'execute', parameters: { command: 'x' } }] }),
          new FakeDesktop(() => 'not found'),
          fail,
          never,
        ),
      ),
    ).toBe('task.verify');
  });
  it('a lost desktop stays lost, in set-up and in verify', async () => {
    const gone = d();
    gone.lost = true;
    expect(await kindOf(engine.verify(one(includes('x')), gone, done, never))).toBe('desktop.lost');
    expect(
      await kindOf(
        engine.setup(taskOf({ func: 'infeasible' }, [{ type: 'launch', parameters: { command: 'a' } }]), gone, never),
      ),
    ).toBe('desktop.lost');
  });
  it('a cancelled rollout is cancelled', async () => {
    expect(await kindOf(engine.verify(one(includes('x')), d(), done, AbortSignal.abort()))).toBe('cancelled');
    expect(
      await kindOf(
        engine.setup(
          taskOf({ func: 'infeasible' }, [{ type: 'sleep', parameters: { seconds: 9 } }]),
          d(),
          AbortSignal.abort(),
        ),
      ),
    ).toBe('cancelled');
    const c = new AbortController();
    const waiting = kindOf(
      engine.setup(taskOf({ func: 'infeasible' }, [{ type: 'sleep', parameters: { seconds: 9 } }]), d(), c.signal),
    );
    setImmediate(() => c.abort(new Error('no longer wanted')));
    expect(await waiting).toBe('cancelled');
  });
});

describe('what programs of the desktop can have spoilt is a failure, never an error that is tried again', () => {
  const judged = (result: unknown): Task => taskOf({ func: 'check_include_exclude', result, expected: includes('x') });
  const command = judged({ type: 'vm_command_line', command: 'x' });
  const refusing = (call: 'exec' | 'readFile' | 'writeFile' | 'spawn', code: string): FakeDesktop => {
    const d = new FakeDesktop();
    (d as unknown as Record<string, unknown>)[call] = () =>
      Promise.reject(new StudioError('desktop.exec', `refused: ${code}`, '-', { details: { code } }));
    return d;
  };
  const found = async (t: Task, d: FakeDesktop): Promise<string | undefined> => {
    const o = await engine.verify(t, d, done, never);
    expect(o).toMatchObject({ kind: 'failure', reward: 0 });
    return o.report!.checks[0]!.found;
  };

  it('a command that does not end', async () => {
    expect(await found(command, new FakeDesktop(() => ({ timedOut: true })))).toBe(
      'the command x did not end within 60 s',
    );
  });
  it.each([
    ['ENOTREG', /not a regular file/],
    ['ENXIO', /not a regular file/],
    ['EFBIG', /too large/],
    ['EACCES', /./],
  ])('a result file that answers %s', async (code, says) => {
    expect(await found(judged(text()), refusing('readFile', code))).toMatch(says);
  });
  it.each(['ENOSPC', 'ENOTDIR', 'EACCES', 'ENOTREG'])('a folder that refuses a file with %s', async (code) => {
    const dir = await mkdtemp(join(tmpdir(), 'assets-'));
    try {
      await writeFile(join(dir, cacheName('https://a.example/f', 'f')), 'x');
      const put = createTaskEngine({ metrics: localMetrics, image: desk, assets: await openAssets(dir) });
      const files = [{ url: 'https://a.example/f', path: '/home/user/f' }];
      const t = taskOf({
        func: 'check_include_exclude',
        result: text(),
        expected: includes('x'),
        postconfig: [{ type: 'download', parameters: { files } }],
      });
      expect(await put.verify(t, refusing('writeFile', code), done, never)).toMatchObject({
        kind: 'failure',
        report: { checks: [{ what: 'what is done before judging' }] },
      });
    } finally {
      await rm(dir, { recursive: true });
    }
  });
  it('no room for a command, when there is room without them; an error when there is none either', async () => {
    const full = refusing('exec', 'EAGAIN') as FakeDesktop & { relieve?: () => Promise<void> };
    await expect(engine.verify(command, full, done, never)).rejects.toMatchObject({ kind: 'task.verify' });
    full.relieve = () => {
      full.exec = () =>
        Promise.resolve({ code: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), timedOut: false, stopped: false });
      return Promise.resolve();
    };
    expect(await found(command, full)).toMatch(/left no room/);
    full.exec = refusing('exec', 'EAGAIN').exec;
    full.relieve = () => Promise.resolve();
    await expect(engine.verify(command, full, done, never)).rejects.toMatchObject({ kind: 'task.verify' });
  });

  /** What happens to the programs of the user, and which commands are the verifier's. */
  const watched = (): FakeDesktop & { freeze: () => Promise<void>; thaw: () => Promise<void> } => {
    const d = new FakeDesktop((argv, o) => {
      d.log.push(`${o.verifier ? 'verifier' : 'user'}: ${argv.at(-1)!}`);
      return { stdout: 'x' };
    });
    return Object.assign(d, {
      freeze: () => Promise.resolve(void d.log.push('freeze')),
      thaw: () => Promise.resolve(void d.log.push('thaw')),
    });
  };
  it("commands are the verifier's and everything stands still, but for those that ask applications or act", async () => {
    const d = watched();
    const t = taskOf({
      func: ['check_include_exclude', 'check_include_exclude', 'check_include_exclude'],
      result: [
        { type: 'vm_command_line', command: ['cat', 'a'] },
        { type: 'vm_command_line', command: ['wmctrl', '-l'] },
        { type: 'cache_file', path: 'saved' },
      ],
      expected: [includes('x'), includes('x'), includes('x')],
      postconfig: [
        { type: 'execute', parameters: { command: ['xdotool', 'ctrl+s'] } },
        { type: 'execute', parameters: { command: ['ls', 'b'], stdout: 'saved' } },
      ],
    });
    expect((await engine.verify(t, d, done, never)).reward).toBe(1);
    expect(d.log.filter((l) => !l.startsWith('exec'))).toEqual([
      'user: ctrl+s',
      'freeze',
      'verifier: b',
      'verifier: a',
      'thaw',
      'verifier: -l',
    ]);
  });
  it.each<[string, boolean]>([
    ['wmctrl -l | wc -l', true],
    ['curl -s http://localhost:8080/x', true],
    ['python3 -c "import pyautogui; print(1)"', true],
    ['sleep 1; cat ~/a', true],
    ['code --list-extensions', true],
    ['cat ~/a.txt | grep -c x', false],
    ['python3 -c "import json; print(json.load(open(\'a\')))"', false],
    ['cat /home/user/project/code/main.py', false],
    ['git -C ~/repo log --oneline', false],
  ])('whether a command asks applications: %s', (text, asks) => {
    expect(asksApplications(text)).toBe(asks);
  });
  it('and goes on afterwards, whatever happened', async () => {
    const d = watched();
    await engine.verify(command, d, done, never);
    expect(d.log.at(-1)).toBe('thaw');
  });

  it('a program that crashes while the task is set up is a fault of set-up', async () => {
    const d = new FakeDesktop();
    d.exec = () => {
      for (const l of d.listeners) l({ type: 'exit', pid: 1, name: 'app', code: null, signal: 'SIGSEGV' });
      return Promise.resolve({ code: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), timedOut: false });
    };
    const t = taskOf({ func: 'infeasible' }, [
      { type: 'launch', parameters: { command: ['app'] } },
      { type: 'execute', parameters: { command: ['true'] } },
    ]);
    await expect(engine.setup(t, d, never)).rejects.toMatchObject({
      kind: 'task.setup',
      message: expect.stringContaining('app crashed (SIGSEGV)') as string,
    });
  });

  it('long titles and many windows are read in time', () => {
    const line = (title: string): string => `0x01 0 1 2 30 40 app.App  desktop ${title}`;
    const t0 = performance.now();
    const hostile = ['a '.repeat(1 << 19), 'a\t'.repeat(1 << 19), ' '.repeat(1 << 20)].map(line);
    const all = parseWindows([...hostile, ...Array<string>(5000).fill(line('a\tb '.repeat(800)))].join('\n'));
    expect(performance.now() - t0).toBeLessThan(1000);
    expect(all.length).toBeLessThanOrEqual(2000);
    expect(parseWindows(line('My notes.txt'))).toEqual([
      { id: '0x01', width: 30, height: 40, className: 'app.App', title: 'My notes.txt' },
    ]);
  });
});

describe('unsupported', () => {
  const strange = taskOf(
    {
      func: ['compare_table', 'exact_match'],
      result: [text(), { type: 'bookmarks' }],
      expected: [{ type: 'cloud_file', path: 'https://x.org/g.xlsx', dest: 'g.xlsx' }, rule({ expected: 1 })],
    },
    [{ type: 'tidy_desktop', parameters: {} }],
  );
  const needs = ['setup:tidy_desktop', 'getter:bookmarks', 'metric:compare_table', 'asset:https://x.org/g.xlsx'];
  it('is an error that lists what is needed, and nothing is run', async () => {
    const d = new FakeDesktop();
    for (const p of [
      engine.setup(strange, d, never),
      engine.verify(strange, d, done, never),
      engine.verify(strange, d, fail, never),
    ]) {
      const e = await errorOf(p);
      expect(e.kind).toBe('task.unsupported');
      expect([...(e.error.details!['needs'] as string[])].sort()).toEqual([...needs].sort());
    }
    expect(d.log).toEqual([]);
  });
  it('is what check() says', () => {
    expect(engine.check(strange)).toEqual([...needs].sort());
  });
});

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

describe('getters', () => {
  const get = async (result: unknown, expected: unknown, d: FakeDesktop, func = 'exact_match'): Promise<number> =>
    verify(taskOf({ func, result, expected: rule({ expected }) }), d);
  it('vm_command_line is stdout, vm_command_error stderr; line ends are "\\n"', async () => {
    const d = new FakeDesktop(() => ({ stdout: 'out\r\n', stderr: 'err\n', code: 2 }));
    expect(await get({ type: 'vm_command_line', command: 'x' }, 'out\n', d)).toBe(1);
    expect(await get({ type: 'vm_command_error', command: ['x'] }, 'err\n', d)).toBe(1);
  });
  it('a command that cannot be run or prints no text is nothing', async () => {
    expect(await get({ type: 'vm_command_line', command: 'x' }, null, new FakeDesktop(() => 'not found'))).toBe(1);
    const bytes = new FakeDesktop();
    bytes.exec = () =>
      Promise.resolve({ code: 0, stdout: Buffer.from([0xff]), stderr: Buffer.alloc(0), timedOut: false });
    expect(await get({ type: 'vm_command_line', command: 'x' }, null, bytes)).toBe(1);
  });
  it('vm_screen_size, vm_window_size', async () => {
    const d = new FakeDesktop(() => ({
      stdout: '0x1  0 0   0   640  401  vlc.vlc               desktop VLC\n0x2 -1 5 5 10 20 a.B N/A x\n',
    }));
    expect(await get({ type: 'vm_screen_size' }, { width: 640, height: 401 }, d)).toBe(1);
    expect(await get({ type: 'vm_window_size', app_class_name: 'vlc' }, { width: 640, height: 401 }, d)).toBe(1);
    expect(await get({ type: 'vm_window_size', app_class_name: 'gimp' }, null, d)).toBe(1);
  });
  it('list_directory is a tree, nothing for a missing folder', async () => {
    const d = new FakeDesktop(() => ({ stdout: 'f b.txt\0d sub\0f sub/c.txt\0f a b.txt\0' }));
    expect(
      await get(
        { type: 'list_directory', path: '/home/user/dir/' },
        {
          type: 'directory',
          name: 'dir',
          children: [
            { type: 'file', name: 'a b.txt' },
            { type: 'file', name: 'b.txt' },
            { type: 'directory', name: 'sub', children: [{ type: 'file', name: 'c.txt' }] },
          ],
        },
        d,
      ),
    ).toBe(1);
    expect(await get({ type: 'list_directory', path: '/x' }, null, new FakeDesktop(() => ({ code: 1 })))).toBe(1);
  });
  it('configuration files of applications at their places', async () => {
    expect(
      await get(
        { type: 'gimp_config_file', file_name: 'gimprc', dest: 'g' },
        'x',
        new FakeDesktop(undefined, { '/home/user/.config/GIMP/2.10/gimprc': 'x' }),
        'compare_config',
      ),
    ).toBe(1);
    expect(
      await get(
        { type: 'vlc_config', dest: 'vlcrc' },
        'y',
        new FakeDesktop(undefined, { '/home/user/.config/vlc/vlcrc': 'y' }),
        'compare_config',
      ),
    ).toBe(1);
  });
});
