import type * as Fs from 'node:fs/promises';
import { describe, expect, it, vi } from 'vitest';
import { AnnotationLog, readLog } from '../../../runtime/annotations/log.js';
import { withDir } from '../../helpers/data/manager.js';

let full = false;
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof Fs>();
  return {
    ...fs,
    open: async (...a: Parameters<typeof fs.open>): Promise<Fs.FileHandle> => {
      const file = await fs.open(...a);
      for (const name of ['write', 'writev', 'writeFile', 'appendFile'] as const) {
        const own = (file[name] as (...x: unknown[]) => Promise<unknown>).bind(file);
        Object.assign(file, {
          [name]: (...x: unknown[]) =>
            full
              ? Promise.reject(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }))
              : own(...x),
        });
      }
      return file;
    },
  };
});

describe('an edit on a disk that is full', () => {
  // An edit that waits for room never ends: the limit is that of the test.
  it('is refused at once, and nothing waits when the log is closed', { timeout: 60_000 }, () =>
    withDir(async (dir) => {
      const note = (text: string) => ({ type: 'note' as const, rollout: 'r1', at: 1, text }) as never;
      const log = await AnnotationLog.open(dir);
      full = true;
      await expect(log.append(note('lost'))).rejects.toMatchObject({ kind: 'store.io' });
      await log.close();
      full = false;
      const again = await AnnotationLog.open(dir);
      await again.append(note('kept'));
      await again.close();
      expect((await readLog(dir)).damage).toEqual([]);
    }),
  );
});
