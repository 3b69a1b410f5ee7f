import { createHash } from 'node:crypto';
import { imageOf, sequencesOf, type SampledSequence, type Trajectory } from '../../../runtime/domain/index.js';
import { completionIn, isDecision, type Exchange } from './wire.js';

/** Records of prompts and answers, held against what went over the wire. */

export interface RecordFigures {
  answers: number;
  prompt_tokens: number;
  prompt_ids_differ: number;
  answer_ids_differ: number;
  logprobs_differ: number;
  images_shown: number;
  image_bytes_differ: number;
  most_images_in_a_prompt: number;
}

/** `exchanges`: those of one session alone, in their order. */
export function compareRecords(t: Trajectory, exchanges: readonly Exchange[], imageToken: number): RecordFigures {
  const f = { answers: 0, prompt_tokens: 0, prompt_ids_differ: 0, answer_ids_differ: 0, logprobs_differ: 0 },
    images = { images_shown: 0, image_bytes_differ: 0, most_images_in_a_prompt: 0 },
    told = exchanges.filter(isDecision);
  for (const [i, s] of sequencesOf(t).entries()) {
    const said = completionIn(told[i]!),
      [choice] = said.choices!,
      ids = expanded(s, imageToken);
    f.answers++;
    f.prompt_tokens += ids.length;
    f.prompt_ids_differ += same(ids, said.prompt_token_ids!) ? 0 : 1;
    f.answer_ids_differ += same([...s.answer], choice!.token_ids!) ? 0 : 1;
    const logprobs = choice!.logprobs!.content!.map((x) => Math.fround(Math.min(0, x.logprob!)));
    f.logprobs_differ += same([...s.logprobs], logprobs) ? 0 : 1;
    const sent = picturesIn(told[i]!);
    images.images_shown += sent.length;
    images.most_images_in_a_prompt = Math.max(images.most_images_in_a_prompt, sent.length);
    images.image_bytes_differ += same(
      sent,
      s.images.map((image) => image.sha256),
    )
      ? 0
      : 1;
  }
  return { ...f, ...images };
}

/** A prompt as the server counts it: each image a run of its token. */
function expanded({ symbols, images }: SampledSequence, imageToken: number): number[] {
  let next = 0;
  return [...symbols].flatMap((x) =>
    imageOf(x) === undefined ? [x] : new Array<number>(images[next++]!.tokens).fill(imageToken),
  );
}
const picturesIn = ({ asked }: Exchange): string[] =>
  (JSON.stringify(asked.messages).match(/data:image\/png;base64,[^"]*/g) ?? []).map((url) =>
    createHash('sha256')
      .update(Buffer.from(url.slice(url.indexOf(',') + 1), 'base64'))
      .digest('hex'),
  );
const same = <T>(a: readonly T[], b: readonly T[]): boolean => a.length === b.length && a.every((x, i) => x === b[i]);
