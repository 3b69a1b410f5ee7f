import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { StudioError } from '../domain/index.js';
import type { ExecOptions, ExecResult } from './types.js';

/** Events the agent (image/overlay/opt/dart/agent.py) sends by itself. */
export interface AgentExit {
  readonly event: 'exit';
  readonly pid: number;
  readonly name: string;
  readonly code: number | null;
  readonly signal: string | null;
}
export interface ResetReply {
  /** ms inside the desktop, until the window manager was started. */
  readonly ms: number;
  /** Pid of Xvfb in the desktop's own numbering. */
  readonly xpid: number;
  readonly doubleClickMs: number;
}
export interface AgentSettle {
  readonly settled: boolean;
  readonly ms: number;
  readonly detector: 'exact' | 'hold';
}

interface Reply {
  readonly id: number;
  readonly ok: boolean;
  readonly error?: string;
  readonly code?: string | null;
  readonly [k: string]: unknown;
}
interface Pending {
  resolve(r: Reply): void;
  reject(e: unknown): void;
}

/**
 * A conversation with a desktop's PID 1: JSON lines over any duplex stream. Ends with the stream; then every call
 * rejects with `desktop.lost`.
 */
export class AgentClient {
  private readonly stream: Duplex;
  private readonly pending = new Map<number, Pending>();
  private readonly exitListeners = new Set<(e: AgentExit) => void>();
  private readonly closeListeners = new Set<(e: StudioError) => void>();
  private nextId = 1;
  private nextTag = 1;
  private closed: StudioError | undefined;
  private parts: Buffer[] = [];

  constructor(stream: Duplex) {
    this.stream = stream;
    stream.on('data', (d: Buffer) => this.receive(d));
    stream.on('error', (e) => this.end(e));
    stream.on('close', () => this.end());
  }

  /**
   * Connect to the agent's unix socket. Rejects with the socket's error (ENOENT, ECONNREFUSED) when it is not there
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
    return this.closed !== undefined;
  }
  onExit(l: (e: AgentExit) => void): () => void {
    this.exitListeners.add(l);
    return () => this.exitListeners.delete(l);
  }
  /** Called once, when the connection is gone for whatever reason. */
  onClose(l: (e: StudioError) => void): () => void {
    if (this.closed) l(this.closed);
    else this.closeListeners.add(l);
    return () => this.closeListeners.delete(l);
  }
  close(): void {
    this.stream.destroy();
    this.end();
  }

  async ping(): Promise<void> {
    await this.call('ping', {});
  }

  async reset(o: { width: number; height: number; a11y: boolean; timeoutMs: number }): Promise<ResetReply> {
    const r = await this.call(
      'reset',
      { screen: [o.width, o.height], a11y: o.a11y, timeoutMs: o.timeoutMs },
      { timeoutMs: o.timeoutMs + 2000, what: 'reset' },
    );
    return { ms: r['ms'] as number, xpid: r['xpid'] as number, doubleClickMs: r['doubleClickMs'] as number };
  }

  async spawn(argv: readonly string[], o: Pick<ExecOptions, 'cwd' | 'env'> = {}): Promise<number> {
    return (await this.call('spawn', { argv, cwd: o.cwd, env: o.env }))['pid'] as number;
  }

  async exec(argv: readonly string[], o: ExecOptions = {}): Promise<ExecResult> {
    const timeoutMs = o.timeoutMs ?? 30_000;
    const tag = this.nextTag++;
    if (o.signal?.aborted) throw cancelled();
    const giveUp = (): void => {
      void this.call('kill', { tag }).catch(() => undefined);
    };
    o.signal?.addEventListener('abort', giveUp, { once: true });
    try {
      const r = await this.call(
        'exec',
        {
          argv,
          cwd: o.cwd,
          env: o.env,
          tag,
          timeoutMs,
          ...(o.stdin === undefined ? {} : { stdin: Buffer.from(o.stdin).toString('base64') }),
        },
        { timeoutMs: timeoutMs + 10_000, what: 'exec' },
      );
      if (o.signal?.aborted) throw cancelled();
      return {
        code: r['code'] as number | null,
        stdout: Buffer.from(r['stdout'] as string, 'base64'),
        stderr: Buffer.from(r['stderr'] as string, 'base64'),
        timedOut: r['timedOut'] as boolean,
      };
    } finally {
      o.signal?.removeEventListener('abort', giveUp);
    }
  }

  async read(path: string): Promise<Buffer> {
    return Buffer.from((await this.call('read', { path }))['data'] as string, 'base64');
  }
  async write(path: string, data: Buffer): Promise<void> {
    await this.call('write', { path, data: data.toString('base64') });
  }

  /** The agent's own detector, for engines whose /proc the host cannot read. */
  async settle(o: { horizonMs: number; maxMs: number }): Promise<AgentSettle> {
    const r = await this.call('settle', o, { timeoutMs: o.maxMs + 10_000, what: 'settle' });
    return {
      settled: r['settled'] as boolean,
      ms: r['ms'] as number,
      detector: r['detector'] as AgentSettle['detector'],
    };
  }

  private call(
    cmd: string,
    params: Record<string, unknown>,
    o: { timeoutMs: number; what: string } = { timeoutMs: 30_000, what: cmd },
  ): Promise<Reply> {
    if (this.closed) return Promise.reject(this.closed);
    const id = this.nextId++;
    return new Promise<Reply>((resolve, reject) => {
      // A silent agent is a lost desktop: the whole connection ends, so that nobody waits for it again.
      const timer = setTimeout(() => {
        this.end(new Error(`no answer to ${o.what} within ${o.timeoutMs} ms`));
        this.stream.destroy();
      }, o.timeoutMs);
      const done = (): void => {
        clearTimeout(timer);
        this.pending.delete(id);
      };
      this.pending.set(id, {
        resolve: (r) => {
          done();
          if (r.ok) resolve(r);
          else reject(refused(cmd, r));
        },
        reject: (e) => {
          done();
          reject(e);
        },
      });
      this.stream.write(`${JSON.stringify({ id, cmd, ...params })}\n`);
    });
  }

  private receive(d: Buffer): void {
    let from = 0;
    for (let nl = d.indexOf(10); nl >= 0; nl = d.indexOf(10, from)) {
      const line = Buffer.concat([...this.parts, d.subarray(from, nl)]).toString('utf8');
      this.parts = [];
      from = nl + 1;
      const m = JSON.parse(line) as Reply | AgentExit;
      if ('event' in m) {
        for (const l of [...this.exitListeners]) l(m as AgentExit);
      } else this.pending.get(m.id)?.resolve(m);
    }
    if (from < d.length) this.parts.push(Buffer.from(d.subarray(from)));
  }

  private end(cause?: Error): void {
    if (this.closed) return;
    this.closed = lost(
      cause ? `The desktop's agent is gone: ${cause.message}.` : "The desktop's agent closed its connection.",
      cause,
    );
    for (const p of [...this.pending.values()]) p.reject(this.closed);
    for (const l of [...this.closeListeners]) l(this.closed);
    this.closeListeners.clear();
  }
}

export const lost = (message: string, cause?: unknown): StudioError =>
  new StudioError(
    'desktop.lost',
    message,
    'The pool replaces it by itself. When it happens often, look at the memory limit of the desktops.',
    cause === undefined ? {} : { cause },
  );
const cancelled = (): StudioError =>
  new StudioError(
    'cancelled',
    'The command was cancelled and its processes were killed.',
    'Start it again when you want it.',
  );

function refused(cmd: string, r: Reply): StudioError {
  const details = { command: cmd, ...(r.code ? { code: r.code } : {}) };
  if (cmd === 'reset')
    return new StudioError(
      'desktop.start',
      `The desktop did not start: ${r.error}.`,
      'Rebuild it with `dart-studio desktop build` if this goes on.',
      { details },
    );
  return new StudioError(
    'desktop.exec',
    `The desktop refused to ${cmd}: ${r.error}.`,
    'Check the path or the command; it must exist inside the desktop.',
    { details },
  );
}
