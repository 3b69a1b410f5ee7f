import { afterEach, describe, expect, it } from 'vitest';
import { StudioError, toRunError } from '../../../../runtime/domain/index.js';
import { Requests, RefusedData, type Call } from '../../../../runtime/trainer/remote/refusals.js';
import {
  targetsOf,
  type Chunk,
  type Datum,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
} from '../../../../runtime/trainer/remote/wire/index.js';
import type { TokenSample } from '../../../../runtime/trainer/remote/sample.js';
import { UserError } from '../../../helpers/engine/policy.js';
import { batch, closeAll, relative, sample, saved, serve, start } from '../../../helpers/engine/remoteTrainer.js';

afterEach(closeAll);

/** The second byte of a picture that the server does not take. */
const LARGE = 66;
const withLarge = (s: TokenSample): TokenSample => ({
  ...s,
  sequences: s.sequences.map((q) => ({
    ...q,
    prompt: q.prompt.map((c): Chunk => (c.type === 'image' ? { ...c, data: Uint8Array.of(c.data[0]!, LARGE) } : c)),
  })),
});
const isLarge = (r: ForwardBackwardRequest): boolean =>
  r.data.some((d) => d.chunks.some((c) => c.type === 'image' && c.data[1] === LARGE));
const refusesLarge = (r: ForwardBackwardRequest): void => {
  if (isLarge(r)) throw new UserError('An image has 9 bytes; the limit is 8.');
};
/** So many samples, of which these have a picture that is refused. */
const samplesWith = (n: number, large: readonly number[]): TokenSample[] =>
  Array.from({ length: n }, (_, i) => (large.includes(i) ? withLarge(sample(i)) : sample(i)));
const without = (all: readonly TokenSample[], left: readonly number[]): TokenSample[] =>
  all.filter((_, i) => !left.includes(i));
const errorOf = (work: Promise<unknown>): Promise<ReturnType<typeof toRunError>> =>
  work.then(() => {
    throw new Error('it was done');
  }, toRunError);

/** Weights of a trainer that was never asked for anything else. */
async function alone(samples: readonly TokenSample[]): Promise<Float64Array> {
  const { s, trainer } = await start();
  await trainer.update(batch('b', samples));
  return saved(s.disk);
}

describe('a sample that the server does not take', () => {
  it.each<[string, number[], Record<string, number>]>([
    ['one', [3], {}],
    ['two in one request', [0, 5], {}],
    ['two in different requests', [1, 6], { fwdbwd_max_chunk_len: 3 }],
    ['one alone in its request', [4], { fwdbwd_max_chunk_len: 1 }],
    ['all in one request of several', [2, 3], { fwdbwd_max_chunk_len: 2 }],
  ])('is found, and the others are trained as if it had never been there: %s', async (_, large, config) => {
    const samples = samplesWith(8, large),
      { s, trainer, restarts } = await start({}, await serve({ beforePass: refusesLarge, config })),
      e = await errorOf(trainer.update(batch('a', samples)));
    expect(e).toMatchObject({
      kind: 'trainer.invalid',
      details: { untrainable: large.map((i) => `r${i}`), theirs: true },
    });
    expect(e.message).toMatch(new RegExp(`^Step 0 of rollout r${large[0]} .*cannot be trained.*the limit is 8\\.$`));
    expect([restarts, s.count('optim_step')]).toEqual([[], 0]);

    const r = await trainer.update(batch('b', without(samples, large)));
    expect(r).toMatchObject({ version: 1, samples: 8 - large.length });
    expect(relative(saved(s.disk), await alone(without(samples, large)))).toBeLessThan(1e-9);
  });
  it('is found when training alone refuses it, and nothing of its gradients is stepped on', async () => {
    const samples = samplesWith(8, [5]),
      training = (r: ForwardBackwardRequest): void => {
        if (!r.forwardOnly) refusesLarge(r);
      },
      config = { fwdbwd_max_chunk_len: 2 },
      { s, trainer } = await start({}, await serve({ beforePass: training, config })),
      e = await errorOf(trainer.update(batch('a', samples)));
    expect(e.details).toEqual({ untrainable: ['r5'], theirs: true });
    await trainer.update(batch('b', without(samples, [5])));
    expect(s.count('optim_step')).toBe(1);
    expect(relative(saved(s.disk), await alone(without(samples, [5])))).toBeLessThan(1e-9);
  });
  it('is found after the first steps of an update, which are taken back', async () => {
    const samples = samplesWith(8, [5]);
    let steps = 0;
    const later = (r: ForwardBackwardRequest): void => {
        if (steps > 0) refusesLarge(r);
      },
      server = await serve({ beforePass: later }),
      { s, trainer } = await start({ minibatch: 4, onProgress: () => steps++ }, server),
      e = await errorOf(trainer.update(batch('a', samples, { epochs: 3 })));
    expect(e.details).toEqual({ untrainable: ['r5'], theirs: true });
    expect(steps).toBeGreaterThan(0);
    const calm = await start({ minibatch: 4 });
    const b = batch('b', without(samples, [5]), { epochs: 3 });
    expect((await trainer.update(b)).version).toBe(1);
    await calm.trainer.update(b);
    expect(saved(s.disk)).toEqual(saved(calm.s.disk));
  });
  it('is found on a server that takes nothing more after a refusal', async () => {
    const samples = samplesWith(5, [2]),
      { trainer } = await start({}, await serve({ beforePass: refusesLarge, faults: ['gap-after-refusal'] }));
    const e = await errorOf(trainer.update(batch('a', samples)));
    expect(e.details).toEqual({ untrainable: ['r2'], theirs: true });
    await trainer.update(batch('b', without(samples, [2])));
  });
  it.each([0, 2])('is found on a server that takes no other request after a refusal: %i', async (bad) => {
    const samples = samplesWith(5, [bad]),
      config = { fwdbwd_max_chunk_len: 1 },
      { s, trainer, restarts } = await start(
        {},
        await serve({ beforePass: refusesLarge, faults: ['gap-after-refusal'], config }),
      );
    const e = await errorOf(trainer.update(batch('a', samples)));
    expect(e.details).toEqual({ untrainable: [`r${bad}`], theirs: true });
    expect(restarts).toEqual([]);
    await trainer.update(batch('b', without(samples, [bad])));
    expect(relative(saved(s.disk), await alone(without(samples, [bad])))).toBeLessThan(1e-9);
  });
  it('is found when the request is refused as it comes', async () => {
    const samples = samplesWith(4, [2]),
      { s, trainer, restarts } = await start({}, await serve({ beforePass: refusesLarge }));
    s.next('/forward_backward', { status: 400, body: { error: 'An image is too large.', category: 'user' } });
    const e = await errorOf(trainer.update(batch('a', samples)));
    expect(e).toMatchObject({ kind: 'trainer.invalid', details: { untrainable: ['r2'], theirs: true } });
    expect(e.message).toContain('An image is too large.');
    expect(restarts).toEqual([]);
  });
  it('is found in a lesson, which goes on without it', async () => {
    const shown = samplesWith(5, [1]),
      options = { steps: 6, lr: 0.02, shift: 0 },
      { s, trainer } = await start({ imitateSamples: 2 }, await serve({ beforePass: refusesLarge })),
      e = await errorOf(trainer.imitate!(batch('lesson', shown), options));
    expect(e.details).toMatchObject({ untrainable: ['r1'] });
    const rest = batch('lesson', without(shown, [1])),
      calm = await start({ imitateSamples: 2 });
    expect(await trainer.imitate!(rest, options)).toMatchObject({ version: 1, optimizerSteps: 6 });
    await calm.trainer.imitate!(rest, options);
    expect(saved(s.disk)).toEqual(saved(calm.s.disk));
  });
  it('is told of one that is no datum at all, too', async () => {
    const { trainer } = await start();
    const e = await errorOf(trainer.update(batch('a', [sample(0), sample(1, { sequences: [] })])));
    expect(e).toMatchObject({ kind: 'trainer.invalid', details: { untrainable: ['r1'], theirs: true } });
  });

  it('is none where only so many at once are refused: the words stay, and nobody is to blame', async () => {
    const many = (r: ForwardBackwardRequest): void => {
        if (r.data.length > 3) throw new UserError('At most 3 datums.');
      },
      { trainer, restarts } = await start({}, await serve({ beforePass: many })),
      e = await errorOf(trainer.update(batch('a', samplesWith(8, []))));
    expect([e.kind, e.details, restarts]).toEqual(['trainer.invalid', undefined, []]);
    expect(e.message).toMatch(/At most 3 datums\.$/);
  });
  it.each<[string, (r: ForwardBackwardRequest) => void]>([
    ['pass', refusesLarge],
    [
      'loss',
      (r) => {
        if (!r.forwardOnly) throw new UserError('There is no such loss.');
      },
    ],
  ])('is none where every one is refused, which is soon seen: the %s', async (_, beforePass) => {
    const n = 40,
      all = Array.from({ length: n }, (__, i) => i);
    let refused = 0;
    const counted = (r: ForwardBackwardRequest): void => {
      try {
        beforePass(r);
      } catch (e) {
        refused++;
        throw e;
      }
    };
    const { trainer } = await start({}, await serve({ beforePass: counted })),
      e = await errorOf(trainer.update(batch('a', samplesWith(n, all))));
    expect([e.kind, e.details]).toEqual(['trainer.invalid', undefined]);
    // The first, the same on a fresh model, and four rollouts.
    expect(refused).toBe(6);
  });
  it('is the only one there is, with nothing to say whose fault it is', async () => {
    const { trainer } = await start({}, await serve({ beforePass: refusesLarge })),
      e = await errorOf(trainer.update(batch('a', samplesWith(1, [0]))));
    expect(e.details).toEqual({ untrainable: ['r0'], theirs: false });
  });
  it('is looked for only so long where many are refused', async () => {
    const n = 40,
      even = Array.from({ length: n / 2 }, (_, i) => 2 * i),
      { s, trainer } = await start({}, await serve({ beforePass: refusesLarge })),
      e = await errorOf(trainer.update(batch('a', samplesWith(n, even))));
    const found = e.details?.['untrainable'] as string[];
    expect(found.length).toBeGreaterThan(1);
    expect(found.length).toBeLessThan(even.length);
    for (const r of found) expect(even.map((i) => `r${i}`)).toContain(r);
    expect(s.count('/forward_backward')).toBeLessThanOrEqual(25);
  });
  it.each([
    ['nothing', 1, undefined],
    ['one of two', 4, { untrainable: ['r0'], theirs: true }],
  ] as const)('is told where the server fails while it is looked for: found is %s', async (_, size, details) => {
    let halves = 0;
    const beforePass = (r: ForwardBackwardRequest): void => {
        // It fails for good at a pass over one sample, or over the second half.
        if (r.data.length === size && (size === 1 || ++halves > 1)) throw new Error('The GPU failed.');
        refusesLarge(r);
      },
      { trainer } = await start({}, await serve({ beforePass })),
      e = await errorOf(trainer.update(batch('a', samplesWith(8, [0, 7]))));
    expect([e.kind, e.details]).toEqual(['trainer.invalid', details]);
    expect(e.message).toMatch(/the limit is 8\.$/);
  });
});

describe('a refusal that a fresh model does not repeat', () => {
  const gap = { status: 400, body: { error: 'It would leave a gap.', category: 'user' } };

  it.each<[string, Record<string, number>]>([
    ['of several samples', {}],
    ['of one', { fwdbwd_max_chunk_len: 1 }],
  ])('is that of a model which was lost: the update starts over (%s)', async (_, config) => {
    const samples = samplesWith(4, []),
      { s, trainer, restarts } = await start({}, await serve({ config }));
    s.next('/forward_backward', gap);
    expect(await trainer.update(batch('a', samples))).toMatchObject({ version: 1, samples: 4 });
    expect(restarts).toEqual([expect.stringContaining('would leave a gap') as string]);
    expect(relative(saved(s.disk), await alone(samples))).toBeLessThan(1e-9);
  });
  it('does not end a lesson', async () => {
    const shown = batch('lesson', samplesWith(4, [])),
      options = { steps: 6, lr: 0.02, shift: 0 },
      calm = await start({ imitateSamples: 2 }),
      { s, trainer, restarts } = await start({
        imitateSamples: 2,
        onProgress: (p) => {
          if (p.step === 3 && restarts.length === 0) s.next('/forward_backward', gap);
        },
      });
    expect(await trainer.imitate!(shown, options)).toMatchObject({ version: 1, optimizerSteps: 6 });
    expect(restarts).toHaveLength(1);
    await calm.trainer.imitate!(shown, options);
    expect(saved(s.disk)).toEqual(saved(calm.s.disk));
  });
  it('does not end a score', async () => {
    const { s, trainer } = await start(),
      [q] = sample(1).sequences;
    s.next('/forward_backward', gap);
    expect(await trainer.score(q!)).toHaveLength(q!.answer.length);
  });
  it('is told after three attempts, and blames nobody', async () => {
    let passes = 0;
    const everySecond = (): void => {
        if (++passes % 2 === 1) throw new UserError('Not now.');
      },
      { trainer, restarts } = await start({}, await serve({ beforePass: everySecond })),
      e = await errorOf(trainer.update(batch('a', samplesWith(4, []))));
    expect([e.kind, e.details, restarts.length, passes]).toEqual(['trainer.invalid', undefined, 2, 6]);
    expect(e.message).toContain('Not now.');
  });
  it('is none of a poll: its 400 may be that of a proxy', async () => {
    let steps = 0;
    const { s, trainer, restarts } = await start({
      onProgress: () => {
        if (++steps === 1) s.next('/retrieve_future', gap, gap, gap, gap);
      },
    });
    await trainer.imitate!(batch('lesson', [sample(1)]), { steps: 2, lr: 0.02, shift: 0 });
    expect(restarts).toHaveLength(1);
    // Two of each attempt, and none to see whether the sample is refused.
    expect(s.count('/forward_backward')).toBe(4);
  });
});

describe('a refusal in a long lesson', () => {
  const shown = samplesWith(5, [1]),
    options = { steps: 60, lr: 0.01, shift: 0 };

  it('after its first part: what was learned by then stays', async () => {
    let steps = 0;
    const later = (r: ForwardBackwardRequest): void => {
        if (steps >= 52) refusesLarge(r);
      },
      onProgress = (): number => steps++,
      { s, trainer } = await start({ imitateSamples: 2, onProgress }, await serve({ beforePass: later })),
      e = await errorOf(trainer.imitate!(batch('lesson', shown), options));
    expect(e.details).toMatchObject({ untrainable: ['r1'] });
    const lost = steps - 50;
    expect(lost).toBeGreaterThan(1);
    const rest = batch('lesson', without(shown, [1]));
    expect(await trainer.imitate!(rest, options)).toMatchObject({ version: 1, optimizerSteps: 60 });
    expect(s.count('optim_step')).toBe(60 + lost);
  });
  it('ends the lesson with what it has learned where it is interrupted meanwhile', async () => {
    let steps = 0,
      refused = 0;
    const later = (r: ForwardBackwardRequest): void => {
        if (steps < 52 || !isLarge(r)) return;
        if (++refused === 2) one.trainer.interrupt();
        refusesLarge(r);
      },
      one = await start({ imitateSamples: 2, onProgress: () => steps++ }, await serve({ beforePass: later })),
      calm = await start({
        imitateSamples: 2,
        onProgress: (p) => {
          if (p.step === 50) calm.trainer.interrupt();
        },
      });
    const report = await one.trainer.imitate!(batch('lesson', shown), options);
    expect(report).toMatchObject({ version: 1, optimizerSteps: 50 });
    expect(refused).toBe(2);
    await calm.trainer.imitate!(batch('lesson', shown), options);
    expect(saved(one.s.disk)).toEqual(saved(calm.s.disk));
  });
});

describe('the requests of a pass of which one is refused', () => {
  const data = ['a', 'b', 'c'].map((): Datum => ({ chunks: [], inputs: {} })),
    pass = { lossFn: 'cross_entropy', lossFnConfig: undefined, forwardOnly: true },
    answer: ForwardBackwardOutput = { outputs: [], metrics: new Map() },
    never = new Promise<never>(() => undefined),
    refusal = new StudioError('trainer.invalid', 'No.', 'Change it.');
  const sentWith = (result: Promise<ForwardBackwardOutput>): Call => Promise.resolve({ result });
  const later = <T>(ms: number, f: () => T): Promise<T> =>
    new Promise((resolve) => setTimeout(resolve, ms)).then(() => f());
  const no = (): never => {
    throw refusal;
  };
  const refusedOf = async (r: Requests): Promise<RefusedData> => {
    const e: unknown = await r.outputs().catch((x: unknown) => x);
    if (!(e instanceof RefusedData)) throw e;
    return e;
  };

  it('does not wait for ever for those behind it', async () => {
    const r = new Requests(data, pass, 40);
    expect(await r.submitted([data[0]!], sentWith(later(5, no)))).toBe(true);
    expect(await r.submitted([data[1]!], sentWith(never))).toBe(true);
    expect(await r.submitted([data[2]!], sentWith(later(20, no)))).toBe(true);
    const e = await refusedOf(r);
    expect(e.data).toEqual([data[0], data[2]]);
    expect(e.data[1]).toBe(data[2]);
    expect([e.others.length, e.taken]).toEqual([1, false]);
    expect(e.others[0]).toBe(data[1]);
  });
  it('waits while one of them ends in time, and knows what was taken', async () => {
    const r = new Requests(data, pass, 40);
    await r.submitted([data[0]!], sentWith(later(5, no)));
    await r.submitted([data[1]!], sentWith(later(30, () => answer)));
    await r.submitted([data[2]!], sentWith(later(60, no)));
    const e = await refusedOf(r);
    expect([e.data.length, e.others.length, e.taken]).toEqual([2, 0, true]);
  });
  it('is told in place of what keeps the next from being submitted, and is the last', async () => {
    const r = new Requests(data, pass, 40);
    await r.submitted([data[0]!], sentWith(later(5, no)));
    // A server that waits for the number of the refused one.
    expect(await r.submitted([data[1]!], never)).toBe(false);
    expect((await refusedOf(r)).others).toHaveLength(2);

    const failing = new Requests(data, pass, 40);
    await failing.submitted([data[0]!], sentWith(later(5, no)));
    const away = new StudioError('trainer.remote', 'It is away.', 'Wait.');
    expect(await failing.submitted([data[1]!], Promise.reject(away))).toBe(false);
    await expect(failing.outputs()).rejects.toBe(away);
  });
});

describe('a request that is too much for the server', () => {
  const targets = (r: ForwardBackwardRequest): number => r.data.reduce((n, d) => n + targetsOf(d), 0),
    atMost =
      (n: number) =>
      (r: ForwardBackwardRequest): void => {
        if (targets(r) > n) throw new Error('CUDA out of memory. Tried to allocate 20.00 GiB.');
      };
  const samples = samplesWith(8, []);

  it.each([
    ['sum', undefined],
    ['mean', 'mean-over-datums'],
  ] as const)('is made smaller until it is not, and the weights are the same (%s)', async (overDatums, fault) => {
    const faults = fault === undefined ? [] : [fault],
      carriage = { carrier: 'cross_entropy', reduction: { withinDatum: 'sum', overDatums } } as const,
      { s, trainer, restarts } = await start({ carriage }, await serve({ faults, beforePass: atMost(30) }));
    expect(await trainer.update(batch('b', samples))).toMatchObject({ version: 1, samples: 8 });
    expect(relative(saved(s.disk), await alone(samples))).toBeLessThan(1e-6);
    expect(restarts.length).toBeGreaterThan(0);
    for (const why of restarts) expect(why).toMatch(/out of memory.* at most \d+ tokens from now on\.$/);
    // What it has shown once need not be shown again.
    const before = restarts.length;
    await trainer.update(batch('c', samples));
    expect(restarts).toHaveLength(before);
  });
  it('of bytes, too', async () => {
    const { s, trainer, restarts } = await start();
    s.next('/forward_backward', { status: 413, body: { detail: 'The body is over 300 bytes.' } });
    await trainer.update(batch('b', samples));
    expect(restarts).toEqual([expect.stringMatching(/over 300 bytes\..* from now on\.$/)]);
    expect(relative(saved(s.disk), await alone(samples))).toBeLessThan(1e-6);
  });
  it('of bytes, in a pass of several requests to a server that takes no number before the one it lacks', async () => {
    const { s, trainer, restarts } = await start(
      {},
      await serve({ strict: true, config: { fwdbwd_max_chunk_len: 2 } }),
    );
    s.next('/forward_backward', { status: 413, body: { detail: 'The body is over 300 bytes.' } });
    expect(await trainer.update(batch('b', samples))).toMatchObject({ version: 1 });
    expect(restarts).toEqual([expect.stringMatching(/over 300 bytes\..* from now on\.$/)]);
    expect(relative(saved(s.disk), await alone(samples))).toBeLessThan(1e-6);
  });
  it('ends the update where a single sequence is too much, after three attempts with that', async () => {
    const { trainer, restarts } = await start({}, await serve({ beforePass: atMost(0) })),
      e = await errorOf(trainer.update(batch('b', samples)));
    expect(e).toMatchObject({ kind: 'trainer.remote', remedy: expect.stringContaining('microBatchTokens') as string });
    const smaller = restarts.filter((why) => why.endsWith('from now on.'));
    expect(restarts.slice(smaller.length)).toHaveLength(2);
  });
});
