import { createHash } from 'node:crypto';
import { basename, extname } from 'node:path';
import { lines, parseLine, type ImportFolder } from '../folder.js';
import { ownKey, parseOwn, type Own } from '../own.js';
import { CodeReader } from '../pyautoguiRead.js';
import { Unusable, isObject, limits, reworded, textField } from '../types.js';
import type { Found, Picture } from '../types.js';
import { Sizes, Steps, moment, one, pictureAt, writtenAt } from './read.js';
import type { ReadContext, Unit } from './read.js';

/**
 * AgentNet (OpenCUA): a trajectory a line, pictures of the screen before each action in a folder beside. Recorded by
 * people.
 */
export async function* readAgentnet(c: ReadContext, u: Unit): AsyncGenerator<Found, void, undefined> {
  const where = c.folder.name(u.path),
    pictures = new Pictures(c.folder, u),
    written = await writtenAt(u.path);
  for await (const { line, text } of lines(u.path)) {
    if (text?.trim() === '') continue;
    const at = `${where}:${line}`;
    yield* one(at, () => trajectory(text, at, { pictures, written, verdict: c.options.verdict }));
  }
}

/** Finds pictures in the folders that publishers of AgentNet data use. */
class Pictures {
  readonly #folder: ImportFolder;
  readonly #dir: string;
  readonly #stem: string;
  readonly #places: readonly string[];
  /** Folder of the last picture: most likely the next one's, too. */
  #last = '';

  constructor(folder: ImportFolder, u: Unit) {
    const stem = basename(u.path, extname(u.path));
    this.#folder = folder;
    this.#dir = u.dir;
    this.#stem = stem;
    this.#places = [
      '',
      'images',
      stem,
      `${stem}_images`,
      `${stem.replace(/^agentnet_/, '').replace(/_\d+k$/, '')}_images`,
    ];
  }

  /** Throws Unusable when it is in none of them. */
  async find(name: string): Promise<Picture> {
    for (const place of [this.#last, ...this.#places.filter((p) => p !== this.#last)]) {
      const file = await this.#folder.maybe(this.#dir, place === '' ? name : `${place}/${name}`);
      if (file) {
        this.#last = place;
        return pictureAt(this.#folder, file);
      }
    }
    throw new Unusable(`the picture '${name.slice(0, 120)}' is missing`, {
      remedy: `Put the pictures beside the file, in a folder 'images' or '${this.#stem}'.`,
    });
  }
}

/** The fields that the lines of a file share. */
interface FileContext {
  readonly pictures: Pictures;
  /** When the file was written, ms since the epoch. */
  readonly written: number;
  readonly verdict: ReadContext['options']['verdict'];
}

async function trajectory(text: string | undefined, where: string, f: FileContext): Promise<Found> {
  const o = parseLine(text);
  if (!isObject(o) || !Array.isArray(o['traj'])) throw new Unusable("the line is not an object with 'traj'");
  const own = parseOwn(o[ownKey]),
    notes: string[] = [],
    steps = await stepsOf(o['traj'], own, f.pictures, notes),
    completed = o['task_completed'];
  if (!own && typeof completed !== 'boolean' && !f.verdict)
    throw new Unusable('does not say whether the task was completed (task_completed)', {
      remedy: 'Set it for all of them with --verdict success or --verdict failure.',
    });
  const instruction =
    own?.instruction ??
    textField(o, 'instruction') ??
    textField(o, 'natural_language_task') ??
    textField(o, 'actual_task');
  if (instruction === undefined) throw new Unusable('has no instruction');
  const task =
    own?.task ??
    textField(o, 'task_id') ??
    `agentnet/${createHash('sha256').update(instruction).digest('hex').slice(0, 12)}`;
  return {
    draft: {
      format: 'agentnet',
      where,
      fingerprint: createHash('sha256').update(text!).digest('hex').slice(0, 12),
      task,
      family: own?.family ?? task,
      instruction,
      steps: steps.list,
      notes: [...steps.notes, ...notes],
      outcome: {
        reward: own?.reward ?? ((typeof completed === 'boolean' ? completed : f.verdict === 'success') ? 1 : 0),
        truncated: own?.truncated ?? false,
      },
      last: own?.last !== undefined && !steps.ended ? await f.pictures.find(own.last) : undefined,
      cap: own?.cap ?? steps.list.length,
      startedAt: own?.startedAt ?? f.written,
      endedAt: own?.endedAt ?? f.written,
    },
  };
}

async function stepsOf(
  traj: readonly unknown[],
  own: Own | undefined,
  pictures: Pictures,
  notes: string[],
): Promise<Steps> {
  const steps = new Steps(),
    sizes = new Sizes(),
    code = new CodeReader('relative');
  for (const [i, step] of traj.entries()) {
    try {
      if (!isObject(step) || !isObject(step['value'])) throw new Unusable('is not an object with a value');
      if (steps.ended) {
        notes.push(`what follows its end (from step ${i}) was left out`);
        break;
      }
      const value = step['value'],
        image = textField(step, 'image'),
        source = textField(value, 'code') ?? '';
      if (image === undefined) throw new Unusable('names no picture');
      if (source.length > limits.text) throw new Unusable('its code is too long');
      const frame = await pictures.find(image),
        size = await sizes.of(frame);
      steps.add({
        frame,
        size,
        actions: code.read(source, size),
        origin: own?.origins[i] ?? 'human',
        at: moment(own?.times?.[i]),
        thought: textField(value, 'thought'),
      });
    } catch (e) {
      throw reworded(e, { words: (what) => `step ${i}: ${what}` });
    }
  }
  if (steps.list.length === 0) throw new Unusable('has no steps');
  return steps;
}
