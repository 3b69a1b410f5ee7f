import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { replaceFile, unfinishedName } from '../../../runtime/files/replaceFile.js';
import { scratch } from '../../helpers/files/hostile.js';

/** Where the next file is made: the names count up. */
function nextPart(path: string): string {
  return unfinishedName(path).replace(/(\d+)\.tmp$/, (_, n) => `${Number(n) + 1}.tmp`);
}

describe('replaceFile', () => {
  it('writes a file that was not there, and replaces one that was', () =>
    scratch(async (dir) => {
      const path = join(dir, 'a.json');
      await replaceFile(path, 'one');
      expect(await readFile(path, 'utf8')).toBe('one');
      await replaceFile(path, Buffer.from('two'), { durable: true });
      expect(await readFile(path, 'utf8')).toBe('two');
      expect(await readdir(dir)).toEqual(['a.json']);
    }));

  it('gives the file the permissions that were asked for, whatever the old one had', () =>
    scratch(async (dir) => {
      const path = join(dir, 'secret');
      await writeFile(path, 'old');
      await chmod(path, 0o644);
      await replaceFile(path, 'new', { mode: 0o600 });
      expect((await stat(path)).mode & 0o777).toBe(0o600);
    }));

  it('leaves what was there, and nothing beside it, when it fails', () =>
    scratch(async (dir) => {
      const path = join(dir, 'folder');
      await mkdir(path);
      await writeFile(join(path, 'kept'), '');
      await expect(replaceFile(path, 'text')).rejects.toMatchObject({ syscall: 'rename' });
      expect(await readdir(dir)).toEqual(['folder']);
      expect(await readdir(path)).toEqual(['kept']);
      await expect(replaceFile(join(dir, 'missing', 'a'), 'text')).rejects.toMatchObject({ code: 'ENOENT' });
      expect(await readdir(dir)).toEqual(['folder']);
    }));

  it('follows no link where the file is made, nor at its own name', () =>
    scratch(async (dir) => {
      const mine = join(dir, 'mine.txt'),
        path = join(dir, 'a');
      await writeFile(mine, 'of the user');
      await symlink(mine, path);
      const part = nextPart(path);
      await symlink(mine, part);
      await replaceFile(path, 'text');
      expect(await readFile(mine, 'utf8')).toBe('of the user');
      expect((await lstat(path)).isFile()).toBe(true);
      expect(await readFile(path, 'utf8')).toBe('text');
      expect((await readdir(dir)).sort()).toEqual(['a', 'mine.txt']);
    }));
});
