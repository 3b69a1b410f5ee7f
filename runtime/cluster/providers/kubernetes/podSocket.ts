import { Duplex } from 'node:stream';
import type { Api } from './api.js';
import { ProgramEnded, type ExecChannel } from './execChannel.js';
import { CONTAINER } from './podSpec.js';

const BRIDGE = ['/usr/bin/python3', '-S', '-E', '/opt/dart/agent.py', '--bridge'] as const;
/** Load balancers cut streams that are silent, some after a minute. */
const PING_MS = 20_000;

/**
 * A stream to a unix socket in a desktop's pod, over an exec channel of its own: bytes that nobody takes keep neither the
 * relay nor another stream waiting. As any connection it ends when its channel is cut.
 */
export async function openPodSocket(
  api: Api,
  pod: { readonly namespace: string; readonly name: string },
  path: string,
  signal: AbortSignal,
): Promise<Duplex> {
  const opening: { early: Buffer[]; ended?: Error } = { early: [] };
  let on = {
    data: (b: Buffer): void => void opening.early.push(b),
    ended: (why: Error): void => {
      opening.ended = why;
    },
  };
  const channel = await api.exec(
    { ...pod, container: CONTAINER },
    [...BRIDGE, path],
    { data: (b) => on.data(b), ended: (why) => on.ended(why) },
    signal,
  );
  const socket = new PodSocket(channel);
  on = { data: (b) => socket.receive(b), ended: (why) => socket.ended(why) };
  for (const b of opening.early) socket.receive(b);
  if (opening.ended) socket.ended(opening.ended);
  return socket;
}

class PodSocket extends Duplex {
  readonly #channel: ExecChannel;
  readonly #pings: NodeJS.Timeout;

  constructor(channel: ExecChannel) {
    super({ allowHalfOpen: false });
    this.#channel = channel;
    this.#pings = setInterval(() => channel.ping(), PING_MS).unref();
  }

  receive(b: Buffer): void {
    if (!this.push(b)) this.#channel.pause();
  }
  ended(why: Error): void {
    clearInterval(this.#pings);
    if (why instanceof ProgramEnded) this.push(null);
    else this.destroy(); // what was to come is missing
  }

  override _read(): void {
    this.#channel.resume();
  }
  override _write(b: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#channel.send(b, done);
  }
  override _final(done: () => void): void {
    this.#channel.endInput();
    done();
  }
  override _destroy(e: Error | null, done: (e: Error | null) => void): void {
    clearInterval(this.#pings);
    this.#channel.close();
    done(e);
  }
}
