import { randomBytes } from 'node:crypto';
import {
  StudioError,
  toRunError,
  waitMsOf,
  type Action,
  type DesktopId,
  type EncodedFrame,
  type Frame,
  type Screenshot,
  type Size,
} from '../../../domain/index.js';
import { orUndefined } from '../../../concurrency/failures.js';
import { pause } from '../../../concurrency/pause.js';
import { Unusable } from '../../../foreign/unusable.js';
import { barePng, decodePng, pngChunks } from '../../../files/png.js';
import { lost } from '../../agentClient.js';
import { LARGEST_FILE } from '../../agentReplies.js';
import { endsEpisode } from '../../drivers/input.js';
import { HORIZON_MS, MAX_MS } from '../../drivers/settle.js';
import type {
  Desktop,
  DesktopEvent,
  DesktopInput,
  DesktopSpec,
  ExecOptions,
  ExecResult,
  SettleOptions,
  SettleReport,
} from '../../types.js';
import { commandOf, KEPT_ERR, KEPT_OUT, notStarted, programOf, pythonOf, startOf, streamsOf } from './program.js';
import { LiveProgram } from './liveProgram.js';
import { fieldsOf, MOST_SCREEN, wordsOf, type Answer, type OsworldServer } from './server.js';

const HOME = '/home/user';
/** A screenshot; a file; and what an action may take beyond what its program needs, ms. */
const SCREEN_MS = 15_000,
  FILE_MS = 120_000;
/** Commands, ms: OSWorld's server ends them at 120 s, and answers later where its machine is busy. */
const LONGEST_MS = 110_000,
  COMMAND_MS = 30_000,
  LATE_MS = 20_000;
/** The screen is at rest when it has not changed for so long, ms; and how often it is looked at meanwhile. */
const QUIET_MS = 150,
  LOOK_MS = 50;
/** Longest waits for rest that our servers take, ms. */
const MOST_HORIZON_MS = 10_000,
  MOST_SETTLE_MS = 120_000;
/** A screen that settling has seen counts as the present one for so long, ms. */
const FRESH_MS = 500;
const MOST_OUTPUT = Math.ceil((KEPT_OUT + KEPT_ERR) / 3) * 4 + (1 << 16);
const LINE = 1 << 16;

/** A desktop behind OSWorld's port 5000: its screen, its input and its commands are requests to its server. */
export class RemoteDesktop implements Desktop {
  readonly id: DesktopId;
  readonly provider = 'osworld' as const;
  readonly screen: Size;
  readonly spec: DesktopSpec;
  readonly server: OsworldServer;
  #gone: StudioError | undefined;
  /** Ends every request that is under way when the desktop is over. */
  readonly #over = new AbortController();
  #seen: { readonly shot: EncodedFrame; readonly at: number } | undefined;
  readonly #live: LiveProgram;
  readonly #screenMs: number;
  readonly #settles: boolean;
  readonly #listeners = new Set<(e: DesktopEvent) => void>();
  /** Input must not interleave: one action at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  /** A person's events that wait for their turn. */
  #next: { readonly events: DesktopInput[]; done: Promise<void> } | undefined;

  constructor(o: {
    readonly id: DesktopId;
    readonly spec: DesktopSpec;
    readonly server: OsworldServer;
    /** Longest wait for one screenshot, ms; default 15 s. It is asked for three times. */
    readonly screenMs?: number;
    /** The server says when its desktop is at rest, as ours do. */
    readonly settles?: boolean;
  }) {
    this.id = o.id;
    this.screen = o.spec.screen;
    this.spec = o.spec;
    this.server = o.server;
    this.#live = new LiveProgram(this.screen);
    this.#screenMs = o.screenMs ?? SCREEN_MS;
    this.#settles = o.settles ?? false;
  }
  get isLost(): boolean {
    return this.#gone !== undefined;
  }

  async observe(): Promise<Frame> {
    const { png, capturedAt } = await this.#shot();
    return { ...(await this.#readable(() => decodePng(png))), capturedAt };
  }
  /** The server's picture of 8-bit RGB as it is, less what is no pixels; any other is decoded. */
  async screenshot(): Promise<Screenshot> {
    const shot = await this.#shot();
    return this.#readable(async () => {
      const chunks = await pngChunks(shot.png),
        { depth, type } = chunks.header;
      return depth === 8 && type === 2
        ? { ...shot, png: await barePng(shot.png, chunks) }
        : { ...(await decodePng(shot.png)), capturedAt: shot.capturedAt };
    });
  }

  perform(a: Action): Promise<void> {
    this.#next = undefined;
    return this.#inTurn(() => this.#perform(a));
  }
  /**
   * Sends input. Events that come while a program runs go into the next one together: a double click's second press
   * must not be a program late.
   */
  input(events: readonly DesktopInput[]): Promise<void> {
    if (this.#next) {
      this.#next.events.push(...events);
      return this.#next.done;
    }
    const next = { events: [...events], done: Promise.resolve() };
    this.#next = next;
    next.done = this.#inTurn(async () => {
      if (this.#next === next) this.#next = undefined;
      const lines = this.#live.lines(next.events);
      if (lines.length > 0) await this.#run(pythonOf(lines), 'what a person did');
    });
    return next.done;
  }
  #inTurn(act: () => Promise<void>): Promise<void> {
    const p = this.#turn.then(act);
    this.#turn = orUndefined(p, 'its caller hears of it; the next action has its turn all the same');
    return p;
  }
  async #perform(a: Action): Promise<void> {
    if (a.type === 'finished' || a.type === 'fail') throw endsEpisode(a);
    if (a.type === 'wait') {
      await pause(waitMsOf(a), new AbortController().signal, ended);
      return;
    }
    await this.#run(programOf(a, this.screen), `"${a.type}"`);
  }
  async #run(command: readonly string[], what: string): Promise<void> {
    this.#seen = undefined;
    const answer = await this.#asked(() =>
        this.server.post(
          '/execute',
          { command, shell: false },
          { timeoutMs: LONGEST_MS + LATE_MS, over: this.#over.signal },
        ),
      ),
      { returncode, error } = fieldsOf(answer);
    if (answer.status === 200 && returncode === 0) return;
    const why = answer.status === 200 ? String(error).trim().slice(-300) : wordsOf(answer);
    throw this.lose(lost(`The desktop at ${this.server.url} could not perform ${what}: ${why}`));
  }

  /** Asks ours; of another server's screen looks until it has not changed for a while. */
  async settle(o: SettleOptions = {}): Promise<SettleReport> {
    const began = performance.now(),
      maxMs = o.maxMs ?? MAX_MS,
      quietMs = Math.max(QUIET_MS, o.horizonMs ?? 0);
    this.#seen = undefined;
    if (this.#settles) return this.#askedToSettle(o, maxMs);
    let last = await this.#shot(),
      since = performance.now();
    for (;;) {
      const asked = performance.now(),
        shot = await this.#shot(),
        now = performance.now();
      if (!shot.png.equals(last.png)) since = now;
      last = shot;
      const settled = asked - since >= quietMs;
      if (settled || now - began >= maxMs) {
        this.#seen = { shot, at: now };
        return { settled, ms: now - began, detector: 'hold' };
      }
      await pause(Math.min(LOOK_MS, maxMs), new AbortController().signal, ended);
    }
  }

  async #askedToSettle(o: SettleOptions, maxMs: number): Promise<SettleReport> {
    const began = performance.now(),
      a = await this.#asked(() =>
        this.server.post(
          '/dart/settle',
          {
            horizonMs: Math.min(o.horizonMs ?? HORIZON_MS, MOST_HORIZON_MS),
            maxMs: Math.min(maxMs, MOST_SETTLE_MS),
            terminalHoldMs: o.terminalHoldMs,
          },
          { timeoutMs: maxMs + LATE_MS, over: this.#over.signal },
        ),
      ),
      { settled, detector, starved } = fieldsOf(a);
    if (a.status !== 200)
      throw this.lose(lost(`The desktop at ${this.server.url} cannot say when it is at rest: ${wordsOf(a)}`));
    return {
      settled: settled === true,
      ms: performance.now() - began,
      detector: detector === 'exact' ? 'exact' : 'hold',
      ...(typeof starved === 'number' ? { starved } : {}),
    };
  }

  async exec(cmd: readonly string[], o: ExecOptions = {}): Promise<ExecResult> {
    const wanted = o.timeoutMs ?? COMMAND_MS,
      ms = Math.min(wanted, LONGEST_MS),
      stdin = o.stdin === undefined ? undefined : `/tmp/.dart-${randomBytes(8).toString('hex')}`,
      began = performance.now();
    if (stdin !== undefined) await this.writeFile(stdin, Buffer.from(o.stdin!));
    try {
      const plan = { cmd, cwd: o.cwd ?? HOME, stdin: stdin ?? '/dev/null', seconds: ms / 1000, env: o.env ?? {} },
        { returncode, output } = await this.#command(commandOf(plan), ms + LATE_MS, MOST_OUTPUT, o.signal),
        streams = streamsOf(output),
        code = typeof returncode === 'number' ? returncode : null;
      if (!streams && code === 125) throw refused(cmd, 'there is no room for its output', 'ENOSPC');
      if (!streams) throw refused(cmd, 'its server said something else than what the command printed');
      const missing = notStarted(code, streams.stderr);
      if (missing) throw refused(cmd, missing, missing);
      // 137: killed by a signal, as `timeout` does.
      return { code, ...streams, timedOut: code === 137 && performance.now() - began >= ms };
    } finally {
      if (stdin !== undefined)
        await orUndefined(
          this.#command(['rm', '-f', stdin], COMMAND_MS, LINE, undefined),
          'a file of /tmp stays there',
        );
    }
  }
  async spawn(cmd: readonly string[], o: Pick<ExecOptions, 'cwd' | 'env'> = {}): Promise<number> {
    const plan = { cmd, cwd: o.cwd ?? HOME, env: o.env ?? {} },
      { output, returncode } = await this.#command(startOf(plan), COMMAND_MS, LINE, undefined),
      pid = Number(String(output).trim());
    if (returncode === 127) throw refused(cmd, 'No such program', 'ENOENT');
    if (!Number.isInteger(pid) || pid < 2) throw refused(cmd, 'nothing was started');
    return pid;
  }

  async readFile(path: string): Promise<Buffer> {
    await this.#checkFile(path);
    const tooLong = (): StudioError => refused([path], 'it is too large', 'EFBIG'),
      o = { timeoutMs: FILE_MS, most: LARGEST_FILE, tooLong, over: this.#over.signal },
      a = await this.#asked(() => this.server.form('/file', { file_path: path }, o));
    if (a.status === 200) return a.body;
    throw refused([path], wordsOf(a), a.status === 404 ? 'ENOENT' : 'EACCES');
  }
  /**
   * Rejects unless the path is a regular file of bounded size: the server opens whatever is there, and waits for ever
   * at a pipe.
   */
  async #checkFile(path: string): Promise<void> {
    const { code, stdout } = await this.exec(['stat', '-L', '-c', '%s %F', '--', path], { timeoutMs: 10_000 }),
      [, size, kind = ''] = /^(\d+) (.*)$/m.exec(stdout.toString('utf8', 0, 200)) ?? [];
    if (code !== 0) throw refused([path], 'No such file', 'ENOENT');
    if (kind === 'directory') throw refused([path], 'it is a folder', 'EISDIR');
    if (!kind.startsWith('regular')) throw refused([path], 'it is no regular file', 'ENOTREG');
    if (Number(size) > LARGEST_FILE) throw refused([path], 'it is too large', 'EFBIG');
  }
  async writeFile(path: string, data: Buffer): Promise<void> {
    this.#seen = undefined;
    const file = { name: 'file_data', data },
      a = await this.#asked(() =>
        this.server.form('/setup/upload', { file_path: path }, { timeoutMs: FILE_MS, file, over: this.#over.signal }),
      );
    if (a.status !== 200) throw refused([path], wordsOf(a));
  }

  onEvent(l: (e: DesktopEvent) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }
  async answers(): Promise<void> {
    await this.#shot();
  }

  /** Ends the desktop when its server, container or machine is gone. Returns the error of every further call. */
  lose(e: StudioError): StudioError {
    if (this.#gone) return this.#gone;
    this.#gone = e;
    this.#over.abort();
    for (const l of [...this.#listeners]) l({ type: 'lost', error: toRunError(e) });
    return e;
  }
  /**
   * Ends the desktop quietly, because it is given away or taken down: no call goes through, and no listener is told.
   */
  dispose(): void {
    this.#listeners.clear();
    this.#gone ??= lost('The desktop was taken down.');
    this.#over.abort();
  }
  /** After its server has brought it back to its first screen. */
  renewed(): void {
    this.#seen = undefined;
    this.#live.forget();
  }

  /** A call whose failure is the desktop's end. */
  async #asked<T>(call: () => Promise<T>): Promise<T> {
    if (this.#gone) throw this.#gone;
    try {
      return await call();
    } catch (e) {
      throw e instanceof StudioError && e.kind === 'desktop.lost' ? this.lose(e) : e;
    }
  }
  async #command(
    command: readonly string[],
    timeoutMs: number,
    most: number,
    signal: AbortSignal | undefined,
  ): Promise<Readonly<Record<string, unknown>>> {
    this.#seen = undefined;
    const a = await this.#asked(() =>
      this.server.post('/execute', { command, shell: false }, { timeoutMs, most, signal, over: this.#over.signal }),
    );
    if (a.status !== 200) throw refused(command.slice(-1), wordsOf(a));
    return fieldsOf(a);
  }

  async #shot(): Promise<EncodedFrame> {
    const seen = this.#seen;
    this.#seen = undefined;
    if (seen && performance.now() - seen.at < FRESH_MS) return seen.shot;
    const capturedAt = Date.now(),
      a = await this.#asked(() =>
        this.server.get('/screenshot', {
          timeoutMs: this.#screenMs,
          most: MOST_SCREEN,
          right: isWhole,
          over: this.#over.signal,
        }),
      );
    const { width, height } = sizeOf(a);
    if (width !== this.screen.width || height !== this.screen.height)
      throw this.lose(
        lost(
          `The screen at ${this.server.url} is ${width}x${height} now, not ${this.screen.width}x${this.screen.height}.`,
        ),
      );
    return { width, height, png: a.body, capturedAt };
  }
  /** A screen that cannot be read is the desktop's fault. */
  async #readable<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (e) {
      throw e instanceof Unusable
        ? this.lose(lost(`The screen at ${this.server.url} cannot be read: it ${e.message}.`, e))
        : e;
    }
  }
}

const END = Buffer.from('IEND');
/** A PNG with a beginning and an end: servers that are interrupted send halves. */
export const isWhole = ({ status, body }: Answer): boolean =>
  status === 200 && body.length > 45 && body.readUInt32BE(0) === 0x89504e47 && body.subarray(-8, -4).equals(END);

/** Size of a screen that is whole. */
export const sizeOf = ({ body }: Answer): Size => ({ width: body.readUInt32BE(16), height: body.readUInt32BE(20) });

const refused = (cmd: readonly string[], why: string, code?: string): StudioError =>
  new StudioError(
    'desktop.exec',
    `The desktop refused ${(cmd[0] ?? '').slice(0, 100)}: ${why}.`,
    'Check the path or the command; it must exist inside the desktop.',
    code === undefined ? {} : { details: { code } },
  );
const ended = (): StudioError => new StudioError('cancelled', 'A wait was cancelled.', 'Start it again.');
