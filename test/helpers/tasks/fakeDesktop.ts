import type {
  Desktop,
  DesktopEvent,
  ExecOptions,
  ExecResult,
  SettleOptions,
  SettleReport,
} from '../../../runtime/cluster/types.js';
import type { Action, DesktopId, Frame, Size } from '../../../runtime/domain/index.js';
import { StudioError, id } from '../../../runtime/domain/index.js';
import { parseTask } from '../../../runtime/tasks/taskFile.js';
import type { Task } from '../../../runtime/tasks/types.js';

export type FakeExec = (
  argv: readonly string[],
  o: ExecOptions,
) =>
  | Partial<{
      code: number;
      stdout: string | Buffer;
      stderr: string | Buffer;
      timedOut: boolean;
      stopped: boolean;
      disturbed: boolean;
    }>
  | 'not found'
  | undefined;

const bytesOf = (output: string | Buffer = ''): Buffer => (typeof output === 'string' ? Buffer.from(output) : output);

/** A desktop of memory: files in a map, commands answered by the test; what happened is in `log`. */
export class FakeDesktop implements Desktop {
  readonly id = id<DesktopId>('fake');
  readonly provider = 'local' as const;
  readonly screen: Size = { width: 640, height: 401 };
  readonly files = new Map<string, Buffer>();
  readonly log: string[] = [];
  lost = false;
  answer: FakeExec;
  constructor(answer: FakeExec = () => undefined, files: Record<string, string | Buffer> = {}) {
    this.answer = answer;
    for (const [k, v] of Object.entries(files)) this.files.set(k, Buffer.from(v));
  }
  #alive(): void {
    if (this.lost) throw new StudioError('desktop.lost', 'The desktop is gone.', 'It is replaced.');
  }
  observe(): Promise<Frame> {
    return Promise.reject(new Error('not used'));
  }
  perform(a: Action): Promise<void> {
    this.log.push(`perform ${a.type}`);
    return Promise.resolve();
  }
  async settle(_o?: SettleOptions): Promise<SettleReport> {
    this.#alive();
    this.log.push('settle');
    return { settled: true, ms: 100, detector: 'exact' };
  }
  async exec(cmd: readonly string[], o: ExecOptions = {}): Promise<ExecResult> {
    this.#alive();
    this.log.push(`exec ${cmd.join(' ')}`);
    const a = this.answer(cmd, o);
    if (a === 'not found')
      throw new StudioError('desktop.exec', `${cmd[0]} cannot be run.`, 'Install it.', { details: { code: 'ENOENT' } });
    return {
      code: a?.code ?? 0,
      stdout: bytesOf(a?.stdout),
      stderr: bytesOf(a?.stderr),
      timedOut: a?.timedOut ?? false,
      stopped: a?.stopped ?? false,
      disturbed: a?.disturbed ?? false,
    };
  }
  async spawn(cmd: readonly string[]): Promise<number> {
    this.#alive();
    this.log.push(`spawn ${cmd.join(' ')}`);
    return 1;
  }
  async readFile(path: string): Promise<Buffer> {
    this.#alive();
    const f = this.files.get(path);
    if (!f)
      throw new StudioError('desktop.exec', `There is no file ${path}.`, 'Check the path.', {
        details: { code: 'ENOENT' },
      });
    return f;
  }
  async writeFile(path: string, data: Buffer): Promise<void> {
    this.#alive();
    this.log.push(`write ${path}`);
    this.files.set(path, data);
  }
  readonly listeners = new Set<(e: DesktopEvent) => void>();
  onEvent(l: (e: DesktopEvent) => void): () => void {
    this.listeners.add(l);
    return () => this.listeners.delete(l);
  }
}

/** A task with the fields that matter to a test. */
export const taskOf = (
  evaluator: Record<string, unknown>,
  config: unknown[] = [],
  more: Record<string, unknown> = {},
): Task => parseTask({ id: 't', instruction: 'do it', config, evaluator, ...more }, 't.json');

export const never = new AbortController().signal;
