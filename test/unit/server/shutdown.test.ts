import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import { ShutdownCoordinator, type ShutdownRequest } from '../../../runtime/server/shutdown.js';

const asked: ShutdownRequest = { reason: 'shutdown', now: false, code: 0, deadlineMs: 1000 };

function coordinator(cleanup: () => Promise<void> = async () => undefined): {
  c: ShutdownCoordinator;
  calls: string[];
  exited: Promise<number>;
} {
  const calls: string[] = [];
  let exit: (code: number) => void = () => undefined;
  const exited = new Promise<number>((done) => {
    exit = done;
  });
  const c = new ShutdownCoordinator({
    cleanup: async (r) => {
      calls.push(`cleanup ${r.reason}${r.now ? ' now' : ''}`);
      await cleanup();
    },
    hurry: () => calls.push('hurry'),
    leave: async () => {
      calls.push('leave');
    },
    exit: (code) => {
      calls.push(`exit ${code}`);
      exit(code);
    },
    log: () => undefined,
  });
  return { c, calls, exited };
}
const never = (): Promise<void> => new Promise(() => undefined);

describe('going down', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is done once, however often it is asked for, and answers before it leaves', async () => {
    const { c, calls, exited } = coordinator();
    const answers = [c.request(asked), c.request(asked), c.request({ ...asked, reason: 'idle' })];
    expect(c.inProgress).toBe(true);
    await Promise.all(answers);
    expect(await exited).toBe(0);
    expect(calls).toEqual(['cleanup shutdown', 'leave', 'exit 0']);
  });
  it('exits with the highest code asked for', async () => {
    const { c, exited } = coordinator();
    void c.request(asked);
    void c.request({ ...asked, code: 1 });
    expect(await exited).toBe(1);
  });
  it('a first signal takes the grace away, a second one ends it', async () => {
    const { c, calls, exited } = coordinator(never);
    void c.request(asked);
    c.signal('SIGTERM');
    c.signal('SIGINT');
    expect(await exited).toBe(1);
    expect(calls).toEqual(['cleanup shutdown', 'hurry', 'exit 1']);
  });
  it('ends at its deadline when cleaning up hangs', async () => {
    const { c, calls, exited } = coordinator(never);
    void c.request(asked);
    await vi.advanceTimersByTimeAsync(999);
    expect(calls).toEqual(['cleanup shutdown']);
    await vi.advanceTimersByTimeAsync(1);
    expect(await exited).toBe(1);
  });
  it('a clean-up that fails still leaves, with a code', async () => {
    const { c, calls, exited } = coordinator(async () => {
      throw new Error('no');
    });
    await c.request(asked);
    expect(await exited).toBe(1);
    expect(calls).toEqual(['cleanup shutdown', 'leave', 'exit 1']);
  });
  it('faults go down at once with a code; ends of aborted work are none', async () => {
    const { c, calls, exited } = coordinator();
    c.fault(new DOMException('x', 'AbortError'), 'rejection');
    c.fault(new StudioError('cancelled', 'x', 'y'), 'rejection');
    c.fault(Object.assign(new Error('x'), { code: 'ABORT_ERR' }), 'rejection');
    expect(c.inProgress).toBe(false);
    c.fault(new DOMException('x', 'AbortError'), 'exception'); // thrown out of the event loop: state is unknown
    c.fault('a string', 'rejection');
    expect(await exited).toBe(1);
    expect(calls).toEqual(['cleanup fault now', 'leave', 'exit 1']);
  });
});
