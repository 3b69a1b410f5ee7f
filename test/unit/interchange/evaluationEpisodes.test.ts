import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportRun, type ExportReport } from '../../../runtime/interchange/exporter.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { inFolder, makeRun, onePress, poolOf } from '../../helpers/interchange/make.js';
import { take } from '../../helpers/interchange/take.js';

const made = async (dir: string): Promise<void> => {
  await makeRun(join(dir, 'run'), [
    { ...onePress, rollout: 'r1', task: 'a' },
    { ...onePress, rollout: 'probe/heldout/v1/0', task: 'b', provenance: { kind: 'probe' } },
    { ...onePress, rollout: 'probe/try/1', task: 'c', provenance: { kind: 'probe' } },
  ]);
};
const exported = (dir: string, to: string, more: object = {}): Promise<ExportReport> =>
  exportRun(
    { run: join(dir, 'run'), to: join(dir, to), format: 'traj', options: { coordinates: 'qwen25' }, ...more },
    recordedView,
  );

test('episodes of evaluations are no training data: an export leaves them out, and says so', () =>
  inFolder(async (dir) => {
    await made(dir);
    const r = await exported(dir, 'out');
    expect(r.trajectories).toBe(2);
    expect(Object.entries(r.notes)).toEqual([[expect.stringContaining('episodes of evaluations'), 1]]);
    expect(await exported(dir, 'all', { evaluations: true })).toMatchObject({ trajectories: 3, notes: {} });
    expect(await exported(dir, 'named', { rollouts: ['probe/heldout/v1/0'] })).toMatchObject({ trajectories: 1 });
  }));

test('where there is nothing else, the refusal names the option', () =>
  inFolder(async (dir) => {
    await makeRun(join(dir, 'run'), [{ ...onePress, rollout: 'probe/heldout/v1/0', provenance: { kind: 'probe' } }]);
    await expect(exported(dir, 'out')).rejects.toMatchObject({
      kind: 'config.invalid',
      error: { remedy: expect.stringContaining('--evaluations') as string },
    });
  }));

test('an import keeps them out of the experience pool', () =>
  inFolder(async (dir) => {
    await makeRun(join(dir, 'run'), [
      { ...onePress, rollout: 'r1', task: 'a' },
      { ...onePress, rollout: 'probe/heldout/v1/0', task: 'b', provenance: { kind: 'probe' } },
    ]);
    await exported(dir, 'out', { evaluations: true });
    const r = await take(join(dir, 'second'), join(dir, 'out'));
    expect(r).toMatchObject({ imported: 2, pooled: 1, notPooled: { 'it is an episode of an evaluation': 1 } });
    expect(await poolOf(join(dir, 'second', 'run'))).toHaveLength(1);
  }));
