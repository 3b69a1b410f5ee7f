import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { id, random, type BatchId, type RolloutId, type TrainBatch } from '../../../../runtime/domain/index.js';
import { createRemoteTrainer, type RemoteTrainerOptions } from '../../../../runtime/trainer/remote/engine.js';
import { SUM } from '../../../../runtime/trainer/objective/signedWeights.js';
import type { RemoteWeights, TokenSample } from '../../../../runtime/trainer/remote/sample.js';
import { prepared, scored } from '../../../../runtime/trainer/remote/datums.js';
import {
  encodeInTurns,
  encodeRequest,
  jsonInTurns,
  jsonRequest,
  type Chunk,
} from '../../../../runtime/trainer/remote/wire/index.js';
import type { TrainerEngine } from '../../../../runtime/trainer/types.js';
import { readProtoRequest } from '../../../helpers/engine/serverWire.js';
import type { Disk } from '../../../helpers/engine/tinker.js';
import { TinyPolicy } from '../../../helpers/engine/policy.js';
import { ReferenceServer, type ReferenceServerOptions } from '../../../helpers/engine/server.js';

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const POLICY = { imageTokens: () => 2 },
  policy = new TinyPolicy(POLICY);
const ADAM = { lr: 0.02, beta1: 0.9, beta2: 0.95, eps: 1e-3, weightDecay: 0.01, gradClip: 0.5, warmup: 1 };
const OBJECTIVE: RemoteTrainerOptions['objective'] = {
  algorithm: 'ppo',
  epsLow: 0.2,
  epsHigh: 0.28,
  dualClip: 3,
  tis: { enabled: true, level: 'token', cap: 1.2 },
  unknownBehaviour: 'one',
  klBeta: 0,
  imitationCoef: 1,
};
interface Started {
  readonly s: ReferenceServer;
  readonly trainer: TrainerEngine<TokenSample, RemoteWeights>;
  readonly dir: string;
  readonly restarts: string[];
  readonly options: RemoteTrainerOptions;
}

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'remote-'));
  open.push(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
async function serve(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ policy: POLICY, pollMs: 20, ...o });
  open.push(() => {
    s.close();
  });
  return s;
}
/** A server that dies is started again before the client's next try. */
async function start(o: Partial<RemoteTrainerOptions> = {}, given?: ReferenceServer): Promise<Started> {
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
const saved = (disk: Disk): Float64Array => [...disk.values()].at(-1)!.state.delta;

/** An answer to a picture and some text, with log-probs of the untrained policy, shifted by `off`. */
function sequence(seed: string, tokens: number, off = 0): TokenSample['sequences'][number] {
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
const logProbs = (delta: Float64Array, prompt: readonly Chunk[], answer: Int32Array): number[] =>
  positionsOf(prompt, answer).map((p, i) => policy.logProbs(delta, p)[answer[i]!]!);

function sample(i: number, o: Partial<TokenSample> & { readonly off?: number } = {}): TokenSample {
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
const batch = (
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
class Exact {
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
const olds = (e: Exact, samples: readonly TokenSample[]): Map<TokenSample, number[]> =>
  new Map(samples.map((s) => [s, e.rows(s)]));
function relative(a: Float64Array, b: Float64Array): number {
  return Math.hypot(...a.map((x, i) => x - b[i]!)) / Math.hypot(...b);
}

describe('an update', () => {
  const samples = Array.from({ length: 6 }, (_, i) => sample(i));
  it('moves the weights exactly as the gradient of the objective does', async () => {
    const { s, trainer } = await start(),
      exact = new Exact();
    const r = await trainer.update(batch('b1', samples));
    exact.step(samples, olds(exact, samples));
    expect(relative(saved(s.disk), exact.delta)).toBeLessThan(1e-6);
    expect(r).toMatchObject({
      version: 1,
      samples: 6,
      states: 6,
      optimizerSteps: 1,
      epochs: 1,
      reuseEss: 1,
      ratioMax: 1,
    });
    expect(r.gradNorm).toBeGreaterThan(0);
    expect(r.entropy).toBeGreaterThan(0);
    expect(r.tisHistogram.reduce((a, b) => a + b, 0)).toBe(
      samples.reduce((n, x) => n + x.sequences[0]!.answer.length, 0),
    );
  });
  it('a gradient with its sign turned round is another one', async () => {
    const { s, trainer } = await start(),
      wrong = new Exact({ sign: -1 });
    await trainer.update(batch('b1', samples));
    wrong.step(samples, olds(wrong, samples));
    expect(relative(saved(s.disk), wrong.delta)).toBeGreaterThan(1);
  });
  it.each([
    ['cross_entropy', { withinDatum: 'sum', overDatums: 'mean' }, 'mean-over-datums'],
    ['cross_entropy', { withinDatum: 'targets', overDatums: 'sum' }, 'mean-over-tokens'],
    ['importance_sampling', { withinDatum: 'sum', overDatums: 'mean' }, 'normalise-by-weights'],
    ['importance_sampling', SUM, 'mask-weights'],
  ] as const)('by %s with the reduction %o of a server, in requests of 4', async (carrier, reduction, fault) => {
    const { s, trainer } = await start(
        { carriage: { carrier, reduction } },
        await serve({ faults: [fault], config: { fwdbwd_max_chunk_len: 4 } }),
      ),
      exact = new Exact();
    await trainer.update(batch('b1', samples));
    exact.step(samples, olds(exact, samples));
    expect(relative(saved(s.disk), exact.delta)).toBeLessThan(1e-6);
  });
  it('two epochs clip against the policy before both, and say so', async () => {
    const { s, trainer } = await start({ adam: { ...ADAM, lr: 0.3 } }),
      exact = new Exact({ lr: 0.3 });
    const r = await trainer.update(batch('b1', samples, { epochs: 2 }));
    const old = olds(exact, samples);
    exact.step(samples, old);
    exact.step(samples, old);
    expect(relative(saved(s.disk), exact.delta)).toBeLessThan(1e-6);
    expect(r).toMatchObject({ epochs: 2, optimizerSteps: 2 });
    expect(r.clipHigh + r.clipLow + r.dualClip).toBeGreaterThan(0);
    expect(r.reuseEss).toBeLessThan(1);
  });
  it('minibatches are of equal size: none is left over', async () => {
    const steps: number[] = [],
      { trainer } = await start({ minibatch: 4, onProgress: (p) => steps.push(p.steps) });
    const r = await trainer.update(batch('b1', samples.slice(0, 5), { epochs: 2 }));
    expect([r.optimizerSteps, steps]).toEqual([4, [4, 4, 4, 4]]);
  });
  it('further passes are made only while the batch is still good for them', async () => {
    const { trainer } = await start({ adam: { ...ADAM, lr: 1 } });
    const r = await trainer.update(batch('b1', samples, { reuse: { epochs: 5, ess: 0.99 } }));
    expect(r.epochs).toBeGreaterThan(1);
    expect(r.epochs).toBeLessThan(5);
  });
  it('unknown behaviour weighs 1, or is left out; masked samples and imitated ones have no weight', async () => {
    const known = sample(0),
      q = known.sequences[0]!,
      unknown: TokenSample = { ...known, sequences: [{ ...q, logprobs: Float32Array.of(NaN, q.logprobs![1]!) }] },
      none: TokenSample = { ...known, sequences: [{ ...q, logprobs: undefined }] },
      all = [known, unknown, none, sample(3, { weight: 0 }), sample(4, { kind: 'imitation', coefficient: 0.5 })];
    const { s, trainer } = await start(),
      exact = new Exact();
    const r = await trainer.update(batch('b1', all));
    const used = all.filter((x) => x.weight > 0);
    exact.step(used, olds(exact, used));
    expect(relative(saved(s.disk), exact.delta)).toBeLessThan(1e-6);
    const w = Array.from(logProbs(new Float64Array(policy.parameters), q.prompt, q.answer), (o, i) =>
      Math.min(Math.exp(o - q.logprobs![i]!), 1.2),
    );
    const weights = Array.from(r.sampleWeights!);
    expect(weights[0]).toBeCloseTo((w[0]! + w[1]!) / 2, 5);
    expect(weights[1]).toBeCloseTo((1 + w[1]!) / 2, 5);
    expect(weights.slice(2)).toEqual([1, NaN, NaN]);
    expect(r.tokenWeights!.map((x) => x?.length)).toEqual([2, 2, undefined, undefined, undefined]);
    expect(r.tokenWeights![0]![0]).toBeCloseTo(w[0]!, 5);
    expect([r.tokenWeights![1]![0], r.tokenWeights![1]![1]]).toEqual([NaN, expect.closeTo(w[1]!, 5)]);

    const masked = await start({ objective: { ...OBJECTIVE, unknownBehaviour: 'masked' } });
    const m = await masked.trainer.update(batch('b1', all));
    expect(m.sampleWeights![1]).toBeCloseTo(w[1]!, 5);
  });
  it('rejected answers are trained on as what they are: all sequences of a step share its T', async () => {
    const two = sample(0, { sequences: [sequence('rejected', 5, 0.2), sequence('accepted', 2, 0.2)] }),
      { s, trainer } = await start(),
      exact = new Exact(),
      all = [two, sample(1)];
    const r = await trainer.update(batch('b1', all));
    exact.step(all, olds(exact, all));
    expect(relative(saved(s.disk), exact.delta)).toBeLessThan(1e-6);
    expect([r.samples, r.states]).toEqual([2, 3]);
  });
  it("the server's own loss gives the same weights as ours, with one pass less", async () => {
    const ours = await start(),
      theirs = await start({ loss: 'server' });
    const [a, b] = [await ours.trainer.update(batch('b1', samples)), await theirs.trainer.update(batch('b1', samples))];
    expect(relative(saved(theirs.s.disk), saved(ours.s.disk))).toBeLessThan(1e-6);
    expect(theirs.s.count('forward_backward')).toBe(ours.s.count('forward_backward') - 1);
    expect(b.loss).toBeCloseTo(a.loss, 6);
    expect(b.tisMean).toBeCloseTo(a.tisMean, 6);
  });
  it('the reference of the KL term is the base model, then what the last lesson ended with', async () => {
    const { trainer } = await start({ objective: { ...OBJECTIVE, klBeta: 0.1 }, imitateSamples: 2 });
    const [a, b] = [await trainer.update(batch('b1', samples)), await trainer.update(batch('b2', samples))];
    expect(a.refKl).toBeCloseTo(0, 6);
    expect(b.refKl).toBeGreaterThan(1e-4);
    await trainer.imitate!(batch('lesson', samples), { steps: 2, lr: 0.02, shift: 0 });
    expect((await trainer.update(batch('b3', samples))).refKl).toBeCloseTo(0, 6);
  });
  it.each([
    ['no tokens', { sequences: [] }],
    ['an answer without tokens', { sequences: [{ ...sequence('x', 2), answer: new Int32Array() }] }],
    ['log-probs', { sequences: [{ ...sequence('x', 2), logprobs: Float32Array.of(-1) }] }],
    [
      'an image',
      {
        sequences: [
          { ...sequence('x', 2), prompt: [{ type: 'image', data: Uint8Array.of(1), format: 'png' }] as Chunk[] },
        ],
      },
    ],
    ['advantage', { advantage: NaN }],
  ])('refuses what cannot be trained on: %s', async (words, o) => {
    const { trainer, restarts } = await start();
    await expect(trainer.update(batch('b1', [sample(0, o)]))).rejects.toMatchObject({
      kind: 'trainer.invalid',
      message: expect.stringContaining(words) as string,
    });
    expect(restarts).toEqual([]);
  });
});

describe('a lesson', () => {
  const shown = Array.from({ length: 5 }, (_, i) => sample(i, { kind: 'imitation', weight: 1 }));
  it.each(['cross_entropy', 'importance_sampling'] as const)(
    'lowers -log p of what was shown (%s)',
    async (carrier) => {
      const { trainer } = await start({ carriage: { carrier, reduction: SUM } }),
        lesson = (name: string): ReturnType<NonNullable<typeof trainer.imitate>> =>
          trainer.imitate!(batch(name, shown), { steps: 30, lr: 0.05, shift: 0 });
      const [a, b] = [await lesson('one'), await lesson('two')];
      expect([a.version, a.optimizerSteps, b.version]).toEqual([1, 30, 2]);
      expect(b.imitationLoss).toBeLessThan(a.imitationLoss / 2);
      expect(a.imitationLoss).toBeLessThan(5);
    },
  );
  it('ends after the step under way when it is interrupted, and keeps what it learned', async () => {
    const { s, trainer } = await start({ onProgress: (p) => p.step === 3 && trainer.interrupt() });
    const r = await trainer.imitate!(batch('one', shown), { steps: 30, lr: 0.05, shift: 0 });
    expect([r.optimizerSteps, r.version, s.count('optim_step')]).toEqual([3, 1, 3]);
  });
});

describe('every batch is trained exactly once', () => {
  const BATCHES = ['b1', 'b2', 'b3'].map((name, k) =>
    batch(
      name,
      Array.from({ length: 4 }, (_, i) => sample(10 * k + i)),
      { epochs: 2 },
    ),
  );
  async function undisturbed(): Promise<Float64Array> {
    const { s, trainer } = await start({ minibatch: 2 });
    for (const b of BATCHES) await trainer.update(b);
    return saved(s.disk);
  }
  it.each([
    ['dies between forward_backward and optim_step', 'optim_step', { die: 'before' }],
    ['dies when the optimizer step is done and not answered', 'optim_step', { die: 'after' }],
    ['loses the answer of an optimizer step', 'optim_step', { drop: 'after' }],
    ['never receives an optimizer step', 'optim_step', { drop: 'before' }],
    ['dies in a pass', 'forward_backward', { die: 'after' }],
    ['dies while it saves', 'save_weights', { die: 'after' }],
    ['refuses a pass for good', 'forward_backward', { status: 422 }],
    ['answers rubbish', 'optim_step', { garbage: 'rubbish' }],
  ] as const)('a server that %s', async (_, path, trouble) => {
    const expected = await undisturbed(),
      { s, trainer } = await start({ minibatch: 2 });
    const versions: number[] = [];
    for (const [i, b] of BATCHES.entries()) {
      if (i === 1) s.next(path, trouble);
      versions.push((await trainer.update(b)).version);
    }
    expect(versions).toEqual([1, 2, 3]);
    expect(saved(s.disk)).toEqual(expected);
  });
  it('an optimizer step that timed out is asked again by its number', async () => {
    const expected = await undisturbed(),
      { s, trainer, restarts, options } = await start({ minibatch: 2 });
    await trainer.close();
    const again = await createRemoteTrainer({
      ...options,
      server: { ...options.server, submitMs: 100, deadlineMs: 150, sleep: undefined },
    });
    open.push(() => again.close());
    s.next('optim_step', { hang: true }, { hang: true });
    for (const b of BATCHES) await again.update(b);
    expect(saved(s.disk)).toEqual(expected);
    expect(restarts).toEqual([]);
    const seqs = s.calls
      .filter((c) => c.path.endsWith('optim_step'))
      .map((c) => (JSON.parse(c.body.toString()) as { seq_id: number }).seq_id);
    expect(seqs[1]).toBe(seqs[0]);
    expect(new Set(seqs).size).toBe(12);
  });
  it('a trainer that is started anew goes on from its checkpoint, and a batch asked twice is trained once', async () => {
    const expected = await undisturbed(),
      one = await start({ minibatch: 2 });
    await one.trainer.update(BATCHES[0]!);
    const report = await one.trainer.update(BATCHES[1]!),
      ref = await one.trainer.checkpoint();
    expect(ref).toEqual({ version: 2, dir: join(one.dir, 'v000002') });
    const manifest = JSON.parse(await readFile(join(ref.dir, 'manifest.json'), 'utf8')) as { values: object };
    expect(manifest.values).toMatchObject({ version: 2, base: 'tiny', rank: 0, trained: { batch: 'b2' } });
    // Half of the third, which dies with its trainer.
    one.s.next('optim_step', { status: 403 });
    await one.trainer.close();
    await one.s.restart();
    const two = await start({ minibatch: 2, dir: one.dir }, one.s);
    await two.trainer.restore(ref);
    expect(await two.trainer.update(BATCHES[1]!)).toEqual(report);
    expect((await two.trainer.update(BATCHES[2]!)).version).toBe(3);
    expect(saved(two.s.disk)).toEqual(expected);
  });
  it('a failed update leaves nothing behind: the batch after it is trained from the same weights', async () => {
    const { s, trainer, restarts } = await start();
    const failing = { status: 422, body: { detail: 'no' } };
    s.next('optim_step', ...Array.from({ length: 9 }, () => failing));
    await expect(trainer.update(BATCHES[0]!)).rejects.toMatchObject({ kind: 'trainer.remote' });
    expect(restarts).toHaveLength(2);
    await trainer.update(BATCHES[1]!);
    const alone = await start();
    await alone.trainer.update(BATCHES[1]!);
    expect(saved(s.disk)).toEqual(saved(alone.s.disk));
  });
  it('close ends a call that hangs', async () => {
    const { s, trainer } = await start();
    s.next('forward_backward', { hang: true });
    const update = trainer.update(BATCHES[0]!);
    setTimeout(() => void trainer.close(), 50);
    await expect(update).rejects.toMatchObject({ kind: 'cancelled' });
    await expect(trainer.update(BATCHES[1]!)).rejects.toMatchObject({ kind: 'cancelled' });
  });
  it('exports weights of each version under a name of its own, once', async () => {
    const { s, trainer } = await start();
    const a = await trainer.exportWeights();
    expect(await trainer.exportWeights()).toEqual(a);
    await trainer.update(BATCHES[0]!);
    const b = await trainer.exportWeights();
    expect([a.version, b.version, s.count('save_weights_for_sampler')]).toEqual([0, 1, 2]);
    expect(s.tinker.adapter(b.path)).toEqual(saved(s.disk));
  });
  it('refuses a checkpoint of another model', async () => {
    const one = await start(),
      ref = await one.trainer.checkpoint(),
      two = await start({ model: { base: 'tiny', rank: 4 }, dir: one.dir }, one.s);
    await expect(two.trainer.restore(ref)).rejects.toMatchObject({ kind: 'trainer.invalid' });
  });
});

describe('the event loop', () => {
  it('is never held for long by a batch of many images', async () => {
    const image = new Uint8Array(400_000).map((_, i) => i * 31),
      big = Array.from({ length: 24 }, (_, i): TokenSample => {
        const s = sample(i);
        return {
          ...s,
          sequences: s.sequences.map((q) => ({
            ...q,
            prompt: [
              ...q.prompt,
              ...[0, 1, 2].map((): Chunk => ({ type: 'image', data: image, format: 'png', expectedTokens: 2 })),
            ],
          })),
        };
      });
    const data = prepared(big).flatMap((s) => s.parts.map(scored)),
      request = { modelId: 'm', seqId: 3, data, lossFn: 'cross_entropy', forwardOnly: true };
    const delays: number[] = [];
    let last = performance.now(),
      over = false;
    const tick = (): void => {
      const now = performance.now();
      delays.push(now - last);
      last = now;
      if (!over) setImmediate(tick);
    };
    setImmediate(tick);
    const [bytes, text] = [await encodeInTurns(request), await jsonInTurns(request)];
    over = true;
    expect(text.length).toBeGreaterThan(24 * 1_600_000);
    expect(bytes.length).toBeGreaterThan(24 * 1_200_000);
    // 24 requests' worth of 1.2 MB each, with a turn after every one.
    expect(delays.length).toBeGreaterThan(40);
  });
  it('and a request made in turns is the request', async () => {
    const data = prepared([sample(1), sample(2)]).flatMap((s) => s.parts.map(scored));
    for (const config of [undefined, { clip_low_threshold: 0.5 }]) {
      const r = {
        modelId: 'm',
        seqId: 3,
        data,
        lossFn: 'ppo',
        lossFnConfig: config,
        forwardOnly: config !== undefined,
      };
      expect(await jsonInTurns(r)).toBe(JSON.stringify(jsonRequest(r)));
      expect(readProtoRequest(await encodeInTurns(r))).toEqual(readProtoRequest(encodeRequest(r)));
    }
  });
});
