import { createHash } from 'node:crypto';
import type { Size, TokenTrace } from '../../domain/index.js';
import { GrammarError, parseAnswer } from '../../policy/actions/parse.js';
import { parseActions } from '../../policy/actions/uiTars.js';
import { compactJson, sliceOf } from '../compactJson.js';
import { readSmall, readWhole } from '../folder.js';
import { ownKey, parseOwn, type Own } from '../own.js';
import { tokensProblem, type StepRecord } from '../stepRecord.js';
import { readTensors } from '../torchFile.js';
import type { Tensor } from '../torchPickle.js';
import { jsonObject } from '../tasks.js';
import { Unusable, isObject, reworded, textField } from '../types.js';
import type { CoordinateMode, Found, Picture } from '../types.js';
import { Sizes, Steps, answerText, moment, one, pictureAt, rewardOf, writtenAt } from './read.js';
import type { ReadContext, Unit } from './read.js';

/** Most bytes of the file with an answer's tokens. */
const TENSORS = 2 << 20;

/**
 * A rollout folder of DART's rollouter: task_config.json, final_messages.json (the dialogue), image_0000.png and on,
 * reward.txt, data_for_step_1.pt and on (token ids and log-probs of the answers). Picture k shows the screen before
 * answer k, which is the first. Answers are UI-TARS text in the coordinates of Qwen2.5-VL. Prompts are not in the folder.
 */
export async function* readDart(c: ReadContext, u: Unit): AsyncGenerator<Found, void, undefined> {
  yield* one(c.folder.name(u.path), () => read(c, u));
}

async function read(c: ReadContext, u: Unit): Promise<Found> {
  const { folder } = c;
  const config = await jsonObject(await folder.file(u.dir, 'task_config.json')).catch((e: unknown) => {
    throw reworded(e, { words: (what) => `task_config.json ${what}` });
  });
  const rewardFile = (await folder.maybe(u.dir, 'reward.txt')) ?? (await folder.maybe(u.dir, 'reward_from_env.txt'));
  if (!rewardFile) throw new Unusable('there is no reward.txt: it has no outcome');
  const score = await readSmall(rewardFile, 256),
    reward = rewardOf(score);
  const { value: messages, fingerprint } = await compactJson(u.path);
  if (!Array.isArray(messages)) throw new Unusable('is not a list of messages');
  const own = parseOwn(config[ownKey]),
    dialogue = new Dialogue(c, u, own);
  for (const [i, m] of messages.entries()) {
    try {
      await dialogue.add(m, i);
    } catch (e) {
      throw reworded(e, { words: (what) => `message ${i} ${what}` });
    }
  }
  const { steps } = dialogue;
  if (steps.list.length === 0) throw new Unusable('has no answer of the model');
  const raw = isObject(config['raw']) ? config['raw'] : {};
  const task = own?.task ?? textField(config, 'id') ?? textField(raw, 'task_id') ?? textField(config, 'task_id'),
    instruction = own?.instruction ?? textField(config, 'instruction') ?? textField(raw, 'instruction');
  if (task === undefined || instruction === undefined)
    throw new Unusable(`task_config.json has no ${task === undefined ? 'task id' : 'instruction'}`);
  // Our own export has a picture there in any case, since DART's trainer wants one.
  const kept = own === undefined || own.last !== undefined,
    last = steps.ended || !kept ? undefined : await dialogue.numbered(steps.list.length),
    written = await writtenAt(u.path);
  return {
    draft: {
      format: 'dart',
      where: folder.name(u.path),
      fingerprint: createHash('sha256').update(`${fingerprint}\n${score}`).digest('hex').slice(0, 12),
      task,
      family: own?.family ?? task,
      instruction,
      steps: steps.list,
      notes: [...steps.notes, ...dialogue.notes],
      outcome: { reward, truncated: own?.truncated ?? !steps.ended },
      last,
      cap: own?.cap ?? steps.list.length,
      startedAt: own?.startedAt ?? written,
      endedAt: own?.endedAt ?? written,
    },
  };
}

/** Messages of the dialogue as steps: a picture from the user, then an answer of the model. */
class Dialogue {
  readonly steps = new Steps();
  /** Fields that had to be left out, in words. */
  readonly notes: string[] = [];
  readonly #sizes = new Sizes();
  readonly #c: ReadContext;
  readonly #u: Unit;
  readonly #own: Own | undefined;
  /** The picture since the last answer. */
  #shown: Picture | undefined;

  constructor(c: ReadContext, u: Unit, own: Own | undefined) {
    this.#c = c;
    this.#u = u;
    this.#own = own;
  }

  /** Takes in one message. Throws Unusable when it cannot be understood. */
  async add(m: unknown, index: number): Promise<void> {
    if (!isObject(m)) throw new Unusable('is not an object');
    if (m['role'] === 'user') this.#shown = (await this.#pictureOf(m['content'], index)) ?? this.#shown;
    if (m['role'] !== 'assistant') return;
    const frame = this.#shown ?? (await this.numbered(this.steps.list.length));
    if (!frame) throw new Unusable('has no screenshot before it');
    const text = answerText(textOf(m['content'])),
      size = await this.#sizes.of(frame),
      said = parseAnswerOf(text, this.#c.options.coordinates ?? 'qwen25', size);
    if (this.steps.ended) throw new Unusable('comes after the end of the trajectory');
    const k = this.steps.list.length;
    this.steps.add({
      frame,
      size,
      actions: said.actions,
      origin: this.#own?.origins[k] ?? 'policy',
      thought: [said.reflection, said.thought].filter(Boolean).join('\n'),
      at: moment(this.#own?.times?.[k]),
      sampled: await this.#sampled(k),
    });
    this.#shown = undefined;
  }

  /** Token ids and log-probs of answer `k`; undefined where there are none, or none that can be used. */
  async #sampled(k: number): Promise<StepRecord | undefined> {
    const { folder } = this.#c,
      name = `data_for_step_${k + 1}.pt`,
      file = await folder.maybe(this.#u.dir, name);
    if (file === undefined) return undefined;
    try {
      return recordOfAnswer(readTensors(await readWhole(file, TENSORS)));
    } catch (e) {
      if (!(e instanceof Unusable)) throw e;
      this.notes.push(`the tokens of some answers were left out: ${name} ${e.message}`);
      return undefined;
    }
  }

  /** The screen before answer `k`, by the name DART gives it. */
  async numbered(k: number): Promise<Picture | undefined> {
    const { folder } = this.#c,
      file = await folder.maybe(this.#u.dir, `image_${String(k).padStart(4, '0')}.png`);
    return file === undefined ? undefined : pictureAt(folder, file);
  }

  async #pictureOf(content: unknown, index: number): Promise<Picture | undefined> {
    const { folder } = this.#c,
      u = this.#u;
    const parts: readonly unknown[] = Array.isArray(content) ? content : [],
      part = parts.filter(isObject).findLast((p) => p['type'] === 'image_url');
    if (!part) return undefined;
    const link = part['image_url'],
      url = isObject(link) && !sliceOf(link) ? link['url'] : link,
      slice = sliceOf(url);
    if (slice) return { file: u.path, name: `embedded in ${folder.name(u.path)}`, slice };
    if (typeof url !== 'string') throw new Unusable('has a picture without an address');
    if (url.startsWith('data:')) return { file: u.path, name: `embedded in message ${index}`, inline: url };
    // DART writes names relative to the folder; a path of the machine it ran on counts only by a picture of that name
    // right here.
    const own = /(?:^|[/\\])(image_\d{4,6}\.png)$/.exec(url)?.[1];
    return pictureAt(folder, await folder.file(u.dir, /^([/\\]|[a-z]:)/i.test(url) && own ? own : url));
  }
}

/** DART writes empty tensors where its server said no tokens. Entropies are not kept, so they are from below. */
function recordOfAnswer(tensors: ReadonlyMap<string, Tensor>): StepRecord | undefined {
  const ids = tensors.get('token_ids'),
    logprobs = tensors.get('logp');
  if (!(ids instanceof Int32Array) || !(logprobs instanceof Float32Array))
    throw new Unusable('has no token_ids and logp of the kinds that DART writes');
  if (ids.length === 0 && logprobs.length === 0) return undefined;
  const tokens: TokenTrace = { ids, logprobs, entropies: new Float32Array(logprobs.length), bound: 'lower' },
    why = tokensProblem(tokens);
  if (why !== undefined) throw new Unusable(`is of no use: ${why}`);
  return { tokens };
}

/** Throws Unusable for what is no action here, and names it. */
function parseAnswerOf(text: string, mode: CoordinateMode, screen: Size): ReturnType<typeof parseActions> {
  try {
    return parseActions(text, { mode, screen });
  } catch (e) {
    if (!(e instanceof GrammarError) && !(e instanceof RangeError)) throw e;
    // Which part is no action we know: the call's name, else where the grammar breaks.
    let name: string | undefined;
    try {
      name = parseAnswer(text).calls[0]?.name;
    } catch {
      /* not even a call */
    }
    throw new Unusable(`is no action we have${name === undefined ? '' : ` (${name})`}: ${e.message}`);
  }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  const texts = Array.isArray(content)
    ? content.flatMap((p) => (isObject(p) && p['type'] === 'text' && typeof p['text'] === 'string' ? [p['text']] : []))
    : [];
  if (texts.length === 0) throw new Unusable('has no text');
  return texts.join('\n');
}
