import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeLock, takeSocketFile } from '../../../runtime/server/lock.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dart-lock-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe('the lock of a folder', () => {
  it('is held by one at a time, also under another name of the folder', async () => {
    const first = await takeLock(dir),
      link = `${dir}-link`;
    symlinkSync(dir, link);
    try {
      expect(first).toBeDefined();
      expect(await takeLock(dir)).toBeUndefined();
      expect(await takeLock(link)).toBeUndefined();
      await first!.release();
      const next = await takeLock(link);
      expect(next).toBeDefined();
      await next!.release();
    } finally {
      rmSync(link);
    }
  });
});

describe('a socket file as the lock', () => {
  it('is held by one at a time and released', async () => {
    const path = join(dir, 's');
    const first = await takeSocketFile(path);
    expect(first).toBeDefined();
    expect(await takeSocketFile(path)).toBeUndefined();
    await first!.release();
    const next = await takeSocketFile(path);
    expect(next).toBeDefined();
    await next!.release();
  });
  it('of a killed process is taken over', async () => {
    const path = join(dir, 's'),
      holder = spawn(
        process.execPath,
        ['-e', `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('held'))`],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      );
    await once(holder.stdout, 'data');
    expect(await takeSocketFile(path)).toBeUndefined();
    holder.kill('SIGKILL');
    await once(holder, 'close');
    const next = await takeSocketFile(path);
    expect(next).toBeDefined();
    await next!.release();
  });
});
