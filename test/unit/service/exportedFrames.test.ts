import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { id, type RolloutId } from '../../../runtime/domain/index.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { framesOf, writeTrajectory } from '../../../runtime/service/trajectories.js';
import { inFolder, makeRun, onePress } from '../../helpers/interchange/make.js';

it('frames of an exported trajectory are files of their own: editing one does not change the run', () =>
  inFolder(async (dir) => {
    await makeRun(join(dir, 'run'), [onePress]);
    const run = await RunReader.open(join(dir, 'run'), { index: 'local' });
    try {
      const view = await recordedView(run, id<RolloutId>('r1')),
        file = join(dir, 'out.traj.jsonl');
      await writeTrajectory(view, file, (f) => run.frames.read(f));
      for (const f of framesOf(view)) {
        const copy = join(dir, 'out.frames', f.hash.slice(0, 2), `${f.hash}.png`),
          before = await run.frames.read(f);
        expect(await readFile(copy)).toEqual(before);
        await writeFile(copy, 'painted over');
        expect(await run.frames.read(f)).toEqual(before);
      }
    } finally {
      await run.close();
    }
  }));
