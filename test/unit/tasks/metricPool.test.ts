import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Action } from '../../../runtime/domain/index.js';
import type { ProcessEntry } from '../../../runtime/concurrency/process.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { createTaskEngine, metricWorkers } from '../../../runtime/tasks/index.js';
import { pack } from '../../../runtime/tasks/metrics/job.js';
import type { MetricDone, MetricJob } from '../../../runtime/tasks/metrics/job.js';
import { MetricPool } from '../../../runtime/tasks/metrics/metricPool.js';
import type { MetricPoolOptions } from '../../../runtime/tasks/metrics/metricPool.js';
import type { Value } from '../../../runtime/tasks/values.js';
import { FileValue } from '../../../runtime/tasks/values.js';
import { hostile } from '../../fixtures/tasks/hostile.js';
import { bundle } from '../../helpers/data/manager.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';

let entry: ProcessEntry, mortal: ProcessEntry;
const open: MetricPool[] = [];
const poolOf = (o: MetricPoolOptions = {}, e = entry): MetricPool => {
  const p = new MetricPool(e, o);
  open.push(p);
  return p;
};
beforeAll(async () => {
  entry = await bundle('test/helpers/tasks/metricWorker.ts', 'metrics-pool');
  mortal = await bundle('test/helpers/tasks/mortalMetricWorker.ts', 'metrics-mortal');
});
afterAll(() => {
  for (const p of open) p.close();
});

const job = (func: string, result: Value, expected?: Value, options: Record<string, unknown> = {}): MetricJob => ({
  func,
  result: pack(result, func),
  expected: expected === undefined ? undefined : pack(expected, func),
  options,
  desktopGold: false,
});
const endless = (): MetricJob => job('check_list', `${'a'.repeat(64)}b`, { expect: ['^(a+)+$'] });
const easy = (): MetricJob => job('exact_match', 'x', { expected: 'x' });
const right = { score: 1 };
async function errorOf(p: Promise<unknown>): Promise<StudioError> {
  const e: unknown = await p.then(
    () => new Error('it did not reject'),
    (x: unknown) => x,
  );
  expect(e).toBeInstanceOf(StudioError);
  return e as StudioError;
}
/** How often the event loop of this thread came round while something was awaited. */
async function turns<T>(p: Promise<T>): Promise<{ readonly value: T; readonly turns: number }> {
  let n = 0,
    over = false;
  const count = (): void => {
    n++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  try {
    return { value: await p, turns: n };
  } finally {
    over = true;
  }
}

describe('what an agent leaves behind', () => {
  it.each(hostile.map((h) => [`${h.func}: ${h.what}`, h] as const))('%s comes to a verdict', async (_what, h) => {
    const pool = (open[0] ??= poolOf({ limitMs: 50_000 }));
    expect(await pool.run(job(h.func, h.result, h.expected, h.options), never)).toMatchObject({
      score: expect.any(Number) as number,
    });
  });
});

describe('an expression of the task file that does not end', () => {
  it('is a fault of the verifier that names the metric, while the event loop keeps turning', async () => {
    const engine = createTaskEngine({ metrics: poolOf({ limitMs: 3000 }) }),
      task = taskOf({
        func: 'check_list',
        result: { type: 'vm_file', path: '/a', dest: 'a' },
        expected: { type: 'rule', rules: { expect: ['^(a+)+$'] } },
      }),
      finished: Action = { type: 'finished' },
      d = (text: string): FakeDesktop => new FakeDesktop(undefined, { '/a': text });
    const { value: e, turns: n } = await turns(errorOf(engine.verify(task, d(`${'a'.repeat(64)}b`), finished, never)));
    expect(e.error).toMatchObject({
      kind: 'task.verify',
      message: expect.stringContaining('check_list') as string,
      remedy: expect.stringContaining('regular expressions') as string,
      details: { cause: 'timeout', metric: 'check_list' },
    });
    // It was busy all the while and this thread was not.
    expect(n).toBeGreaterThan(100);
    expect((await engine.verify(task, d('aaa'), finished, never)).reward).toBe(1);
  });
  it.skipIf(process.platform !== 'linux')('ends the worker that would compute it for ever', async () => {
    const threads = (): Set<string> => new Set(readdirSync('/proc/self/task')),
      before = threads(),
      mine = (): string[] => [...threads()].filter((t) => !before.has(t));
    const run = errorOf(poolOf({ limitMs: 300, workers: 1 }).run(endless(), never));
    await expect.poll(mine).not.toEqual([]);
    await run;
    await expect.poll(mine, { timeout: 10_000 }).toEqual([]);
  });
  it('holds up no other verdict', async () => {
    const pool = poolOf({ limitMs: 60_000, workers: 2 }),
      stop = new AbortController(),
      stuck = pool.run(endless(), stop.signal).catch((e: unknown) => e);
    const others = await Promise.all(Array.from({ length: 20 }, () => pool.run(easy(), never)));
    for (const o of others) expect(o).toMatchObject(right);
    stop.abort(new Error('enough'));
    expect(await stuck).toMatchObject({ message: 'enough' });
  });
  it('of more than there are workers the others wait, and all come to their turn', async () => {
    const pool = poolOf({ limitMs: 2000, workers: 2 }),
      stuck = Array.from({ length: 3 }, () => errorOf(pool.run(endless(), never)));
    expect(await pool.run(easy(), never)).toMatchObject(right);
    for (const e of await Promise.all(stuck)) expect(e.error.details).toMatchObject({ cause: 'timeout' });
  });
  it('what was called off before its turn is not begun', async () => {
    const pool = poolOf({ limitMs: 60_000, workers: 1 }),
      stop = new AbortController(),
      first = pool.run(endless(), stop.signal).catch((e: unknown) => e),
      second = pool.run(easy(), stop.signal).catch((e: unknown) => e);
    stop.abort(new Error('enough'));
    expect([await first, await second]).toMatchObject([{ message: 'enough' }, { message: 'enough' }]);
    await expect(pool.run(easy(), stop.signal)).rejects.toThrow('enough');
    pool.close();
  });
});

describe('a worker that ends', () => {
  const crash = async (func: string): Promise<void> => {
    const pool = poolOf({ workers: 1, limitMs: 50_000 }, mortal);
    expect(await pool.run(easy(), never)).toMatchObject(right);
    const after: Promise<MetricDone>[] = [];
    const dying = errorOf(pool.run(job(func, 'x'), never));
    // It waits behind the one that takes the worker with it.
    after.push(pool.run(easy(), never));
    expect((await dying).error).toMatchObject({
      kind: 'task.verify',
      message: expect.stringContaining(func) as string,
      details: { cause: 'crash', metric: func },
    });
    after.push(pool.run(easy(), never));
    for (const d of await Promise.all(after)) expect(d).toMatchObject(right);
  };
  it('by itself is a fault of the verifier; the next verdict has a new one', () => crash('exit'));
  it('by an uncaught error is a fault of the verifier', () => crash('throw'));
  it('for lack of memory is a fault of the verifier', () => crash('memory'));
  it('that does not start is a fault, not a wait', async () => {
    const e = await errorOf(poolOf({}, { file: '/nowhere/runtime.js' }).run(easy(), never));
    expect(e.error).toMatchObject({ kind: 'task.verify', details: { cause: 'crash' } });
  });
  it('when nobody needed it for a while; the next verdict starts another', async () => {
    const pool = poolOf({ idleMs: 1 });
    expect(await pool.run(easy(), never)).toMatchObject(right);
    await new Promise((r) => setTimeout(r, 50));
    expect(await pool.run(easy(), never)).toMatchObject(right);
  });
  it('one pool serves all engines of a process', () => {
    expect(metricWorkers(entry)).toBe(metricWorkers({ file: entry.file }));
  });
});

describe('what the agent can cause is a score of 0 and no fault', () => {
  const finished: Action = { type: 'finished' };
  const rule = (rules: unknown): unknown => ({ type: 'rule', rules });
  const file = (path: string): unknown => ({ type: 'vm_file', path, dest: path.slice(1) });
  const command = { type: 'vm_command_line', command: 'x' };
  const big = 'x'.repeat(4 * 1024 * 1024 + 1);
  const judged = async (evaluator: Record<string, unknown>, d: FakeDesktop): Promise<string | undefined> => {
    const o = await createTaskEngine({ metrics: (open[0] ??= poolOf()) }).verify(taskOf(evaluator), d, finished, never);
    expect(o).toMatchObject({ kind: 'failure', reward: 0 });
    return o.report?.checks[0]?.found;
  };
  it('output of a command that is too long, as result and as what is compared with', async () => {
    const d = new FakeDesktop(() => ({ stdout: big }));
    expect(
      await judged({ func: 'check_include_exclude', result: command, expected: rule({ include: ['x'] }) }, d),
    ).toMatch(/more than 4 MiB/);
    expect(
      await judged({ func: 'is_in_vm_clickboard', result: rule({ expected: 'x' }), expected: command }, d),
    ).toMatch(/more than 4 MiB/);
  });
  it('a file that is too long', async () => {
    const d = new FakeDesktop(undefined, { '/a': big });
    await judged({ func: 'check_include_exclude', result: file('/a'), expected: rule({ include: ['x'] }) }, d);
    await judged({ func: 'compare_text_file', result: file('/a'), expected: file('/a') }, d);
  });
  it('values nested without end', async () => {
    const deep = `{"a": ${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
      d = new FakeDesktop(undefined, { '/a': deep });
    expect(
      await judged({ func: 'check_json_settings', result: file('/a'), expected: rule({ expected: { a: 1 } }) }, d),
    ).toMatch(/nested too deep/);
  });
  it('a gold file on its own desktop that it spoilt; one of the task is a fault as ever', async () => {
    const d = new FakeDesktop(undefined, { '/a': 'x' });
    expect(await judged({ func: 'diff_text_file', result: file('/a'), expected: file('/gone') }, d)).toMatch(/gold/);
    const engine = createTaskEngine({ metrics: (open[0] ??= poolOf()) });
    const t = taskOf({ func: 'diff_text_file', result: file('/a'), expected: rule({ expected: 'x' }) });
    expect((await errorOf(engine.verify(t, d, finished, never))).kind).toBe('task.verify');
  });
  it('names and bytes of a file arrive as they are; only its beginning where that is enough', async () => {
    const data = Buffer.concat([Buffer.from('GIF89a'), Buffer.from([10, 0, 20, 0]), Buffer.alloc(17 * 1024 * 1024)]);
    const f = new FileValue('f.gif', data);
    expect(await poolOf().run(job('check_image_size', f, { width: 10, height: 20 }), never)).toMatchObject(right);
    expect(await poolOf().run(job('check_image_file_size', f, { max_size: data.length + 1 }), never)).toMatchObject({
      score: 1,
      found: `${data.length} bytes`,
    });
  });
});
