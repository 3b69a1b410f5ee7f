import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rename, utimes, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { folderHolder, lockFolder, type FolderLock } from '../../../runtime/data/store/folderLock.js';
import { hasKernelLock } from '../../../runtime/data/store/kernelLock.js';
import { askPipe, listenPipe } from '../../../runtime/data/store/pipeLock.js';

let dir: string;
const open: FolderLock[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dart-lock-'));
});
afterEach(async () => {
  for (const l of open.splice(0)) await l.release();
  rmSync(dir, { recursive: true, force: true });
});

async function take(at = dir): Promise<FolderLock | undefined> {
  const taken = await lockFolder(at);
  if ('holder' in taken) return undefined;
  open.push(taken.lock);
  return taken.lock;
}
interface Told {
  kernel?: string;
  namespace?: string;
  pid: number;
  start?: string;
  inode: string;
}
const claimFile = (epoch: number): string => join(dir, 'lock', String(epoch), 'owner.json');
const claim = (epoch: number): Told => JSON.parse(readFileSync(claimFile(epoch), 'utf8')) as Told;
/** The claim as a holder elsewhere would have written it. */
async function retell(epoch: number, change: Partial<Told>): Promise<void> {
  await writeFile(claimFile(epoch), JSON.stringify({ ...claim(epoch), ...change }));
}
const silent = (epoch: number, seconds: number): Promise<void> => {
  const at = Date.now() / 1000 - seconds;
  return utimes(join(dir, 'lock', String(epoch), 'alive'), at, at);
};

describe('the lock of a folder', () => {
  it('is held by one at a time, also under another name of the folder, and says by whom', async () => {
    const link = `${dir}-link`;
    symlinkSync(dir, link);
    try {
      const first = await take();
      expect(first).toBeDefined();
      expect(await lockFolder(dir)).toMatchObject({ holder: { pid: process.pid } });
      expect(await take(link)).toBeUndefined();
      expect(await folderHolder(link)).toMatchObject({ pid: process.pid });
      await first!.release();
      expect(await folderHolder(dir)).toBeUndefined();
      expect(await take(link)).toBeDefined();
    } finally {
      rmSync(link);
    }
  });
  it('has a greater epoch with every holder and leaves only regular files', async () => {
    for (const epoch of [1, 2, 3]) {
      const lock = (await take())!;
      expect(lock.epoch).toBe(epoch);
      expect(await lock.verify()).toBe(true);
      await lock.release();
      await lock.release();
      expect(await lock.verify()).toBe(false);
    }
    expect(readdirSync(join(dir, 'lock'))).toEqual(['3']);
    for (const name of readdirSync(join(dir, 'lock', '3')))
      expect(statSync(join(dir, 'lock', '3', name)).isFile()).toBe(true);
  });
  it('goes to exactly one of many at once', async () => {
    for (let round = 0; round < 3; round++) {
      const all = await Promise.all(Array.from({ length: 12 }, () => take()));
      const won = all.filter((l) => l !== undefined);
      expect(won).toHaveLength(1);
      expect(await won[0]!.verify()).toBe(true);
      await won[0]!.release();
    }
  });
  it('does not go to a contender that was slow while others came and went', async () => {
    // Somebody finds epoch 1 over and prepares to take 2. Meanwhile 2 and 3 are held, and 2 is cleaned away.
    await (await take())!.release();
    const slow = await mkdtemp(join(dir, 'lock', 'new-'));
    await writeFile(join(slow, 'owner.json'), JSON.stringify({ pid: process.pid, host: 'h', since: 's', inode: '1' }));
    await (await take())!.release();
    const third = (await take())!;
    await rename(slow, join(dir, 'lock', '2'));
    expect(await take()).toBeUndefined();
    expect(await third.verify()).toBe(true);
    expect(await folderHolder(dir)).toMatchObject({
      pid: process.pid,
      host: expect.not.stringMatching(/^h$/) as string,
    });
  });
  it('of a copied folder is nobody’s, also while the original is held', async () => {
    await take();
    const copy = join(dir, 'copy');
    cpSync(join(dir, 'lock'), join(copy, 'lock'), { recursive: true });
    expect(await folderHolder(copy)).toBeUndefined();
    expect((await take(copy))?.epoch).toBe(2);
  });
  it('carries a kernel lock while it is held', async () => {
    const lock = (await take())!,
      alive = join(dir, 'lock', '1', 'alive');
    expect(await hasKernelLock(alive)).toBe(true);
    await lock.release();
    expect(await hasKernelLock(alive)).toBe(false);
  });
});

describe('a holder that is not ours to see', () => {
  it('with our process id from before is dead', async () => {
    await take();
    await retell(1, { start: '1' });
    expect(await folderHolder(dir)).toBeUndefined();
  });
  it('which was a thread of ours that died is dead, too', async () => {
    const lock = await take();
    expect(await folderHolder(dir)).toMatchObject({ pid: process.pid });
    await lock!.release();
    // What a thread leaves: its claim, and a file that is closed.
    await rename(join(dir, 'lock', '1', 'released.json'), claimFile(1));
    expect(await folderHolder(dir)).toBeUndefined();
    expect((await take())?.epoch).toBe(2);
  });
  it('in another process namespace is judged by the kernel lock', async () => {
    const lock = await take();
    await retell(1, { namespace: 'pid:[1]', pid: 1 });
    await silent(1, 3600);
    expect(await take()).toBeUndefined();
    expect(await folderHolder(dir)).toMatchObject({ pid: 1 });
    await lock!.release();
    // What it leaves when it is killed: its claim, and no lock.
    await rename(join(dir, 'lock', '1', 'released.json'), claimFile(1));
    expect((await take())?.epoch).toBe(2);
  });
  it('on another machine is alive as long as it says so, and is stopped when it was only slow', async () => {
    const lock = (await take())!;
    await retell(1, { kernel: 'another' });
    expect(await take()).toBeUndefined();
    await silent(1, 20);
    expect(await take()).toBeUndefined();
    await silent(1, 40);
    expect(await lock.verify()).toBe(true);
    const next = await take();
    expect(next?.epoch).toBe(2);
    expect(await lock.verify()).toBe(false);
    await lock.release();
    expect(await next!.verify()).toBe(true);
    expect(await take()).toBeUndefined();
  });
  it('that wrote something else than a claim holds it only while its file is locked', async () => {
    const lock = (await take())!;
    for (const text of ['', '[]', '{"pid":-1}', 'null', 'x'.repeat(64 << 20)]) {
      await writeFile(claimFile(1), text);
      expect(await folderHolder(dir)).toBe('unknown');
      expect(await take()).toBeUndefined();
    }
    await lock.release();
    rmSync(join(dir, 'lock', '1', 'released.json'));
    execFileSync('mkfifo', [claimFile(1)]);
    expect(await folderHolder(dir)).toBeUndefined();
    expect((await take())?.epoch).toBe(2);
  });
});

describe('who may hold it', () => {
  it('is decided by the permissions of the folder, whatever the umask', async () => {
    const before = process.umask(0);
    try {
      await take();
    } finally {
      process.umask(before);
    }
    expect(statSync(join(dir, 'lock')).mode & 0o777).toBe(0o755);
    expect(statSync(join(dir, 'lock', '1')).mode & 0o777).toBe(0o755);
    // Whoever can open it can lock it.
    expect(statSync(join(dir, 'lock', '1', 'alive')).mode & 0o777).toBe(0o600);
    await open.pop()!.release();
    chmodSync(join(dir, 'lock'), 0o777);
    await take();
    expect(statSync(join(dir, 'lock')).mode & 0o777).toBe(0o755);
  });
  it('is not led elsewhere by a link, and says what is wrong', async () => {
    await mkdir(join(dir, 'elsewhere'));
    symlinkSync(join(dir, 'elsewhere'), join(dir, 'lock'));
    await expect(lockFolder(dir)).rejects.toMatchObject({ kind: 'store.io' });
    expect(readdirSync(join(dir, 'elsewhere'))).toEqual([]);
    await expect(lockFolder(join(dir, 'missing'))).rejects.toMatchObject({ kind: 'store.io' });
  });
});

describe('a named pipe as the lock', () => {
  it('is held by one at a time, says by whom, and is released', async () => {
    const path = join(dir, 's'),
      me = { pid: 7, host: 'h', since: 's' };
    const first = await listenPipe(path, JSON.stringify(me));
    expect(first).toBeDefined();
    expect(await listenPipe(path, '')).toBeUndefined();
    expect(await askPipe(path)).toEqual(me);
    await first!.release();
    expect(await askPipe(path)).toBeUndefined();
    const next = await listenPipe(path, '');
    expect(next).toBeDefined();
    await next!.release();
  });
  it('of somebody who never stops talking, or talks slowly, costs a few kilobytes and a second', async () => {
    for (const [i, chunk] of [Buffer.alloc(1 << 20), Buffer.from('x')].entries()) {
      let sent = 0;
      const path = join(dir, `s${i}`);
      const server: Server = createServer((s) => {
        s.on('error', () => undefined).on('close', () => clearInterval(timer));
        const more = (): void => void (s.write(chunk), (sent += chunk.length));
        const timer = setInterval(more, i === 0 ? 0 : 100);
      });
      await new Promise<void>((r) => server.listen(path, r));
      expect(await askPipe(path)).toBe('unknown');
      expect(sent).toBeLessThan(64 << 20);
      await new Promise((r) => server.close(r));
    }
  });
});
