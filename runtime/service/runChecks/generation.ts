import { pngOf } from '../../data/store/png.js';
import type { Size } from '../../domain/index.js';
import type { Completion } from '../../policy/remote/completion.js';

/** Requests of one token, as a run makes them, and what can be told from their answers. Pure but for the pictures. */

/** Text like that of a prompt; what it says does not matter. */
const TEXT = 'Action: finished()';
/** Sides of the squares of a picture that is made for a check. */
const SQUARE = 40;

/** A picture of coloured squares; another seed is another picture. */
export async function picture({ width, height }: Size, seed: number): Promise<string> {
  const data = Buffer.alloc(width * height * 4),
    row = Buffer.alloc(width * 4);
  for (let y = 0; y < height; y++) {
    if (y % SQUARE === 0)
      for (let x = 0; x < width; x++) row.writeUInt32LE(colour(Math.floor(x / SQUARE), y / SQUARE, seed), 4 * x);
    row.copy(data, y * row.length);
  }
  const png = await pngOf({ width, height, data, capturedAt: 0 });
  return `data:image/png;base64,${png.toString('base64')}`;
}

const colour = (column: number, row: number, seed: number): number =>
  (((column * 31 + row * 17 + seed * 101) % 251) * 0x01_05_11) & 0xffffff;

/** The body of a chat completion of one token with these pictures. */
export const oneToken = (
  model: string,
  pictures: readonly string[],
  o: { readonly alternatives: number; readonly temperature: number },
): object => ({
  model,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: TEXT },
        ...pictures.map((url) => ({ type: 'image_url', image_url: { url } })),
        { type: 'text', text: TEXT },
      ],
    },
  ],
  max_tokens: 1,
  temperature: o.temperature,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  logprobs: true,
  top_logprobs: o.alternatives,
  return_token_ids: true,
});

/** Log-probs of the first token and its alternatives, by token. */
export function firstLogprobs(c: Completion): ReadonlyMap<string, number> {
  const first = c.choices?.[0]?.logprobs?.content?.[0],
    out = new Map<string, number>();
  for (const t of first?.top_logprobs ?? [])
    if (typeof t.token === 'string' && typeof t.logprob === 'number') out.set(t.token, t.logprob);
  if (out.size === 0 && typeof first?.logprob === 'number') out.set(first.token ?? '', first.logprob);
  return out;
}
/** Largest difference of the log-probs of tokens that both have; 1 for a token that only one has. */
export function difference(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let most = 0;
  for (const [token, x] of a) most = Math.max(most, b.has(token) ? Math.abs(x - b.get(token)!) : 1);
  return most;
}

/** The longest run of one token, which in a prompt with pictures is the token that stands for them. */
export function longestRun(ids: readonly number[]): { readonly token: number; readonly length: number } {
  let best = { token: -1, length: 0 };
  for (let at = 0; at < ids.length;) {
    let end = at + 1;
    while (ids[end] === ids[at]) end++;
    if (end - at > best.length) best = { token: ids[at]!, length: end - at };
    at = end;
  }
  return best;
}
