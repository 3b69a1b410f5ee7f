import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { unixSocket } from '../../../runtime/cluster/drivers/unixSocket.js';
import { PortRelay, type PortOptions } from '../../../runtime/gateway/osworld/ports.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const o of open.splice(0)) await o.close();
});

/** What is inside the desktop: a unix socket on which `serve` has each connection. */
async function inside(serve: (s: Socket) => void): Promise<() => Promise<Duplex>> {
  const dir = await mkdtemp(join(tmpdir(), 'ports-')),
    path = join(dir, 's'),
    sockets = new Set<Socket>(),
    server: Server = createServer({ allowHalfOpen: true }, (s) => {
      sockets.add(s);
      s.on('error', () => s.destroy());
      serve(s);
    });
  await new Promise<void>((done) => server.listen(path, done));
  open.push({
    close: async () => {
      for (const s of sockets) s.destroy();
      server.close();
      await rm(dir, { recursive: true, force: true });
    },
  });
  return () => unixSocket(path);
}
async function relayTo(o: PortOptions): Promise<PortRelay> {
  const relay = await PortRelay.listen(o);
  open.push(relay);
  return relay;
}
const client = async (relay: PortRelay): Promise<Socket> => {
  const s = connect({ port: relay.port, host: '127.0.0.1', allowHalfOpen: true });
  s.on('error', () => s.destroy());
  await once(s, 'connect');
  return s;
};
const refused = async (port: number, host: string): Promise<string | undefined> => {
  const [e] = (await once(connect(port, host), 'error')) as [NodeJS.ErrnoException];
  return e.code;
};
/** Everything until it ends, whether or not it was cut. */
const rest = (s: Socket): Promise<Buffer | 'cut'> => buffer(s).catch(() => 'cut' as const);

describe('a port that leads into a desktop', () => {
  it('carries bytes both ways, megabytes as well, and each half ends by itself', async () => {
    const relay = await relayTo({ open: await inside((s) => s.pipe(s)) }),
      sent = randomBytes(8 << 20),
      c = await client(relay);
    c.end(sent);
    const got = await rest(c);
    expect(got !== 'cut' && got.equals(sent)).toBe(true);
    await expect.poll(() => relay.connections).toBe(0);
  });

  it('reads no more than its client takes', async () => {
    let written = 0;
    const relay = await relayTo({
        open: await inside((s) => {
          const more = (): void => {
            do written += 1 << 16;
            while (written < 256 << 20 && s.write(Buffer.alloc(1 << 16)));
          };
          s.on('drain', more);
          more();
        }),
      }),
      c = await client(relay);
    c.pause();
    let last = -1;
    await expect
      .poll(
        () => {
          const still = last === written && written > 0;
          last = written;
          return still;
        },
        { interval: 300, timeout: 10_000 },
      )
      .toBe(true);
    expect(written).toBeLessThan(64 << 20);
  });

  it('closes a client for whom nobody listens', async () => {
    const relay = await relayTo({ open: () => Promise.reject(new Error('nobody listens')) }),
      c = await client(relay);
    c.write('GET / HTTP/1.1\r\n\r\n');
    expect(['cut', '']).toContain(String(await rest(c)));
    await expect.poll(() => relay.connections).toBe(0);
  });

  it('holds so many connections at most, until one is closed', async () => {
    const relay = await relayTo({ open: await inside((s) => s.pipe(s)), connections: 2 }),
      [a, b] = [await client(relay), await client(relay)];
    await expect.poll(() => relay.connections).toBe(2);
    await rest(await client(relay));
    expect(relay.connections).toBe(2);
    a.destroy();
    await expect.poll(() => relay.connections).toBe(1);
    const d = await client(relay);
    d.end('still');
    expect(String(await rest(d))).toBe('still');
    b.destroy();
  });

  it('ends what leads to an episode that is over, also what is being opened', async () => {
    let opened: (s: Duplex) => void = () => {};
    const way = await inside((s) => s.pipe(s));
    let asked = 0;
    const relay = await relayTo({
        open: () =>
          ++asked === 1
            ? way()
            : new Promise((resolve) => {
                opened = resolve;
              }),
      }),
      first = await client(relay);
    first.write('a');
    await once(first, 'data');
    const second = await client(relay);
    await expect.poll(() => asked).toBe(2);
    relay.cut();
    await rest(first);
    await rest(second);
    const late = await way();
    opened(late);
    await expect.poll(() => late.destroyed).toBe(true);
    expect(relay.connections).toBe(0);
  });

  it('does not wait for ever for a way into the desktop', async () => {
    const relay = await relayTo({ open: () => new Promise(() => {}), openMs: 50 });
    expect(['cut', '']).toContain(String(await rest(await client(relay))));
    await expect.poll(() => relay.connections).toBe(0);
  });

  it('does not hold a half that nobody ends', async () => {
    const ends: Socket[] = [],
      relay = await relayTo({ open: await inside((s) => void ends.push(s.resume())), lingerMs: 50 }),
      c = await client(relay);
    c.end('over');
    await rest(c);
    await expect.poll(() => relay.connections).toBe(0);
    await expect.poll(() => ends[0]!.destroyed || ends[0]!.readableEnded).toBe(true);
  });

  it('is at 127.0.0.1 alone, and gone when it is closed', async () => {
    const relay = await relayTo({ open: await inside((s) => s.pipe(s)) }),
      c = await client(relay),
      { port } = relay;
    expect(await refused(port, '127.0.0.2')).toBe('ECONNREFUSED');
    c.write('a');
    await once(c, 'data');
    await relay.close();
    await rest(c);
    expect(await refused(port, '127.0.0.1')).toBe('ECONNREFUSED');
  });
});
