import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { StudioError } from '../domain/index.js';
import { ignoreFailure } from '../concurrency/failures.js';
import { GrowingBuffer } from '../files/growingBuffer.js';
import {
  ANSWERS,
  BadLine,
  LARGEST_FILE,
  LONGEST_NAME,
  longestLine,
  parseLine,
  type AgentCommand,
  type AgentExit,
  type AgentSettle,
  type AgentState,
  type AnswerOf,
  type Refusal,
  type ResetReply,
} from './agentReplies.js';
import { activeTimeout, type Stalled } from '../concurrency/activeTimeout.js';
import type { ExecOptions, ExecResult, SettleOptions } from './types.js';

interface Pending {
  readonly cmd: AgentCommand;
  /** Throws a BadLine when the fields are not those of this command's answer. */
  answer(fields: Readonly<Record<string, unknown>>): void;
  refuse(r: Refusal): void;
  reject(e: unknown): void;
}

/** Programs that the agent starts by itself with a reset, at most: X server, bus, window manager, and that one again. */
const OWN_PROGRAMS = 32;
/** Bytes of a file that one request carries. */
const WRITE_PART = 1 << 20;
/** Forwarding a port starts one program in the desktop. */
const FORWARD_MS = 20_000;

/**
 * The connection to a desktop's PID 1: JSON lines over any duplex stream. It ends with the stream, or with the first
 * line that the agent cannot have written; then every call rejects with `desktop.lost`.
 */
export class AgentClient {
  readonly #stream: Duplex;
  readonly #pending = new Map<number, Pending>();
  readonly #exitListeners = new Set<(e: AgentExit) => void>();
  readonly #closeListeners = new Set<(e: StudioError) => void>();
  #nextId = 1;
  #nextTag = 1;
  #closed: StudioError | undefined;
  /** The part of the next line that has arrived. */
  readonly #held = new GrowingBuffer();
  /** Exit events still to come: one for each program that was started, by us or by a reset. */
  #exitsLeft = OWN_PROGRAMS;

  readonly #stalledMs: Stalled;

  /** `stalledMs`: of a stream that can pause while its connection is made again. */
  constructor(stream: Duplex, stalledMs?: Stalled) {
    this.#stream = stream;
    this.#stalledMs = stalledMs;
    stream.on('data', (d: Buffer) => this.#receive(d));
    stream.on('error', (e) => this.#end(e));
    stream.on('close', () => this.#end());
  }

  /**
   * Connects to the agent's unix socket. Rejects with the socket's error (ENOENT, ECONNREFUSED) when it is not there
   * yet.
   */
  static open(path: string): Promise<AgentClient> {
    return new Promise((resolve, reject) => {
      const s = connect(path);
      s.once('error', reject);
      s.once('connect', () => {
        s.off('error', reject);
        resolve(new AgentClient(s));
      });
    });
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }
  onExit(l: (e: AgentExit) => void): () => void {
    this.#exitListeners.add(l);
    return () => this.#exitListeners.delete(l);
  }
  /** Called once, when the connection is gone for whatever reason. */
  onClose(l: (e: StudioError) => void): () => void {
    if (this.#closed) l(this.#closed);
    else this.#closeListeners.add(l);
    return () => this.#closeListeners.delete(l);
  }
  close(): void {
    this.#stream.destroy();
    this.#end();
  }

  async ping(): Promise<void> {
    await this.#call('ping', {});
  }

  /** `xDataMb`: most memory that the X server may take for what programs draw into it. */
  async reset(o: {
    width: number;
    height: number;
    a11y: boolean;
    timeoutMs: number;
    xDataMb: number;
  }): Promise<ResetReply> {
    return this.#call(
      'reset',
      { screen: [o.width, o.height], a11y: o.a11y, timeoutMs: o.timeoutMs, xDataMb: o.xDataMb },
      o.timeoutMs + 2000,
    );
  }

  async spawn(argv: readonly string[], o: Pick<ExecOptions, 'cwd' | 'env'> = {}): Promise<number> {
    checkName('spawn', argv[0]);
    return (await this.#call('spawn', { argv, cwd: o.cwd, env: o.env })).pid;
  }

  async exec(argv: readonly string[], o: ExecOptions = {}): Promise<ExecResult> {
    checkName('exec', argv[0]);
    const timeoutMs = o.timeoutMs ?? 30_000;
    const tag = this.#nextTag++;
    if (o.signal?.aborted) throw commandKilled();
    const giveUp = (): void => {
      ignoreFailure(this.#call('kill', { tag }), 'the command has ended, or the agent is lost and every call says so');
    };
    o.signal?.addEventListener('abort', giveUp, { once: true });
    try {
      const r = await this.#call(
        'exec',
        {
          argv,
          cwd: o.cwd,
          env: o.env,
          tag,
          timeoutMs,
          verifier: o.verifier,
          stdin: o.stdin === undefined ? undefined : Buffer.from(o.stdin).toString('base64'),
        },
        timeoutMs + 10_000,
      );
      if (o.signal?.aborted) throw commandKilled();
      return r;
    } finally {
      o.signal?.removeEventListener('abort', giveUp);
    }
  }

  /** Reads in parts, so that neither side holds several copies of a file in memory. */
  async read(path: string): Promise<Buffer> {
    checkName('read', path);
    const parts: Buffer[] = [];
    for (let offset = 0; ;) {
      const { data, more } = await this.#call('read', { path, offset });
      parts.push(data);
      offset += data.length;
      if (!more) return parts.length === 1 ? data : joined(parts);
      if (offset > LARGEST_FILE) throw refused('read', { error: `${path} has no end`, code: 'EFBIG' });
    }
  }
  /** Writes in parts, between which other requests and the screen have their turn; each has a time limit of its own. */
  async write(path: string, data: Buffer): Promise<void> {
    checkName('write', path);
    let offset = 0;
    do {
      const part = data.subarray(offset, offset + WRITE_PART);
      await this.#call('write', { path, offset, data: part.toString('base64') });
      offset += part.length;
    } while (offset < data.length);
  }

  /** Stops all programs of the user; the X server and what the verifier starts go on. */
  async freeze(): Promise<void> {
    await this.#call('freeze', {});
  }
  async thaw(): Promise<void> {
    await this.#call('thaw', {});
  }
  /** Ends all programs of the user. */
  async relieve(): Promise<void> {
    await this.#call('relieve', {});
  }
  /** The unix socket inside that leads to a TCP port of the desktop, until the next reset. */
  async forward(port: number): Promise<string> {
    await this.#call('forward', { port }, FORWARD_MS);
    return `/run/dart/tcp-${port}.sock`;
  }
  state(timeoutMs: number): Promise<AgentState> {
    return this.#call('state', {}, timeoutMs);
  }

  /** The agent's own detector, for engines whose /proc the host cannot read. */
  async settle(o: SettleOptions & { readonly maxMs: number }): Promise<AgentSettle> {
    return this.#call('settle', { ...o }, o.maxMs + 10_000);
  }

  #call<C extends AgentCommand>(cmd: C, params: Record<string, unknown>, timeoutMs = 30_000): Promise<AnswerOf<C>> {
    if (this.#closed) return Promise.reject(this.#closed);
    const id = this.#nextId++;
    this.#exitsLeft += cmd === 'reset' ? OWN_PROGRAMS : cmd === 'spawn' || cmd === 'exec' ? 1 : 0;
    return new Promise<AnswerOf<C>>((resolve, reject) => {
      // A silent agent means a lost desktop: the whole connection ends, so that no later call waits for it.
      const stop = activeTimeout(timeoutMs, this.#stalledMs, () => {
        this.#fail(new Error(`no answer to ${cmd} within ${timeoutMs} ms`));
      });
      const done = (): void => {
        stop();
        this.#pending.delete(id);
      };
      this.#pending.set(id, {
        cmd,
        answer: (fields) => {
          const answer = ANSWERS[cmd].check(fields) as AnswerOf<C>;
          done();
          resolve(answer);
        },
        refuse: (r) => {
          done();
          reject(refused(cmd, r));
        },
        reject: (e) => {
          done();
          reject(e);
        },
      });
      this.#stream.write(`${JSON.stringify({ id, cmd, ...params })}\n`);
    });
  }

  #receive(d: Buffer): void {
    let from = 0;
    for (let nl = d.indexOf(10); nl >= 0 && !this.#closed; nl = d.indexOf(10, from)) {
      const line = this.#held.takeWith(d.subarray(from, nl));
      from = nl + 1;
      this.#guarded(() => this.#take(line));
    }
    if (this.#closed || from === d.length) return;
    this.#guarded(() => {
      this.#checkLength(this.#held.length + d.length - from);
      this.#held.add(d.subarray(from));
    });
  }

  /** Lines from inside the desktop are as untrusted as its programs: an invalid line ends this desktop. */
  #guarded(take: () => void): void {
    try {
      take();
    } catch (e) {
      if (!(e instanceof BadLine)) throw e;
      this.#fail(new Error(`it sent an invalid line (${e.message})`));
    }
  }

  #checkLength(bytes: number): void {
    if (bytes > longestLine([...this.#pending.values()].map((p) => p.cmd))) throw new BadLine('it is too long');
  }

  #take(line: Buffer): void {
    this.#checkLength(line.length);
    const m = parseLine(line);
    if (m.kind === 'exit') {
      if (--this.#exitsLeft < 0) throw new BadLine('it tells of more exits than there were programs');
      for (const l of [...this.#exitListeners]) l(m.exit);
      return;
    }
    const asked = this.#pending.get(m.id);
    if (!asked) throw new BadLine('it answers no question');
    if (line.length > ANSWERS[asked.cmd].most) throw new BadLine('it is too long for what was asked');
    if (m.kind === 'answer') asked.answer(m.fields);
    else asked.refuse(m.refusal);
  }

  #fail(cause: Error): void {
    this.#end(cause);
    this.#stream.destroy();
  }

  #end(cause?: Error): void {
    if (this.#closed) return;
    this.#closed = lost(
      cause ? `The desktop's agent is gone: ${cause.message}.` : "The desktop's agent closed its connection.",
      cause,
    );
    this.#held.take();
    for (const p of [...this.#pending.values()]) p.reject(this.#closed);
    for (const l of [...this.#closeListeners]) l(this.#closed);
    this.#closeListeners.clear();
  }
}

export const lost = (message: string, cause?: unknown): StudioError =>
  new StudioError(
    'desktop.lost',
    message,
    'The pool replaces it automatically. If this happens often, raise the memory limit of the desktops.',
    cause === undefined ? {} : { cause },
  );
const commandKilled = (): StudioError =>
  new StudioError(
    'cancelled',
    'The command was cancelled and its processes were killed.',
    'Start it again when you are ready.',
  );

/** A refusal repeats the file's name. A name that no file can have is refused here, as the desktop would do. */
function checkName(cmd: string, name: string | undefined): void {
  if (name !== undefined && Buffer.byteLength(name) > LONGEST_NAME)
    throw refused(cmd, { error: `${name.slice(0, 100)}…: File name too long`, code: 'ENAMETOOLONG' });
}

function refused(cmd: string, r: Refusal): StudioError {
  const details = { command: cmd, ...(r.code ? { code: r.code } : {}) };
  if (cmd === 'reset')
    return new StudioError(
      'desktop.start',
      `The desktop did not start: ${r.error}.`,
      'If this happens again, rebuild it with `dart-studio desktop build`.',
      { details },
    );
  return new StudioError(
    'desktop.exec',
    `The desktop refused to ${cmd}: ${r.error}.`,
    'Check the path or the command; it must exist inside the desktop.',
    { details },
  );
}

/** The parts of a large file as one, a part a turn of the event loop. */
async function joined(parts: readonly Buffer[]): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    at += p.copy(whole, at);
    await turn();
  }
  return whole;
}
