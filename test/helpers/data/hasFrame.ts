import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { runPaths } from '../../../runtime/data/store/runStore.js';

/** Whether a run folder has this screen, whoever writes it. */
export const hasFrame = async (run: string, hash: string): Promise<boolean> =>
  (await new PngFrameStore(runPaths(run).frames).place(hash)) !== undefined;
