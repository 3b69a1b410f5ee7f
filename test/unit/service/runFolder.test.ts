import { cp, mkdir, mkdtemp, open, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import { ServiceError, id, type RunId } from '../../../runtime/domain/index.js';
import * as m from '../../../runtime/protocol/methods.js';
import type { RunSummary } from '../../../runtime/protocol/types.js';
import { createStudioService, type StudioService } from '../../../runtime/service/index.js';
import { parseActiveRuns } from '../../../runtime/protocol/activeRuns.js';
import { recoverRuns } from '../../../runtime/service/recovery.js';
import { planResume, type SessionPlan } from '../../../runtime/service/runSession.js';
import type { Studio } from '../../../runtime/service/studio.js';
import { usedMs } from '../../../runtime/service/usedTime.js';
import { bundle } from '../../helpers/data/manager.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

/** What the service says of run folders and leaves in them. */
let dir = '',
  service: StudioService;
const never = new AbortController().signal;
const call = async <R>(method: { readonly method: string }, params: unknown): Promise<R> =>
  service.handlers.get(method.method)!(params, { signal: never, notify: () => undefined }) as Promise<R>;
const listed = async (root: string): Promise<readonly RunSummary[]> =>
  (await call<{ runs: RunSummary[] }>(m.listRuns, { roots: [root] })).runs;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-folder-'));
  service = createStudioService({
    entry: await bundle('runtime/main.ts', 'runtime'),
    cacheDir: join(dir, 'cache'),
    log: () => undefined,
  });
});
afterAll(async () => {
  await service.close({ now: true });
  await rm(dir, { recursive: true, force: true });
});

describe('a run folder', () => {
  it('has what the run came to, for windows without a runtime', async () => {
    const runs = join(dir, 'a');
    await writeSyntheticRun(join(runs, 'one'), { groups: 6, size: 4, steps: 3, close: 'finished' });
    const [summary] = await listed(runs),
      left = JSON.parse(await readFile(join(runs, 'one', 'summary.json'), 'utf8')) as RunSummary;
    expect(left).toMatchObject({ state: 'finished', rollouts: summary!.rollouts, version: summary!.version });
    expect(left.rollouts).toBeGreaterThan(0);
  });
  it('whose run.json cannot be read is listed with why', async () => {
    const runs = join(dir, 'b');
    await writeSyntheticRun(join(runs, 'one'), { groups: 2, size: 2, steps: 2, close: 'finished' });
    await cp(join(runs, 'one'), join(runs, 'two'), { recursive: true });
    await writeFile(join(runs, 'two', 'run.json'), '{ "id": ');
    await mkdir(join(runs, 'notes'));
    const found = await listed(runs);
    expect(found.map((r) => [r.id, r.damaged?.kind])).toEqual(
      expect.arrayContaining([
        ['synthetic', undefined],
        ['two', 'store.damaged'],
      ]),
    );
    expect(found).toHaveLength(2);
  });
  it('is listed although what was kept of it for lists is damaged', async () => {
    const runs = join(dir, 'kept'),
      cache = join(dir, 'cache', 'summaries');
    await writeSyntheticRun(join(runs, 'one'), { groups: 2, size: 2, steps: 2, close: 'finished' });
    const before = await listed(runs);
    for (const name of await readdir(cache)) await writeFile(join(cache, name), '');
    expect(before[0]).not.toHaveProperty('damaged');
    expect(await listed(runs)).toEqual(before);
  });
  it('with a damaged journal says so, although its index hides it; a whole one has nothing to say', async () => {
    const runs = join(dir, 'c'),
      run = join(runs, 'one');
    await writeSyntheticRun(run, { groups: 30, size: 4, steps: 4, close: 'finished' });
    expect(await call(m.checkRun, { run })).toEqual({ damage: undefined });
    const [first] = await listed(runs),
      [segment] = (await readdir(join(run, 'journal'))).sort(),
      f = await open(join(run, 'journal', segment!), 'r+'),
      { size } = await f.stat();
    await f.write(Buffer.alloc(4000, 7), 0, 4000, Math.floor(size / 2));
    await f.close();
    const { damage } = await call<{ damage: { bytes: number; stretches: number } }>(m.checkRun, { run });
    expect(damage.stretches).toBe(1);
    expect(damage.bytes).toBeGreaterThanOrEqual(4000);
    expect(first!.damage).toBeUndefined();
    // From then on its row says it too.
    expect((await listed(runs))[0]!.damage).toEqual(damage);
  });
});

describe('more minutes', () => {
  it('are counted from what the run has used, and lift whatever ended it', async () => {
    const run = join(dir, 'd', 'r'),
      store = await RunStore.open(run, {
        index: 'local',
        create: {
          id: id<RunId>('r'),
          createdAt: 1,
          config: { preset: 'quickstart', budget: { minutes: 10, updates: 5 } },
        },
      });
    await store.append({ type: 'metrics', source: 'run', values: { elapsedMs: 540_000 } });
    await store.append({ type: 'metrics', source: 'run', values: { elapsedMs: 601_000 } });
    await store.close();
    const reader = await RunReader.open(run, { index: 'local' });
    expect(await usedMs(reader)).toBe(601_000);
    await reader.close();
    // Time journalled between metrics counts too: most phases write no metrics for minutes.
    const timed = join(dir, 'd', 'timed'),
      later = await RunStore.open(timed, {
        index: 'local',
        create: { id: id<RunId>('timed'), createdAt: 1, config: { preset: 'quickstart' } },
      });
    await later.append({ type: 'metrics', source: 'run', values: { elapsedMs: 601_000 } });
    await later.append({ type: 'run.time', elapsedMs: 620_000 });
    await later.close();
    const timedReader = await RunReader.open(timed, { index: 'local' });
    expect(await usedMs(timedReader)).toBe(620_000);
    await timedReader.close();
    const more = await planResume(run, 10 + 601_000 / 60_000, true),
      whole = await planResume(run, 10);
    expect(more.config.budget.minutes! * 60_000).toBeCloseTo(1_201_000, 3);
    expect(more.config.budget.updates).toBeUndefined();
    expect(more.alone).toBe(true);
    // A daemon that goes on with it later keeps to the same.
    const begun: SessionPlan[] = [],
      kept = parseActiveRuns(
        JSON.stringify({
          runs: [
            {
              run,
              id: 'r',
              name: 'r',
              since: 1,
              minutes: more.config.budget.minutes,
              alone: true,
              deaths: 0,
              idleDeaths: 0,
            },
          ],
        }),
      );
    // Somebody evaluates meanwhile: the run is resumed when that is over.
    let evaluating = true;
    const told: string[] = [];
    await recoverRuns(
      {
        activeRuns: { loaded: Promise.resolve(), runs: kept, died: () => Promise.resolve() },
        closing: new AbortController().signal,
        busy: true,
        onIdle(over: () => void) {
          setImmediate(() => {
            evaluating = false;
            over();
          });
          return () => undefined;
        },
        begin(plan: SessionPlan) {
          if (evaluating) return Promise.reject(new ServiceError('busy', 'x is being evaluated.', 'Wait.'));
          return Promise.resolve(void begun.push(plan));
        },
      } as unknown as Studio,
      ({ outcome }) => told.push(outcome),
    );
    expect(told).toEqual(['resumed']);
    expect(begun[0]!.config.budget).toEqual(more.config.budget);
    // What `minutes` alone means: the whole budget, which this run has used.
    expect(whole.config.budget).toMatchObject({ minutes: 10, updates: 5 });
  });
  it('are not asked for beside a whole budget', async () => {
    await expect(call(m.resumeRun, { run: join(dir, 'd', 'r'), minutes: 5, more: 5 })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
  });
});
