/**
 * The least that any program in Node must do for a step, without all that makes a daemon of it: takes a screen from its desktop,
 * names and appends it, sends the newest five to a model server, reads the answer with its log-probs, writes a line about
 * it, acts. No pool, scheduler, checks, retries, ledger, index or listeners. What the daemon costs is held against this.
 */
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { EncodedScreen } from '../../../runtime/cluster/drivers/bands.js';
import { Messages } from '../../../runtime/files/messages.js';
import { DATA, ENCODE, ENCODED, FRAME, OPEN, WHOLE } from './desktops.js';
import { usedFromNow, type BareRequest, type DaemonResult } from './wire.js';

const AGENT = 1,
  X11 = 2;
const IMAGES = 5;
const MB = 1 << 20;
const MESSAGES = {
  head: 6,
  size: (head: Buffer): number => 6 + head.readUInt32LE(2),
  most: (): number => 16 * MB,
  readAtOnce: (head: Buffer): boolean => head[0] === ENCODED,
};
/** Moves, presses and releases, as XTEST requests of 36 bytes. */
const CLICK = Buffer.concat(
  [6, 4, 5].map((type) => {
    const b = Buffer.alloc(36);
    b.set([140, 2, 9, 0, type]);
    return b;
  }),
);

/** Where a screen lies in the file of screens. */
interface Place {
  readonly at: number;
  readonly length: number;
}
interface Written {
  readonly screens: FileHandle;
  readonly journal: FileHandle;
  at: number;
}

export async function runBare(
  r: BareRequest,
  window: (at: 'begins' | 'ended') => Promise<void>,
): Promise<DaemonResult> {
  const began = performance.now();
  mkdirSync(r.dir, { recursive: true });
  const files: Written = {
    screens: await open(join(r.dir, 'screens'), 'w+'),
    journal: await open(join(r.dir, 'journal'), 'a'),
    at: 0,
  };
  // Servers close idle connections after 5 s: ours are closed before.
  const agent = new Agent({ keepAlive: true, timeout: 4000, maxFreeSockets: 1024 });
  let steps = 0;
  const act = async (n: number): Promise<never> => {
    const d = await BareDesktop.open(r.sockets[n % r.sockets.length]!, r),
      shown: Place[] = [];
    for (let whole = true; ; whole = false) {
      const png = await d.screen(whole),
        name = createHash('sha256').update(png).digest('hex');
      shown.push(await append(files, png));
      if (shown.length > IMAGES) shown.shift();
      const answer = await ask(r.models[n % r.models.length]!, agent, files, shown);
      await files.journal.appendFile(`${JSON.stringify({ name, ...answer })}\n`);
      await d.click();
      // The next episode begins with one screen again.
      if (answer.text.includes('finished(')) shown.length = 0;
      steps++;
    }
  };
  // They end with this process.
  for (let n = 0; n < r.desktops; n++)
    act(n).catch((e: unknown) => {
      process.send!({ failed: String(e) });
    });
  await sleep(r.warmMs);
  await window('begins');
  const at = { steps, written: files.at },
    used = usedFromNow();
  await sleep(r.windowMs);
  const result: DaemonResult = {
    ...used(),
    steps: steps - at.steps,
    rollouts: 0,
    errors: 0,
    rssMb: process.memoryUsage.rss() / MB,
    heapMb: process.memoryUsage().heapUsed / MB,
    journalKb: 0,
    framesMb: (files.at - at.written) / MB,
    newScreens: 1,
    startMs: performance.now() - began - r.windowMs,
  };
  await window('ended');
  return result;
}

async function append(files: Written, png: Buffer): Promise<Place> {
  const at = files.at;
  files.at += png.length;
  await files.screens.write(png, 0, png.length, at);
  return { at, length: png.length };
}

/** One request; of its answer the text, and each token with its log-prob and those of its alternatives. */
async function ask(url: string, agent: Agent, files: Written, shown: readonly Place[]): Promise<Answered> {
  const req = request(`${url}/chat/completions`, {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
  });
  const answered = new Promise<string>((resolve, reject) => {
    req.on('error', reject);
    req.on('response', (res) => {
      const parts: Buffer[] = [];
      res.on('data', (d: Buffer) => parts.push(d));
      res.on('end', () => resolve(Buffer.concat(parts).toString()));
      res.on('error', reject);
    });
  });
  // Until it is waited for, the rest of the request is under way.
  answered.catch(() => undefined);
  req.write('{"model":"scale","messages":[{"role":"user","content":[');
  for (const { at, length } of shown) {
    const { buffer } = await files.screens.read(Buffer.allocUnsafe(length), 0, length, at),
      taken = req.write(
        `{"type":"image_url","image_url":{"url":"data:image/png;base64,${buffer.toString('base64')}"}},`,
      );
    if (!taken) await new Promise((r) => req.once('drain', r));
  }
  req.end('{"type":"text","text":""}]}],"logprobs":true,"top_logprobs":8,"max_tokens":512}');
  const [choice] = (JSON.parse(await answered) as Answer).choices;
  return {
    text: choice!.message.content,
    logprobs: choice!.logprobs.content.map((t) => [t.logprob, ...t.top_logprobs.map((a) => [a.token, a.logprob])]),
  };
}
interface Answered {
  readonly text: string;
  readonly logprobs: readonly unknown[];
}
interface Answer {
  readonly choices: readonly {
    readonly message: { readonly content: string };
    readonly logprobs: {
      readonly content: readonly {
        readonly logprob: number;
        readonly top_logprobs: readonly { readonly token: string; readonly logprob: number }[];
      }[];
    };
  }[];
}

/** One desktop behind a socket, as relay.py serves it. */
class BareDesktop {
  readonly #socket: Socket;
  readonly #screen: EncodedScreen;
  #next: ((payload: Buffer) => void) | undefined;

  private constructor(socket: Socket, r: BareRequest) {
    this.#socket = socket;
    this.#screen = new EncodedScreen(r.screen);
    const messages = new Messages(MESSAGES);
    socket.on('data', (d: Buffer) =>
      messages.feed(d, (m) => {
        // One thing is asked at a time; what X answers is not needed.
        if (m[1] !== X11) this.#next?.(m.subarray(6));
      }),
    );
  }
  static async open(path: string, r: BareRequest): Promise<BareDesktop> {
    const socket = connect(path);
    await new Promise<void>((done, fail) => socket.once('connect', done).once('error', fail));
    const d = new BareDesktop(socket, r);
    await d.#ask(OPEN, AGENT, Buffer.from('/run/dart/agent.sock'));
    d.#send(OPEN, X11, Buffer.from('/tmp/.X11-unix/X0'));
    d.#send(DATA, X11, Buffer.alloc(12));
    return d;
  }
  async screen(whole: boolean): Promise<Buffer> {
    const payload = await this.#ask(FRAME, 0, Buffer.from([ENCODE | (whole ? WHOLE : 0)]));
    return this.#screen.take(payload).png as Buffer;
  }
  async click(): Promise<void> {
    this.#send(DATA, X11, CLICK);
    await this.#ask(DATA, AGENT, Buffer.from('{"id":1,"cmd":"settle"}\n'));
  }
  #ask(type: number, channel: number, payload: Buffer): Promise<Buffer> {
    return new Promise((resolve) => {
      this.#next = resolve;
      this.#send(type, channel, payload);
    });
  }
  #send(type: number, channel: number, payload: Buffer): void {
    const head = Buffer.alloc(6);
    head[0] = type;
    head[1] = channel;
    head.writeUInt32LE(payload.length, 2);
    this.#socket.write(Buffer.concat([head, payload]));
  }
}
const sleep = (ms: number): Promise<void> =>
  new Promise((r) => {
    setTimeout(r, ms);
  });
