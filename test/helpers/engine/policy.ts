import { createHash } from 'node:crypto';
import { random, type Random } from '../../../runtime/domain/index.js';
import type { Chunk } from '../../../runtime/trainer/remote/wire/types.js';

/**
 * A policy small enough to differentiate by hand: logits = (base + delta) · features of what was read so far, with the
 * text in order, the images by a hash of their bytes, and the order of both. `delta` is what is trained.
 */

/** Bytes come first, then these, then whole words that a server may be given. */
export const SPECIAL = { imStart: 256, eos: 257, visionStart: 258, visionEnd: 259, imagePad: 260 } as const;
const WORDS = 261,
  KIND = 8,
  DIM = 1 + 3 * KIND;
/** How fast the short and the long memory of the text and the memory of images fade. */
const FADE = { short: 0.4, long: 0.9, image: 0.5 };

export interface PolicyOptions {
  readonly seed: number;
  /** Completions the policy can say in one token; without any it babbles bytes. */
  readonly words: readonly string[];
  /** It says one of them, and neither nothing nor bytes. */
  readonly wordsOnly?: boolean;
  /** Tokens an image stands for. */
  readonly imageTokens: (data: Uint8Array) => number;
  /** How much further a step moves it; larger models go further at the same learning rate. */
  readonly reach: number;
  /** Steps longer than this go up to a third further than they should. */
  readonly bends: number;
  /** A model's first step goes short by this, as one of rounded weights does, which begin on what they are rounded to. */
  readonly sticks: number;
}

/** From the size of a PNG, one token for each 64 x 64 pixels; 4 for anything else. */
export function imageTokensOf(data: Uint8Array): number {
  if (data.length < 24 || data[1] !== 0x50) return 4;
  const v = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return Math.ceil(v.getUint32(16) / 64) * Math.ceil(v.getUint32(20) / 64);
}

export class UserError extends Error {}

/** What one position of the input says of the next token. */
interface Position {
  readonly features: Float64Array;
  readonly token: number;
}

export class TinyPolicy {
  readonly vocabulary: number;
  readonly parameters: number;
  readonly #o: PolicyOptions;
  readonly #base: Float64Array;
  readonly #embeddings = new Map<string, Float64Array>();

  constructor(o: Partial<PolicyOptions> = {}) {
    this.#o = { seed: 1, words: [], imageTokens: imageTokensOf, reach: 1, bends: Infinity, sticks: 0, ...o };
    this.vocabulary = WORDS + this.#o.words.length;
    this.parameters = this.vocabulary * DIM;
    const rng = random(`tiny/${this.#o.seed}`);
    this.#base = Float64Array.from({ length: this.parameters }, () => 0.3 * rng.normal());
  }

  get reach(): number {
    return this.#o.reach;
  }
  get bends(): number {
    return this.#o.bends;
  }
  get sticks(): number {
    return this.#o.sticks;
  }
  /** Bytes, but for words, which are one token each. */
  encode(text: string): number[] {
    const out: number[] = [];
    for (let rest = text; rest.length > 0;) {
      const word = this.#o.words.findIndex((w) => rest.startsWith(w));
      if (word >= 0) out.push(WORDS + word);
      else out.push(...Buffer.from(rest.slice(0, 1)));
      rest = rest.slice(word >= 0 ? this.#o.words[word]!.length : 1);
    }
    return out;
  }
  /** Text of one token; nothing for special ones. */
  text(token: number): string {
    if (token >= WORDS) return this.#o.words[token - WORDS] ?? '';
    return token < 256 ? String.fromCharCode(token) : '';
  }
  imageTokens(data: Uint8Array): number {
    return this.#o.imageTokens(data);
  }

  /** Reads chunks; every token of text or image is a position. Throws UserError on tokens that are none. */
  read(chunks: readonly Chunk[], blind = false): Reader {
    const reader = new Reader(this);
    for (const c of chunks)
      if (c.type === 'encoded_text') for (let i = 0; i < c.tokens.length; i++) reader.token(c.tokens[i]!);
      else reader.image(c.data, c.expectedTokens ?? this.imageTokens(c.data), blind);
    return reader;
  }
  embedding(key: string): Float64Array {
    let e = this.#embeddings.get(key);
    if (!e) {
      const rng = random(`embedding/${key}`);
      e = Float64Array.from({ length: KIND }, () => rng.normal() / Math.sqrt(KIND));
      if (this.#embeddings.size > 50_000) this.#embeddings.clear();
      this.#embeddings.set(key, e);
    }
    return e;
  }

  /** log p of every next token at a position. */
  logProbs(delta: Float64Array, p: Position): Float64Array {
    const out = new Float64Array(this.vocabulary),
      x = p.features,
      w = this.#base;
    let max = -Infinity;
    for (let v = 0; v < this.vocabulary; v++) {
      // Five sums at a time: one would wait for each addition before the next.
      let a = 0,
        b = 0,
        c = 0,
        d = 0,
        e = 0;
      for (let k = 0, i = v * DIM; k < DIM; k += 5, i += 5) {
        a += (w[i]! + delta[i]!) * x[k]!;
        b += (w[i + 1]! + delta[i + 1]!) * x[k + 1]!;
        c += (w[i + 2]! + delta[i + 2]!) * x[k + 2]!;
        d += (w[i + 3]! + delta[i + 3]!) * x[k + 3]!;
        e += (w[i + 4]! + delta[i + 4]!) * x[k + 4]!;
      }
      const z = this.#prior(v, p.token) + a + b + c + d + e;
      out[v] = z;
      if (z > max) max = z;
    }
    let sum = 0;
    for (const z of out) sum += Math.exp(z - max);
    const norm = max + Math.log(sum);
    for (let v = 0; v < out.length; v++) out[v]! -= norm;
    return out;
  }
  /** What is known before anything is learned: nobody says a special token, and one word is an answer. */
  #prior(v: number, before: number): number {
    if (v === SPECIAL.eos && before >= WORDS) return 6;
    if (this.#o.wordsOnly) return v < WORDS || before >= WORDS ? -20 : 0;
    if (v === SPECIAL.eos) return 0;
    if (v >= 256 && v < WORDS) return -12;
    return v < 256 && this.#o.words.length > 0 ? -6 : 0;
  }

  /** Adds slope * d log p(target) / d delta. */
  addGradient(into: Float64Array, p: Position, logProbs: Float64Array, target: number, slope: number): void {
    for (let v = 0; v < this.vocabulary; v++) {
      const c = slope * ((v === target ? 1 : 0) - Math.exp(logProbs[v]!));
      for (let d = 0, i = v * DIM; d < DIM; d++, i++) into[i]! += c * p.features[d]!;
    }
  }

  /** A completion with the log-prob (temperature 1) of each of its tokens and all alternatives. */
  sample(
    delta: Float64Array,
    reader: Reader,
    o: {
      readonly maxTokens: number;
      readonly temperature: number;
      readonly rng: Random;
      /** Added to the logits of a token, not to the log-probs that are told. */
      readonly bias?: Readonly<Record<number, number>>;
    },
  ): { readonly tokens: number[]; readonly logProbs: Float64Array[]; readonly stopped: boolean } {
    const tokens: number[] = [],
      logProbs: Float64Array[] = [];
    while (tokens.length < o.maxTokens) {
      const lp = this.logProbs(delta, reader.last()),
        t = draw(
          lp.map((x, v) => x + (o.bias?.[v] ?? 0)),
          o.temperature,
          o.rng,
        );
      tokens.push(t);
      logProbs.push(lp);
      if (t === SPECIAL.eos) return { tokens, logProbs, stopped: true };
      reader.token(t);
    }
    return { tokens, logProbs, stopped: false };
  }
}

function draw(lp: Float64Array, temperature: number, rng: Random): number {
  if (temperature === 0) return lp.reduce((best, x, v) => (x > lp[best]! ? v : best), 0);
  const p = lp.map((x) => Math.exp(x / temperature));
  let left = rng.next() * p.reduce((a, b) => a + b, 0);
  for (let v = 0; v < p.length; v++) {
    left -= p[v]!;
    if (left < 0) return v;
  }
  return p.length - 1;
}

/** The memory of what was read, position by position. */
export class Reader {
  readonly positions: Position[] = [];
  readonly #policy: TinyPolicy;
  readonly #short = new Float64Array(KIND);
  readonly #long = new Float64Array(KIND);
  readonly #image = new Float64Array(KIND);
  constructor(policy: TinyPolicy) {
    this.#policy = policy;
  }
  last(): Position {
    const p = this.positions.at(-1);
    if (!p) throw new UserError('the input is empty');
    return p;
  }
  token(id: number): void {
    if (!Number.isInteger(id) || id < 0 || id >= this.#policy.vocabulary) throw new UserError(`${id} is no token`);
    if (id === SPECIAL.imagePad) throw new UserError('an image pad stands in the text');
    this.#step(this.#policy.embedding(`text/${id}`), id);
  }
  image(data: Uint8Array, tokens: number, blind: boolean): void {
    const hash = blind ? 'any' : createHash('sha256').update(data).digest('hex'),
      shown = this.#policy.embedding(`image/${hash}`);
    for (let d = 0; d < KIND; d++) this.#image[d] = FADE.image * this.#image[d]! + shown[d]!;
    for (let k = 0; k < tokens; k++) this.#step(this.#policy.embedding(`image/${hash}/${k % 4}`), SPECIAL.imagePad);
  }
  #step(e: Float64Array, token: number): void {
    const features = new Float64Array(DIM);
    features[0] = 1;
    for (let d = 0; d < KIND; d++) {
      this.#short[d] = FADE.short * this.#short[d]! + e[d]!;
      this.#long[d] = FADE.long * this.#long[d]! + e[d]!;
      features[1 + d] = this.#short[d]!;
      features[1 + KIND + d] = 0.5 * this.#long[d]!;
      features[1 + 2 * KIND + d] = 2 * this.#image[d]!;
    }
    this.positions.push({ features, token });
  }
}
