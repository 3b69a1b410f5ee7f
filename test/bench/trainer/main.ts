import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { GLYPH_SPEC, READER_SPEC, id, type BatchId, type EmbeddedBatch } from '../../../runtime/domain/index.js';
import { Graph } from '../../../runtime/trainer/native/graph/graph.js';
import { gemm } from '../../../runtime/trainer/native/graph/linear.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { policyGraph, policyModel } from '../../../runtime/trainer/native/model/policyGraph.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { packSamples, applyLossWeights } from '../../../runtime/trainer/native/packing.js';
import { loadOrt } from '../../../runtime/domain/onnxRuntime.js';
import { Sessions } from '../../../runtime/trainer/native/sessions.js';
import { bar, benchArgs, finish, summary, type Bar } from '../lib/report.js';
import { executedFlops, usefulFlops, type Pass } from './flops.js';
import { policySamples, writeProblem } from './problem.js';
import { needTorch, startPeer, type TorchPeer } from './python.js';
import { decisions, shippedUpdates } from './shipped.js';

/**
 * Speed of the native trainer, on version 0.1's network, which PyTorch has a peer of: one forward pass, one whole update
 * (16 states x 8 actions: packing, forward, backward, clipping, AdamW), and the same model and batch in PyTorch with the
 * same threads, taken in turns so that both see the same load: with one thread, and with all there are. Then the shipped
 * policy, which reads the screen first and has no peer: its decisions, and the same updates. GFLOP/s count what the
 * network asks for, not the zeros of block-Toeplitz matrices that the graph multiplies besides (flops.ts); the peak is a
 * 1024^3 product in ONNX Runtime, also measured in turns. Times are the best of the rounds, as other load can only slow
 * one down; ratios are the median over rounds of stretches of about equal length, so that load hits both sides alike.
 *
 * `--python FILE`: the interpreter of the peer, e.g. of a virtual environment with a current PyTorch; default: Debian's.
 */
const { quick, json, rest } = benchArgs();
const python = rest.includes('--python') ? rest[rest.indexOf('--python') + 1] : undefined;
const STATES = 16,
  GEMM = 1024,
  GEMMS = 10,
  ROUNDS = quick ? 5 : 15;
const cores = availableParallelism(),
  counts = cores > 1 ? [1, cores] : [1];
const time = async (f: () => Promise<unknown>): Promise<number> => {
  const t = performance.now();
  await f();
  return performance.now() - t;
};

const ort = await loadOrt(),
  model = policyModel(GLYPH_SPEC),
  torch = needTorch(python);
if (!('python' in torch)) console.log(`Comparison with PyTorch skipped: ${torch.missing}`);

const samples = policySamples(GLYPH_SPEC, STATES, baseTrainerOptions.slots, 1),
  batch: EmbeddedBatch = { id: id<BatchId>('bench'), samples, epochs: 1 };
const usefulOf = (spec: typeof GLYPH_SPEC): Record<Pass, number> => {
  const m = policyModel(spec),
    executed = executedFlops(m, baseTrainerOptions);
  return {
    forward: usefulFlops(m, executed.forward, 'forward'),
    update: usefulFlops(m, executed.update, 'update'),
  };
};
const useful = usefulOf(GLYPH_SPEC),
  shipped = usefulOf(READER_SPEC),
  gemmFlops = 2 * GEMM ** 3;
const gflops = (f: number, millis: number): number => f / millis / 1e6;

interface Times {
  readonly threads: number;
  readonly ms: Readonly<Record<'forward' | 'update' | 'gemm' | 'torchUpdate' | 'torchForward', number[]>>;
  /** Useful GFLOP/s of an update over those of the peak, round by round. */
  readonly shares: readonly number[];
  readonly speedups: readonly number[];
  readonly rss: number;
  readonly version: string | undefined;
}
async function measure(threads: number): Promise<Times> {
  const o = { ...baseTrainerOptions, threads },
    learner = await Learner.create(GLYPH_SPEC, o, 1),
    options = { intraOpNumThreads: threads, interOpNumThreads: 1, logSeverityLevel: 3 as const };
  const forward = await ort.InferenceSession.create(policyGraph(model).toModel('policy'), options);
  const state = samples[0]!.state,
    tensor = (data: Int32Array): InstanceType<typeof ort.Tensor> => new ort.Tensor('int32', data, [1, data.length]);
  const feeds = {
    theta: new ort.Tensor('float32', learner.theta.slice(), [learner.theta.length]),
    obs: new ort.Tensor('uint8', state.obs, [1, GLYPH_SPEC.obs.height, GLYPH_SPEC.obs.width]),
    instruction: tensor(state.instruction),
    history: tensor(state.history),
  };
  const g = new Graph(),
    square = [GEMM, GEMM] as const;
  g.output('c', gemm(g.input('a', 'f32', square), g.input('b', 'f32', square)));
  const peak = await ort.InferenceSession.create(g.toModel('peak'), options),
    ones = new ort.Tensor('float32', new Float32Array(GEMM * GEMM).fill(0.5), square);
  const peer = 'python' in torch ? await peerOf(torch.python, learner, o, threads) : undefined;
  const ms: Times['ms'] = { forward: [], update: [], gemm: [], torchUpdate: [], torchForward: [] },
    shares: number[] = [],
    speedups: number[] = [];
  await learner.update(batch);
  await forward.run(feeds);
  await peer?.update();
  await peer?.forward();
  for (let r = 0; r < ROUNDS; r++) {
    for (let i = 0; i < 10; i++) ms.forward.push(await time(() => forward.run(feeds)));
    if (peer) for (let i = 0; i < 3; i++) ms.torchForward.push(await peer.forward());
    const products =
      (await time(async () => {
        for (let i = 0; i < GEMMS; i++) ms.gemm.push(await time(() => peak.run({ a: ones, b: ones })));
      })) / GEMMS;
    const update = (await time(() => learner.update(batch))) / STATES;
    ms.update.push(update);
    shares.push(gflops(useful.update, update) / gflops(gemmFlops, products));
    if (peer) {
      const theirs = (await peer.update()) / STATES;
      ms.torchUpdate.push(theirs);
      speedups.push(theirs / update);
    }
  }
  peer?.close();
  const rss = process.memoryUsage().rss / 2 ** 20;
  await Promise.all([learner.release(), forward.release(), peak.release()]);
  return { threads, ms, shares, speedups, rss, version: peer?.version };
}

async function peerOf(
  python: string,
  learner: Learner,
  o: typeof baseTrainerOptions,
  threads: number,
): Promise<TorchPeer> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-trainer-')),
    states = packSamples(samples, o.slots),
    sessions = new Sessions(ort, model, STATES, o.slots, threads);
  applyLossWeights(states, o.imitationCoef, o.entropyBonus);
  const params = {
    epsLow: o.epsLow,
    epsHigh: o.epsHigh,
    dualClip: o.dualClip,
    tisCap: o.tis.cap,
    klBeta: 0,
    temperature: 1,
  };
  writeProblem(dir, model, learner.theta, sessions.pack(states, params), o, STATES);
  const peer = await startPeer(python, dir, threads);
  // It has read everything by the time it says that it is ready.
  rmSync(dir, { recursive: true, force: true });
  return peer;
}

const all: Times[] = [];
for (const threads of counts) all.push(await measure(threads));
const decided = await decisions(quick ? 100 : 500),
  updates = new Map<number, number[]>();
for (const threads of counts) updates.set(threads, await shippedUpdates(threads, STATES, ROUNDS));

const round = (x: number, digits = 3): number => Number(x.toPrecision(digits));
const row = (what: string, threads: number, xs: readonly number[], f?: number): Record<string, unknown> => {
  const s = summary(xs);
  return {
    what,
    threads,
    'best ms': round(s.min),
    'median ms': round(s.p50),
    '95 % ms': round(s.p95),
    ...(f ? { 'useful GFLOP/s': round(gflops(f, s.min)), MFLOP: Math.round(f / 1e6) } : {}),
  };
};
const rows = all.flatMap((t) => [
  row("version 0.1's forward, 1 screen", t.threads, t.ms.forward, useful.forward),
  {
    ...row(
      `version 0.1's update, per state with ${baseTrainerOptions.slots} actions`,
      t.threads,
      t.ms.update,
      useful.update,
    ),
    'share of peak': round(summary(t.shares).p50),
    'peak RSS MiB': Math.round(t.rss),
  },
  row(`GEMM ${GEMM}^3, the peak`, t.threads, t.ms.gemm, gemmFlops),
  ...(t.version
    ? [
        row(`PyTorch ${t.version} forward`, t.threads, t.ms.torchForward),
        {
          ...row(`PyTorch ${t.version} update, per state`, t.threads, t.ms.torchUpdate),
          'ours is faster': round(summary(t.speedups).p50),
        },
      ]
    : []),
  row(
    `shipped policy's update, per state with ${baseTrainerOptions.slots} actions, its reading among it`,
    t.threads,
    updates.get(t.threads)!,
    shipped.update,
  ),
]);
rows.push(
  row("shipped policy's decision, a screen of 640x400", 1, decided.ms),
  row('of it, in the replica', 1, decided.replicaMs),
  row('a decision on a screen of which nothing was seen before', 1, decided.newMs, shipped.forward),
);
/** Both sides with the threads that suit them best. */
const best = (of: 'update' | 'torchUpdate'): number => Math.min(...all.map((t) => summary(t.ms[of]).p50)),
  one = all[0]!,
  decision = summary(decided.ms);
const bars: Bar[] = [
  bar(
    'decision_ms',
    decision.p50,
    `ms, the shipped policy, one thread, 640x400, median over the sample run's steps (95 %: ${round(decision.p95)}; nothing seen before: ${round(summary(decided.newMs).p50)})`,
    '<= 6',
  ),
  bar('forward_ms', summary(one.ms.forward).min, "ms, version 0.1's network, one thread", '<= 4'),
  bar(
    'share_of_gemm_peak',
    summary(one.shares).p50,
    "of peak, useful work, version 0.1's network, one thread",
    '>= 0.5',
  ),
  ...(one.version
    ? [
        bar(
          'update_speedup_vs_pytorch',
          best('torchUpdate') / best('update'),
          `x PyTorch ${one.version}, each with its best threads`,
          '>= 1.5',
        ),
        bar('update_speedup_vs_pytorch_one_thread', summary(one.speedups).p50, `x PyTorch ${one.version}`, '>= 1'),
      ]
    : []),
];
console.log(
  `${cpus()[0]?.model ?? 'an unknown processor'}, ${cores} cores; ${model.layout.total} parameters; update of ${STATES} states x ${baseTrainerOptions.slots} actions = ${Math.round(summary(one.ms.update).min * STATES)} ms on one thread`,
);
finish('trainer', rows, bars, json);
