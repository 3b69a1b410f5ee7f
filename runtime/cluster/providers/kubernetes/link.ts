import { randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { StudioError } from '../../../domain/index.js';
import { withDeadline } from '../../../concurrency/deadline.js';
import { Messages, MessageTooLong } from '../../../files/messages.js';
import { growingMs, pauseOrStop } from '../../../concurrency/pause.js';
import { lost } from '../../agentClient.js';
import type { RelayPipes } from '../../drivers/portable.js';

/** Message types of images/desk/overlay/opt/dart/link.py; it documents the protocol. */
const HELLO = 1,
  DATA = 2,
  ACK = 3,
  PING = 4,
  END = 5;
const PIECE = 1 << 18,
  ACK_EVERY = 1 << 18;
/** Bytes of the longest message that the other end writes. */
const MAX_MESSAGE = 1 << 20;
const messages = (): Messages =>
  new Messages({ head: 5, size: (head) => 5 + head.readUInt32LE(1), most: () => MAX_MESSAGE });

/** One exec channel into a pod: bytes both ways, until it ends for whatever reason. Listeners are set before it opens. */
export interface LinkChannel {
  send(b: Buffer): void;
  close(): void;
}
export interface ChannelEvents {
  data(b: Buffer): void;
  /** Once; nothing comes after it. */
  ended(why: Error): void;
}

export interface LinkOptions {
  /** Opens a channel. `desktop.lost` says that no other attempt can succeed. */
  open(events: ChannelEvents, signal: AbortSignal): Promise<LinkChannel>;
  /** How long a cut may last, in ms; then the desktop is lost. */
  readonly patienceMs: number;
  /** A ping after this much silence, and its answer within `answerMs`; default 20 s and 10 s. */
  readonly pingMs?: number;
  readonly answerMs?: number;
  /** ms before the n-th attempt after a cut (n from 1). Default: from 200 ms to 10 s, spread at random. */
  readonly backoffMs?: (n: number) => number;
  readonly onCut?: (why: Error) => void;
  /** The link ended, but not by its user. */
  readonly onLost?: (e: StudioError) => void;
}

const backoff = (n: number): number => growingMs({ baseMs: 200, maxMs: 10_000 }, n - 1, { from: 0.5, to: 1.5 });

/**
 * A pair of pipes into a pod that outlives its channels: after a cut (the API server restarts, a load balancer ends an
 * idle stream) a new channel is opened and both ends send again what the other has not received. Whoever uses the pipes
 * sees a pause. They end with `desktop.lost` when the cut lasts longer than the patience, or when `lose` is called
 * because the pod is gone.
 */
export class Link {
  readonly pipes: RelayPipes;
  readonly #o: LinkOptions;
  readonly #output = new PassThrough({ highWaterMark: 16 << 20 });
  readonly #session = randomBytes(16);
  readonly #stop = new AbortController();
  #channel: LinkChannel | undefined;
  #greeted = false;
  #messages = messages();
  #kept: Buffer[] = [];
  /** Position of the first byte of `kept`, and of the next one. */
  #start = 0;
  #sent = 0;
  #received = 0;
  #acked = 0;
  #timer: NodeJS.Timeout | undefined;
  #cutAt: number | undefined;
  #cutMs = 0;
  #ended: StudioError | undefined;

  constructor(o: LinkOptions) {
    this.#o = o;
    this.#output.on('error', () => {
      /* its reader has heard of it */
    });
    this.pipes = {
      input: {
        write: (b) => {
          this.#write(b);
          return true;
        },
      },
      output: this.#output,
      close: () => this.#end(undefined),
    };
  }

  /** Opens the first channel, with one attempt. Rejects when that fails. */
  async open(signal: AbortSignal): Promise<void> {
    await this.#attach(AbortSignal.any([signal, this.#stop.signal]));
  }

  /** Whether a channel is there. */
  get isUp(): boolean {
    return this.#greeted;
  }

  /** ms so far without a channel. Time limits of what waits for the desktop do not count them. */
  stalledMs(): number {
    return this.#cutMs + (this.#cutAt === undefined ? 0 : performance.now() - this.#cutAt);
  }

  /** Ends the link: the pod is gone. */
  lose(e: StudioError): void {
    this.#end(e);
  }

  #write(b: Buffer): void {
    if (this.#ended || b.length === 0) return;
    this.#kept.push(b);
    this.#sent += b.length;
    if (this.#greeted) this.#sendData(b);
  }

  #sendData(b: Buffer): void {
    for (let at = 0; at < b.length; at += PIECE) this.#channel!.send(message(DATA, b.subarray(at, at + PIECE)));
  }

  /** Resolves when the other end has said what it received, so that bytes flow again. */
  async #attach(signal: AbortSignal): Promise<void> {
    let greeted!: () => void, refused!: (e: Error) => void;
    const hello = new Promise<void>((resolve, reject) => {
      greeted = resolve;
      refused = reject;
    });
    hello.catch(() => {
      /* awaited below, or the channel did not open */
    });
    const mine: { channel?: LinkChannel; over?: Error } = {};
    const over = (why: Error): void => {
      if (mine.over) return;
      mine.over = why;
      refused(why);
      if (this.#channel === mine.channel && this.#greeted) this.#cut(why);
    };
    this.#messages = messages();
    const channel = await this.#o.open(
      {
        data: (b) => {
          if (!mine.over && this.#channel === mine.channel) this.#receive(b, greeted, over);
        },
        ended: over,
      },
      signal,
    );
    mine.channel = channel;
    if (mine.over !== undefined) throw mine.over;
    const late = setTimeout(() => over(new Error('no answer from the pod')), this.#o.answerMs ?? 10_000);
    const aborted = (): void => over(new Error('cancelled'));
    signal.addEventListener('abort', aborted, { once: true });
    this.#channel = channel;
    const at = Buffer.alloc(24);
    this.#session.copy(at);
    at.writeBigUInt64LE(BigInt(this.#received), 16);
    channel.send(message(HELLO, at));
    try {
      await hello;
    } catch (e) {
      this.#channel = undefined;
      channel.close();
      throw this.#ended ?? e;
    } finally {
      clearTimeout(late);
      signal.removeEventListener('abort', aborted);
    }
  }

  #receive(d: Buffer, greeted: () => void, over: (why: Error) => void): void {
    try {
      this.#messages.feed(d, (m) => {
        if (!this.#ended) this.#take(m[0]!, m.subarray(5), greeted);
      });
    } catch (e) {
      if (e instanceof MessageTooLong) {
        this.#end(lost(`The desktop sent ${e.message}.`));
        return;
      }
      if (!(e instanceof RangeError)) throw e;
      over(e);
      this.#end(lost(`The desktop's link is damaged: ${e.message}.`, e));
      return;
    }
    this.#watch();
  }

  #take(kind: number, payload: Buffer, greeted: () => void): void {
    if (kind === HELLO) this.#hello(payload, greeted);
    else if (kind === DATA) {
      this.#received += payload.length;
      this.#output.write(payload);
      if (this.#received - this.#acked >= ACK_EVERY) this.#ack();
    } else if (kind === ACK) this.#drop(position(payload, 0));
    else if (kind === END)
      this.#end(lost(`The desktop ended the connection: ${payload.toString('utf8').slice(0, 200)}.`));
    else if (kind !== PING) throw new RangeError(`message ${kind}`);
  }

  #hello(payload: Buffer, greeted: () => void): void {
    const theirs = position(payload, 16);
    this.#drop(theirs);
    // what is still on its way from the relay comes as data; what we kept goes again
    this.#greeted = true;
    for (const b of this.#kept) this.#sendData(b);
    greeted();
  }

  #ack(): void {
    this.#acked = this.#received;
    const b = Buffer.alloc(8);
    b.writeBigUInt64LE(BigInt(this.#received));
    if (this.#greeted) this.#channel?.send(message(ACK, b));
  }

  /** Forgets what the other end has; throws a RangeError when it claims what was never sent. */
  #drop(theirs: number): void {
    if (theirs < this.#start || theirs > this.#sent) throw new RangeError(`${theirs} of ${this.#sent} bytes`);
    while (this.#kept.length > 0 && theirs > this.#start) {
      const first = this.#kept[0]!,
        n = Math.min(first.length, theirs - this.#start);
      this.#start += n;
      if (n === first.length) this.#kept.shift();
      else this.#kept[0] = first.subarray(n);
    }
  }

  /** Silence is checked: a connection that is dead without a word is cut by us. */
  #watch(): void {
    clearTimeout(this.#timer);
    if (this.#ended || !this.#greeted) return;
    this.#timer = setTimeout(() => {
      this.#ack();
      this.#channel?.send(message(PING));
      this.#timer = setTimeout(() => this.#cut(new Error('it does not answer')), this.#o.answerMs ?? 10_000);
      this.#timer.unref();
    }, this.#o.pingMs ?? 20_000);
    this.#timer.unref();
  }

  #cut(why: Error): void {
    if (this.#ended || !this.#greeted) return;
    this.#greeted = false;
    clearTimeout(this.#timer);
    this.#channel?.close();
    this.#channel = undefined;
    this.#cutAt = performance.now();
    this.#o.onCut?.(why);
    void this.#again(why);
  }

  /** Opens channels until one holds, the patience ends, or the link does. */
  async #again(first: Error): Promise<void> {
    await withDeadline(this.#o.patienceMs, [this.#stop.signal], (limit) => this.#within(limit, first));
  }
  async #within(limit: AbortSignal, first: Error): Promise<void> {
    const began = performance.now();
    let why = first;
    for (let n = 1; !limit.aborted; n++) {
      await pauseOrStop((this.#o.backoffMs ?? backoff)(n), limit);
      if (limit.aborted) break;
      try {
        await this.#attach(limit);
        this.#cutMs += performance.now() - began;
        this.#cutAt = undefined;
        return;
      } catch (e) {
        // A server that is starting again, or what stands before it, may refuse anything for a while.
        if (e instanceof StudioError && e.kind === 'desktop.lost') {
          this.#end(e);
          return;
        }
        if (!limit.aborted) why = e as Error;
      }
    }
    this.#end(
      lost(
        `The connection to the desktop was cut (${first.message}) and could not be made again within ${Math.round(this.#o.patienceMs / 1000)} s: ${why.message.replace(/\.$/, '')}.`,
        why,
      ),
    );
  }

  #end(e: StudioError | undefined): void {
    if (this.#ended) return;
    this.#ended = e ?? lost('The connection into the desktop was closed.');
    this.#greeted = false;
    clearTimeout(this.#timer);
    this.#stop.abort();
    this.#channel?.close();
    this.#channel = undefined;
    this.#kept = [];
    if (e) {
      this.#o.onLost?.(e);
      this.#output.destroy(e);
    } else this.#output.end();
  }
}

const message = (kind: number, payload: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(5);
  head[0] = kind;
  head.writeUInt32LE(payload.length, 1);
  return Buffer.concat([head, payload]);
};

/** A position in the stream; throws a RangeError when there is none. */
const position = (b: Buffer, at: number): number => Number(b.readBigUInt64LE(at));
