import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TaskWatch } from '../../../runtime/cluster/drivers/taskWatch.js';

describe('a look at the tasks of a desktop', () => {
  let proc: string;
  beforeEach(() => {
    proc = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'proc-'));
  });
  afterEach(() => rmSync(proc, { recursive: true }));
  const task = (pid: number, state: string, syscall?: string): void => {
    const dir = join(proc, String(pid), 'task', String(pid));
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'schedstat'), '1 2 3\n');
    writeFileSync(join(dir, 'stat'), `${pid} (a program) ${state} 1 1 1 0 0\n`);
    if (syscall !== undefined) writeFileSync(join(dir, 'syscall'), syscall);
  };
  const rests = (): boolean => {
    const w = new TaskWatch(proc);
    w.look();
    const look = w.look();
    w.close();
    return !look.active && look.exact;
  };

  it('counts one whose system call cannot be read by its state: a program that is just being started is at work', () => {
    task(7, 'S', '61 0x0\n');
    expect(rests()).toBe(true);
    task(8, 'S');
    expect(rests()).toBe(true);
    task(9, 'R');
    expect(rests()).toBe(false);
  });

  it('follows so many and no more: with more the desktop is at work, and our descriptors last', () => {
    for (let pid = 2; pid < 1100; pid++) task(pid, 'S', '61 0x0\n');
    expect(rests()).toBe(false);
  });
});
