import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { timeLimit } from '../../../runtime/concurrency/timeLimit.js';
import { nextTurn } from '../../../runtime/concurrency/turns.js';

const standStill = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('a time limit', () => {
  it('calls once when the time is up, and never when it was cleared', async () => {
    const told: string[] = [];
    const clear = timeLimit(20, () => told.push('cleared'));
    await new Promise<void>((resolve) => {
      timeLimit(10, () => told.push('over'));
      clear();
      // What is due before has been called then.
      timeLimit(40, resolve);
    });
    expect(told).toEqual(['over']);
  });
  it('is not over when the answer arrived while the process stood still', async () => {
    const { port1, port2 } = new MessageChannel(),
      told: string[] = [];
    // Timers are what the event loop looks at next.
    await nextTurn();
    const clear = timeLimit(40, () => told.push('over'));
    const answer = once(port2, 'message').then(() => {
      clear();
      told.push('answer');
    });
    port1.postMessage('answer');
    standStill(80);
    await answer;
    port1.close();
    expect(told).toEqual(['answer']);
  });
  it('nor when whoever answers could do so only after the process had stood still', async () => {
    const told: string[] = [];
    await new Promise<void>((resolve) => {
      const clear = timeLimit(40, () => {
        told.push('over');
        resolve();
      });
      // The answer comes two turns after the timers were found due.
      setTimeout(
        () =>
          setImmediate(() =>
            setImmediate(() => {
              clear();
              told.push('answer');
              resolve();
            }),
          ),
        20,
      );
      standStill(80);
    });
    expect(told).toEqual(['answer']);
  });
});
