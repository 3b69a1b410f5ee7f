import { getEventListeners, once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { deadline, withDeadline } from '../../../runtime/concurrency/deadline.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

describe('deadlines', () => {
  it('fires although nobody but its listener is left when garbage is collected', async () => {
    const stop = new AbortController();
    const fired = new Promise<Event>((done) => {
      deadline(50, stop.signal).signal.addEventListener('abort', done);
    });
    for (let i = 0; i < 5; i++) {
      await turn();
      collect();
    }
    expect(((await fired).target as AbortSignal).reason).toMatchObject({ name: 'TimeoutError' });
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  it('does not fire where the answer arrived while the process stood still', async () => {
    const { port1, port2 } = new MessageChannel(),
      { signal, end } = deadline(40);
    await turn();
    const answer = once(port2, 'message');
    port1.postMessage('answer');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 80);
    await answer;
    expect(signal.aborted).toBe(false);
    end();
    port1.close();
  });

  it('fires with the reason of another signal, before or after', async () => {
    const stop = new AbortController(),
      { signal } = deadline(60_000, undefined, stop.signal),
      fired = once(signal, 'abort');
    expect(signal.aborted).toBe(false);
    stop.abort('enough');
    await fired;
    expect(signal.reason).toBe('enough');
    expect(deadline(60_000, stop.signal).signal.reason).toBe('enough');
  });

  it('ends with its work, whatever comes of that', async () => {
    const stop = new AbortController();
    const seen: AbortSignal[] = [];
    const work = (fails: boolean) => (s: AbortSignal) => {
      seen.push(s);
      expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1);
      return fails ? Promise.reject(new Error('no')) : Promise.resolve(7);
    };
    expect(await withDeadline(60_000, [stop.signal], work(false))).toBe(7);
    await expect(withDeadline(60_000, [stop.signal], work(true))).rejects.toThrow('no');
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    stop.abort();
    expect(seen.map((s) => s.aborted)).toEqual([false, false]);
  });
});
