import { describe, expect, it } from 'vitest';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import { checkName } from '../../../runtime/tasks/checkName.js';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { deskSuite, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { desk } from '../../helpers/tasks/images.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';
import { engine, done, fail, rule, text, includes, verify, errorOf } from '../../helpers/tasks/engine.js';

it('pictures that ours does not read are judged by the evaluators, where those are installed', async () => {
  const asked: string[] = [],
    evaluators: Evaluators = {
      place: { python: '-', name: 'OSWorld', version: '1' },
      getters: new Set(),
      metrics: new Set(['check_image_size']),
      workers: {
        run: (job) => {
          asked.push(job.func);
          return Promise.resolve({ kind: 'done', score: 1, found: '5x5', expected: '' });
        },
      },
    },
    both = createTaskEngine({ metrics: localMetrics, image: desk, evaluators });
  const judges = async (picture: Buffer, rules: object): Promise<readonly [string, number]> => {
    const t = taskOf({ func: 'check_image_size', result: text('/p'), expected: rule(rules) }),
      check = (await both.verify(t, new FakeDesktop(undefined, { '/p': picture }), done, never)).report!.checks[0]!;
    return [check.judge!.name, check.score];
  };
  const webp = Buffer.from('RIFF\x24\0\0\0WEBPVP8 ', 'latin1'),
    gif = Buffer.from('GIF89a\x05\0\x05\0\0\0\0;', 'latin1'),
    bmp = Buffer.alloc(54);
  bmp.write('BM');
  bmp.writeInt32LE(5, 18);
  bmp.writeInt32LE(5, 22);
  for (const picture of [webp, gif]) expect(await judges(picture, { height: 5 })).toEqual(['OSWorld', 1]);
  expect(await judges(bmp, { height: 5, ignore_transparent: true })).toEqual(['OSWorld', 1]);
  expect(await judges(bmp, { height: 5 })).toEqual(['DART Studio', 1]);
  expect(asked).toHaveLength(3);
  expect(
    await verify(
      taskOf({ func: 'check_image_size', result: text('/p'), expected: rule({ height: 5 }) }),
      new FakeDesktop(undefined, { '/p': webp }),
    ),
  ).toBe(0);
});

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
  it('says who judged where no metric had to', async () => {
    const d = (): FakeDesktop => new FakeDesktop(undefined, files),
      impossible = taskOf({ func: 'infeasible' });
    for (const [task, last, reward] of [
      [impossible, fail, 1],
      [impossible, done, 0],
      [one, fail, 0],
    ] as const) {
      const o = await engine.verify(task, d(), last, never);
      expect(o.reward).toBe(reward);
      expect(o.report!.checks.map((c) => c.judge)).toEqual([
        { name: 'DART Studio', version: '0.0.0', ms: expect.any(Number) as number, files: [] },
      ]);
    }
  });
  it('is asked mid-episode what share of its checks holds; of some tasks it says nothing', async () => {
    const two = (more: object = {}): Task =>
        taskOf({
          func: ['check_include_exclude', 'check_include_exclude'],
          conj: 'and',
          result: [text('/home/user/b.txt'), text('/home/user/a.txt')],
          expected: [includes('yes'), includes('yes')],
          ...more,
        }),
      held = (t: Task, f: Record<string, string> = files): Promise<number | undefined> =>
        engine.progress!(t, new FakeDesktop(undefined, f), never);
    // The first does not hold, which ends a verdict: the second is looked at all the same.
    expect(await held(two())).toBe(0.5);
    expect(await held(two(), { ...files, '/home/user/b.txt': 'yes' })).toBe(1);
    expect(await held(two(), {})).toBe(0);
    expect(await held(one)).toBe(1);
    expect(await held(two({ conj: 'or' }))).toBeUndefined();
    expect(await held(two({ postconfig: [{ type: 'sleep', parameters: { seconds: 0 } }] }))).toBeUndefined();
    expect(await held(taskOf({ func: 'infeasible' }))).toBeUndefined();
    // What is wrong with a verifier its verdict says, at the end.
    expect(await held(taskOf({ func: 'no_such_metric', result: text() }))).toBeUndefined();
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
