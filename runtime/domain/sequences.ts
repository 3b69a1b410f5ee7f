/**
 * The answers that a remote model sampled in a trajectory, decoded, each with its prompt. A record tells a prompt by
 * the sequence before it (promptTokens.ts), so records are read in order, from the first step on.
 */
import { messageOf } from '../foreign/messageOf.js';
import { StudioError } from './errors.js';
import type { FrameRef } from './frame.js';
import type { PolicyVersion } from './ids.js';
import { decodePrompt, imageOf, sequenceOf, type PromptDelta, type PromptImage } from './promptTokens.js';
import type { Step, TokenTrace, Trajectory } from './trajectory.js';

/** An image of a prompt, and the screen that it shows. */
export interface SequenceImage extends PromptImage {
  readonly frame: FrameRef;
}

/** One answer that was sampled. */
export interface SampledSequence {
  readonly step: Step;
  /** The answer was no action; the step's own answer comes after it. */
  readonly rejected: boolean;
  /** The prompt: text tokens by their ids, each image as one negative symbol. */
  readonly symbols: Int32Array;
  /** The images of `symbols`, in their order: one for each negative symbol. */
  readonly images: readonly SequenceImage[];
  /** Token ids of the answer. */
  readonly answer: Int32Array;
  /** One for each token of the answer; NaN where the server did not say it. */
  readonly logprobs: Float32Array;
  readonly version?: PolicyVersion | undefined;
}

/**
 * Every answer of a trajectory whose prompt is recorded, oldest first: of each step those that were no actions, then
 * its own. Empty for the embedded policy, people and demonstrations. Throws `store.damaged` when a record does not fit
 * those before it.
 */
export function sequencesOf(t: Pick<Trajectory, 'id' | 'steps'>): SampledSequence[] {
  const reader = new SequenceReader();
  return t.steps.flatMap((step) => {
    try {
      return reader.read(step);
    } catch (e) {
      throw new StudioError(
        'store.damaged',
        `The prompt of step ${step.index + 1} of ${t.id} cannot be read: ${messageOf(e)}.`,
        'Leave the trajectory out of training, or import it again from a whole copy.',
        { cause: e },
      );
    }
  });
}

/** Decodes the steps of one trajectory, one after the other. */
export class SequenceReader {
  #before: Int32Array = new Int32Array();
  readonly #images: SequenceImage[] = [];

  /**
   * The answers of the next step. Throws RangeError when its records do not fit those before it; then none of the later
   * steps can be read.
   */
  read(step: Step): SampledSequence[] {
    const own = { tokens: step.tokens, prompt: step.prompt, version: step.version };
    return [...(step.rejected ?? []).map((a) => ({ ...a, rejected: true })), { ...own, rejected: false }].flatMap(
      ({ tokens, prompt, version, rejected }) => {
        if (!prompt) return [];
        return [{ step, rejected, version, ...this.#decode(step.frame, prompt, tokens) }];
      },
    );
  }

  #decode(
    frame: FrameRef,
    prompt: PromptDelta,
    tokens: TokenTrace | undefined,
  ): Pick<SampledSequence, 'symbols' | 'images' | 'answer' | 'logprobs'> {
    const answer = tokens?.ids;
    if (!answer || answer.length === 0) throw new RangeError('a prompt has no answer');
    if (!(answer instanceof Int32Array && tokens.logprobs instanceof Float32Array))
      throw new RangeError('an answer is no list of tokens');
    if (tokens.logprobs.length !== answer.length) throw new RangeError('tokens and log-probs differ in number');
    const symbols = decodePrompt(this.#before, prompt);
    this.#images.push(...prompt.images.map((image) => ({ ...image, frame })));
    const images: SequenceImage[] = [];
    for (const symbol of symbols) {
      const number = imageOf(symbol);
      if (number === undefined) continue;
      const image = this.#images[number];
      if (!image) throw new RangeError('a prompt shows an image that no step has named');
      images.push(image);
    }
    this.#before = sequenceOf(symbols, answer);
    return { symbols, images, answer, logprobs: tokens.logprobs };
  }
}
