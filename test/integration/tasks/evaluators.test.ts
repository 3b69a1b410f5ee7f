import { beforeAll, describe, expect, it } from 'vitest';
import { installEvaluators, openEvaluators } from '../../../runtime/tasks/index.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import { compareAll, type Agreement } from '../../bench/osworld/agreement.js';

/** The pinned evaluators as `dart-studio osworld install` makes them: half a minute and 0.3 GB, once a machine. */
describe("OSWorld's own evaluators", () => {
  let evaluators: Evaluators;
  beforeAll(async () => {
    await installEvaluators();
    evaluators = (await openEvaluators({ idleMs: 1000 }))!;
  }, 600_000);

  it('judge every crafted candidate as our metrics do, but where a reason is given', async () => {
    const all: Agreement[] = await compareAll(evaluators, () => undefined),
      judged = all.filter((a) => a.theirs !== 'error');
    expect(all.filter((a) => !a.agrees)).toEqual([]);
    expect(judged.length).toBeGreaterThan(150);
    expect(judged.some((a) => a.theirs === 1) && judged.some((a) => a.theirs === 0)).toBe(true);
  }, 180_000);
});
