import type * as Fs from 'node:fs';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TaskWatch } from '../../../runtime/cluster/drivers/taskWatch.js';

/** Calls of the file system that find no descriptor left. */
const short = vi.hoisted(() => ({ of: new Set<string>() }));
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof Fs>();
  const scarce =
    <A extends unknown[], R>(name: string, call: (...a: A) => R) =>
    (...a: A): R => {
      if (short.of.has(name)) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
      return call(...a);
    };
  return {
    ...fs,
    openSync: scarce('openSync', fs.openSync),
    readdirSync: scarce('readdirSync', fs.readdirSync as (...a: unknown[]) => unknown),
  };
});

describe('a look at the tasks of a desktop', () => {
  let proc: string;
  beforeEach(() => {
    proc = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'proc-'));
  });
  afterEach(() => {
    short.of.clear();
    rmSync(proc, { recursive: true });
  });
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

  it('says how long each has waited for a processor', () => {
    task(7, 'S', '61 0x0\n');
    task(8, 'S', '61 0x0\n');
    const w = new TaskWatch(proc);
    w.look();
    writeFileSync(join(proc, '8/task/8/schedstat'), '5 2500000 9\n');
    expect([...w.waits()]).toEqual([
      ['7', 2e-6],
      ['8', 2.5],
    ]);
    w.close();
  });

  it('follows so many and no more: with more the desktop is at work, and our descriptors last', () => {
    for (let pid = 2; pid < 1100; pid++) task(pid, 'S', '61 0x0\n');
    expect(rests()).toBe(false);
  });

  it.each(['openSync', 'readdirSync'])(
    'takes what it has no descriptors to see (%s) for work, and sees it later',
    (call) => {
      task(7, 'S', '61 0x0\n');
      const w = new TaskWatch(proc);
      short.of.add(call);
      for (let n = 0; n < 3; n++) expect(w.look().active).toBe(true);
      short.of.clear();
      w.look();
      expect(w.look()).toMatchObject({ active: false, exact: true });
      w.close();
    },
  );

  it('sees nothing at rest after it was closed, and opens nothing', () => {
    task(7, 'S', '61 0x0\n');
    const w = new TaskWatch(proc);
    w.look();
    w.close();
    short.of.add('openSync');
    expect(w.look().active).toBe(true);
  });
});
