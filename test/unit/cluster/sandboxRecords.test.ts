import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stateDir } from '../../../runtime/cluster/providers/sandboxRecords.js';

let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'shm-'));
});
afterEach(() => rm(base, { recursive: true, force: true }));
const usual = (): string => join(base, `dart-studio-${process.getuid!()}`);

describe.skipIf(process.platform === 'win32')('the folder of records of local desktops', () => {
  it('has the same name every time', async () => {
    expect(await stateDir(base)).toBe(usual());
    expect(await stateDir(base)).toBe(usual());
    expect((await stat(join(usual(), 'mnt'))).isDirectory()).toBe(true);
  });

  it('has a name that nobody can foresee where another user may write into that one, and keeps it', async () => {
    await mkdir(usual());
    await chmod(usual(), 0o777);
    const dir = await stateDir(base);
    expect(basename(dir)).toMatch(/^dart-studio-\d+-\w{6}$/);
    expect((await stat(dir)).mode & 0o777).toBe(0o755);
    expect(await stateDir(base)).toBe(dir);
  });

  it('that cannot be made is said with what to do', async () => {
    const file = join(base, 'file');
    await writeFile(file, '');
    await expect(stateDir(file)).rejects.toMatchObject({
      kind: 'desktop.unavailable',
      error: { remedy: expect.stringContaining('chmod 1777') as string },
    });
  });
});
