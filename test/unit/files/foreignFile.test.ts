import { appendFile, link, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  copyForeign,
  foreignChunks,
  openForeign,
  readForeign,
  readForeignText,
} from '../../../runtime/files/foreignFile.js';
import { ending, fifo, scratch, socket, sparse } from '../../helpers/files/hostile.js';

describe('a foreign file', () => {
  it('is read whole, also one that says it is empty, up to its bound', () =>
    scratch(async (dir) => {
      const path = join(dir, 'a');
      await writeFile(path, 'twelve bytes');
      expect(await readForeignText(path, 12)).toBe('twelve bytes');
      await expect(readForeign(path, 11)).rejects.toMatchObject({ code: 'ETOOLARGE' });
      expect((await readForeignText('/proc/self/status', 1 << 20)).startsWith('Name:')).toBe(true);
      await expect(readForeign('/proc/self/status', 10)).rejects.toMatchObject({ code: 'ETOOLARGE' });
      await sparse(join(dir, 'large'), 1 << 30);
      await expect(readForeign(join(dir, 'large'), 1 << 20)).rejects.toMatchObject({ code: 'ETOOLARGE' });
      await expect(readForeign(join(dir, 'none'), 1)).rejects.toMatchObject({ code: 'ENOENT' });
    }));

  it('that grows while it is read in parts comes with what was added', () =>
    scratch(async (dir) => {
      const path = join(dir, 'a'),
        seen: string[] = [];
      await writeFile(path, 'one');
      for await (const chunk of foreignChunks(path, { size: 4 })) {
        if (seen.push(chunk.toString()) === 1) await appendFile(path, ' two');
      }
      expect(seen.join('')).toBe('one two');
    }));

  it('is a regular one: no FIFO, device, folder or socket, and none of them is waited for', () =>
    scratch(async (dir) => {
      fifo(join(dir, 'fifo'));
      await mkdir(join(dir, 'folder'));
      await symlink(join(dir, 'fifo'), join(dir, 'to-fifo'));
      const close = await socket(join(dir, 'socket'));
      for (const path of [...['fifo', 'folder', 'to-fifo', 'socket'].map((n) => join(dir, n)), '/dev/zero', '/dev/tty'])
        for (const o of [{}, { follow: false }, { write: true }])
          expect(await ending(openForeign(path, o)), path).toMatchObject({ code: 'EIRREGULAR' });
      expect(await ending(copyForeign(join(dir, 'fifo'), join(dir, 'copy'), 1))).toMatchObject({ code: 'EIRREGULAR' });
      await close();
      // More than the threads that file access has: none of them is held.
      await Promise.all(Array.from({ length: 12 }, () => ending(readForeign(join(dir, 'fifo'), 1))));
      await writeFile(join(dir, 'a'), 'still read');
      expect(await readFile(join(dir, 'a'), 'utf8')).toBe('still read');
    }));

  it('is followed through links only where that was asked for', () =>
    scratch(async (dir) => {
      await writeFile(join(dir, 'a'), 'x');
      await symlink(join(dir, 'a'), join(dir, 'link'));
      expect(await readForeignText(join(dir, 'link'), 10)).toBe('x');
      await expect(readForeign(join(dir, 'link'), 10, { follow: false })).rejects.toMatchObject({ code: 'EIRREGULAR' });
    }));

  it('is copied to a file of its own, which is never overwritten', () =>
    scratch(async (dir) => {
      await writeFile(join(dir, 'a'), 'x');
      await link(join(dir, 'a'), join(dir, 'b'));
      await copyForeign(join(dir, 'b'), join(dir, 'c'), 10);
      expect((await stat(join(dir, 'c'))).ino).not.toBe((await stat(join(dir, 'a'))).ino);
      await expect(copyForeign(join(dir, 'a'), join(dir, 'c'), 10)).rejects.toMatchObject({ code: 'EEXIST' });
      await expect(copyForeign(join(dir, 'a'), join(dir, 'd'), 0)).rejects.toMatchObject({ code: 'ETOOLARGE' });
    }));
});
