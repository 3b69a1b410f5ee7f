import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { activeRunsBytes, activeRunsFile, parseActiveRuns } from '../../runtime/protocol/activeRuns.js';

/** Whether the last runtime ended in the middle of a run that the next one goes on with. */
export async function wasInterrupted(storage: string): Promise<boolean> {
  try {
    const f = await open(join(storage, activeRunsFile), 'r');
    try {
      if ((await f.stat()).size > activeRunsBytes) return false;
      return parseActiveRuns(await f.readFile('utf8')).some((r) => r.left === undefined);
    } finally {
      await f.close();
    }
  } catch {
    return false;
  }
}
