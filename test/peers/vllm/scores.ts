import { join } from 'node:path';
import type { SampledSequence, Trajectory } from '../../../runtime/domain/index.js';
import { TokenSamples, type TokenSamplesOptions } from '../../../runtime/run/backends/vlmSamples.js';
import { Connection } from '../../../runtime/trainer/remote/connection.js';
import { prepared } from '../../../runtime/trainer/remote/datums.js';
import { ownTokens, score } from '../../../runtime/trainer/remote/gradient.js';
import type { TokenSample } from '../../../runtime/trainer/remote/sample.js';
import { readState } from '../../../runtime/trainer/remote/savedState.js';
import type { ModelOptions } from '../../../runtime/trainer/remote/client.js';

/** What the trainer makes of answers under the weights of a version. */

/** One sampled answer as the trainer takes it, and the version that is said to have given it. */
export interface Answer {
  readonly sample: TokenSample;
  readonly version: number;
  readonly logprobs: Float32Array;
}

/** Each answer of a trajectory by itself, those that were no actions among them. */
export async function answersOf(
  t: Trajectory,
  sequences: readonly SampledSequence[],
  o: TokenSamplesOptions,
): Promise<Answer[]> {
  const samples = new TokenSamples(o),
    answers: Answer[] = [];
  for (const [step] of t.steps.entries()) {
    if (!samples.expressible(t, step)) continue;
    const sample = await samples.sampleOf({ trajectory: t, step, kind: 'policy', advantage: 1, weight: 1 }),
      of = sequences.filter((s) => s.step === t.steps[step]);
    for (const [i, sequence] of sample.sequences.entries()) {
      const { version, logprobs } = of[i]!;
      answers.push({ sample: { ...sample, sequences: [sequence] }, version: version!, logprobs });
    }
  }
  return answers;
}

/** By version: log p of each answer's tokens under its weights. */
export class Trainer {
  readonly #url: string;
  readonly #checkpoints: string;
  readonly #model: ModelOptions;
  readonly #signal: AbortSignal;
  constructor(url: string, run: string, model: ModelOptions, signal: AbortSignal) {
    this.#url = url;
    this.#checkpoints = join(run, 'checkpoints');
    this.#model = model;
    this.#signal = signal;
  }

  /** Rows in the order of the answers. */
  async scores(version: number, answers: readonly Answer[]): Promise<Float32Array[]> {
    if (answers.length === 0) return [];
    const dir = join(this.#checkpoints, `v${String(version).padStart(6, '0')}`),
      { weights } = await readState(dir, this.#model),
      server = { url: this.#url, version: 'dart-studio' },
      connection = await Connection.open(
        { server, model: this.#model, reference: false, leaveModels: false },
        { uri: weights, reference: null },
        this.#signal,
      );
    try {
      const asked = prepared(answers.map((a) => a.sample));
      return ownTokens(asked, await score(connection.model, asked, this.#signal));
    } finally {
      connection.close();
    }
  }
}

/** The largest difference between two rows; NaN, which a server may say of a token, is left out. */
export const apart = (a: Float32Array, b: Float32Array): number =>
  a.reduce((most, x, i) => (Number.isNaN(x) ? most : Math.max(most, Math.abs(x - b[i]!))), 0);

/** A token that is far from the trainer's, of those the furthest in its answer. */
export interface FarToken {
  readonly answer: Answer;
  /** In the answer, from 0. */
  readonly position: number;
  /** The trainer's log-probs of the whole answer. */
  readonly own: Float32Array;
  readonly difference: number;
}
export interface Matches {
  readonly answers: number;
  readonly tokens: number;
  /** Largest difference of a token's log-prob between vLLM and the trainer with the version that is said. */
  readonly most: number;
  readonly mean: number;
  /** Tokens that are further apart than `APART`, and the most probable of them. */
  readonly beyond: number;
  readonly mostProbableBeyond: number | undefined;
  /** Of all answers, the furthest first. */
  readonly furthest: readonly FarToken[];
  /** Answers that other weights fit better than those of the version that is said. */
  readonly stale: number;
  /** Answers that the weights before or after would not have given: at least one log-prob is so far off. */
  readonly toldApart: number;
}
/** What vLLM and the trainer are apart at most, both in float32. */
export const APART = 3e-5;
const FURTHEST = 5;
/** Ten times what separates vLLM and the trainer with the same weights. */
const FAR = 10 * APART;

/** Answers held against the weights of their version, and of its neighbours among those that acted. */
export async function matched(answers: readonly Answer[], trainer: Trainer): Promise<Matches> {
  const versions = [...new Set(answers.map((a) => a.version))].sort((a, b) => a - b);
  let [tokens, most, sum, stale, toldApart] = [0, 0, 0, 0, 0];
  const beyond: number[] = [],
    far: FarToken[] = [];
  const scored = new Map<number, Map<Answer, Float32Array>>();
  for (const [i, version] of versions.entries()) {
    const near = new Set([versions[i - 1], version, versions[i + 1]]),
      asked = answers.filter((a) => near.has(a.version)),
      rows = await trainer.scores(version, asked);
    scored.set(version, new Map(asked.map((a, n) => [a, rows[n]!])));
  }
  for (const a of answers) {
    const own = scored.get(a.version)!.get(a)!,
      at = versions.indexOf(a.version),
      others = [versions[at - 1], versions[at + 1]].flatMap((v) => (v === undefined ? [] : [scored.get(v)!.get(a)!])),
      distance = apart(a.logprobs, own),
      nearest = Math.min(...others.map((o) => apart(a.logprobs, o)));
    tokens += own.length;
    far.push(furthestOf(a, own));
    most = Math.max(most, distance);
    a.logprobs.forEach((x, i) => {
      const off = Number.isNaN(x) ? 0 : Math.abs(x - own[i]!);
      sum += off;
      if (off > APART) beyond.push(x);
    });
    if (nearest < distance) stale++;
    if (nearest >= FAR) toldApart++;
  }
  return {
    ...{ answers: answers.length, tokens, most, mean: sum / Math.max(1, tokens), stale, toldApart },
    beyond: beyond.length,
    mostProbableBeyond: beyond.length > 0 ? Math.max(...beyond) : undefined,
    furthest: far.sort((a, b) => b.difference - a.difference).slice(0, FURTHEST),
  };
}
function furthestOf(answer: Answer, own: Float32Array): FarToken {
  let [position, difference] = [0, 0];
  answer.logprobs.forEach((x, i) => {
    const off = Number.isNaN(x) ? 0 : Math.abs(x - own[i]!);
    if (off > difference) [position, difference] = [i, off];
  });
  return { answer, position, own, difference };
}
