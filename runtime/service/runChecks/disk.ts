import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

export const gb = (bytes: number): string => `${(bytes / 1e9).toFixed(bytes < 1e10 ? 1 : 0)} GB`;
/** Free bytes where a folder is, or will be. */
export async function freeAt(dir: string): Promise<number> {
  for (let at = dir; ; at = dirname(at)) {
    const s = await statfs(at).catch(() => undefined);
    if (s) return s.bavail * s.bsize;
    if (dirname(at) === at) return 0;
  }
}
