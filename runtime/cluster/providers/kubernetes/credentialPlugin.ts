import { spawn } from 'node:child_process';
import { messageOf } from '../../../domain/index.js';
import { isObject, foreignJson } from '../../../foreign/json.js';
import { withDeadline } from '../../../concurrency/deadline.js';
import { GrowingBuffer } from '../../../files/growingBuffer.js';

/** A program that gives credentials, as `exec` of a kubeconfig's user names it. */
export interface PluginCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}
/** The plug-in's answer: a token, or a certificate and its key (PEM). */
export interface Credential {
  readonly token: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}
interface Answer extends Credential {
  /** ms since 1970; undefined when it names none. */
  readonly expires: number | undefined;
}

/** An answer or a failure is used again for so long, whatever becomes of it: a thousand desktops may ask at once. */
const AT_LEAST_MS = 1000;
/** An answer without an end of its own. */
const UNDATED_MS = 60_000;
const DEADLINE_MS = 30_000;
const MAX_OUTPUT = 1 << 20,
  MAX_SAID = 2000;
const BOUNDS = { depth: 16, values: 1 << 12 };

export interface PluginOptions {
  readonly now?: () => number;
  readonly deadlineMs?: number;
}

/** Credentials of a plug-in, which runs once for all who wait for it, and not again while its answer is good. */
export class CredentialPlugin {
  readonly #command: PluginCommand;
  readonly #now: () => number;
  readonly #deadlineMs: number;
  #asked: Promise<Answer> | undefined;
  #answer: Answer | undefined;
  /** When the last answer expires; undefined while the plug-in runs. */
  #until: number | undefined;
  #since = 0;

  constructor(command: PluginCommand, o: PluginOptions = {}) {
    this.#command = command;
    this.#now = o.now ?? Date.now;
    this.#deadlineMs = o.deadlineMs ?? DEADLINE_MS;
  }

  /** Rejects with an Error in words when the plug-in cannot be started, fails or does not answer in time. */
  credential(): Promise<Credential> {
    if (this.#asked && (this.#until === undefined || this.#now() < this.#until)) return this.#asked;
    this.#until = undefined;
    this.#answer = undefined;
    this.#asked = this.#ask();
    return this.#asked;
  }

  /** The server did not accept this token: another is asked for, unless that has been done meanwhile. */
  refused(token: string | undefined): void {
    if (this.#answer && this.#answer.token === token) this.#until = this.#since + AT_LEAST_MS;
  }

  async #ask(): Promise<Answer> {
    try {
      const said = await withDeadline(this.#deadlineMs, [], (limit) => run(this.#command, limit));
      this.#answer = answerOf(said);
      this.#keep(this.#answer.expires ?? this.#now() + UNDATED_MS);
      return this.#answer;
    } catch (e) {
      this.#keep(0);
      const late = e instanceof DOMException && e.name === 'TimeoutError';
      throw new Error(
        `the credential plug-in ${this.#command.command} ${late ? `did not answer within ${this.#deadlineMs / 1000} s` : messageOf(e)}`,
        { cause: e },
      );
    }
  }
  #keep(until: number): void {
    this.#since = this.#now();
    this.#until = Math.max(until, this.#since + AT_LEAST_MS);
  }
}

/** The plug-in's standard output. Messages of its errors go on after "the plug-in …". */
function run(c: PluginCommand, limit: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(c.command, c.args, {
      env: { ...process.env, ...c.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a group of its own, to be ended with all that it has started
    });
    const output = new GrowingBuffer();
    let said = '';
    const end = (e: Error): void => {
      reject(e);
      endGroup(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const late = (): void => end(limit.reason as Error);
    limit.addEventListener('abort', late, { once: true });
    child.stdout.on('data', (b: Buffer) => {
      output.add(b);
      if (output.length > MAX_OUTPUT) end(new Error(`said more than ${MAX_OUTPUT} bytes`));
    });
    child.stderr.on('data', (b: Buffer) => {
      said = (said + b.toString('utf8')).slice(-MAX_SAID);
    });
    child.on('error', (e) => reject(new Error(`cannot be started: ${e.message}`, { cause: e })));
    child.on('close', (code, signal) => {
      limit.removeEventListener('abort', late);
      if (code === 0) resolve(output.take().toString('utf8'));
      else
        reject(
          new Error(
            `ended with ${code === null ? String(signal) : `code ${code}`}${said.trim() === '' ? '' : `: ${said.trim()}`}`,
          ),
        );
    });
  });
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    /* it has ended */
  }
}

function answerOf(text: string): Answer {
  const said = foreignJson(text, BOUNDS, (why) => new Error(`gave an answer that ${why}`)),
    status = isObject(said) && isObject(said['status']) ? said['status'] : {};
  const of = (name: string): string | undefined => {
    const v = status[name];
    return typeof v === 'string' && v !== '' ? v : undefined;
  };
  const token = of('token'),
    cert = of('clientCertificateData'),
    key = of('clientKeyData'),
    expires = Date.parse(of('expirationTimestamp') ?? '');
  if (token === undefined && (cert === undefined || key === undefined))
    throw new Error('gave neither a token nor a certificate');
  return { token, cert, key, expires: Number.isNaN(expires) ? undefined : expires };
}
