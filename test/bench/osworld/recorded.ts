import { gunzipSync, gzipSync } from 'node:zlib';
import { digestOf } from '../../../runtime/files/digest.js';
import type {
  Desktop,
  DesktopEvent,
  DesktopInput,
  ExecOptions,
  ExecResult,
  SettleOptions,
} from '../../../runtime/cluster/types.js';
import { StudioError, id, type Action, type DesktopId, type Frame, type Size } from '../../../runtime/domain/index.js';

/**
 * What a real desktop answered while a task was set up and judged on it, so that the task can be judged again where no
 * such desktop is. Answers are kept by what was asked, in their order; the last one is given again where more is asked.
 */
interface Answer {
  readonly code?: number | null;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly timedOut?: boolean;
  /** Digest of a file's content. */
  readonly file?: string;
  /** An error of the agent: its kind, words and code. */
  readonly error?: readonly [kind: string, message: string, code: unknown];
}
export interface RecordedState {
  readonly screen: Size;
  readonly answers: Readonly<Record<string, readonly Answer[]>>;
}
export interface RecordedTask {
  readonly id: string;
  readonly folder: string;
  /** Reward of doing nothing, and of the scripted solution where there is one. */
  readonly nothing?: { readonly reward: number; readonly state: RecordedState };
  readonly solved?: { readonly reward: number; readonly state: RecordedState };
}
interface Archive {
  readonly files: Record<string, string>;
  readonly tasks: readonly RecordedTask[];
}

/** Contents by digest. */
export type Contents = Map<string, Buffer>;

export function packStates(tasks: readonly RecordedTask[], files: Contents): Buffer {
  const archive: Archive = {
    tasks,
    files: Object.fromEntries([...files].map(([hash, data]) => [hash, data.toString('base64')])),
  };
  return gzipSync(JSON.stringify(archive), { level: 9 });
}
export function unpackStates(packed: Buffer): { readonly tasks: readonly RecordedTask[]; readonly files: Contents } {
  const { tasks, files } = JSON.parse(gunzipSync(packed).toString('utf8')) as Archive;
  return { tasks, files: new Map(Object.entries(files).map(([hash, data]) => [hash, Buffer.from(data, 'base64')])) };
}

const execKey = (argv: readonly string[], o: ExecOptions = {}): string =>
  JSON.stringify(['exec', ...argv, ...(o.stdin === undefined ? [] : [{ stdin: String(o.stdin) }])]);
const fileKey = (path: string): string => JSON.stringify(['file', path]);

/** A desktop whose answers are written down. */
export class RecordingDesktop implements Desktop {
  readonly #d: Desktop;
  readonly #files: Contents;
  readonly #answers: Record<string, Answer[]> = {};
  constructor(d: Desktop, files: Contents) {
    this.#d = d;
    this.#files = files;
  }
  get state(): RecordedState {
    return { screen: this.#d.screen, answers: this.#answers };
  }
  get id(): DesktopId {
    return this.#d.id;
  }
  get provider(): Desktop['provider'] {
    return this.#d.provider;
  }
  get screen(): Size {
    return this.#d.screen;
  }
  observe(): Promise<Frame> {
    return this.#d.observe();
  }
  perform(a: Action): Promise<void> {
    return this.#d.perform(a);
  }
  async input(events: readonly DesktopInput[]): Promise<void> {
    if (!this.#d.input) throw new Error('the desktop takes no input events');
    await this.#d.input(events);
  }
  settle(o?: SettleOptions): ReturnType<Desktop['settle']> {
    return this.#d.settle(o);
  }
  exec(cmd: readonly string[], o?: ExecOptions): Promise<ExecResult> {
    return this.#kept(execKey(cmd, o), this.#d.exec(cmd, o), (r) => ({
      code: r.code,
      ...(r.stdout.length > 0 ? { stdout: r.stdout.toString('base64') } : {}),
      ...(r.stderr.length > 0 ? { stderr: r.stderr.toString('base64') } : {}),
      ...(r.timedOut ? { timedOut: true } : {}),
    }));
  }
  spawn(cmd: readonly string[], o?: Pick<ExecOptions, 'cwd' | 'env'>): Promise<number> {
    return this.#d.spawn(cmd, o);
  }
  readFile(path: string): Promise<Buffer> {
    return this.#kept(fileKey(path), this.#d.readFile(path), (data) => {
      const file = digestOf(data);
      this.#files.set(file, data);
      return { file };
    });
  }
  writeFile(path: string, data: Buffer): Promise<void> {
    return this.#d.writeFile(path, data);
  }
  onEvent(l: (e: DesktopEvent) => void): () => void {
    return this.#d.onEvent(l);
  }
  freeze(): Promise<void> {
    return this.#d.freeze?.() ?? Promise.resolve();
  }
  thaw(): Promise<void> {
    return this.#d.thaw?.() ?? Promise.resolve();
  }
  async #kept<T>(key: string, asked: Promise<T>, answer: (value: T) => Answer): Promise<T> {
    const keep = (a: Answer): void => void (this.#answers[key] ??= []).push(a);
    try {
      const value = await asked;
      keep(answer(value));
      return value;
    } catch (e) {
      if (e instanceof StudioError) keep({ error: [e.kind, e.message, e.error.details?.['code']] });
      throw e;
    }
  }
}

/** What was recorded, once more. A question that was never asked is an error that names it. */
export class ReplayDesktop implements Desktop {
  readonly id = id<DesktopId>('recorded');
  readonly provider = 'local' as const;
  readonly screen: Size;
  readonly #answers: Map<string, Answer[]>;
  readonly #files: Contents;
  constructor(state: RecordedState, files: Contents) {
    this.screen = state.screen;
    this.#answers = new Map(Object.entries(state.answers).map(([k, v]) => [k, [...v]]));
    this.#files = files;
  }
  observe(): Promise<Frame> {
    return Promise.reject(new Error('a recorded desktop has no screen'));
  }
  perform(): Promise<void> {
    return Promise.resolve();
  }
  input(): Promise<void> {
    return Promise.resolve();
  }
  settle(): ReturnType<Desktop['settle']> {
    return Promise.resolve({ settled: true, ms: 1, detector: 'exact' });
  }
  async exec(cmd: readonly string[], o?: ExecOptions): Promise<ExecResult> {
    const a = this.#next(execKey(cmd, o), `the command ${cmd.join(' ').slice(0, 200)}`);
    const bytes = (s: string | undefined): Buffer => Buffer.from(s ?? '', 'base64');
    return { code: a.code ?? null, stdout: bytes(a.stdout), stderr: bytes(a.stderr), timedOut: a.timedOut ?? false };
  }
  spawn(): Promise<number> {
    return Promise.resolve(1);
  }
  async readFile(path: string): Promise<Buffer> {
    const data = this.#files.get(this.#next(fileKey(path), path).file ?? '');
    if (!data) throw new Error(`the recording lacks the content of ${path}`);
    return data;
  }
  writeFile(): Promise<void> {
    return Promise.resolve();
  }
  onEvent(): () => void {
    return () => undefined;
  }
  #next(key: string, what: string): Answer {
    const all = this.#answers.get(key),
      a = all && (all.length > 1 ? all.shift() : all[0]);
    if (!a) throw new StudioError('desktop.exec', `The recording has no answer to ${what}.`, 'Record it again.');
    if (a.error) {
      const [kind, message, code] = a.error;
      throw new StudioError(kind as 'desktop.exec', message, 'As recorded.', { details: { code } });
    }
    return a;
  }
}
