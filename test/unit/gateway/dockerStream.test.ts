import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Duplex, PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { unframed } from '../../../runtime/cluster/providers/dockerContainer.js';

/** As an engine sends an exec's output: stream number, length, bytes. */
const framed = (data: Buffer, number = 1): Buffer => {
  const head = Buffer.alloc(8);
  head[0] = number;
  head.writeUInt32BE(data.length, 4);
  return Buffer.concat([head, data]);
};
/** An exec's connection: what it is told, and what it says. */
function exec(): { stream: Duplex; told: PassThrough; says: PassThrough } {
  const told = new PassThrough(),
    says = new PassThrough();
  return { stream: Duplex.from({ readable: says, writable: told }), told, says };
}

describe('a process in a container as one stream', () => {
  it('carries bytes both ways without the engine’s framing, and ends with it', async () => {
    const e = exec(),
      s = unframed(e.stream),
      [up, down] = [randomBytes(300_000), randomBytes(300_000)];
    s.end(up);
    const heard = buffer(e.told),
      got = buffer(s);
    e.says.write(framed(down.subarray(0, 100_000)));
    e.says.write(framed(Buffer.from('a word on standard error'), 2));
    e.says.end(framed(down.subarray(100_000)));
    expect((await heard).equals(up)).toBe(true);
    expect((await got).equals(down)).toBe(true);
  });

  it('reads no more than is taken', async () => {
    const e = exec(),
      s = unframed(e.stream);
    s.pause();
    let taken = 0;
    while (e.says.write(framed(Buffer.alloc(1 << 16))) || (await Promise.race([once(e.says, 'drain'), still()]))) {
      taken += 1 << 16;
      expect(taken).toBeLessThan(16 << 20);
    }
    expect(taken).toBeGreaterThan(0);
    s.destroy();
    expect(e.stream.destroyed).toBe(true);
  });

  it('gives a slow reader what came before the end', async () => {
    const e = exec(),
      s = unframed(e.stream);
    e.says.end(framed(Buffer.from('the last words')));
    s.end();
    // As an engine's socket goes when the process has ended.
    await once(e.stream, 'end');
    e.stream.destroy();
    await still();
    expect(s.destroyed).toBe(false);
    expect((await buffer(s)).toString()).toBe('the last words');
  });

  it('ends where the engine cuts it', async () => {
    const e = exec(),
      s = unframed(e.stream);
    const why: Error[] = [],
      closed = new Promise((done) => s.once('close', done));
    s.on('error', (x) => why.push(x)).resume();
    e.stream.destroy(new Error('cut'));
    await closed;
    expect(why.map((x) => x.message)).toEqual(['cut']);
  });
});

/** Nothing drains any more: every turn that the streams need has passed. */
async function still(): Promise<undefined> {
  for (let i = 0; i < 50; i++) await new Promise((r) => setImmediate(r));
  return undefined;
}
