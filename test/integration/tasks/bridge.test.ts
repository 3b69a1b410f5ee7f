import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import { evaluatorsAt, type Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import type { AssetStore } from '../../../runtime/tasks/assets.js';
import { EvaluatorWorkers } from '../../../runtime/tasks/bridge/workers.js';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';

/**
 * The bridge to Python evaluators, with evaluators of the test that fail in all the ways OSWorld's do: no package is
 * needed.
 */
const place = {
  python: execFileSync('python3', ['-c', 'import sys; print(sys.executable)']).toString().trim(),
  checkout: resolve('test/fixtures/tasks/evaluators'),
  name: 'OSWorld',
  version: 'of the test',
};
const file = (path = '/home/user/a.txt', dest = 'a.txt'): unknown => ({ type: 'vm_file', path, dest });
const GOLD = 'https://x.org/gold.txt';
const gold = { type: 'cloud_file', path: GOLD, dest: 'gold.txt' };
const desktopGold = { type: 'vm_file', path: '/home/user/gold.txt', dest: 'gold.txt' };
const assets: AssetStore = {
  dir: '/assets',
  has: (url) => url === GOLD,
  read: () => Promise.resolve(Buffer.from('yes')),
};
let evaluators: Evaluators;
const pools: EvaluatorWorkers[] = [];
beforeAll(async () => {
  evaluators = await evaluatorsAt(place);
});
afterEach(() => {
  for (const p of pools.splice(0)) p.close();
});
afterAll(() => {
  (evaluators.workers as EvaluatorWorkers).close();
});
const engineWith = (e: Evaluators): ReturnType<typeof createTaskEngine> =>
  createTaskEngine({ metrics: localMetrics, evaluators: e, assets });
const judge = (func: string, result: unknown, expected: unknown, d: FakeDesktop, e = evaluators) =>
  engineWith(e).verify(taskOf({ func, result, expected }), d, { type: 'finished' }, never);
async function fault(p: Promise<unknown>): Promise<StudioError> {
  const e = await p.then(
    () => undefined,
    (x: unknown) => x,
  );
  expect(e).toBeInstanceOf(StudioError);
  return e as StudioError;
}
const desktop = (files: Record<string, string | Buffer> = {}): FakeDesktop =>
  new FakeDesktop(() => ({ stdout: 'out\n' }), { '/home/user/gold.txt': 'yes', ...files });

describe('verdicts', () => {
  it('scores what was found, and says who judged, for how long and what was read', async () => {
    const good = await judge('same_file', file(), gold, desktop({ '/home/user/a.txt': 'yes' }));
    expect(good).toMatchObject({ kind: 'success', reward: 1 });
    expect(good.report!.checks[0]!.judge).toEqual({
      name: 'OSWorld',
      version: 'of the test',
      ms: expect.any(Number) as number,
      files: ['/home/user/a.txt'],
    });
    const compared = await judge('same_file', file(), desktopGold, desktop({ '/home/user/a.txt': 'yes' }));
    expect(compared.report!.checks[0]!.judge!.files).toEqual(['/home/user/a.txt', '/home/user/gold.txt']);
    expect((await judge('same_file', file(), gold, desktop({ '/home/user/a.txt': 'no' }))).reward).toBe(0);
    expect((await judge('same_file', file(), gold, desktop())).reward).toBe(0);
  });
  it('says so too where the evaluators raise, and where what they ask for is spoilt', async () => {
    const rule = { type: 'rule', rules: 'x' },
      careless = { type: 'careless', path: '~/w' },
      by = { name: 'OSWorld', version: 'of the test', ms: expect.any(Number) as number, files: ['/home/user/w'] };
    const raised = await judge('same', careless, rule, desktop({ '/home/user/w': Buffer.from([0xff]) }));
    expect(raised.report!.checks[0]).toMatchObject({ score: 0, judge: by });
    expect(raised.report!.checks[0]!.found).toMatch(/UnicodeDecodeError/);
    const pipe = desktop();
    pipe.readFile = () => Promise.reject(new StudioError('desktop.exec', '-', '-', { details: { code: 'ENOTREG' } }));
    const spoilt = await judge('same', careless, rule, pipe);
    expect(spoilt.report!.checks[0]).toMatchObject({ score: 0, found: '~/w is not a regular file', judge: by });
    // Each file once, by its whole path.
    const read = await judge('same', careless, rule, desktop({ '/home/user/w': 'x' }));
    expect(read.report!.checks[0]).toMatchObject({ score: 1, judge: by });
  });
  it('getters of the evaluators ask the desktop through us', async () => {
    const d = desktop({ '/home/user/w': 'hello' });
    const rule = (rules: unknown): unknown => ({ type: 'rule', rules });
    const words = await judge('same', { type: 'words', path: '/home/user/w' }, rule('hello'), d);
    expect(words.reward).toBe(1);
    expect(words.report!.checks[0]!.judge!.files).toEqual(['/home/user/w']);
    expect((await judge('same', { type: 'output', command: ['x'] }, rule('out\n'), d)).reward).toBe(1);
    d.answer = (argv) => (argv[0] === 'python3' ? { stdout: '{"answer": null}' } : undefined);
    expect((await judge('same', { type: 'tabs' }, rule([]), d)).reward).toBe(1);
    d.answer = () => ({ stdout: '{"answer": [{"id": "1", "type": "page", "title": "", "url": "https://x/"}]}' });
    expect((await judge('same', { type: 'tabs' }, rule(['https://x/']), d)).reward).toBe(1);
  });
  it('a file reaches a getter whole, whatever its size', async () => {
    const words = 'words '.repeat(1 << 18);
    const rule = { type: 'rule', rules: words };
    const d = desktop({ '/home/user/w': words, '/home/user/empty': '' });
    expect((await judge('same', { type: 'words', path: '/home/user/w' }, rule, d)).reward).toBe(1);
    const empty = { type: 'rule', rules: '' };
    expect((await judge('same', { type: 'careless', path: '/home/user/empty' }, empty, d)).reward).toBe(1);
  });
  it('what the policy left behind is 0 where the gold file is judged well in its place', async () => {
    const o = await judge('same_file', file(), gold, desktop({ '/home/user/a.txt': Buffer.from([0xff, 0xfe]) }));
    expect(o).toMatchObject({ kind: 'failure', reward: 0 });
    expect(o.report!.checks[0]!.found).toMatch(/UnicodeDecodeError/);
    const rule = { type: 'rule', rules: { number: 7 } };
    expect((await judge('strict_rule', { type: 'words', path: '/home/user/w' }, rule, desktop())).reward).toBe(0);
    expect((await judge('same', { type: 'careless', path: '/nowhere' }, rule, desktop())).reward).toBe(0);
  });
});

describe('a gold file that the policy can change', () => {
  const broken = { '/home/user/a.txt': 'yes', '/home/user/gold.txt': Buffer.from([0xff, 0xfe]) };
  it('is 0 where it cannot be read, and so can neither in its place', async () => {
    const o = await judge('same_file', file(), desktopGold, desktop(broken));
    expect(o).toMatchObject({ kind: 'failure', reward: 0 });
    const both = await judge(
      'same_file',
      file(),
      desktopGold,
      desktop({ ...broken, '/home/user/a.txt': Buffer.from([0xff]) }),
    );
    expect(both.reward).toBe(0);
    expect(both.report!.checks[0]!.found).toMatch(/UnicodeDecodeError/);
  });
  it('excuses no evaluator that lacks a module, or ends', async () => {
    for (const func of ['needs_module', 'dies', 'calls_home'])
      expect((await fault(judge(func, file(), desktopGold, desktop(broken)))).kind, func).toBe('task.verify');
  });
});

describe('a fault on our side is an error, whatever the evaluator makes of it', () => {
  const there = (): FakeDesktop => desktop({ '/home/user/a.txt': 'yes' });
  it.each([
    ['broken', /raised TypeError: it never works/],
    ['similar', /skimage is not installed/],
    ['needs_module', /a_package_nobody_has/],
    ['calls_home', /asks the network/],
    ['dies', /ended while they judged/],
    ['nothing', /gave no number/],
  ])('%s', async (func, words) => {
    const e = await fault(judge(func, file(), gold, there()));
    expect(e.kind).toBe('task.verify');
    expect(e.message).toMatch(words);
    // Others are judged as before.
    expect((await judge('same_file', file(), gold, there())).reward).toBe(1);
  });
  it('a desktop that is lost stays lost; one that fails to answer is a fault', async () => {
    const lost = desktop({ '/home/user/w': 'x' });
    lost.readFile = () => Promise.reject(new StudioError('desktop.lost', 'It is gone.', 'It is replaced.'));
    const rule = { type: 'rule', rules: '' };
    expect((await fault(judge('same', { type: 'words', path: '/home/user/w' }, rule, lost))).kind).toBe('desktop.lost');
    const deaf = desktop();
    deaf.readFile = () => Promise.reject(new Error('no answer'));
    const e = await fault(judge('same', { type: 'words', path: '/home/user/w' }, rule, deaf));
    expect(e.kind).toBe('task.verify');
    expect(e.message).toMatch(/no answer/);
  });
  it('the live web is not asked', async () => {
    const e = await fault(
      judge('same', { type: 'page', url: 'https://example.org/' }, { type: 'rule', rules: '' }, desktop()),
    );
    expect(e.message).toMatch(/example\.org/);
  });
});

describe('deadlines', () => {
  it('a metric that hangs on the candidate is killed: 0 where the gold file ends, an error where it does not', async () => {
    const workers = new EvaluatorWorkers(place, { limitMs: 4000, workers: 1 });
    pools.push(workers);
    const quick = { ...evaluators, workers };
    const hung = await judge('hangs_on', file(), gold, desktop({ '/home/user/a.txt': 'hang' }), quick);
    expect(hung).toMatchObject({ kind: 'failure', reward: 0 });
    const both = desktop({ '/home/user/a.txt': 'hang', '/home/user/gold.txt': 'hang' });
    expect((await fault(judge('hangs_on', file(), desktopGold, both, quick))).kind).toBe('task.verify');
    expect((await judge('same_file', file(), gold, desktop({ '/home/user/a.txt': 'yes' }), quick)).reward).toBe(1);
  });
  it('a cancelled verdict ends the evaluation', async () => {
    const abort = new AbortController(),
      d = desktop({ '/home/user/a.txt': 'hang' });
    const verdict = engineWith(evaluators).verify(
      taskOf({ func: 'hangs_on', result: file(), expected: gold }),
      d,
      { type: 'finished' },
      abort.signal,
    );
    setTimeout(() => abort.abort(), 300);
    expect((await fault(verdict)).kind).toBe('cancelled');
  });
});

describe('the cage', () => {
  it('nothing of this machine can be written', async () => {
    const o = await judge('writes_outside', file(), gold, desktop({ '/home/user/a.txt': 'yes' }));
    expect(o.reward).toBe(1);
    expect(existsSync('/usr/dart-studio-was-here')).toBe(false);
  });
  it('a file is saved under a plain name', async () => {
    const e = await fault(judge('same', { type: 'words', path: '/x', dest: '../x' }, gold, desktop()));
    expect(e.message).toMatch(/no plain file name/);
  });
});

type Verdict = Awaited<ReturnType<typeof judge>>;

describe('a metric that executes the file it judges', () => {
  /** What one worker says of this file, and of a wrong file by another metric after it. */
  async function judged(program: string): Promise<readonly Verdict[]> {
    const workers = new EvaluatorWorkers(place, { limitMs: 20_000, workers: 1 });
    pools.push(workers);
    const one = { ...evaluators, workers },
      d = desktop({ '/home/user/a.txt': program });
    return [
      await judge('check_python_file_by_test_suite', file(), gold, d, one),
      await judge('same_file', file(), gold, d, one),
    ];
  }
  it('judges by what the file does', async () => {
    expect((await judged('answer = 6 * 7'))[0]!.reward).toBe(1);
    expect((await judged('answer = 41'))[0]!.reward).toBe(0);
  });
  it('is judged by itself: whatever the file does to its judge, no other verdict is touched', async () => {
    const forged = "{'done': {'score': 1, 'found': '', 'expected': ''}}";
    const [own, next] = await judged(`import __main__\n__main__.judge = lambda *a: ${forged}`);
    expect([own!.reward, next!.reward]).toEqual([0, 0]);
  });
  it.each([
    ['ends its process', 'import os\nos._exit(0)'],
    ['raises what is a fault elsewhere', 'import a_package_nobody_has'],
    ['cannot be parsed', 'def ('],
    ['asks the network', 'import socket\nsocket.create_connection(("192.0.2.1", 80), 1)'],
    ['asks the desktop', 'import __main__\n__main__.ask("nonsense")'],
    ['floods its judge', 'import __main__\nwhile True: __main__.wire_out.write("x" * 65536)'],
    ['says what cannot be read', 'import __main__\n__main__.wire_out.write("}{\\n")\n__main__.wire_out.flush()'],
    ...(
      [
        ['is an object that turns into no text', '{"faults":[{"toString":1,"valueOf":1}]}'],
        ['is nested lists', `{"faults":[${'['.repeat(5000)}${']'.repeat(5000)}]}`],
        ['is longer than any verdict', `{"done":{"score":1,"found":"${'x'.repeat(70_000)}"}}`],
        ['begins again', '{"stage":"metric"}'],
      ] as const
    ).map(([what, line]) => [
      `says what ${what}`,
      `import __main__\n__main__.wire_out.write(${JSON.stringify(`${line}\n`)})\n__main__.wire_out.flush()\nanswer = 42`,
    ]),
    [
      'says that another part failed',
      'import __main__\n__main__.send({"stage": "result"})\n__main__.send({"raised": {"stage": "expected", "type": "ImportError", "text": ""}})',
    ],
  ])('a file that %s is a failure and no error, and the next is judged as ever', async (_what, program) => {
    const [own, next] = await judged(program);
    expect(own).toMatchObject({ kind: 'failure', reward: 0 });
    expect(next).toMatchObject({ kind: 'failure', reward: 0 });
  });
});
