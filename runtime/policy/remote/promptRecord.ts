/**
 * The tokens a server says it was shown, turned into a record fit to train from. Servers expand an image into a run of
 * one pad token; the record has one symbol in its place, and the image's bytes are those that were sent
 * (runtime/policy/README.md#records-of-prompts). Nothing is tokenised here.
 */
import {
  StudioError,
  encodePrompt,
  imageSymbol,
  sequenceOf,
  type PromptDelta,
  type PromptImage,
} from '../../domain/index.js';

/** An image of a request, in the order of the prompt: its place in the trajectory's list of images. */
export interface SentImage extends Omit<PromptImage, 'tokens'> {
  readonly number: number;
}

/** Token ids as a server says them. */
type Ids = Int32Array | readonly number[];

/** Most prompt tokens that are believed of a server. */
const MOST_TOKENS = 1 << 20;

/**
 * `ids` with each run of `pad` as one symbol, and the tokens each image took. Rejects with `policy.remote` when the
 * server's images are not those that were sent: a prompt that lacks one must not be trained on.
 */
export function cutPrompt(
  ids: Ids,
  pad: number,
  sent: readonly Pick<SentImage, 'number'>[],
): { readonly symbols: Int32Array; readonly tokens: readonly number[] } {
  if (ids.length > MOST_TOKENS || !ids.every((x: number) => Number.isInteger(x) && x >= 0 && x < 2 ** 31))
    throw new StudioError(
      'policy.remote',
      'The model server answered with prompt tokens that are no token ids.',
      'Update the server; DART Studio reads prompt_token_ids as vLLM gives them.',
    );
  const symbols: number[] = [],
    tokens: number[] = [];
  for (let at = 0; at < ids.length; at++) {
    if (ids[at] !== pad) {
      symbols.push(ids[at]!);
      continue;
    }
    const began = at;
    while (ids[at + 1] === pad) at++;
    const image = sent[tokens.length];
    if (image) symbols.push(imageSymbol(image.number));
    tokens.push(at + 1 - began);
  }
  if (tokens.length !== sent.length)
    throw new StudioError(
      'policy.remote',
      `The model server counted ${tokens.length} images in a prompt with ${sent.length}.`,
      'Check that the server takes so many images (vLLM: --limit-mm-per-prompt) and that policy.vlm.imageToken is the id of its image token.',
    );
  return { symbols: Int32Array.from(symbols), tokens };
}

/** The record of one answer's prompt, beside its own tokens. */
export interface PromptRecord {
  readonly delta: PromptDelta;
  /** Prompt and answer: what the next prompt is told by. */
  readonly sequence: Int32Array;
}

/**
 * Records a prompt after the sequence before it. `known` images of the trajectory are recorded already; of those sent,
 * the others are new.
 */
export function recordPrompt(
  before: Int32Array,
  ids: Ids,
  answer: Int32Array,
  o: { readonly pad: number; readonly sent: readonly SentImage[]; readonly known: number },
): PromptRecord {
  const { symbols, tokens } = cutPrompt(ids, o.pad, o.sent);
  const images = o.sent.flatMap(({ number, ...image }, i) =>
    number < o.known ? [] : [{ ...image, tokens: tokens[i]! }],
  );
  return { delta: encodePrompt(before, symbols, images), sequence: sequenceOf(symbols, answer) };
}
