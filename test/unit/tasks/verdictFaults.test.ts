import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import { createTaskEngine, openAssets } from '../../../runtime/tasks/index.js';
import { parseWindows } from '../../../runtime/tasks/setup/windows.js';
import type { Task, TaskEngine } from '../../../runtime/tasks/types.js';
import { asksApplications } from '../../../runtime/tasks/verdict.js';
import { desk } from '../../helpers/tasks/images.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { cacheName } from '../../helpers/tasks/files.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';
import { engine, done, fail, rule, text, includes, errorOf, kindOf } from '../../helpers/tasks/engine.js';

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
  const three = taskOf({
    func: Array<string>(3).fill('check_include_exclude'),
    result: Array<unknown>(3).fill({ type: 'vm_command_line', command: 'x' }),
    expected: Array<unknown>(3).fill(includes('x')),
  });
  /** A clock that stands still but while something happens that takes time. */
  const clocked = (): { engine: TaskEngine; takes: (ms: number) => void; metricMs: number } => {
    let now = 0;
    const c = {
      takes: (ms: number) => void (now += ms),
      metricMs: 0,
      engine: createTaskEngine({
        image: desk,
        settings: { now: () => now },
        metrics: {
          run: (job, signal) => {
            c.takes(c.metricMs);
            return localMetrics.run(job, signal);
          },
        },
      }),
    };
    return c;
  };
  it('commands that together take the desktop more than two minutes', async () => {
    const c = clocked();
    const slower = new FakeDesktop((_, o) => {
      c.takes(60_000);
      slower.log.push(`at most ${o.timeoutMs}`);
      return { stdout: 'x' };
    });
    const o = await c.engine.verify(three, slower, done, never);
    expect(o).toMatchObject({ kind: 'failure', reward: 0 });
    expect(o.report!.checks[2]!.found).toBe('the commands of the verdict did not end within 120 s');
    expect(slower.log.filter((l) => l.startsWith('at most'))).toEqual(['at most 60000', 'at most 60000']);
  });
  it('but not the time that is ours: a queue before the evaluators, a computation, a process that stood still', async () => {
    const c = clocked(),
      limits: unknown[] = [];
    c.metricMs = 10 * 60_000;
    const d = new FakeDesktop((_, o) => {
      limits.push(o.timeoutMs);
      // This process stood still while the second one ran.
      c.takes(limits.length === 2 ? 3_600_000 : 0);
      return { stdout: 'x' };
    });
    expect(await c.engine.verify(three, d, done, never)).toMatchObject({ kind: 'success', reward: 1 });
    expect(limits).toEqual([60_000, 60_000, 60_000]);
  });
  it('a verdict that does not end at all is an error of ours', async () => {
    const impatient = createTaskEngine({
      image: desk,
      verdictMs: 1,
      metrics: {
        run: (_, signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
          }),
      },
    });
    await expect(impatient.verify(command, new FakeDesktop(), done, never)).rejects.toMatchObject({
      kind: 'task.verify',
      message: expect.stringContaining('did not end within 0.001 s') as string,
    });
  });
  it('a command during which they did not stand still, whatever it prints', async () => {
    for (const end of [{ stdout: 'x' }, { timedOut: true, stopped: true }])
      expect(await found(command, new FakeDesktop(() => ({ ...end, disturbed: true })))).toBe(
        'programs of the desktop did not stand still during the command x',
      );
  });
  it.each([
    ['ENOTREG', /not a regular file/],
    ['ENXIO', /not a regular file/],
    ['EFBIG', /too large/],
    ['EACCES', /./],
    ['EAGAIN', /a program holds .* for itself/],
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
        report: { checks: [{ what: 'what is done before judging', judge: { name: 'DART Studio', files: [] } }] },
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
    const hostile = ['a '.repeat(1 << 19), 'a\t'.repeat(1 << 19), ' '.repeat(1 << 20)].map(line);
    const all = parseWindows([...hostile, ...Array<string>(5000).fill(line('a\tb '.repeat(800)))].join('\n'));
    expect(all.length).toBeLessThanOrEqual(2000);
    expect(parseWindows(line('My notes.txt'))).toEqual([
      { id: '0x01', width: 30, height: 40, className: 'app.App', title: 'My notes.txt' },
    ]);
  });
  it('titles of blanks from foreign machines are read in time, too', () => {
    const blanks = ' '.repeat(4000),
      of = (rest: string): string[] => Array<string>(2000).fill(`0x01 0 1 2 30 40 ${rest}`);
    for (const rest of [`app.App  elsewhere ${blanks}`, `app.App${blanks}`, `app.App  elsewhere${blanks}\u2028x`])
      expect(parseWindows(of(rest).join('\n'))).toHaveLength(2000);
    expect(parseWindows(of(`app.App  elsewhere ${blanks}`)[0]!)).toEqual([
      { id: '0x01', width: 30, height: 40, className: 'app.App', title: blanks },
    ]);
  });
  it('class, host and title are told apart as ever', () => {
    /** As it was once written; it takes the square of a line's length. */
    const reference = (line: string): unknown[] => {
      const m = /^(0x[0-9a-f]+)\s+-?\d+\s+-?\d+\s+-?\d+\s+(\d+)\s+(\d+)\s+(.*)$/i.exec(line);
      if (m === null) return [];
      const rest = /^(\S.*?)\s+(desktop|N\/A)(?: (.*))?$/.exec(m[4]!) ?? /^(\S+)\s+(\S+)(?: (.*))?$/.exec(m[4]!);
      const [className, title] = [rest?.[1] ?? '', rest?.[3] ?? ''];
      return [{ id: m[1], width: Number(m[2]), height: Number(m[3]), className, title }];
    };
    const part = fc.constantFrom(
      'a',
      'b.B',
      'desktop',
      'N/A',
      'desktops',
      'far',
      ' ',
      '  ',
      '\t',
      '\u00a0',
      '5',
      '0x1f',
      '-1',
    );
    fc.assert(
      fc.property(
        fc.constantFrom('0x01 0 1 2 30 40 ', '0X0a -1  -2 3 4 5  ', '0x1 '),
        fc.array(part),
        (head, parts) => {
          const line = head + parts.join('');
          expect(parseWindows(line)).toEqual(reference(line));
        },
      ),
      { numRuns: 2000 },
    );
  });
});
