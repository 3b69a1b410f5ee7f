import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { TaskWatch } from '../../../runtime/cluster/index.js';

const why =
  process.platform !== 'linux' || process.arch !== 'x64' ? 'looking at tasks needs Linux on x86-64' : undefined;
if (why) console.warn(`skipped: ${why}`);

/**
 * The window between "woken" and "taken up by a core" is tens of microseconds on a quiet machine, and milliseconds
 * where the host is slow to give an idle core back. Without its state being read, a process in it looked asleep in one
 * of fifty to one of five tries here.
 */
it.skipIf(why)('a process is at work from the moment it is woken', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'proc-'));
  const child = spawn(process.execPath, ['-e', 'process.stdin.pipe(process.stdout)'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const w = new TaskWatch(dir);
  try {
    symlinkSync(`/proc/${child.pid}`, join(dir, String(child.pid)));
    const answers: string[] = [];
    for (let i = 0; i < 400; i++) {
      const answer = once(child.stdout, 'data');
      child.stdin.write('x'); // the socket is written, and its reader woken, before this returns
      const look = w.look();
      answers.push(look.active || look.ranSince ? 'at work' : 'at rest');
      await answer;
      // Until it is well asleep and its core idle, while this one stays awake.
      for (let calm = 0; calm < 30;) calm = w.look().active ? 0 : calm + 1;
    }
    expect(answers.filter((a) => a === 'at rest')).toEqual([]);
  } finally {
    child.kill();
    w.close();
    rmSync(dir, { recursive: true });
  }
});
