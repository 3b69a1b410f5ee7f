import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { activeRunsFile, parseActiveRuns, type ActiveRun } from '../../../runtime/protocol/activeRuns.js';
import * as m from '../../../runtime/protocol/methods.js';
import { createStudioService, type Broadcast, type StudioService } from '../../../runtime/service/index.js';
import { bundle } from '../../helpers/data/manager.js';

/** What the next daemon finds of a run that was active; the training itself is the test's. */
class Training {
  state = 'running';
  #end = (): void => undefined;
  readonly #ended = new Promise<void>((done) => (this.#end = done));
  evaluations = 0;
  desktops = { onChange: () => undefined };
  data = { recorded: 0, store: { closed: true }, onPool: () => undefined };
  run(): Promise<void> {
    return this.#ended;
  }
  wireStatus(): unknown {
    return { state: this.state, rollouts: 0, version: 0 };
  }
  pause(): void {
    this.state = 'paused';
  }
  unpause(): void {
    // Its disk is full.
    if (!this.full) this.state = 'running';
  }
  full = false;
  /** Desktops and processes are gone. */
  end(): void {
    this.#end();
  }
}
let training = new Training();
vi.mock('../../../runtime/run/trainRun.js', async (original) => ({
  ...(await original<object>()),
  openRun: () => Promise.resolve(training),
}));
vi.mock('../../../runtime/cluster/provide.js', async (original) => ({
  ...(await original<object>()),
  chooseProvider: () => Promise.resolve({ dispose: () => Promise.resolve() }),
  reapLeftovers: () => Promise.resolve(0),
}));
/** An evaluation or a replay, until the test ends it. */
let endWork = (): void => undefined;
const work = (): Promise<unknown> => new Promise((done) => (endWork = () => done({})));
vi.mock('../../../runtime/run/evaluateCheckpoint.js', () => ({ evaluateCheckpoint: () => work() }));
vi.mock('../../../runtime/service/replays.js', () => ({ replayRevision: () => work() }));

let dir = '',
  entry: { file: string },
  service: StudioService;
const told: Broadcast[] = [];
const make = (): StudioService => {
  const s = createStudioService({ entry, cacheDir: dir, log: () => undefined });
  s.onBroadcast((b) => told.push(b));
  return s;
};
beforeAll(async () => {
  entry = await bundle('runtime/main.ts', 'runtime');
});
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-active-'));
  training = new Training();
  told.length = 0;
  service = make();
});
afterEach(async () => {
  training.end();
  await service.close({ now: true });
  await rm(dir, { recursive: true, force: true });
});
const never = new AbortController().signal;
const call = async <R>(method: { readonly method: string }, params: object): Promise<R> =>
  service.handlers.get(method.method)!(params, { signal: never, notify: () => undefined }) as Promise<R>;
const start = async (): Promise<string> => (await call<{ run: string }>(m.startRun, { text: '{}', base: dir })).run;
const onDisk = async (): Promise<readonly ActiveRun[]> =>
  parseActiveRuns(await readFile(join(dir, activeRunsFile), 'utf8'));

describe('of an active run the next daemon finds', () => {
  it.each([['SIGTERM'], ['a fault']])('that a person paused it, when %s ends this one', async () => {
    const run = await start();
    await call(m.pauseRun, { run });
    expect(await onDisk()).toMatchObject([{ run, paused: true }]);
    const closed = service.close({ now: true, keep: true });
    await expect.poll(() => told).toContainEqual({ method: 'run/changed', params: { run, state: 'stopping' } });
    training.end();
    await closed;
    expect(await onDisk()).toMatchObject([{ run, paused: true }]);
  });
  it('that a person wants it to go on, though its disk is full', async () => {
    const run = await start();
    training.full = true;
    await call(m.pauseRun, { run });
    await call(m.unpauseRun, { run });
    const [record] = await onDisk();
    expect(record).toMatchObject({ run });
    expect(record).not.toHaveProperty('paused');
  });
  it.each([
    ['a person stops it', (run: string) => call(m.stopRun, { run, now: true })],
    ['a person ends the runtime', () => service.close({ now: false })],
  ])('nothing as soon as %s, before the run has closed', async (_, stop) => {
    const run = await start(),
      stopped = stop(run).catch(() => undefined); // there is no folder to sum up
    await expect.poll(onDisk).toEqual([]);
    expect(service.active).toEqual([run]);
    training.end();
    await stopped;
  });
});

describe('no run begins beside', () => {
  it.each([
    ['an evaluation', m.evaluate, {}],
    ['a replay', m.replayTrajectory, { rollout: 'r1' }],
  ])('%s, and it is said when one may', async (_, method, more) => {
    const working = call(method, { run: '/runs/a', ...more });
    await expect(start()).rejects.toMatchObject({
      kind: 'busy',
      message: expect.stringContaining('/runs/a') as string,
      remedy: 'Wait until it is over, or cancel it.',
    });
    endWork();
    await working;
    await start();
    expect(service.active).toHaveLength(1);
  });
});
