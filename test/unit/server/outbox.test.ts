import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { congestedBytes, hopelessBytes, Outbox } from '../../../runtime/server/socket.js';

/** A socket whose kernel takes frames when told to. */
class Socket {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  terminated = false;
  readonly sent: string[] = [];
  readonly #waiting: { size: number; done: (e?: Error) => void }[] = [];
  send(data: string, done: (e?: Error) => void): void {
    this.sent.push(data.slice(0, 20));
    this.bufferedAmount += data.length;
    this.#waiting.push({ size: data.length, done });
  }
  take(): void {
    const w = this.#waiting.shift()!;
    this.bufferedAmount -= w.size;
    w.done();
  }
  terminate(): void {
    this.terminated = true;
  }
}
const outbox = (s: Socket): Outbox => new Outbox(s as unknown as WebSocket);

describe('the outbox', () => {
  it('holds states back while the client is behind, and keeps the newest of each', () => {
    const s = new Socket(),
      o = outbox(s);
    o.state('a', () => 'a1');
    void o.send('x'.repeat(congestedBytes + 1));
    for (const n of [2, 3, 4]) {
      o.state('a', () => `a${n}`);
      o.state('b', () => `b${n}`);
    }
    expect(s.sent).toHaveLength(2);
    s.take(); // a1
    expect(s.sent).toHaveLength(2);
    s.take(); // the big one
    expect(s.sent.slice(2)).toEqual(['a4', 'b4']);
    o.state('a', () => 'a5');
    expect(s.sent.at(-1)).toBe('a5');
  });
  it('resolves a send when the frame is taken, in order', async () => {
    const s = new Socket(),
      o = outbox(s),
      done: number[] = [];
    const both = [o.send('1').then(() => done.push(1)), o.send('2').then(() => done.push(2))];
    s.take();
    await both[0];
    expect(done).toEqual([1]);
    s.take();
    await both[1];
    expect(done).toEqual([1, 2]);
  });
  it('cuts off who does not read at all, and refuses to send when closed', async () => {
    const s = new Socket(),
      o = outbox(s);
    s.bufferedAmount = hopelessBytes;
    void o.send('one more');
    expect(s.terminated).toBe(true);
    s.readyState = 3;
    await expect(o.send('x')).rejects.toThrow('closed');
  });
});
