import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GLYPH_SPEC, id, type BatchId, type EmbeddedBatch } from '../../../runtime/domain/index.js';
import { Graph } from '../../../runtime/trainer/native/graph/graph.js';
import { gemm } from '../../../runtime/trainer/native/graph/linear.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { gradGraph } from '../../../runtime/trainer/native/model/lossGraph.js';
import { policyGraph, policyModel } from '../../../runtime/trainer/native/model/policyGraph.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { packSamples, applyLossWeights } from '../../../runtime/trainer/native/packing.js';
import { loadOrt, Sessions } from '../../../runtime/trainer/native/sessions.js';
import { bar, benchArgs, finish, summary, type Bar } from '../lib/report.js';
import { policySamples, writeProblem } from './problem.js';
import { needTorch, startPeer, type TorchPeer } from './python.js';

/**
 * Speed of the native trainer: one forward pass, one whole update (16 states x 8 actions: packing, forward, backward,
 * clipping, AdamW), and the same model and batch in Debian's PyTorch with the same threads, taken in turns so that both
 * see the same load. GFLOP/s count the matrix products the graph executes, block-Toeplitz zeros included; the peak is a
 * 1024^3 product in ONNX Runtime, also measured in turns. Times are the best of the rounds, as other load can only slow
 * one down; ratios are the median over rounds of stretches of about equal length, so that load hits both sides alike.
 */
const { quick, json } = benchArgs();
const THREADS = 1,
  STATES = 16,
  GEMM = 1024,
  GEMMS = 10,
  ROUNDS = quick ? 5 : 15;
const o = { ...baseTrainerOptions, threads: THREADS };
const time = async (f: () => Promise<unknown>): Promise<number> => {
  const t = performance.now();
  await f();
  return performance.now() - t;
};

const ort = await loadOrt(),
  model = policyModel(GLYPH_SPEC),
  learner = await Learner.create(GLYPH_SPEC, o, 1);
const options = { intraOpNumThreads: THREADS, interOpNumThreads: 1, logSeverityLevel: 3 as const };
const samples = policySamples(GLYPH_SPEC, STATES, o.slots, 1),
  batch: EmbeddedBatch = { id: id<BatchId>('bench'), samples, epochs: 1 };

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
const peak = await ort.InferenceSession.create(g.toModel('peak'), options);
const ones = new ort.Tensor('float32', new Float32Array(GEMM * GEMM).fill(0.5), square);

const dir = mkdtempSync(join(tmpdir(), 'bench-trainer-')),
  torch = needTorch();
let peer: TorchPeer | undefined;
if ('python' in torch) {
  const states = packSamples(samples, o.slots),
    sessions = new Sessions(ort, model, STATES, o.slots, THREADS);
  applyLossWeights(states, o.imitationCoef, o.entropyBonus);
  writeProblem(
    dir,
    model,
    learner.theta,
    sessions.pack(states, {
      epsLow: o.epsLow,
      epsHigh: o.epsHigh,
      dualClip: o.dualClip,
      tisCap: o.tis.cap,
      klBeta: 0,
      temperature: 1,
    }),
    o,
    STATES,
  );
  peer = await startPeer(torch.python, dir, THREADS);
} else console.log(`Comparison with PyTorch skipped: ${torch.missing}`);

const flops = {
  forward: policyGraph(model).gemmFlops(),
  update:
    gradGraph(model, o.microBatch, o.slots, {
      algorithm: o.algorithm,
      tis: o.tis.enabled,
      fresh: true,
      reference: false,
    }).gemmFlops() / o.microBatch,
  gemm: 2 * GEMM ** 3,
};
const gflops = (f: number, millis: number): number => f / millis / 1e6;
const shares: number[] = [],
  speedups: number[] = [];
const ms = {
  forward: [] as number[],
  update: [] as number[],
  gemm: [] as number[],
  torchUpdate: [] as number[],
  torchForward: [] as number[],
};
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
  shares.push(gflops(flops.update, update) / gflops(flops.gemm, products));
  if (peer) {
    const theirs = (await peer.update()) / STATES;
    ms.torchUpdate.push(theirs);
    speedups.push(theirs / update);
  }
}
peer?.close();
const rss = process.memoryUsage().rss / 2 ** 20;
await Promise.all([learner.release(), forward.release(), peak.release()]);
rmSync(dir, { recursive: true, force: true });

const best = Object.fromEntries(Object.entries(ms).map(([k, v]) => [k, summary(v)])) as Record<
  keyof typeof ms,
  ReturnType<typeof summary>
>;
const round = (x: number, digits = 3): number => Number(x.toPrecision(digits));
const row = (what: string, s: ReturnType<typeof summary>, f?: number): Record<string, unknown> => ({
  what,
  threads: THREADS,
  'best ms': round(s.min),
  'median ms': round(s.p50),
  ...(f ? { 'GFLOP/s': round(gflops(f, s.min)), MFLOP: Math.round(f / 1e6) } : {}),
});
const rows = [
  { ...row('forward, 1 screen', best.forward, flops.forward) },
  { ...row(`update, per state with ${o.slots} actions`, best.update, flops.update), 'peak RSS MiB': Math.round(rss) },
  { ...row(`GEMM ${GEMM}^3, the peak`, best.gemm, flops.gemm) },
  ...(peer
    ? [
        row(`PyTorch ${peer.version} forward`, best.torchForward),
        row(`PyTorch ${peer.version} update, per state`, best.torchUpdate),
      ]
    : []),
];
const bars: Bar[] = [
  bar('forward_ms', best.forward.min, 'ms', '<= 4'),
  bar('share_of_gemm_peak', summary(shares).p50, 'of peak', '>= 0.4'),
  ...(peer ? [bar('update_speedup_vs_pytorch', summary(speedups).p50, 'x', '>= 1')] : []),
];
console.log(
  `${model.layout.total} parameters; update of ${STATES} states x ${o.slots} actions = ${Math.round(best.update.min * STATES)} ms`,
);
finish('trainer', rows, bars, json);
