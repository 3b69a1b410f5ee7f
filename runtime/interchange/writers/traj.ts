import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { serializeTrajectory } from '../../domain/index.js';
import { unitView } from '../revise.js';
import { recordsOf } from '../stepRecord.js';
import { copyFrame, fileName } from './write.js';
import type { WriteContext, Writer } from './write.js';

/**
 * Our own files, one a trajectory, with tokens, prompts, weights and verdicts; frames/ beside them. They open in the editor
 * without a run.
 */
export function trajWriter({ run, view, dir }: WriteContext): Writer {
  return {
    async add(t, { root, places }) {
      const frames = [...t.steps.map((s) => s.frame), ...(t.last ? [t.last] : [])];
      for (const f of frames) {
        const to = join(dir, 'frames', f.hash.slice(0, 2), `${f.hash}.png`);
        await mkdir(dirname(to), { recursive: true });
        await copyFrame(run, f, to);
      }
      const recorded = await view(run, root);
      await writeFile(
        join(dir, `${fileName(t.id)}.traj.jsonl`),
        serializeTrajectory(unitView(recorded, t, places), { records: recordsOf(t.steps) }),
      );
    },
    close: () => Promise.resolve(),
  };
}
