import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { endOf } from '../../../runtime/cli/endOf.js';
import { nameOf } from '../../../runtime/cli/evaluatePolicy.js';
import { checkEngineFlags } from '../../../runtime/cli/engineFlags.js';
import { onInterrupt } from '../../../runtime/cli/interrupt.js';
import { watchOutput } from '../../../runtime/cli/outputErrors.js';
import { report } from '../../../runtime/cli/train.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { id, ServiceError, type RunId } from '../../../runtime/domain/index.js';
import { openRun, type TrainResult } from '../../../runtime/run/trainRun.js';
import '../../../runtime/run/backends/index.js';
import { engineDir } from '../../../runtime/trainer/engine/server.js';

const fault = (code: string, more: object = {}): Error =>
  Object.assign(new Error(`${code}: it went wrong`), { code, ...more });

describe('output that cannot be written', () => {
  const watched = (
    working: boolean,
  ): { stdout: EventEmitter; stderr: EventEmitter; ends: number[]; said: string[]; failed: () => boolean } => {
    const stdout = new EventEmitter(),
      stderr = new EventEmitter(),
      ends: number[] = [],
      said: string[] = [],
      output = watchOutput({ stdout, stderr, exit: (code: number) => ends.push(code) } as never, {
        working: () => working,
        say: (text) => said.push(text),
      });
    return { stdout, stderr, ends, said, failed: () => output.failed };
  };
  it('ends no command that works until Ctrl-C', () => {
    const w = watched(true);
    w.stdout.emit('error', fault('EPIPE'));
    w.stderr.emit('error', fault('EPIPE'));
    expect([w.ends, w.said, w.failed()]).toEqual([[], [], false]);
  });
  it('ends any other: for `| head` as done, else with one sentence', () => {
    const w = watched(false);
    w.stderr.emit('error', fault('EPIPE'));
    expect(w.ends).toEqual([]);
    w.stdout.emit('error', fault('EPIPE'));
    expect([w.ends, w.said]).toEqual([[0], []]);
    const full = watched(false);
    full.stdout.emit('error', fault('ENOSPC'));
    full.stdout.emit('error', fault('ENOSPC'));
    expect([full.ends[0], full.said]).toEqual([1, ['The output cannot be written: ENOSPC: it went wrong\n']]);
  });
  it('is a failure, later, of one that works', () => {
    const w = watched(true);
    w.stdout.emit('error', fault('ENOSPC'));
    expect([w.ends, w.said.length, w.failed()]).toEqual([[], 1, true]);
  });
});

describe('a terminal that is closed', () => {
  it('stops a command as Ctrl-C does; of the two signals it sends, the second does not end it', () => {
    const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never),
      before = process.listenerCount('SIGHUP'),
      stop = onInterrupt('Stopping.', () => undefined),
      // Only this command's own: others of this process are left alone.
      told = (s: NodeJS.Signals): void => void process.listeners(s).at(-1)!(s);
    try {
      told('SIGHUP');
      told('SIGHUP');
      expect([stop.signal.aborted, exit.mock.calls]).toEqual([true, []]);
      told('SIGTERM');
      expect(exit.mock.calls).toEqual([[130]]);
    } finally {
      stop.off();
      exit.mockRestore();
    }
    expect(process.listenerCount('SIGHUP')).toBe(before);
  });
});

describe('the error that ends a command', () => {
  it('names the file that cannot be used, with a remedy', () => {
    for (const code of ['ENOENT', 'EACCES', 'EPERM', 'EEXIST', 'ENOTDIR', 'EISDIR', 'EROFS', 'ENOSPC'])
      expect(endOf(fault(code, { path: '/a/b', syscall: 'open' }))).toMatchObject({
        kind: 'store.io',
        message: expect.stringMatching(/^\/a\/b cannot be written or read: /) as string,
        remedy: expect.not.stringContaining('report') as string,
      });
    expect(endOf(fault('ENOSPC', { syscall: 'write' }))).toMatchObject({ kind: 'store.io' });
  });
  it('is ours where it is about no file', () => {
    for (const more of [{ path: 'git', syscall: 'spawn git' }, { syscall: 'kill' }, {}])
      expect(endOf(fault('ENOENT', more)).kind).toBe('internal');
  });
  it('keeps the words of a request', () => {
    expect(endOf(new ServiceError('not.found', 'There is no such thing.', 'Look elsewhere.'))).toMatchObject({
      message: 'There is no such thing.',
      remedy: 'Look elsewhere.',
    });
  });
});

describe('the end of `train`', () => {
  const said = (points: TrainResult['points']): string => {
    let out = '';
    const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      out += String(text);
      return true;
    });
    try {
      report('/runs/a', 'a', { points, version: 1, stopped: 'budget', rollouts: 1 }, { json: false, ofFolder: false });
    } finally {
      spy.mockRestore();
    }
    return out;
  };
  const point = (label: string, successes: number): TrainResult['points'][number] => ({
    label,
    version: 1,
    episodes: 10,
    successes,
    errors: 0,
    low: 0,
    high: 1,
    perFamily: {},
    infeasible: { episodes: 0, successes: 0 },
  });
  it('has no heading over nothing, and no gain of one evaluation over itself', () => {
    expect(said([])).not.toMatch(/Success on|by family/);
    expect(said([point('final', 5)])).not.toMatch(/gained|by family/);
    expect(said([point('untrained', 1), point('final', 5)])).toContain('gained: 40 points');
  });
});

describe('results of `evaluate --policy`', () => {
  it('are named by the version once', () => {
    const config = parseRunFile({ preset: 'quickstart' });
    expect(nameOf({ config, checkpoint: { version: 43, dir: '/x' }, name: 'run-a v43' }, false)).toBe('run-a-v43');
    expect(nameOf({ config, name: 'run-a' }, true)).toBe('run-a-blind');
  });
});

describe('a run that cannot start', () => {
  it('leaves no folder where the policy it starts from is not there', async () => {
    const dir = join(tmpdir(), `no-run-${process.pid}`),
      config = parseRunFile({ preset: 'quickstart', warmStart: { from: '/nowhere' } });
    await expect(
      openRun({ config, dir, run: id<RunId>('a'), resume: false, entry: { file: '/none' } } as never),
    ).rejects.toMatchObject({ kind: 'config.invalid' });
    expect(existsSync(dir)).toBe(false);
  });
});

describe('`engine serve`', () => {
  it('refuses an option that the engine does not have', async () => {
    await expect(checkEngineFlags(['--bogus', '1'], engineDir())).rejects.toMatchObject({
      kind: 'config.invalid',
      message: expect.stringContaining('--bogus') as string,
    });
    const flags = ['--lora', '16', '--port=0', '--no-checkpointing', '--adapter-root', '/a', '--allow-remote-code'];
    await checkEngineFlags(flags, engineDir());
  });
});
