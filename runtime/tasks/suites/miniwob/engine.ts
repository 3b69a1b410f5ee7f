import type { BrowserAnswer, BrowserCommand, Desktop } from '../../../cluster/types.js';
import { StudioError } from '../../../domain/index.js';
import { isStarved } from '../../../concurrency/starved.js';
import { z } from 'zod';
import type { Task, TaskEngine } from '../../types.js';
import type { Pages } from './pages.js';
import { begin, state } from './scripts.js';

/** Folder of the pages inside a desktop; the browser opens nothing else (images/web, its policies). */
const FOLDER = '/var/tmp/pages';
/** A page that takes longer to load or to begin is broken, or the machine is far too busy. */
const OPEN_MS = 15_000,
  BEGIN_MS = 5_000,
  STATE_MS = 2_000,
  UNPACK_MS = 60_000;
/** How often a page is asked for its end while the desktop's programs get no processor, and how long each wait lasts. */
const STARVED_ASKS = 5,
  STARVED_MS = 500;
const LONGEST_INSTRUCTION = 4_000;

const State = z.object({ done: z.boolean(), raw: z.number(), reason: z.string() });
type State = z.infer<typeof State>;

/**
 * Pages of MiniWoB++ on desktops of the image `web`. An episode is won when its raw reward is above 0; it ends when the
 * page says so.
 */
export class MiniwobEngine implements TaskEngine {
  readonly #pages: Pages;
  readonly #onInstruction: (task: Task, said: string) => void;
  readonly #said = new WeakMap<Desktop, string>();

  constructor(pages: Pages, onInstruction: (task: Task, said: string) => void = () => {}) {
    this.#pages = pages;
    this.#onInstruction = onInstruction;
  }

  check(): readonly string[] {
    return [];
  }

  async setup(task: Task, desktop: Desktop, signal: AbortSignal): Promise<void> {
    const { page, seed } = pageOf(task);
    const commands: BrowserCommand[] = [
      { open: `file://${FOLDER}/miniwob/${page}.html`, ms: OPEN_MS },
      { run: begin(seed), ms: BEGIN_MS },
      { drawn: true },
    ];
    let answer = await ask(desktop, commands, signal);
    if ('error' in answer && answer.at === 0 && answer.error.includes('ERR_FILE_NOT_FOUND')) {
      await this.#unpack(desktop, signal);
      answer = await ask(desktop, commands, signal);
    }
    if ('error' in answer) throw unfit(task, answer);
    const said = answer.ok[1]?.value;
    if (typeof said !== 'string' || said.trim() === '')
      throw unfit(task, { error: 'it does not say what is to be done', at: 1, kind: 'page' });
    const instruction = said.trim().slice(0, LONGEST_INSTRUCTION);
    this.#said.set(desktop, instruction);
    this.#onInstruction(task, instruction);
  }

  instruction(task: Task, desktop: Desktop): string {
    return this.#said.get(desktop) ?? task.instruction;
  }

  async over(task: Task, desktop: Desktop, signal: AbortSignal): Promise<boolean> {
    const now = await this.#state(desktop, signal);
    return now !== undefined && now.done;
  }

  async verify(_task: Task, desktop: Desktop, _last: unknown, signal: AbortSignal): ReturnType<TaskEngine['verify']> {
    const now = await this.#lastState(desktop, signal),
      won = now?.done === true && now.raw > 0;
    const check = {
      what: 'the page’s raw reward',
      expected: 'above 0',
      found: found(now),
      score: won ? 1 : 0,
    };
    return won
      ? { kind: 'success', reward: 1, truncated: false, report: { checks: [check] } }
      : { kind: 'failure', reward: 0, truncated: false, report: { checks: [check] } };
  }

  /** Undefined where the page does not answer: what was done to it has broken it. */
  async #state(desktop: Desktop, signal: AbortSignal): Promise<State | undefined> {
    return stateIn(await ask(desktop, [{ run: state, ms: STATE_MS }], signal));
  }
  /** The same, where a browser that got no processor is asked again. */
  async #lastState(desktop: Desktop, signal: AbortSignal): Promise<State | undefined> {
    for (let n = 1; ; n++) {
      const answer = await ask(desktop, [{ run: state, ms: STATE_MS }], signal),
        late = 'error' in answer && answer.kind === 'hung' && n < STARVED_ASKS;
      if (!late || !isStarved((await desktop.settle({ maxMs: STARVED_MS })).starved)) return stateIn(answer);
    }
  }

  async #unpack(desktop: Desktop, signal: AbortSignal): Promise<void> {
    const r = await desktop.exec(
      ['sh', '-c', `mkdir -p ${FOLDER} && tar -C ${FOLDER} -xzf - && chmod -R a-w ${FOLDER}`],
      {
        stdin: await this.#pages.packed(),
        timeoutMs: UNPACK_MS,
        signal,
      },
    );
    if (r.code !== 0)
      throw new StudioError(
        'task.setup',
        `The pages could not be put into the desktop: ${r.stderr.toString().slice(0, 300) || `exit code ${r.code}`}.`,
        'Give the desktops more memory (desktops.memoryMb): the pages are kept in it.',
      );
  }
}

function stateIn(answer: Awaited<ReturnType<typeof ask>>): State | undefined {
  if ('error' in answer) return undefined;
  const now = State.safeParse(answer.ok[0]?.value);
  return now.success ? now.data : undefined;
}

const found = (now: State | undefined): string =>
  now === undefined
    ? 'the page no longer answers'
    : now.done
      ? `${now.raw}${now.reason === '' ? '' : ` (${now.reason})`}`
      : 'not finished';

/** Rejects where the browser is gone: what a policy can press does not end it. */
async function ask(
  desktop: Desktop,
  commands: readonly BrowserCommand[],
  signal: AbortSignal,
): Promise<Exclude<BrowserAnswer, { kind: 'browser' }>> {
  if (!desktop.browse)
    throw new StudioError(
      'task.unsupported',
      'MiniWoB++ needs desktops that keep a browser open.',
      'Set desktops.image to "web".',
    );
  const answer = await desktop.browse(commands, { signal });
  if ('error' in answer && answer.kind === 'browser')
    throw new StudioError('desktop.lost', answer.error, 'Nothing needs to be done: the desktop is replaced.');
  return answer;
}

function pageOf(task: Task): { readonly page: string; readonly seed: number } {
  const { page, seed } = task.evaluator.options as { readonly page: string; readonly seed: number };
  return { page, seed };
}

const unfit = (task: Task, { error, kind }: Extract<BrowserAnswer, { error: string }>): StudioError =>
  new StudioError(
    'task.setup',
    kind === 'hung' ? `${task.family} did not begin in time: ${error}.` : `${task.family} cannot begin: ${error}.`,
    'Leave it out (tasks.families); `dart-studio tasks check DIR` says which pages work here.',
  );
