import { createHash } from 'node:crypto';
import { placesOf, type Action, type Point, type Size } from '../../domain/index.js';
import type { CoordinateMode } from '../../policy/actions/coordinates.js';
import { GrammarError } from '../../policy/actions/parse.js';
import { boxCentre, parseActions } from '../../policy/actions/uiTars.js';
import { compactJson, sliceOf } from '../compactJson.js';
import { Unusable, isObject, textField } from '../types.js';
import type { Found, Picture } from '../types.js';
import { Sizes, Steps, answerText, moment, one, writtenAt } from './read.js';
import type { ReadContext, Unit } from './read.js';

interface Turn {
  readonly text: string;
  readonly frame: Picture;
  readonly size: Size;
  /** Points of its first action as the recorder understood them, shares of the screen. */
  readonly points: readonly Point[];
  readonly at: number;
  /** When the model began and ended its answer. */
  readonly began?: number | undefined;
  readonly ended?: number | undefined;
}
const modes: readonly CoordinateMode[] = ['qwen25', 'relative1000', 'relative999', 'relative1', 'absolute'];

/**
 * GUIAgentData of UI-TARS-desktop: one JSON file, screenshots inside as base64. The model's text is in coordinates that
 * depend on the model; the file tells which by the points its own parser noted. It has no verdict: the user gives one.
 */
export async function* readUiTars(c: ReadContext, u: Unit): AsyncGenerator<Found, void, undefined> {
  yield* one(c.folder.name(u.path), () => read(c, u));
}

async function read(c: ReadContext, u: Unit): Promise<Found> {
  const where = c.folder.name(u.path),
    { value: o, fingerprint } = await compactJson(u.path);
  if (!isObject(o) || !Array.isArray(o['conversations']))
    throw new Unusable("is not a recording: there are no 'conversations'");
  const instruction = textField(o, 'instruction');
  if (instruction === undefined) throw new Unusable('has no instruction');
  const turns = await turnsOf(o['conversations'] as unknown[], u.path);
  if (turns.length === 0) throw new Unusable('has no answer of the model');
  const { verdict } = c.options;
  if (!verdict)
    throw new Unusable('a recording of UI-TARS has no verdict', {
      remedy: 'Set it for all of them with --verdict success or --verdict failure.',
    });
  const mode = c.options.coordinates ?? modeOf(turns, textField(o, 'modelName') ?? '');
  const steps = new Steps();
  for (const t of turns) {
    if (steps.ended) throw new Unusable(`conversation ${t.at} comes after the end of the recording`);
    const said = parsed(t, mode);
    steps.add({
      frame: t.frame,
      size: t.size,
      actions: said.actions,
      origin: 'policy',
      at: t.ended,
      thought: [said.reflection, said.thought].filter(Boolean).join('\n'),
    });
  }
  const task = `ui-tars/${createHash('sha256').update(instruction).digest('hex').slice(0, 12)}`,
    at = moment(o['logTime']) ?? (await writtenAt(u.path)),
    began = turns.find((t) => t.began !== undefined)?.began,
    ended = turns.findLast((t) => t.ended !== undefined)?.ended;
  return {
    draft: {
      format: 'ui-tars',
      where,
      fingerprint,
      task,
      family: task,
      instruction,
      steps: steps.list,
      notes: steps.notes,
      outcome: { reward: verdict === 'success' ? 1 : 0, truncated: !steps.ended },
      cap: steps.list.length,
      startedAt: began ?? at,
      endedAt: ended ?? at,
    },
  };
}

async function turnsOf(conversations: readonly unknown[], file: string): Promise<Turn[]> {
  const out: Turn[] = [],
    sizes = new Sizes();
  let frame: Picture | undefined;
  for (const [at, m] of conversations.entries()) {
    if (!isObject(m)) throw new Unusable(`conversation ${at} is not an object`);
    if (m['from'] === 'human') {
      const shot = m['screenshotBase64'],
        slice = sliceOf(shot),
        name = `of conversation ${at}`;
      if (slice) frame = { file, name, slice };
      else if (typeof shot === 'string' && shot !== '') frame = { file, name, inline: shot };
      continue;
    }
    if (m['from'] !== 'gpt' && m['from'] !== 'assistant') continue;
    const text = textField(m, 'value');
    if (text === undefined) throw new Unusable(`conversation ${at} has no text`);
    if (!frame) throw new Unusable(`conversation ${at} has no screenshot before it`);
    const timing = isObject(m['timing']) ? m['timing'] : {};
    const first: unknown = Array.isArray(m['predictionParsed']) ? m['predictionParsed'][0] : undefined,
      inputs = isObject(first) && isObject(first['action_inputs']) ? first['action_inputs'] : {};
    const points = ['start_box', 'end_box'].flatMap((k) => {
      const v = inputs[k],
        p = typeof v === 'string' ? boxCentre(v) : undefined;
      return p && p.x >= 0 && p.x <= 1 && p.y >= 0 && p.y <= 1 ? [p] : [];
    });
    out.push({
      text: answerText(text),
      frame,
      size: await sizes.of(frame),
      points,
      at,
      began: moment(timing['start']),
      ended: moment(timing['end']),
    });
  }
  return out;
}

function parsed(t: Turn, mode: CoordinateMode): ReturnType<typeof parseActions> {
  try {
    return parseActions(t.text, { mode, screen: t.size });
  } catch (e) {
    if (e instanceof GrammarError || e instanceof RangeError)
      throw new Unusable(`conversation ${t.at} is no action we have: ${e.message}`);
    throw e;
  }
}

/**
 * The coordinates in which the text says what the recorder understood; without its notes, those of the model's name.
 */
function modeOf(turns: readonly Turn[], model: string): CoordinateMode {
  const noted = turns.filter((t) => t.points.length > 0);
  const fits = (mode: CoordinateMode): boolean =>
    noted.every((t) => {
      let said: Action | undefined;
      try {
        said = parseActions(t.text, { mode, screen: t.size }).actions[0];
      } catch {
        return false;
      }
      const mine = said === undefined ? [] : placesOf(said);
      // Rounding differs by a pixel or two between parsers.
      return (
        mine.length >= t.points.length &&
        t.points.every(
          (p, i) => Math.abs(p.x * t.size.width - mine[i]!.x) <= 3 && Math.abs(p.y * t.size.height - mine[i]!.y) <= 3,
        )
      );
    });
  const found =
    noted.length > 0
      ? modes.find(fits)
      : /1[._-]5/.test(model)
        ? 'qwen25'
        : /ui-?tars/i.test(model) && !/doubao|seed/i.test(model)
          ? 'relative1000'
          : undefined;
  if (!found)
    throw new Unusable(
      noted.length > 0
        ? 'its text and the points it notes disagree in every known coordinate system'
        : `the coordinates of the model '${model.slice(0, 60)}' are not known`,
      { remedy: 'Name them with --coordinates qwen25, relative1000, relative999, relative1 or absolute.' },
    );
  return found;
}
