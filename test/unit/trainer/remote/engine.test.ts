import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { random } from '../../../../runtime/domain/index.js';
import { SUM } from '../../../../runtime/trainer/objective/signedWeights.js';
import { prepared, scored } from '../../../../runtime/trainer/remote/datums.js';
import type { Carriage } from '../../../../runtime/trainer/remote/gradient.js';
import { TrainingHttp } from '../../../../runtime/trainer/remote/http.js';
import type { RemoteTrainerOptions } from '../../../../runtime/trainer/remote/engine.js';
import type { TokenSample } from '../../../../runtime/trainer/remote/sample.js';
import {
  encodeInTurns,
  encodeRequest,
  jsonInTurns,
  jsonRequest,
  type Chunk,
} from '../../../../runtime/trainer/remote/wire/index.js';
import {
  policy,
  ADAM,
  OBJECTIVE,
  serve,
  start,
  saved,
  sequence,
  logProbs,
  sample,
  batch,
  closeAll,
  Exact,
  olds,
  open,
  relative,
} from '../../../helpers/engine/remoteTrainer.js';
import { readProtoRequest } from '../../../helpers/engine/serverWire.js';

afterEach(closeAll);

describe('the layers of an adapter', () => {
  it.each([
    ['without the output layer stay without it', false, true, true],
    // A checkpoint that does not say was written when every adapter had it.
    ['of an older checkpoint have it', undefined, false, false],
  ])('%s, whatever the run would begin with', async (_, head, now, without) => {
    const of = (h: boolean | undefined): Partial<RemoteTrainerOptions> => ({
        model: { base: 'tiny', rank: 4, ...(h === undefined ? {} : { head: h }) },
      }),
      { s, trainer, dir } = await start(of(head)),
      first = await trainer.checkpoint();
    await trainer.close();
    let from = first;
    // The second time from what the first wrote.
    for (let i = 0; i < 2; i++) {
      const next = await start({ ...of(now), dir }, s);
      await next.trainer.restore(from);
      from = await next.trainer.checkpoint();
      await next.trainer.close();
      const made = s.calls.filter((c) => c.path.endsWith('/create_model')).at(-1)!;
      expect(made.body.includes('"train_unembed":false')).toBe(without);
    }
  });
});

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
    // Each token once, whatever the number of passes.
    expect(r).toMatchObject({
      epochs: 2,
      optimizerSteps: 2,
      tokens: samples.reduce((n, x) => n + x.sequences[0]!.answer.length, 0),
    });
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
  it('ends once the policy has moved too far, and leaves nothing of the step that is not made on the server', async () => {
    const progress: string[] = [],
      lr = 0.3,
      { s, trainer } = await start({
        adam: { ...ADAM, lr },
        minibatch: 2,
        targetKl: 1e-9,
        onProgress: (p) => progress.push(`${p.step} of ${p.steps}`),
      }),
      exact = new Exact({ lr });
    const r = await trainer.update(batch('b1', samples, { epochs: 2 })),
      [a, b] = random('remote/5/b1/0').shuffle(samples);
    exact.step([a!, b!], olds(exact, samples));
    expect(relative(saved(s.disk), exact.delta)).toBeLessThan(1e-6);
    expect([s.count('optim_step'), progress]).toEqual([1, ['1 of 6']]);
    expect(r).toMatchObject({ version: 1, optimizerSteps: 1, plannedSteps: 6, epochs: 0, samples: 2 });
    expect(r.oldKl).toBeGreaterThan(1.5e-9);
    expect(Array.from(r.sampleWeights!, Number.isFinite)).toEqual(samples.map((x) => x === a || x === b));
    // The next update has its own gradient alone.
    await trainer.update(batch('b2', samples, { epochs: 2 }));
    exact.step(random('remote/5/b2/0').shuffle(samples).slice(0, 2), olds(exact, samples));
    expect(relative(saved(s.disk), exact.delta)).toBeLessThan(1e-6);
  });
  it('a target that is not reached changes nothing', async () => {
    const far = await start({ adam: { ...ADAM, lr: 0.3 }, minibatch: 2, targetKl: 1e9 }),
      none = await start({ adam: { ...ADAM, lr: 0.3 }, minibatch: 2 }),
      asked = batch('b1', samples, { epochs: 2 });
    const [a, b] = [await far.trainer.update(asked), await none.trainer.update(asked)];
    expect(saved(far.s.disk)).toEqual(saved(none.s.disk));
    expect(a).toMatchObject({ optimizerSteps: 6, plannedSteps: 6, epochs: 2, samples: 6, oldKl: b.oldKl });
    expect(a.oldKl).toBeGreaterThan(0);
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
    const answers = all.flatMap((x) => x.sequences.map((q) => q.answer.length));
    expect([r.samples, r.states, r.tokens]).toEqual([2, 3, answers.reduce((a, n) => a + n, 0)]);
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
  it('what is imitated is not scored unless the carrier needs it; its pass says how likely it was', async () => {
    const mixed = [...samples, sample(7, { kind: 'imitation', coefficient: 0.5 }), sample(8, { kind: 'imitation' })];
    const by = async (carrier: Carriage['carrier'], more: readonly TokenSample[] = mixed) => {
      const { s, trainer } = await start({ carriage: { carrier, reduction: SUM } }),
        report = await trainer.update(batch('b1', more, { epochs: 2 }));
      const requests = s.calls.filter((c) => c.path.endsWith('forward_backward')).map((c) => readProtoRequest(c.body)),
        scored = requests.filter((q) => q.forwardOnly).reduce((n, q) => n + q.data.length, 0);
      return { report, scored, weights: saved(s.disk) };
    };
    const [a, b] = [await by('cross_entropy'), await by('importance_sampling')];
    // Before the update, and in the second pass.
    expect([a.scored, b.scored]).toEqual([2 * samples.length, 2 * mixed.length]);
    expect(relative(a.weights, b.weights)).toBeLessThan(1e-6);
    expect(a.report.imitationLoss).toBeGreaterThan(0);
    for (const of of ['loss', 'policyLoss', 'imitationLoss', 'oldKl', 'reuseEss', 'tisMean'] as const)
      expect(a.report[of], of).toBeCloseTo(b.report[of], 6);
    // Imitated ones alone.
    expect(await by('cross_entropy', mixed.slice(6))).toMatchObject({ scored: 0, report: { optimizerSteps: 2 } });
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
    const server = createServer((q, r) => {
      q.resume().on('end', () => r.end('{}'));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    open.push(() => void server.close());
    const http = new TrainingHttp({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
      { signal } = new AbortController();
    await http.send({ path: 'warm', body: '{}', timeoutMs: 60_000 }, signal);
    let turns = 0,
      over = false;
    const tick = (): void => {
      turns++;
      if (!over) setImmediate(tick);
    };
    setImmediate(tick);
    const bytes = await encodeInTurns(request),
      encoding = turns;
    await http.send({ path: 'forward_backward', body: bytes, timeoutMs: 60_000 }, signal);
    over = true;
    expect(bytes.size).toBeGreaterThan(24 * 1_200_000);
    // 24 datums of 1.2 MB each, with a turn after every one.
    expect(encoding).toBeGreaterThanOrEqual(24);
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
      const bytes = await (await encodeInTurns(r)).arrayBuffer();
      expect(await (await jsonInTurns(r)).text()).toBe(JSON.stringify(jsonRequest(r)));
      expect(readProtoRequest(new Uint8Array(bytes))).toEqual(readProtoRequest(encodeRequest(r)));
    }
  });
});
