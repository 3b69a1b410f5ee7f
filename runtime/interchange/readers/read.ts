import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { isTerminal, errorCode } from '../../domain/index.js';
import type { Action, Size, Step, StepTimings } from '../../domain/index.js';
import { parseAnswer } from '../../policy/actions/parse.js';
import type { ImportFolder } from '../folder.js';
import { pictureSize } from '../picture.js';
import type { TaskFiles } from '../tasks.js';
import { Unusable, limits, problemOf } from '../types.js';
import type { DraftStep, Found, ImportFormat, Picture, ReadOptions } from '../types.js';

/** The parts that every reader works with. */
export interface ReadContext {
  readonly folder: ImportFolder;
  readonly options: ReadOptions;
  readonly tasks: TaskFiles;
}
/** The place of one or more trajectories of a format. `path`: the file that names them. */
export interface Unit {
  readonly format: ImportFormat;
  readonly dir: string;
  readonly path: string;
}

export const pictureAt = (folder: ImportFolder, file: string): Picture => ({ file, name: folder.name(file) });

/** A score as runners write it. */
export function rewardOf(text: string): number {
  const t = text.trim(),
    n = t === 'True' ? 1 : t === 'False' ? 0 : Number(t);
  if (t === '' || !Number.isFinite(n)) throw new Unusable(`the score '${t.slice(0, 40)}' is not a number`);
  if (n === -1 || n === -2)
    throw new Unusable(
      n === -1
        ? 'its verifier failed (score -1): it has no outcome'
        : 'its model server failed (score -2): it has no outcome',
    );
  if (n < 0 || n > 1) throw new Unusable(`the score ${n} is not between 0 and 1`);
  return n;
}

/** The thought in a model's raw answer: UI-TARS's, OpenCUA's, or whatever is not code. */
export function thoughtOf(response: string | undefined): string | undefined {
  const text = response?.trim();
  if (!text) return undefined;
  let said: string | undefined;
  try {
    if (text.length > limits.answer) throw new Unusable('too long');
    const a = parseAnswer(text);
    said = a.reflection === undefined ? a.thought : [a.reflection, a.thought].filter(Boolean).join('\n');
  } catch {
    said =
      /^#+\s*Thought:?\s*\n([\s\S]*?)(?=^#+\s*(?:Action|Code)|(?![\s\S]))/m.exec(text)?.[1] ??
      text.replace(/```[\s\S]*?(?:```|$)/g, '').replace(/^\s*Thought\s*[:\uff1a]/, '');
  }
  said = said?.trim();
  return said ? said.slice(0, limits.text) : undefined;
}

/** Steps as they are read, each up to its end; refuses what is longer than any real trajectory. */
export class Steps {
  readonly list: DraftStep[] = [];
  /** Actions that were left out, in words. */
  readonly notes: string[] = [];
  get ended(): boolean {
    return this.list.at(-1)?.actions.some(isTerminal) ?? false;
  }
  add(s: {
    readonly frame: Picture;
    readonly size: Size;
    readonly thought?: string | undefined;
    readonly actions: readonly Action[];
    readonly origin: Step['origin'];
    readonly at?: number | undefined;
    readonly timings?: StepTimings | undefined;
    readonly sampled?: DraftStep['sampled'];
    readonly words?: DraftStep['words'];
  }): void {
    if (this.list.length >= limits.steps) throw new Unusable(`has more than ${limits.steps} steps`);
    const end = s.actions.findIndex(isTerminal) + 1,
      goesOn = end > 0 && end < s.actions.length;
    if (goesOn) this.notes.push(`what follows its end (in step ${this.list.length}) was left out`);
    const actions = goesOn ? s.actions.slice(0, end) : s.actions;
    this.list.push({ ...s, actions, thought: s.thought || undefined });
  }
}

/** Sizes of pictures, each read once. */
export class Sizes {
  readonly #known = new Map<string, Size>();
  async of(p: Picture): Promise<Size> {
    const key = p.slice ? `${p.file}:${p.slice.offset}` : p.inline === undefined ? p.file : p.name,
      known = this.#known.get(key);
    if (known) return known;
    const size = await pictureSize(p);
    this.#known.set(key, size);
    return size;
  }
}

/** A reader of one trajectory as a source of one finding. What was not foreseen goes on up. */
export async function* one(where: string, read: () => Promise<Found>): AsyncGenerator<Found, void, undefined> {
  let found: Found;
  try {
    found = bounded(await read());
  } catch (e) {
    if (e instanceof Unusable) found = { problem: problemOf(e, where) };
    else if (typeof errorCode(e) === 'string') found = { problem: { where, what: `cannot be read (${errorCode(e)})` } };
    else throw e;
  }
  yield found;
}

/** Keeps texts that become part of a name or of a prompt within bounds. */
function bounded(f: Found): Found {
  if ('problem' in f) return f;
  const { task, family, instruction } = f.draft;
  if (task.length > limits.id || family.length > limits.id)
    throw new Unusable(`the task id '${task.slice(0, 40)}…' is longer than ${limits.id} characters`);
  if (instruction.length > limits.instruction)
    throw new Unusable(`the instruction is longer than ${limits.instruction} characters`);
  return f;
}

/** A model's answer that is to be read by its grammar. */
export function answerText(text: string): string {
  if (text.length > limits.answer)
    throw new Unusable(`an answer of ${text.length} characters; at most ${limits.answer} are read`);
  return text;
}

/** A moment as ms since the epoch; undefined for anything that is none, such as a clock that began at 0. */
export const moment = (v: unknown): number | undefined =>
  typeof v === 'number' && v > 1e11 && v < 1e14 ? v : undefined;

/** ms since the epoch at which a file was last written. */
export const writtenAt = async (file: string): Promise<number> => Math.round((await stat(file)).mtimeMs);

/**
 * A folder name that stands for a task id: written by us with percent signs where a file name cannot hold a character.
 */
export function idOfFolder(dir: string): string {
  const name = basename(dir);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
