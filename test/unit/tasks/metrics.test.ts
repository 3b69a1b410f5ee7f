import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { metrics } from '../../../runtime/tasks/metrics/index.js';
import { evaluate, pack } from '../../../runtime/tasks/metrics/job.js';
import type { MetricJob } from '../../../runtime/tasks/metrics/job.js';
import { MetricPool } from '../../../runtime/tasks/metrics/metricPool.js';
import type { Value } from '../../../runtime/tasks/values.js';
import { bundle } from '../../helpers/data/manager.js';
import { never } from '../../helpers/tasks/fakeDesktop.js';
import { metricCases } from '../../helpers/tasks/metricCases.js';

let pool: MetricPool;
beforeAll(async () => {
  pool = new MetricPool(await bundle('test/helpers/tasks/metricWorker.ts', 'metrics-vectors'));
});
afterAll(() => {
  pool.close();
});
/** The metric's score; a worker thread must say the same of it, a fault included. */
const score = async (
  name: string,
  result: Value,
  expected?: Value,
  options: Record<string, unknown> = {},
): Promise<number> => {
  const job = (): MetricJob => ({
    func: name,
    result: pack(result, name),
    expected: expected === undefined ? undefined : pack(expected, name),
    options,
    desktopGold: false,
  });
  const here = await evaluate(job()),
    there = await pool.run(job(), never);
  expect(there).toEqual(here);
  const alone = (await metrics[name]!({ result, expected, options })).score;
  expect(here).toMatchObject({ score: alone });
  return alone;
};
describe('metrics', () => {
  it.each(metricCases.map((c) => [c.metric, c.what, c] as const))('%s: %s', async (_metric, _what, c) => {
    const scored = score(c.metric, c.result, c.expected, c.options);
    if (c.score === 'throws') await expect(scored).rejects.toThrow();
    else expect(await scored).toBeCloseTo(c.score, 12);
  });
});

it('every metric scores a result that is not there 0, or says its rule is wrong', async () => {
  for (const [name, metric] of Object.entries(metrics)) {
    let v: number | undefined;
    try {
      v = (await metric({ result: null, expected: undefined, options: {} })).score;
    } catch {
      /* a rule was needed */
    }
    expect([0, undefined], name).toContain(v);
  }
});
