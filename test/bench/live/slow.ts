import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { random } from '../../../runtime/domain/index.js';

/** What the addresses of one engine know together. */
export interface Acting {
  /** Whether a screen was asked about since the trainer began: the probe before a run is as fast as the engine. */
  now: boolean;
}
export interface Slow {
  readonly acting: Acting;
  /** The engine that answers behind it. */
  readonly engine: string;
  readonly port: number;
  /** Names of weights get this ending on the engine: two replicas there load and unload theirs without each other. */
  readonly replica: string;
  /** Seconds that an answer about a screen takes at least: drawn evenly between the two. */
  readonly decode: readonly [number, number];
  /** Seconds that a step of the optimizer takes at least. */
  readonly update: number;
}
/** Names of versions, as requests have them. */
const NAMED = /"(model|lora_name)"\s*:\s*"([^"]*@v\d+)"/g;

/**
 * An engine as slow as one with a large model: requests are passed on, and answers about screens and steps of the
 * optimizer come when a large model's would. Desktops, engine and runtime have the processor to themselves meanwhile.
 */
export async function slowEngine(o: Slow): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const r = random(`bench/live/slow/${o.replica}`),
    timers = new Set<NodeJS.Timeout>(),
    wait = (seconds: number): Promise<void> =>
      new Promise((done) => {
        const t = setTimeout(() => {
          timers.delete(t);
          done();
        }, 1000 * seconds);
        timers.add(t);
      });
  const server = createServer((req, res) => {
    void bodyOf(req).then(async (body) => {
      const path = req.url ?? '/',
        acts = path.endsWith('/chat/completions') && body.includes('image_url');
      if (acts) o.acting.now = true;
      if (path.endsWith('/create_session')) o.acting.now = false;
      const updates = o.acting.now && path.endsWith('/optim_step'),
        least = acts ? o.decode[0] + (o.decode[1] - o.decode[0]) * r.next() : updates ? o.update : 0;
      const [answer] = await Promise.all([passedOn(o, req, path, body), wait(least)]);
      send(res, answer);
    });
  });
  await new Promise<void>((done, failed) => server.once('error', failed).listen(o.port, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((done) => {
        for (const t of timers) clearTimeout(t);
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}
function passedOn(o: Slow, req: IncomingMessage, path: string, body: Buffer): Promise<Answer> {
  const ours = path.startsWith('/v1/'),
    sent = ours ? renamed(body, (name) => name + o.replica) : body;
  return new Promise((done) => {
    const { 'content-length': _, 'accept-encoding': __, ...headers } = req.headers,
      to = new URL(path, o.engine),
      lost = (): void => done({ status: 502, headers: {}, body: Buffer.from('the engine is away') });
    const out = forward(
      to,
      { method: req.method, headers: { ...headers, host: to.host, 'content-length': sent.length } },
      (answer) => {
        bodyOf(answer).then(
          (b) =>
            done({ status: answer.statusCode ?? 502, headers: answer.headers, body: ours ? own(b, o.replica) : b }),
          lost,
        );
      },
    );
    out.on('error', lost);
    out.end(sent);
  });
}
/** Names of this replica as it knows them; those of another keep their ending, and are no concern of its. */
const own = (body: Buffer, replica: string): Buffer =>
  body.includes(replica) ? Buffer.from(body.toString('utf8').replaceAll(`${replica}"`, '"')) : body;
function renamed(body: Buffer, to: (name: string) => string): Buffer {
  if (!body.includes('@v')) return body;
  const text = body.toString('utf8');
  return Buffer.from(text.replace(NAMED, (_all, key: string, name: string) => `"${key}":"${to(name)}"`));
}
function send(res: ServerResponse, a: Answer): void {
  const { 'content-length': _, 'transfer-encoding': __, connection: ___, ...headers } = a.headers;
  res.writeHead(a.status, { ...headers, 'content-length': a.body.length });
  res.end(a.body);
}
async function bodyOf(m: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const p of m) parts.push(p as Buffer);
  return Buffer.concat(parts);
}
