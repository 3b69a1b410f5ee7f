import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runFiles } from '../../../extension/model/runFiles.js';
import { ending, fifo, scratch, sparse } from '../../helpers/files/hostile.js';

it('a window that lists runs reads small regular files, and waits for nothing else', () =>
  scratch(async (dir) => {
    await writeFile(join(dir, 'good'), '{}');
    fifo(join(dir, 'fifo'));
    await sparse(join(dir, 'large'), 2 ** 30);
    await mkdir(join(dir, 'folder'));
    await symlink(join(dir, 'good'), join(dir, 'link'));
    expect(await runFiles.read(join(dir, 'good'))).toBe('{}');
    for (const name of ['fifo', 'large', 'folder', 'link', 'none']) {
      const read = runFiles.read(join(dir, name));
      expect(await ending(read), name).toBe('done');
      expect(await read).toBeUndefined();
    }
  }));
