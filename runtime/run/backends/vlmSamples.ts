import { createHash } from 'node:crypto';
import {
  StudioError,
  imageOf,
  sequencesOf,
  type FrameRef,
  type LearnStep,
  type SampledSequence,
  type SequenceImage,
  type Trajectory,
} from '../../domain/index.js';
import {
  demonstrated,
  type ChatTokenizer,
  type DemonstrationOptions,
} from '../../policy/remote/demonstrationTokens.js';
import { cutPrompt } from '../../policy/remote/promptRecord.js';
import type { TokenSample, TokenSequence } from '../../trainer/remote/sample.js';
import type { Chunk } from '../../trainer/remote/wire/index.js';
import { creditOf, type SampleSource } from './learner.js';

export interface TokenSamplesOptions extends DemonstrationOptions {
  /** The PNG file that the model was shown where a step has this screen. */
  readonly shown: (screen: FrameRef) => Promise<Uint8Array>;
  readonly tokenizer: ChatTokenizer;
  readonly imageToken: number;
  readonly signal: AbortSignal;
  /** Asks the tokenizer's server, once more where that was started again meanwhile. */
  readonly through?: <T>(work: () => Promise<T>) => Promise<T>;
}
/** Pictures kept in memory: a batch shows the same screens in several steps. */
const MOST_PICTURES = 512;
/** Demonstrated steps whose tokens are kept: they are imitated again and again. */
const MOST_DEMONSTRATED = 4096;

/** Steps of a vision-language model, with the tokens and pictures that it was shown. */
export class TokenSamples implements SampleSource<TokenSample> {
  readonly #o: TokenSamplesOptions;
  /** Decoded records, one list a step. */
  readonly #read = new WeakMap<Trajectory, readonly (readonly SampledSequence[])[]>();
  readonly #pictures = new Map<string, Promise<Uint8Array>>();
  readonly #demonstrated = new Map<string, Promise<Demonstrated>>();

  constructor(o: TokenSamplesOptions) {
    this.#o = o;
  }

  /** A rollout's step without a record of its prompt was not sampled from our weights: there is nothing to train. */
  expressible(t: Trajectory, step: number): boolean {
    const s = t.steps[step]!;
    return s.origin === 'policy' && s.tokens && !imported(t) ? this.#sampled(t, step).length > 0 : s.actions.length > 0;
  }

  async sampleOf(step: LearnStep): Promise<TokenSample> {
    const { trajectory: t, step: index, kind, precollected } = step,
      sampled = this.#sampled(t, index),
      // A rejected answer is trained with the advantage of its trajectory, like the others, and never imitated.
      told = kind === 'policy' ? sampled : sampled.filter((s) => !s.rejected);
    const sequences =
      told.length > 0
        ? await Promise.all(told.map((s) => this.#sequence(s, kind === 'policy' && !precollected)))
        : [await this.#demonstrate(t, index)];
    return { ...creditOf(step), sequences };
  }

  #sampled(t: Trajectory, index: number): readonly SampledSequence[] {
    let steps = this.#read.get(t);
    if (!steps) {
      const all = imported(t) ? [] : readable(t);
      steps = t.steps.map((s) => all.filter((x) => x.step === s));
      this.#read.set(t, steps);
    }
    return steps[index]!;
  }

  /** `sampled`: with the log-probs of the policy that acted. */
  async #sequence(s: SampledSequence, sampled: boolean): Promise<TokenSequence> {
    return {
      prompt: await this.#chunks(s.symbols, s.images),
      answer: s.answer,
      logprobs: sampled ? s.logprobs : undefined,
    };
  }

  /** Text between images, and the very bytes that were sent. */
  async #chunks(symbols: Int32Array, images: readonly Shown[]): Promise<readonly Chunk[]> {
    const chunks: Chunk[] = [];
    let text: number[] = [],
      shown = 0;
    const flush = (): void => {
      if (text.length > 0) chunks.push({ type: 'encoded_text', tokens: text });
      text = [];
    };
    for (const symbol of symbols) {
      if (imageOf(symbol) === undefined) {
        text.push(symbol);
        continue;
      }
      flush();
      const { frame, sha256, format, tokens } = images[shown++]!;
      chunks.push({ type: 'image', data: await this.#picture(frame, sha256), format, expectedTokens: tokens });
    }
    flush();
    return chunks;
  }

  /** A screen as it was sent. */
  async #picture(frame: FrameRef, sha256: string | undefined): Promise<Uint8Array> {
    const bytes = await remembered(this.#pictures, frame.hash, MOST_PICTURES, () => this.#o.shown(frame));
    if (sha256 !== undefined && sha256Of(bytes) !== sha256)
      throw new StudioError(
        'store.damaged',
        `The picture of frame ${frame.hash.slice(0, 12)} is not the one that the model was shown.`,
        'Restore the run folder from a copy; what shows this frame cannot be trained.',
      );
    return bytes;
  }

  /** An action of a person or a script, as the answer that the model would have to give. */
  async #demonstrate(t: Trajectory, index: number): Promise<TokenSequence> {
    const { symbols, images, answer } = await this.#tokensOf(t, index);
    return { prompt: await this.#chunks(symbols, images), answer };
  }
  /** Its tokens; pictures are kept apart, and few of them. */
  #tokensOf(t: Trajectory, index: number): Promise<Demonstrated> {
    return remembered(this.#demonstrated, `${t.id} ${index}`, MOST_DEMONSTRATED, async () => {
      const o = this.#o,
        newest = t.steps.slice(Math.max(0, index + 1 - o.images), index + 1),
        pictures = await Promise.all(newest.map((s) => this.#picture(s.frame, undefined))),
        urls = pictures.map((p) => `data:image/png;base64,${Buffer.from(p).toString('base64')}`),
        through = o.through ?? ((work) => work()),
        { prompt, answer } = await through(() => o.tokenizer.tokens(demonstrated(t, index, urls, o), o.signal)),
        { symbols, tokens } = cutPrompt(
          prompt,
          o.imageToken,
          newest.map((_, number) => ({ number })),
        );
      const images = await Promise.all(
        newest.map(async ({ frame }, i): Promise<Shown> => {
          // A tokenizer that does not look at pictures leaves one token for each.
          const size = `${frame.width}x${frame.height}`,
            known =
              tokens[i]! > 1
                ? tokens[i]!
                : through(() => o.tokenizer.imageTokens(urls[i]!, size, o.imageToken, o.signal));
          return { frame, format: 'png', tokens: await known };
        }),
      );
      return { symbols, images, answer };
    });
  }
}

/** An imported trajectory may have the tokens of another model: it is shown as a demonstration. */
const imported = (t: Trajectory): boolean => t.provenance.kind === 'imported';

/** The sampled sequences of a trajectory; none where a record is damaged: the rest of its batch can be trained. */
function readable(t: Trajectory): readonly SampledSequence[] {
  try {
    return sequencesOf(t);
  } catch (e) {
    if (e instanceof StudioError && e.kind === 'store.damaged') return [];
    throw e;
  }
}

/** A demonstrated step as tokens, and which screens its prompt shows. */
interface Demonstrated extends Pick<TokenSequence, 'answer'> {
  readonly symbols: Int32Array;
  readonly images: readonly Shown[];
}
interface Shown extends Partial<Pick<SequenceImage, 'sha256' | 'tokens'>>, Pick<SequenceImage, 'frame' | 'format'> {}

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The value of a key, made once; the newest `most` are kept, and a failure is not. */
function remembered<T>(kept: Map<string, Promise<T>>, key: string, most: number, make: () => Promise<T>): Promise<T> {
  const there = kept.get(key);
  if (there) return there;
  const made = make();
  kept.set(key, made);
  made.catch(() => kept.delete(key));
  if (kept.size > most) kept.delete(kept.keys().next().value!);
  return made;
}
