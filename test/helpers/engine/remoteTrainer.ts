import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { id, random, type BatchId, type RolloutId, type TrainBatch } from '../../../runtime/domain/index.js';
import {
  createRemoteTrainer,
  type RemoteTrainerEngine,
  type RemoteTrainerOptions,
} from '../../../runtime/trainer/remote/engine.js';
import { SUM } from '../../../runtime/trainer/objective/signedWeights.js';
import type { TokenSample } from '../../../runtime/trainer/remote/sample.js';
import type { Chunk } from '../../../runtime/trainer/remote/wire/index.js';
import { TinyPolicy } from './policy.js';
import { ReferenceServer, type ReferenceServerOptions } from './server.js';
import type { Disk } from './tinker.js';

/** A remote trainer on the reference server, samples for it, and the same training in 64 bits. */

export const open: (() => Promise<void> | void)[] = [];
/** Ends what a test has opened; for its `afterEach`. */
export async function closeAll(): Promise<void> {
  for (const close of open.splice(0).reverse()) await close();
}

const POLICY = { imageTokens: () => 2 };
export const policy = new TinyPolicy(POLICY);
export const ADAM = { lr: 0.02, beta1: 0.9, beta2: 0.95, eps: 1e-3, weightDecay: 0.01, gradClip: 0.5, warmup: 1 };
export const OBJECTIVE: RemoteTrainerOptions['objective'] = {
  algorithm: 'ppo',
  epsLow: 0.2,
  epsHigh: 0.28,
  dualClip: 3,
  tis: { enabled: true, level: 'token', cap: 1.2 },
  unknownBehaviour: 'one',
  klBeta: 0,
  imitationCoef: 1,
};
export interface Started {
  readonly s: ReferenceServer;
  readonly trainer: RemoteTrainerEngine;
  readonly dir: string;
  readonly restarts: string[];
  readonly options: RemoteTrainerOptions;
}

export async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'remote-'));
  open.push(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
export async function serve(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ policy: POLICY, pollMs: 20, ...o });
  open.push(() => {
    s.close();
  });
  return s;
}
/** A server that dies is started again before the client's next try. */
export async function start(o: Partial<RemoteTrainerOptions> = {}, given?: ReferenceServer): Promise<Started> {
  const s = given ?? (await serve()),
    restarts: string[] = [];
  let back: Promise<void> = Promise.resolve();
  const options: RemoteTrainerOptions = {
    server: {
      url: s.url,
      version: '0.38.0',
      sleep: () => back.then(() => new Promise((resolve) => setImmediate(resolve))),
      onRetry: (why) => {
        if (/closed|ECONN|socket|fetch failed|terminated/.test(why)) back = back.then(() => s.restart());
      },
    },
    model: { base: 'tiny', rank: 0 },
    dir: await folder(),
    carriage: { carrier: 'cross_entropy', reduction: SUM },
    loss: 'client',
    objective: OBJECTIVE,
    adam: ADAM,
    minibatch: 0,
    seed: 5,
    onRestart: (why) => restarts.push(why),
    ...o,
  };
  const trainer = await createRemoteTrainer(options);
  open.push(() => trainer.close());
  return { s, trainer, dir: options.dir, restarts, options };
}
/** Weights as the server saved them last. */
export const saved = (disk: Disk): Float64Array => [...disk.values()].at(-1)!.state.delta;

/** An answer to a picture and some text, with log-probs of the untrained policy, shifted by `off`. */
export function sequence(seed: string, tokens: number, off = 0): TokenSample['sequences'][number] {
  const rng = random(seed),
    prompt: Chunk[] = [
      { type: 'encoded_text', tokens: Int32Array.from({ length: 3 + rng.int(3) }, () => rng.int(200)) },
      { type: 'image', data: Uint8Array.of(rng.int(250), 7), format: 'png', expectedTokens: 2 },
      { type: 'encoded_text', tokens: Int32Array.from({ length: 2 }, () => rng.int(200)) },
    ],
    answer = Int32Array.from({ length: tokens }, () => rng.int(200)),
    logprobs = Float32Array.from(
      logProbs(new Float64Array(policy.parameters), prompt, answer),
      (x) => x + off * rng.normal(),
    );
  return { prompt, answer, logprobs };
}
function positionsOf(prompt: readonly Chunk[], answer: Int32Array): ReturnType<TinyPolicy['read']>['positions'] {
  const reader = policy.read(prompt);
  for (const t of answer.subarray(0, -1)) reader.token(t);
  return reader.positions.slice(-answer.length);
}
export const logProbs = (delta: Float64Array, prompt: readonly Chunk[], answer: Int32Array): number[] =>
  positionsOf(prompt, answer).map((p, i) => policy.logProbs(delta, p)[answer[i]!]!);

export function sample(i: number, o: Partial<TokenSample> & { readonly off?: number } = {}): TokenSample {
  const { off = 0.3, ...rest } = o;
  return {
    rollout: id<RolloutId>(`r${i}`),
    step: 0,
    kind: 'policy',
    advantage: i % 2 === 0 ? 1.1 : -0.7,
    weight: 1 / (1 + (i % 3)),
    sequences: [sequence(`sample ${i}`, 2 + (i % 4), off)],
    ...rest,
  };
}
export const batch = (
  name: string,
  samples: readonly TokenSample[],
  o: Partial<TrainBatch> = {},
): TrainBatch<TokenSample> => ({
  id: id<BatchId>(name),
  epochs: 1,
  ...o,
  samples,
});

/** The same training in 64 bits, written down a second time: ppo with token-level truncation, and AdamW. */
export class Exact {
  delta = new Float64Array(policy.parameters);
  readonly #m = new Float64Array(policy.parameters);
  readonly #v = new Float64Array(policy.parameters);
  #steps = 0;
  readonly #sign: number;
  readonly #lr: number;
  constructor(o: { readonly sign?: number; readonly lr?: number } = {}) {
    this.#sign = o.sign ?? 1;
    this.#lr = o.lr ?? ADAM.lr;
  }
  rows(s: TokenSample): number[] {
    return s.sequences.flatMap((q) => logProbs(this.delta, q.prompt, q.answer));
  }
  step(samples: readonly TokenSample[], old: ReadonlyMap<TokenSample, number[]>): void {
    const g = new Float64Array(policy.parameters),
      norm = samples.reduce((n, s) => n + s.weight, 0);
    for (const s of samples) {
      const T = s.sequences.reduce((n, q) => n + q.answer.length, 0);
      let t = 0;
      for (const q of s.sequences)
        positionsOf(q.prompt, q.answer).forEach((p, i) => {
          const lp = policy.logProbs(this.delta, p),
            x = lp[q.answer[i]!]!;
          const slope =
            s.kind === 'imitation' ? (s.coefficient ?? 1) : this.#weight(s, x, old.get(s)![t]!, q.logprobs?.[i]);
          policy.addGradient(g, p, lp, q.answer[i]!, (-this.#sign * slope * s.weight) / (norm * T));
          t++;
        });
    }
    this.#adam(g);
  }
  #weight(s: TokenSample, x: number, old: number, rollout: number | undefined): number {
    const r = Math.exp(x - old),
      a = s.advantage,
      known = rollout !== undefined && Number.isFinite(rollout),
      w = known ? Math.min(Math.exp(old - rollout), OBJECTIVE.tis.cap) : 1;
    if (a > 0 ? r > 1 + OBJECTIVE.epsHigh : r < 1 - OBJECTIVE.epsLow || r > OBJECTIVE.dualClip) return 0;
    return w * r * a;
  }
  #adam(g: Float64Array): void {
    const scale = Math.min(1, ADAM.gradClip / (Math.hypot(...g) + 1e-6));
    this.#steps++;
    for (let i = 0; i < g.length; i++) {
      const x = g[i]! * scale;
      this.#m[i] = ADAM.beta1 * this.#m[i]! + (1 - ADAM.beta1) * x;
      this.#v[i] = ADAM.beta2 * this.#v[i]! + (1 - ADAM.beta2) * x * x;
      const m = this.#m[i]! / (1 - ADAM.beta1 ** this.#steps),
        v = this.#v[i]! / (1 - ADAM.beta2 ** this.#steps);
      this.delta[i]! -= this.#lr * ADAM.weightDecay * this.delta[i]! + (this.#lr * m) / (Math.sqrt(v) + ADAM.eps);
    }
  }
}
export const olds = (e: Exact, samples: readonly TokenSample[]): Map<TokenSample, number[]> =>
  new Map(samples.map((s) => [s, e.rows(s)]));
export function relative(a: Float64Array, b: Float64Array): number {
  return Math.hypot(...a.map((x, i) => x - b[i]!)) / Math.hypot(...b);
}
