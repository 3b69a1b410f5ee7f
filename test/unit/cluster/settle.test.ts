import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { X11Client } from '../../../runtime/cluster/drivers/x11Client.js';
import { HOLD_MS, procSettler, SettleJudge, TERMINAL_HOLD_MS } from '../../../runtime/cluster/drivers/settle.js';
import { parseStat, parseSyscall, TaskWatch, type Look } from '../../../runtime/cluster/drivers/taskWatch.js';

const quiet: Look = { active: false, ranSince: false, soonestMs: undefined, ranMs: 0, exact: true, terminal: false };

describe('a desktop that does not come to rest', () => {
  const x = { sync: () => Promise.resolve(), isClosed: false } as unknown as X11Client;
  /** One program works on; `kept` is the share of the time in which it waits for a processor. */
  const restless = (kept: number) => {
    const began = performance.now();
    return procSettler(x, {
      look: () => ({ ...quiet, active: true }),
      waits: () =>
        new Map([
          ['1', 7],
          ['2', 100 + kept * (performance.now() - began)],
        ]),
      close: () => undefined,
    });
  };
  afterEach(() => {
    vi.restoreAllMocks();
  });
  it.each([0, 0.25, 0.75])('says what share of the time its programs were kept waiting: %s', async (kept) => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => ++now);
    const r = await restless(kept).settle({ maxMs: 100 });
    expect(r).toMatchObject({ settled: false, starved: expect.closeTo(kept, 1) as number });
  });
  it('a desktop that comes to rest reports no starvation', async () => {
    const s = procSettler(x, { look: () => quiet, waits: () => new Map(), close: () => undefined });
    expect(await s.settle()).not.toHaveProperty('starved');
  });
});

describe('SettleJudge', () => {
  it('exact: settled when all sleep without a timer soon', () => {
    expect(new SettleJudge(20).judge(quiet, 0)).toEqual({ settled: true });
    expect(new SettleJudge(20).judge({ ...quiet, soonestMs: 21 }, 0)).toEqual({ settled: true });
    expect(new SettleJudge(20).judge({ ...quiet, soonestMs: 20 }, 0)).toEqual({ waitMs: 10 });
    expect(new SettleJudge(20).judge({ ...quiet, soonestMs: 0 }, 0)).toEqual({ waitMs: 1 });
    expect(new SettleJudge(20).judge({ ...quiet, active: true }, 0)).toEqual({ waitMs: 1 });
  });
  it('hold: only when nothing ran for one frame', () => {
    const j = new SettleJudge(20),
      hold = { ...quiet, exact: false };
    expect('waitMs' in j.judge({ ...hold, ranSince: true }, 100)).toBe(true);
    expect('waitMs' in j.judge(hold, 100 + HOLD_MS - 1)).toBe(true);
    expect('waitMs' in j.judge({ ...hold, ranSince: true }, 100 + HOLD_MS)).toBe(true);
    expect('waitMs' in j.judge(hold, 100 + HOLD_MS + 1)).toBe(true);
    expect(j.judge(hold, 100 + 2 * HOLD_MS)).toEqual({ settled: true });
  });
  it('hold: activity starts the frame anew, and the first look alone is never enough', () => {
    const j = new SettleJudge(20),
      hold = { ...quiet, exact: false };
    expect('waitMs' in j.judge(hold, 0)).toBe(true);
    j.judge({ ...hold, active: true }, 17);
    expect('waitMs' in j.judge(hold, 18)).toBe(true);
    expect(j.judge(hold, 18 + HOLD_MS)).toEqual({ settled: true });
  });
  it('exact with a terminal: what it passes on is waited for, unless a timer or work is seen', () => {
    const j = new SettleJudge(20),
      terminal = { ...quiet, terminal: true };
    expect(j.judge({ ...terminal, ranSince: true }, 100)).toEqual({ waitMs: TERMINAL_HOLD_MS });
    expect(j.judge({ ...terminal, ranSince: true }, 103)).toEqual({ waitMs: TERMINAL_HOLD_MS });
    expect(j.judge({ ...terminal, active: true, ranSince: true }, 104)).toEqual({ waitMs: 1 });
    expect(j.judge({ ...terminal, ranSince: true, soonestMs: 12 }, 105)).toEqual({ waitMs: 6 });
    expect(j.judge(terminal, 110)).toEqual({ waitMs: TERMINAL_HOLD_MS });
    expect(j.judge(terminal, 110 + TERMINAL_HOLD_MS)).toEqual({ settled: true });
  });
  it('with a terminal, it holds for as long as it is asked to', () => {
    const j = new SettleJudge(20, 150),
      terminal = { ...quiet, terminal: true };
    expect(j.judge(terminal, 0)).toEqual({ waitMs: 4 });
    expect('waitMs' in j.judge(terminal, 149)).toBe(true);
    expect(j.judge(terminal, 150)).toEqual({ settled: true });
    expect(new SettleJudge(20, 150).judge(quiet, 0)).toEqual({ settled: true });
  });
  it('a program that wakes again and again and does next to nothing is at rest after two horizons', () => {
    const polls = { ...quiet, ranSince: true, soonestMs: 100 },
      until = (horizonMs: number, share: number, soonestMs = 100): number | undefined => {
        const j = new SettleJudge(horizonMs);
        for (let t = 0; t < 5000; t += 10)
          if ('settled' in j.judge({ ...polls, soonestMs, ranMs: 7 + share * t }, t)) return t;
        return undefined;
      };
    expect(until(250, 0.001)).toBe(500);
    expect(until(500, 0.009)).toBe(1000);
    expect(until(500, 0.02)).toBeUndefined();
    // Work that ends is waited for; a task that ends says nothing of the others.
    const j = new SettleJudge(250),
      ran = (t: number): number => (t < 700 ? 0.5 * t : 350);
    expect([0, 500, 1000, 1500].map((t) => 'settled' in j.judge({ ...polls, ranMs: ran(t) }, t))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    const ends = new SettleJudge(250);
    expect([9, 4, 4].map((ranMs, i) => 'settled' in ends.judge({ ...polls, ranMs }, 500 * i))).toEqual([
      false,
      false,
      true,
    ]);
    // Frames of an animation are all waited for.
    expect(until(20, 0, 16)).toBeUndefined();
  });
  it('a program that only looks does so until something works, beside a terminal too', () => {
    const polls = { ...quiet, soonestMs: 100, terminal: true },
      j = new SettleJudge(250);
    expect([0, 500].map((t) => 'settled' in j.judge({ ...polls, ranSince: true, ranMs: 7 }, t))).toEqual([
      false,
      false,
    ]);
    // What it has just done may have been for the terminal; then nothing is waited for.
    expect(j.judge({ ...polls, ranMs: 7 }, 500 + TERMINAL_HOLD_MS)).toEqual({ settled: true });
    const worked = new SettleJudge(250);
    for (const t of [0, 500]) worked.judge({ ...polls, ranSince: true, ranMs: 7 }, t);
    worked.judge({ ...polls, active: true, ranSince: true, ranMs: 0 }, 502);
    expect('settled' in worked.judge({ ...polls, ranMs: 9 }, 600)).toBe(false);
  });
  it('a horizon of 0 asks for present work only', () => {
    expect(new SettleJudge(0).judge({ ...quiet, terminal: true }, 0)).toEqual({ settled: true });
    expect(new SettleJudge(0).judge({ ...quiet, soonestMs: 5 }, 0)).toEqual({ settled: true });
    expect(new SettleJudge(0).judge({ ...quiet, exact: false }, 0)).toEqual({ settled: true });
  });
});

describe('parseSyscall', () => {
  it.each([
    ['running\n', { is: 'running' }],
    ['7 0x55d0 0x3 0xffffffff 0x0 0x0 0x0 0x7ffc 0x7f\n', { is: 'in a call' }],
    ['7 0x55d0 0x3 0xf 0x0 0x0 0x0 0x7ffc 0x7f\n', { is: 'in a call', timeoutMs: 15 }],
    ['7 0x55d0 0x3 0xffffffffffffffff 0x0 0x0 0x0 0x7ffc 0x7f\n', { is: 'in a call' }],
    ['232 0x4 0x7ffe 0x100 0x64 0x0 0x0 0x7ffc 0x7f\n', { is: 'in a call', timeoutMs: 100 }],
    ['202 0x4 0x80 0x0 0x0 0x0 0x0 0x7ffc 0x7f\n', { is: 'in a call' }],
    ['0 0x4 0x7ffe 0x100 0x0 0x0 0x0 0x7ffc 0x7f\n', { is: 'in a call' }],
    ['-1 0x7ffc 0x7f\n', { is: 'in a call' }],
  ])('x64 %j', (text, doing) => {
    expect(parseSyscall(text, 'x64')).toEqual(doing);
  });
  it('arm64 numbers', () => {
    expect(parseSyscall('22 0x4 0x7ffe 0x100 0x10 0x0 0x0 0x7ffc 0x7f', 'arm64')).toEqual({
      is: 'in a call',
      timeoutMs: 16,
    });
  });
  it('state and terminal after a name with brackets', () => {
    expect(parseStat('12 (a) S (b) D 1 2 3 0 -1')).toEqual({ state: 'D', terminal: false });
    expect(parseStat('12 (sh) S 1 2 3 34816 -1')).toEqual({ state: 'S', terminal: true });
    expect(parseStat('')).toEqual({ state: '', terminal: false });
  });
});

/** A proc folder made of plain files. */
function fakeProc(): {
  dir: string;
  task: (pid: number, o: { sched?: string; syscall?: string; state?: string; tty?: number }) => void;
  end: (pid: number) => void;
} {
  const dir = mkdtempSync(join(tmpdir(), 'proc-'));
  const now = new Map<number, { sched: string; syscall: string; state: string; tty: number }>();
  return {
    dir,
    task(pid, o) {
      const t = {
        sched: '1 0 1\n',
        syscall: '232 0x4 0x7 0x1 0xffffffff 0x0 0x0',
        state: 'S',
        tty: 0,
        ...now.get(pid),
        ...o,
      };
      now.set(pid, t);
      const d = `${dir}/${pid}/task/${pid}`;
      mkdirSync(d, { recursive: true });
      writeFileSync(`${d}/schedstat`, t.sched);
      writeFileSync(`${d}/syscall`, t.syscall);
      writeFileSync(`${d}/stat`, `${pid} (x) ${t.state} 1 ${pid} ${pid} ${t.tty} -1`);
    },
    end: (pid) => rmSync(`${dir}/${pid}`, { recursive: true }),
  };
}

describe.skipIf(process.arch !== 'x64')('TaskWatch', () => {
  it('sees what ran, what runs and which timer is next, and leaves out the agent', () => {
    const p = fakeProc();
    p.task(1, { syscall: 'running' });
    p.task(5, {});
    p.task(6, { syscall: '7 0x1 0x1 0x1e 0x0 0x0 0x0' });
    const w = new TaskWatch(p.dir);
    expect(w.look()).toEqual({
      active: false,
      ranSince: true,
      soonestMs: 30,
      ranMs: 2e-6,
      exact: true,
      terminal: false,
    });
    expect(w.look()).toMatchObject({ active: false, ranSince: false });
    p.task(5, { sched: '2 0 2\n' });
    expect(w.look()).toMatchObject({ active: false, ranSince: true });
    p.task(5, { syscall: 'running', state: 'R', sched: '3 0 3\n' });
    expect(w.look().active).toBe(true);
    expect(w.look().active).toBe(true);
    p.task(5, { syscall: '0 0x1 0x1', state: 'D' });
    expect(w.look().active).toBe(true);
    p.task(5, { state: 'S' });
    expect(w.look()).toMatchObject({ active: false, ranSince: true });
    w.close();
  });
  it('a task that was woken counts as at work before any core has taken it up', () => {
    const p = fakeProc();
    p.task(5, { syscall: '7 0x1 0x1 0xffffffff 0x0 0x0 0x0' });
    p.task(6, {});
    const w = new TaskWatch(p.dir);
    expect(w.look().active).toBe(false);
    // As the kernel shows it: the call it slept in, no run time and no switch more, only the state.
    p.task(5, { state: 'R' });
    expect(w.look()).toMatchObject({ active: true, ranSince: true });
    expect(w.look().active).toBe(true);
    p.task(5, { state: 'S', sched: '2 0 2\n' });
    expect(w.look()).toMatchObject({ active: false, ranSince: true });
    w.close();
  });
  it('asks a task that did not run since for its state alone', () => {
    const p = fakeProc();
    p.task(5, { syscall: '7 0x1 0x1 0x1e 0x0 0x0 0x0' });
    const w = new TaskWatch(p.dir);
    expect(w.look().soonestMs).toBe(30);
    p.task(5, { syscall: '7 0x1 0x1 0x5 0x0 0x0 0x0' });
    expect(w.look()).toMatchObject({ ranSince: false, soonestMs: 30 });
    p.task(5, { sched: '2 0 2\n' });
    expect(w.look()).toMatchObject({ ranSince: true, soonestMs: 5 });
    w.close();
  });
  it('answers with a time-out that is due before it looks at tasks that ran longer ago', () => {
    const p = fakeProc();
    p.task(5, {});
    p.task(6, { syscall: '7 0x1 0x1 0x10 0x0 0x0 0x0' });
    const w = new TaskWatch(p.dir);
    for (let looks = 0; looks < 20; looks++) w.look();
    // The second one ran; the first is woken, and nobody looks at it.
    p.task(6, { sched: '2 0 2\n' });
    expect(w.look().ranSince).toBe(true);
    p.task(5, { state: 'R' });
    expect(w.look(20)).toMatchObject({ active: false, ranSince: true, soonestMs: 16 });
    expect(w.look(15).active).toBe(true);
    expect(w.look().active).toBe(true);
    p.task(5, { state: 'S', sched: '2 0 2\n' });
    p.task(7, { syscall: 'running', state: 'R' });
    // New tasks are looked for once nothing is due.
    expect(w.look(15).active).toBe(true);
    w.close();
  });
  it('says when a task has a terminal', () => {
    const p = fakeProc();
    p.task(5, {});
    p.task(6, { tty: 34816 });
    const w = new TaskWatch(p.dir);
    expect(w.look().terminal).toBe(true);
    p.task(6, { tty: 0 });
    expect(w.look().terminal).toBe(false);
    w.close();
  });
  it('finds a new task once its parent ran', () => {
    const p = fakeProc();
    p.task(5, {});
    const w = new TaskWatch(p.dir);
    w.look();
    p.task(5, { sched: '9 0 9\n' });
    p.task(7, { syscall: 'running' });
    expect(w.look().active).toBe(true);
    w.close();
  });
});
