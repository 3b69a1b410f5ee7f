import type { IncomingMessage } from 'node:http';
import { addAbortSignal } from 'node:stream';
import Docker from 'dockerode';
import { jsonOf } from '../../foreign/json.js';
import { GrowingBuffer } from '../../files/growingBuffer.js';
import type { EngineAddress } from './dockerHosts.js';

/** Bytes of an answer that is read whole; a thousand desktops are listed in three megabytes. */
const MOST_ANSWER = 4 << 20;
const BOUNDS = { depth: 64, values: 1 << 18 };

/** Marks a call whose answer is no stream. */
const WHOLE = Symbol('whole');

/** The used part of docker-modem; its types leave out the second method. */
interface Modem {
  dial(call: Call, done: Done): void;
  buildPayload(
    fault: Error | null,
    isStream: boolean,
    codes: Codes,
    openStdin: boolean,
    req: unknown,
    res: IncomingMessage,
    json: unknown,
    done: Done,
  ): void;
}
interface Call {
  readonly isStream?: boolean;
  readonly hijack?: boolean;
  readonly statusCodes: Codes;
  readonly abortSignal?: AbortSignal;
}
type Done = (fault: unknown, answer?: unknown) => void;
/** Whether a status is a success, or a word for its fault. */
type Codes = Readonly<Record<number | string, unknown>> & { readonly [WHOLE]?: { readonly signal?: AbortSignal } };
/**
 * A client of an engine. Its library reads answers into memory, however long: every call is a stream to it here, and what
 * is no stream, or a fault, is put together with a bound.
 */
export function engineClient(address: EngineAddress | undefined): Docker {
  const docker = new Docker(address),
    modem = docker.modem as unknown as Modem,
    dial = modem.dial.bind(modem),
    build = modem.buildPayload.bind(modem);
  modem.dial = (call, done) => {
    if (call.isStream || call.hijack) dial(call, done);
    else
      dial(
        { ...call, isStream: true, statusCodes: { ...call.statusCodes, [WHOLE]: { signal: call.abortSignal } } },
        done,
      );
  };
  modem.buildPayload = (fault, isStream, codes, openStdin, req, res, json, done) => {
    const whole = codes[WHOLE];
    if (fault || !isStream || (!whole && codes[res.statusCode!] === true)) {
      build(fault, isStream, codes, openStdin, req, res, json, done);
      return;
    }
    answerOf(res, whole?.signal).then(
      (answer) => build(null, false, codes, false, req, res, answer, done),
      (e: unknown) => done(e),
    );
  };
  return docker;
}

/** JSON, or the bytes of what is none. Of an answer that is too long the connection is ended. */
async function answerOf(res: IncomingMessage, signal: AbortSignal | undefined): Promise<unknown> {
  const body = new GrowingBuffer();
  if (signal) addAbortSignal(signal, res);
  for await (const piece of res) {
    body.add(piece as Buffer);
    if (body.length > MOST_ANSWER) throw new Error(`it sent an answer of more than ${MOST_ANSWER >> 20} MB`);
  }
  const bytes = body.take();
  return jsonOf(bytes.toString('utf8'), BOUNDS, (beyond) => new Error(`it sent an answer that ${beyond}`)) || bytes;
}
