import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EvaluatorPlace } from '../../../runtime/tasks/bridge/environment.js';
import { EvaluatorWorkers, type BridgeJob, type WorkerPoolOptions } from '../../../runtime/tasks/bridge/workers.js';
import { never } from '../../helpers/tasks/fakeDesktop.js';

/** Who gets a worker, with evaluators of the test: no package is needed. */
const place: EvaluatorPlace = {
  python: execFileSync('python3', ['-c', 'import sys; print(sys.executable)']).toString().trim(),
  checkout: resolve('test/fixtures/tasks/evaluators'),
  name: 'OSWorld',
  version: 'of the test',
};
const quick: BridgeJob = {
  func: 'same',
  result: { value: 'x' },
  expected: { value: 'x' },
  options: {},
  files: new Map(),
};
/** Its getter asks for a file, and goes on when that is answered. */
const asking: BridgeJob = { ...quick, result: { getter: { type: 'words', path: '/w' } } };
const nothing = (): Promise<unknown> => Promise.resolve(null);

let temporary: string, pool: EvaluatorWorkers;
const before = process.env['TMPDIR'];
beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'workers-'));
  process.env['TMPDIR'] = temporary;
});
afterEach(async () => {
  pool.close();
  if (before === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = before;
  await rm(temporary, { recursive: true, force: true });
});
const workers = (o: WorkerPoolOptions = {}, at = place): EvaluatorWorkers =>
  (pool = new EvaluatorWorkers(at, { workers: 1, ...o }));
const run = (signal: AbortSignal = never): Promise<unknown> => pool.run(quick, nothing, signal);

/** A job that has the only worker until it is let go. */
async function busy(): Promise<{ readonly job: Promise<unknown>; readonly letGo: () => void }> {
  let letGo!: () => void;
  const answered = new Promise<Buffer>((done) => {
    letGo = () => done(Buffer.from('x'));
  });
  let job!: Promise<unknown>;
  await new Promise<void>((asked) => {
    job = pool.run(asking, () => (asked(), answered), never);
  });
  return { job, letGo };
}

describe('workers', () => {
  it('a verdict that was cancelled while it waited takes nobody’s turn', async () => {
    workers();
    const first = await busy(),
      stop = new AbortController(),
      cancelled = expect(run(stop.signal)).rejects.toThrow('enough'),
      next = run();
    stop.abort(new Error('enough'));
    await cancelled;
    first.letGo();
    await first.job;
    expect(await next).toMatchObject({ kind: 'done', score: 1 });
  });
  it('nor does one that is cancelled in the moment in which a worker is free', async () => {
    workers();
    const first = await busy(),
      stop = new AbortController(),
      cancelled = expect(run(stop.signal)).rejects.toThrow('enough'),
      next = run();
    ignore(first.job.then(() => stop.abort(new Error('enough'))));
    first.letGo();
    await cancelled;
    expect(await next).toMatchObject({ kind: 'done', score: 1 });
  });
  it('that do not start leave nobody waiting', async () => {
    workers({}, { ...place, checkout: join(temporary, 'none') });
    const all = await Promise.allSettled([run(), run(), run(), run()]);
    expect(all).toMatchObject(Array(4).fill({ status: 'rejected', reason: { kind: 'task.verify' } }));
    // No interpreter at all.
    workers({}, { ...place, python: join(temporary, 'python') });
    const none = await Promise.allSettled([run(), run(), run()]);
    expect(none).toMatchObject(Array(3).fill({ status: 'rejected', reason: { kind: 'task.verify' } }));
    await expect.poll(() => readdir(temporary)).toEqual([]);
  });
  it('a second one is begun while the first is starting', async () => {
    workers({ workers: 2 });
    const a = busy();
    let looks = 0;
    // Its process is there meanwhile, and imports.
    await expect.poll(async () => (await readdir(temporary)).length + looks++).toBeGreaterThan(4);
    for (const { job, letGo } of await Promise.all([a, busy()])) {
      letGo();
      expect(await job).toMatchObject({ kind: 'done' });
    }
  });
  it('whose folder was cleaned away is replaced, and what it was asked is an error', async () => {
    workers();
    expect(await run()).toMatchObject({ kind: 'done', score: 1 });
    await rm(join(temporary, (await readdir(temporary))[0]!), { recursive: true });
    await expect(run()).rejects.toMatchObject({ kind: 'task.verify' });
    expect(await run()).toMatchObject({ kind: 'done', score: 1 });
  });
  it('have no room for their folder: an error each time, until there is room again', async () => {
    workers();
    process.env['TMPDIR'] = join(temporary, 'gone');
    for (let i = 0; i < 3; i++)
      await expect(run()).rejects.toMatchObject({
        kind: 'task.verify',
        error: { remedy: expect.stringContaining(join(temporary, 'gone')) as string },
      });
    process.env['TMPDIR'] = temporary;
    expect(await run()).toMatchObject({ kind: 'done', score: 1 });
  });
  it('a verdict that was cancelled while its files were written is not begun', async () => {
    workers();
    await run();
    const stop = new AbortController(),
      files = new Map([['a', Buffer.alloc(1 << 20)]]),
      job = pool.run({ ...asking, files }, () => new Promise(() => undefined), stop.signal);
    // It has its worker, and is busy with its folder.
    setImmediate(() => stop.abort(new Error('enough')));
    await expect(job).rejects.toThrow('enough');
    expect(await run()).toMatchObject({ kind: 'done', score: 1 });
  });
});

const ignore = (p: Promise<unknown>): void => void p.catch(() => undefined);
