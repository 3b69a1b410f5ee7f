/**
 * Requests with pictures, of a megabyte each and a thousand at once: their bytes are made while the socket takes them, so
 * that none is held in memory while the model answers. Redirects are not followed.
 */
import { Agent as PlainAgent, request as plainRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { timeLimit } from '../../concurrency/timeLimit.js';
import { messageOf } from '../../domain/index.js';
import { base64Length, base64Of } from './picture.js';

/** A part of a request's body: text, or a file that becomes base64. */
export type Piece = string | PieceOfFile;
export interface PieceOfFile {
  /** Bytes of the file. */
  readonly length: number;
  /** The file; whole, or what is sent is not what was announced. */
  read(): Uint8Array | Promise<Uint8Array>;
}
export interface PostOptions {
  readonly url: string;
  readonly body: readonly Piece[];
  readonly apiKey?: string | undefined;
  /** Time limit until the whole answer is there. */
  readonly timeoutMs: number;
  /** Bytes of the longest answer; a longer one rejects with `tooLong()`. */
  readonly most: number;
  readonly tooLong: () => Error;
  readonly signal: AbortSignal;
}
export interface Posted {
  readonly status: number;
  readonly text: string;
  /** The server's `retry-after`, ms. */
  readonly retryAfterMs: number | undefined;
}

/** Servers close idle connections after 5 s and more: ours are closed before. */
const IDLE_MS = 4000;
const options = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: 1024 };
const plain = new PlainAgent(options),
  secure = new SecureAgent(options);

/** Rejects with the error of the connection, with `tooLong()`, or when the signal fires. */
export async function postJson(o: PostOptions): Promise<Posted> {
  const begun = performance.now();
  try {
    return await once(o, o.timeoutMs);
  } catch (e) {
    // A server may close a connection at the moment in which it is used again: that says nothing about the server.
    if (e instanceof Stale && !o.signal.aborted) return once(o, o.timeoutMs - (performance.now() - begun));
    throw e;
  }
}

class Stale extends Error {}
/** The time limit of a call is over. */
export class LateAnswer extends Error {}

function once(o: PostOptions, leftMs: number): Promise<Posted> {
  return new Promise((resolve, reject) => {
    // Before there is a request: one that is destroyed before it has a socket reports that as an error of its own.
    if (o.signal.aborted) return reject(new Error('cancelled'));
    const url = new URL(o.url),
      https = url.protocol === 'https:',
      length = o.body.reduce((n, p) => n + (typeof p === 'string' ? Buffer.byteLength(p) : base64Length(p.length)), 0);
    const req = (https ? secureRequest : plainRequest)(url, {
      method: 'POST',
      agent: https ? secure : plain,
      headers: {
        'content-type': 'application/json',
        'content-length': length,
        ...(o.apiKey === undefined ? {} : { authorization: `Bearer ${o.apiKey}` }),
      },
    });
    const late = (): void => fail(new LateAnswer(`no answer within ${o.timeoutMs / 1000} s`)),
      clear = timeLimit(leftMs, late, { keepsAlive: true }),
      abort = (): void => fail(new Error('cancelled'));
    const done = (): void => {
      clear();
      o.signal.removeEventListener('abort', abort);
    };
    const fail = (e: Error): void => {
      done();
      reject(e);
      req.destroy();
    };
    o.signal.addEventListener('abort', abort, { once: true });
    req.on('error', (e: NodeJS.ErrnoException) =>
      fail(req.reusedSocket && e.code === 'ECONNRESET' ? new Stale(e.message) : plainer(e)),
    );
    req.on('response', (res) =>
      collect(res, o, fail, (text) => {
        done();
        resolve({ status: res.statusCode ?? 0, text, retryAfterMs: secondsOf(res.headers['retry-after']) });
        // An answer that came before the end of the request leaves a connection that nobody can use.
        if (!req.writableFinished) req.destroy();
      }),
    );
    send(req, o.body).catch(fail);
  });
}

/** A file that a request needs could not be read. */
export class UnreadableFile extends Error {}

/** Writes piece after piece, each as soon as the socket has taken the one before. */
async function send(req: ClientRequest, pieces: readonly Piece[]): Promise<void> {
  for (const p of pieces) {
    const part = typeof p === 'string' ? p : fileOf(p),
      // Bytes that are there at once are used at once: another request may read into the same memory.
      ready = part instanceof Promise ? await part : part;
    if (req.destroyed) return;
    if (!(typeof ready === 'string' ? req.write(ready) : writeFile(req, ready))) await drained(req);
  }
  req.end();
}
function fileOf(p: PieceOfFile): Uint8Array | Promise<Uint8Array> {
  const unreadable = (e: unknown): never => {
    throw new UnreadableFile(messageOf(e), { cause: e });
  };
  const whole = (file: Uint8Array): Uint8Array =>
    file.length === p.length ? file : unreadable(new Error(`${file.length} bytes where ${p.length} were`));
  try {
    const file = p.read();
    return file instanceof Promise ? file.then(whole).catch(unreadable) : whole(file);
  } catch (e) {
    return unreadable(e);
  }
}
function writeFile(req: ClientRequest, file: Uint8Array): boolean {
  let more = true;
  req.cork();
  for (const text of base64Of(file)) more = req.write(text, 'latin1');
  req.uncork();
  return more;
}
const drained = (req: ClientRequest): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      req.off('drain', go).off('close', go);
      resolve();
    };
    req.on('drain', go).on('close', go);
  });

function collect(
  res: IncomingMessage,
  { most, tooLong }: PostOptions,
  fail: (e: Error) => void,
  done: (text: string) => void,
): void {
  const parts: Buffer[] = [];
  let bytes = 0;
  res.on('data', (d: Buffer) => {
    bytes += d.length;
    if (bytes > most) fail(tooLong());
    else parts.push(d);
  });
  res.on('error', fail);
  res.on('end', () => {
    if (res.complete) done(Buffer.concat(parts).toString('utf8'));
    else fail(new Error('the answer was cut off'));
  });
}

/** The error of the first address, where a name has several and none answers: the joint error says nothing. */
const plainer = (e: Error): Error => (e instanceof AggregateError ? ((e.errors as Error[])[0] ?? e) : e);

function secondsOf(header: string | undefined): number | undefined {
  const s = Number(header ?? NaN);
  return s > 0 && Number.isFinite(s) ? s * 1000 : undefined;
}
