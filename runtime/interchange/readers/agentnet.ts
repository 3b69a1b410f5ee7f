import { createHash } from 'node:crypto';
import { basename, extname } from 'node:path';
import { lines, parseLine } from '../folder.js';
import { ownKey, parseOwn } from '../own.js';
import { CodeReader } from '../pyautoguiRead.js';
import { Unusable, isObject, limits, textField } from '../types.js';
import type { Found, Picture } from '../types.js';
import { Sizes, Steps, moment, one, pictureAt, writtenAt } from './read.js';
import type { ReadContext, Unit } from './read.js';

/**
 * AgentNet (OpenCUA): a trajectory a line, pictures of the screen before each action in a folder beside. Recorded by
 * people.
 */
export async function* readAgentnet(c: ReadContext, u: Unit): AsyncGenerator<Found, void, undefined> {
  const where = c.folder.name(u.path),
    stem = basename(u.path, extname(u.path)),
    written = await writtenAt(u.path);
  const folders = [
    '',
    'images',
    stem,
    `${stem}_images`,
    `${stem.replace(/^agentnet_/, '').replace(/_\d+k$/, '')}_images`,
  ];
  /** Where the last picture was found: most likely the next one's place. */
  let place = '';
  const picture = async (name: string): Promise<Picture> => {
    for (const f of [place, ...folders.filter((x) => x !== place)]) {
      const file = await c.folder.maybe(u.dir, f === '' ? name : `${f}/${name}`);
      if (file) {
        place = f;
        return pictureAt(c.folder, file);
      }
    }
    throw new Unusable(`the picture '${name.slice(0, 120)}' is missing`, {
      remedy: `Put the pictures beside the file, in a folder 'images' or '${stem}'.`,
    });
  };
  for await (const { line, text } of lines(u.path)) {
    if (text?.trim() === '') continue;
    yield* one(`${where}:${line}`, () => trajectory(text, line));
  }

  async function trajectory(text: string | undefined, line: number): Promise<Found> {
    const o = parseLine(text);
    if (!isObject(o) || !Array.isArray(o['traj'])) throw new Unusable("the line is not an object with 'traj'");
    const own = parseOwn(o[ownKey]),
      steps = new Steps(),
      sizes = new Sizes(),
      code = new CodeReader('relative'),
      notes: string[] = [];
    for (const [i, step] of (o['traj'] as unknown[]).entries()) {
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
        const frame = await picture(image),
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
        throw e instanceof Unusable
          ? new Unusable(`step ${i}: ${e.message}`, e.remedy === undefined ? {} : { remedy: e.remedy })
          : e;
      }
    }
    if (steps.list.length === 0) throw new Unusable('has no steps');
    const completed = o['task_completed'],
      verdict = c.options.verdict;
    if (!own && typeof completed !== 'boolean' && !verdict)
      throw new Unusable('does not say whether the task was completed (task_completed)', {
        remedy: 'Say it for all of them with --verdict success or --verdict failure.',
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
    const last = own?.last !== undefined && !steps.ended ? await picture(own.last) : undefined;
    return {
      draft: {
        format: 'agentnet',
        where: `${where}:${line}`,
        fingerprint: createHash('sha256').update(text!).digest('hex').slice(0, 12),
        task,
        family: own?.family ?? task,
        instruction,
        steps: steps.list,
        notes,
        outcome: {
          reward: own?.reward ?? ((typeof completed === 'boolean' ? completed : verdict === 'success') ? 1 : 0),
          truncated: own?.truncated ?? false,
        },
        ...(last ? { last } : {}),
        cap: own?.cap ?? steps.list.length,
        startedAt: own?.startedAt ?? written,
        endedAt: own?.endedAt ?? written,
      },
    };
  }
}
