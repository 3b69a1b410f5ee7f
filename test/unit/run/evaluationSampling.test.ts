import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { hash32, id, type RolloutId } from '../../../runtime/domain/index.js';
import { probeSampling } from '../../../runtime/rollout/sampling.js';
import { evaluateCheckpoint } from '../../../runtime/run/evaluateCheckpoint.js';
import { bundle } from '../../helpers/data/manager.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

const asked: (number | undefined)[] = [];
vi.mock('../../../runtime/run/engine.js', () => ({
  startEngine: () => Promise.resolve({ pool: {}, policy: {}, close: () => Promise.resolve() }),
}));
vi.mock('../../../runtime/run/evaluateEpisodes.js', () => ({
  evaluateNow: (o: { readonly temperature?: number }) => {
    asked.push(o.temperature);
    return Promise.resolve({ version: 0, episodes: 0, successes: 0, errors: 0, low: 0, high: 1, perFamily: {} });
  },
}));

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-sampling-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

it('a sampled evaluation has the temperature of training, any other one takes the most probable choice', async () => {
  const entry = await bundle('runtime/main.ts', 'runtime'),
    run = join(dir, 'run');
  await writeSyntheticRun(run, {
    groups: 1,
    size: 2,
    steps: 1,
    close: 'finished',
    config: { policy: { temperature: 0.6 } },
  });
  const evaluate = (o: { readonly sampled?: boolean }): Promise<unknown> =>
    evaluateCheckpoint({ dir: run, version: 0, entry, signal: new AbortController().signal, ...o });
  await evaluate({ sampled: true });
  await evaluate({});
  expect(asked).toEqual([0.6, undefined]);
});

it('what is sampled has the draws of its run, which another seed has not; the most probable choice has no draws', () => {
  const order = { rollout: id<RolloutId>('words/9/0') } as Parameters<ReturnType<typeof probeSampling>>[0],
    [one, other] = [probeSampling(1), probeSampling(2)];
  expect(one(order, 0.6)).toMatchObject({ greedy: false, temperature: 0.6 });
  expect(one(order, 0.6)).toEqual(probeSampling(1)(order, 0.6));
  expect(one(order, 0.6).seed).not.toBe(other(order, 0.6).seed);
  expect(one(order, 0.6).seed).not.toBe(one({ ...order, rollout: id<RolloutId>('words/9/1') }, 0.6).seed);
  // As before, to the bit.
  for (const of of [one, other])
    expect(of(order)).toEqual({ greedy: true, temperature: 1, seed: hash32('probe/words/9/0') });
});
