import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OwnWeights } from '../../../../runtime/trainer/remote/ownWeights.js';
import { writeState } from '../../../../runtime/trainer/remote/savedState.js';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof fs>();
  return { ...real, readdir: vi.fn(real.readdir) };
});

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'own-weights-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const state = (version: number) => ({
  version,
  updateSteps: 0,
  weights: `tinker://w${version}`,
  reference: null,
  model: 'm',
  session: 's',
  seq: 0,
});
/** A run with two checkpoints, and weights that neither names. */
async function run(): Promise<{ readonly own: OwnWeights; readonly checkpoints: string }> {
  const checkpoints = join(dir, 'runs', 'a', 'checkpoints');
  await mkdir(checkpoints, { recursive: true });
  for (const v of [1, 2]) await writeState(checkpoints, { base: 'b', rank: 1 } as never, state(v));
  const own = new OwnWeights(checkpoints);
  await own.read();
  for (const v of [1, 2, 3]) await own.saved(`tinker://w${v}`);
  return { own, checkpoints };
}

describe('weights that nothing needs any more', () => {
  it('are those that no checkpoint here and no other run names', async () => {
    const { own, checkpoints } = await run();
    expect(await own.surplus([])).toEqual(['tinker://w3']);
    await rm(join(checkpoints, 'v000001'), { recursive: true });
    // A file that is no checkpoint has none.
    await writeFile(join(checkpoints, 'note.txt'), 'mine');
    expect(await own.surplus([])).toEqual(['tinker://w1', 'tinker://w3']);
    await own.end();
  });

  it('are none while the folder cannot be read just now', async () => {
    const { own } = await run(),
      full = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    vi.mocked(fs.readdir).mockRejectedValueOnce(full);
    expect(await own.surplus([])).toEqual([]);
    expect(await own.surplus([])).toEqual(['tinker://w3']);
    await own.end();
  });
});
