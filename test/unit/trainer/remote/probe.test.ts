import { afterEach, describe, expect, it } from 'vitest';
import { ALL_NEEDS, probeEngine, type ProbeNeeds, type ProbeReport } from '../../../../runtime/trainer/remote/probe.js';
import { SUM } from '../../../../runtime/trainer/objective/signedWeights.js';
import { FAULTS, type Fault } from '../../../helpers/engine/faults.js';
import { ReferenceServer, type ReferenceServerOptions } from '../../../helpers/engine/server.js';
import type { Disk } from '../../../helpers/engine/tinker.js';

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});
const NEEDS: ProbeNeeds = { ...ALL_NEEDS, sampling: true, serverLoss: true };

async function probed(
  o: ReferenceServerOptions = {},
  needs = NEEDS,
  through: (s: ReferenceServer) => typeof fetch = (s) => s.direct,
): Promise<ProbeReport & { readonly failed: string[] }> {
  const s = await ReferenceServer.start({ pollMs: 20, ...o });
  open.push(() => {
    s.close();
  });
  const r = await probeEngine(
    {
      server: {
        url: s.url,
        version: '0.38.0',
        fetch: through(s),
        conflictMs: 0,
        sleep: () => new Promise((resolve) => setImmediate(resolve)),
      },
      model: { rank: 0 },
      needs,
    },
    new AbortController().signal,
  );
  return { ...r, failed: r.checks.filter((c) => !c.ok).map((c) => c.name) };
}

/** % that may stay unexplained: small steps are nearly linear; bf16's noise drowns them, and an eps near the gradient bends them. */
const LITTLE = 1.5,
  MORE = 15;
describe('a server without a fault', () => {
  it.each([
    ['exact arithmetic', {}, LITTLE],
    ['noise like single precision', { noise: 1e-6 }, LITTLE],
    ['noise like bf16', { noise: 1e-2 }, MORE],
    ['grain like bf16 through 36 layers', { grain: 1.5e-2 }, MORE],
    ['grain as large as a model of 3 B may have', { grain: 4e-2 }, MORE],
    // As all weights of a deep model in bf16: half a first step moves it 0.4 times as far.
    ['grain and weights that are rounded', { grain: 1.5e-2, policy: { sticks: 0.35 } }, MORE],
    ['JSON alone', { speaks: 'json' }, LITTLE],
    ['another policy', { policy: { seed: 8 } }, LITTLE],
    ['a number that was used is a conflict', { refusesRepeats: true }, LITTLE],
    ['no eps above 1', { mostEps: 1 }, MORE],
  ] as const)('passes every check: %s', async (_, o, most) => {
    const disk: Disk = new Map(),
      r = await probed({ ...o, disk });
    expect(r.failed).toEqual([]);
    expect([...disk.keys()], 'nothing is left behind').toEqual([]);
    expect(r).toMatchObject({ ok: true, serverLoss: true, leaveModels: false, model: 'tiny' });
    expect(r.carriage).toEqual({ carrier: 'cross_entropy', reduction: SUM });
    const [, left] = /exact within ([\d.]+) %/.exec(r.checks.find((c) => c.name === 'cross_entropy')!.detail)!;
    expect(Number(left)).toBeLessThan(most);
  });

  // The first step of the search is one of 0.01, whatever it does to a model.
  it.each([30, 50, 80, 130, 200, 300, 500, 800, 1300, 2000])(
    'whose model moves %d times as far finds its learning rate',
    async (reach) => {
      const r = await probed({ policy: { reach } }, { ...NEEDS, sampling: false });
      expect(r.failed).toEqual([]);
      expect(r.carriage).toEqual({ carrier: 'cross_entropy', reduction: SUM });
    },
  );
});

describe('a server whose steps are far from linear', () => {
  /** Longer than what checks before take, and shorter than a step of twice the rate. */
  const BENDS = 0.3;
  const rateOf = async (o: Parameters<typeof probed>[0]): Promise<{ readonly ok: boolean; readonly detail: string }> =>
    (await probed(o, { ...NEEDS, sampling: false })).checks.find((c) => c.name === 'learning-rate')!;

  it('passes where a gradient twice as large does what twice the rate does', async () => {
    const { ok, detail } = await rateOf({ policy: { bends: BENDS } });
    expect(Number(/moves ([\d.]+) times/.exec(detail)![1])).toBeGreaterThan(2.5);
    expect(ok, detail).toBe(true);
  });
  it('is refused where the rate is not applied all the same', async () => {
    expect((await rateOf({ policy: { bends: BENDS }, faults: ['ignore-learning-rate'] })).ok).toBe(false);
  });
});

/** What each fault fails, and what of the run it leaves. */
const CAUGHT: Readonly<
  Record<Exclude<Fault, 'stale-adapter'>, { readonly by: string; readonly ok: boolean; readonly carriage?: object }>
> = {
  'mask-weights': { by: 'cross_entropy', ok: true, carriage: { carrier: 'importance_sampling', reduction: SUM } },
  'clamp-negative-weights': {
    by: 'cross_entropy',
    ok: true,
    carriage: { carrier: 'importance_sampling', reduction: SUM },
  },
  'normalise-by-weights': {
    by: 'cross_entropy',
    ok: false,
    carriage: { carrier: 'importance_sampling', reduction: { withinDatum: 'sum', overDatums: 'mean' } },
  },
  'mean-over-datums': {
    by: 'server-loss',
    ok: false,
    carriage: { carrier: 'cross_entropy', reduction: { withinDatum: 'sum', overDatums: 'mean' } },
  },
  'mean-over-tokens': {
    by: 'server-loss',
    ok: false,
    carriage: { carrier: 'cross_entropy', reduction: { withinDatum: 'targets', overDatums: 'sum' } },
  },
  // A batch's answers are of unlike length: by the whole request they would be weighed by it.
  'mean-over-request': { by: 'carrier', ok: false },
  'clamp-negative-advantages': {
    by: 'importance_sampling',
    ok: true,
    carriage: { carrier: 'cross_entropy', reduction: SUM },
  },
  'drop-images': { by: 'images', ok: false },
  'reorder-chunks': { by: 'chunk-order', ok: false },
  'unchecked-image-tokens': { by: 'image-tokens', ok: true },
  'ignore-clip': { by: 'clip', ok: false },
  'ignore-learning-rate': { by: 'learning-rate', ok: false },
  'ignore-weight-decay': { by: 'weight-decay', ok: false },
  'ignore-clip-bands': { by: 'server-loss', ok: false },
  'targets-off-by-one': { by: 'targets', ok: false },
  'unscored-rows': { by: 'weight-zero', ok: false },
  'forward-trains': { by: 'forward-only', ok: false },
  'keep-gradient': { by: 'gradient-cleared', ok: false },
  'forget-gradient': { by: 'accumulation', ok: false },
  'swap-datums': { by: 'datum-order', ok: false },
  'apply-twice': { by: 'idempotency', ok: false },
  'noop-adapter': { by: 'adapter', ok: false },
  'stale-sampler': { by: 'adapter', ok: false },
  'stale-prefix-cache': { by: 'adapter', ok: false },
  'biased-logprobs': { by: 'rollout-logprobs', ok: false },
  'lossy-restore': { by: 'restore', ok: false },
  'stale-save': { by: 'restore', ok: false },
  'weights-go-with-model': { by: 'unload', ok: true },
  'gap-after-refusal': { by: 'refusals', ok: true },
};

describe('a fault is found by the check that is about it', () => {
  it('every fault of the server but the one of its other face is in the table', () => {
    expect(Object.keys(CAUGHT).sort()).toEqual(
      Object.keys(FAULTS)
        .filter((f) => f !== 'stale-adapter')
        .sort(),
    );
  });
  const found = async (fault: keyof typeof CAUGHT, o: ReferenceServerOptions): Promise<void> => {
    const e = CAUGHT[fault],
      r = await probed({ ...o, faults: [fault] });
    if (process.env.SHOW)
      console.log(
        fault,
        r.ok,
        JSON.stringify(r.carriage),
        r.checks.filter((c) => !c.ok).map((c) => `${c.name}: ${c.detail}`),
      );
    expect(r.failed).toContain(e.by);
    expect(r.ok).toBe(e.ok);
    if (e.carriage) expect(r.carriage).toEqual(e.carriage);
    expect(r.leaveModels).toBe(fault === 'weights-go-with-model');
  };
  it.each(Object.keys(CAUGHT) as (keyof typeof CAUGHT)[])('%s', (fault) => found(fault, {}));
  it.each([
    'mask-weights',
    'clamp-negative-weights',
    'normalise-by-weights',
    'mean-over-datums',
    'mean-over-request',
    'ignore-clip',
    'keep-gradient',
  ] as const)('%s, in the grain of bf16', (fault) => found(fault, { grain: 1.5e-2 }));
  // Such a server moves in large steps only, which are not quite linear.
  it('mean-over-request, in the grain of bf16 and with no eps above 1', () =>
    found('mean-over-request', { grain: 1.5e-2, mostEps: 1 }));
});

describe('sampling, where nobody says who acts', () => {
  const AS_ASKED: ProbeNeeds = { ...ALL_NEEDS, serverLoss: true },
    sampled = (r: ProbeReport): (readonly [string, boolean, boolean])[] =>
      r.checks
        .filter((c) => ['sampling', 'adapter', 'rollout-logprobs'].includes(c.name))
        .map((c) => [c.name, c.ok, c.needed]);

  it.each([
    ['noop-adapter', 'adapter'],
    ['stale-sampler', 'adapter'],
    ['biased-logprobs', 'rollout-logprobs'],
  ] as const)('is needed of a server that samples: %s', async (fault, name) => {
    const r = await probed({ faults: [fault] }, AS_ASKED);
    expect(r.ok).toBe(false);
    expect(sampled(r)).toContainEqual([name, false, true]);
    // A run in which others act says so.
    expect((await probed({ faults: [fault] }, { ...AS_ASKED, sampling: false })).ok).toBe(true);
  });
  it.each([
    ['has no sampling session', 'create_sampling_session', ['sampling']],
    ['samples nothing', 'asample', ['adapter', 'rollout-logprobs']],
  ] as const)('is not needed of one that %s', async (_, call, failed) => {
    const without =
        (s: ReferenceServer): typeof fetch =>
        (input, init) =>
          String(input).endsWith(`/${call}`)
            ? Promise.resolve(new Response('{"detail":"there is no such call"}', { status: 400 }))
            : s.direct(input, init),
      r = await probed({}, AS_ASKED, without);
    expect(r.failed).toEqual(failed);
    expect(r.ok).toBe(true);
    expect((await probed({}, NEEDS, without)).ok).toBe(false);
  });
});
