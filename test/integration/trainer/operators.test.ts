import { describe, expect, it } from 'vitest';
import { random } from '../../../runtime/domain/index.js';
import { gradients } from '../../../runtime/trainer/native/graph/autodiff.js';
import { conv3, convPool, convTaps, tapsOf } from '../../../runtime/trainer/native/graph/conv.js';
import * as e from '../../../runtime/trainer/native/graph/elementwise.js';
import { gatherConst, gatherElements, gatherRows } from '../../../runtime/trainer/native/graph/gather.js';
import { Graph, type Tensor } from '../../../runtime/trainer/native/graph/graph.js';
import { gemm, linear, matmul } from '../../../runtime/trainer/native/graph/linear.js';
import { entropyOf, layerNorm, logSoftmax, softmax } from '../../../runtime/trainer/native/graph/norm.js';
import { concat, pad, slice, split, transpose } from '../../../runtime/trainer/native/graph/structure.js';
import { f64, relative, sessionOf } from '../../helpers/trainer/tinyModel.js';

/**
 * Every operator against central differences, in f64, at random points. The loss is a fixed random weighting of the
 * outputs, so that every entry of the Jacobian counts; every input entry is checked.
 */
interface Case {
  readonly name: string;
  readonly inputs: readonly (readonly number[])[];
  readonly f: (...x: Tensor[]) => Tensor;
  readonly positive?: boolean;
}
const i64 = (g: Graph, values: readonly number[], shape: readonly number[]): Tensor =>
  g.constant(BigInt64Array.from(values, BigInt), shape, 'i64');

const CASES: Case[] = [
  {
    name: 'add',
    inputs: [
      [2, 3],
      [2, 3],
    ],
    f: e.add,
  },
  { name: 'add, broadcast', inputs: [[2, 3], [3]], f: e.add },
  {
    name: 'add, both broadcast',
    inputs: [
      [2, 1, 3],
      [4, 1],
    ],
    f: e.add,
  },
  {
    name: 'sub',
    inputs: [
      [2, 3],
      [2, 1],
    ],
    f: e.sub,
  },
  { name: 'mul', inputs: [[2, 3], [3]], f: e.mul },
  { name: 'mul by a number', inputs: [[4]], f: (x) => e.mul(x, -2.5) },
  { name: 'mul by itself', inputs: [[4]], f: (x) => e.mul(x, x) },
  {
    name: 'div',
    inputs: [
      [2, 3],
      [2, 1],
    ],
    f: e.div,
    positive: true,
  },
  { name: 'neg', inputs: [[3]], f: e.neg },
  { name: 'exp', inputs: [[5]], f: e.exp },
  { name: 'log', inputs: [[5]], f: e.log, positive: true },
  { name: 'sqrt', inputs: [[5]], f: e.sqrt, positive: true },
  { name: 'relu', inputs: [[9]], f: e.relu },
  { name: 'abs', inputs: [[9]], f: e.abs },
  { name: 'where', inputs: [[6], [6]], f: (x, y) => e.where(e.greater(x, 0), e.mul(x, 2), y) },
  { name: 'where, broadcast', inputs: [[2, 3], [3]], f: (x, y) => e.where(e.less(x, 0), x, y) },
  { name: 'maximum', inputs: [[8], [8]], f: e.maximum },
  { name: 'minimum', inputs: [[8], [8]], f: e.minimum },
  { name: 'clamp', inputs: [[9]], f: (x) => e.clamp(x, -0.5, 0.6) },
  { name: 'sum', inputs: [[2, 3, 4]], f: (x) => e.sum(x, [0, 2]) },
  { name: 'sum, kept', inputs: [[2, 3]], f: (x) => e.mul(x, e.sum(x, [1], true)) },
  { name: 'mean', inputs: [[2, 3, 4]], f: (x) => e.mean(x, [1]) },
  { name: 'sumAll', inputs: [[3, 2]], f: e.sumAll },
  { name: 'maxOver', inputs: [[2, 5, 3]], f: (x) => e.maxOver(x, 1) },
  { name: 'expand', inputs: [[2, 1, 3]], f: (x) => e.expand(x, [2, 4, 3]) },
  { name: 'reshape', inputs: [[2, 6]], f: (x) => e.reshape(x, [3, 4]) },
  { name: 'transpose', inputs: [[2, 3, 4]], f: (x) => transpose(x, [2, 0, 1]) },
  {
    name: 'concat',
    inputs: [
      [2, 3],
      [2, 2],
    ],
    f: (x, y) => concat([x, y, x], 1),
  },
  {
    name: 'split',
    inputs: [[2, 5]],
    f: (x) => {
      const [a, b] = split(x, [2, 3], 1);
      return concat([e.mul(b!, 3), a!], 1);
    },
  },
  { name: 'split, one part unused', inputs: [[5]], f: (x) => split(x, [2, 3], 0)[1]! },
  { name: 'slice', inputs: [[4, 5]], f: (x) => slice(slice(x, 0, 1, 3), 1, 0, 4) },
  { name: 'pad', inputs: [[2, 3]], f: (x) => pad(x, [1, 0], [0, 2]) },
  {
    name: 'gatherRows, repeated',
    inputs: [[4, 3]],
    f: (x) => gatherRows(x, x.graph.constant(Int32Array.of(1, 3, 1, 0), [2, 2], 'i32')),
  },
  { name: 'gatherConst, with zero rows', inputs: [[3, 2]], f: (x) => gatherConst(x, [2, -1, 0, 2]) },
  {
    name: 'gatherElements, repeated',
    inputs: [[2, 4]],
    f: (x) => gatherElements(x, i64(x.graph, [3, 0, 3, 1, 1, 2], [2, 3])),
  },
  ...[false, true].flatMap((transA) =>
    [false, true].map((transB): Case => ({
      name: `gemm ${transA ? 'A^T' : 'A'} ${transB ? 'B^T' : 'B'}`,
      inputs: [transA ? [3, 2] : [2, 3], transB ? [4, 3] : [3, 4]],
      f: (a, b) => gemm(a, b, { transA, transB }),
    })),
  ),
  { name: 'gemm with bias', inputs: [[2, 3], [3, 4], [4]], f: (a, b, c) => gemm(a, b, { bias: c }) },
  {
    name: 'matmul',
    inputs: [
      [2, 3, 4],
      [2, 4, 2],
    ],
    f: matmul,
  },
  { name: 'linear', inputs: [[2, 2, 3], [3, 2], [2]], f: linear },
  { name: 'layerNorm', inputs: [[3, 5], [5], [5]], f: layerNorm },
  { name: 'softmax', inputs: [[2, 4]], f: softmax },
  { name: 'logSoftmax', inputs: [[2, 4]], f: logSoftmax },
  { name: 'entropy', inputs: [[2, 4]], f: (x) => entropyOf(logSoftmax(x)) },
  {
    name: 'conv3',
    inputs: [
      [2 * 3 * 4, 2],
      [9, 2, 3],
    ],
    f: (x, w) => conv3(x, w, { batch: 2, rows: 3, cols: 4 }),
  },
  {
    name: 'conv3, dilated',
    inputs: [
      [4 * 5, 2],
      [9, 2, 2],
    ],
    f: (x, w) => conv3(x, w, { batch: 1, rows: 4, cols: 5 }, { dilation: 2 }),
  },
  {
    name: 'conv3 with a bias',
    inputs: [[2 * 3 * 4, 2], [9, 2, 3], [3]],
    f: (x, w, bias) => conv3(x, w, { batch: 2, rows: 3, cols: 4 }, { bias }),
  },
  {
    name: 'convPool 5x5/4',
    inputs: [
      [1, 8, 8, 1],
      [25, 2],
    ],
    f: (x, w) => convPool(x, w, 5, 4, 2),
  },
  {
    name: 'convPool 3x3/2',
    inputs: [
      [2, 4, 6, 2],
      [9, 2 * 3],
    ],
    f: (x, w) => convPool(x, w, 3, 2, 3),
  },
  {
    name: 'convPool 3x3/4x2 of magnitudes',
    inputs: [
      [2, 8, 4, 1],
      [9, 2],
    ],
    f: (x, w) => convPool(x, w, 3, 4, 2, { q: 2, before: e.abs }),
  },
  {
    name: 'convTaps 4x5, stride 2',
    inputs: [
      [2 * 4 * 6, 2],
      [20, 2, 3],
    ],
    f: (x, w) => convTaps(x, w, tapsOf({ batch: 2, rows: 4, cols: 6 }, 4, 5, 2, 2)),
  },
  {
    name: 'convTaps 1x5',
    inputs: [
      [2 * 2 * 7, 3],
      [5, 3, 2],
    ],
    f: (x, w) => convTaps(x, w, tapsOf({ batch: 2, rows: 2, cols: 7 }, 1, 5, 1, 1)),
  },
  {
    name: 'convTaps 1x5 with a bias',
    inputs: [[2 * 2 * 7, 3], [5, 3, 2], [2]],
    f: (x, w, bias) => convTaps(x, w, tapsOf({ batch: 2, rows: 2, cols: 7 }, 1, 5, 1, 1), bias),
  },
];

describe('gradients of the operators', () => {
  it.each(CASES)('$name', async (c) => {
    const rng = random(`operator/${c.name}`),
      g = new Graph('f64');
    const xs = c.inputs.map((shape, i) => g.input(`x${i}`, 'f64', shape));
    const y = c.f(...xs),
      weight = Array.from({ length: y.shape.reduce((a, b) => a * b, 1) }, () => rng.normal());
    const loss = e.sumAll(e.mul(y, g.floats(weight, y.shape)));
    g.output('loss', loss);
    gradients(loss, xs).forEach((d, i) => {
      expect(d.shape).toEqual(xs[i]!.shape);
      g.output(`d${i}`, d);
    });
    const session = await sessionOf(g);
    const values = c.inputs.map((shape) =>
      Float64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () =>
        c.positive ? 0.3 + Math.abs(rng.normal()) : rng.normal(),
      ),
    );
    const run = (): ReturnType<typeof session.run> =>
      session.run(Object.fromEntries(values.map((v, i) => [`x${i}`, f64(v, c.inputs[i]!)])));
    const at = await run(),
      h = 1e-5;
    for (const [i, v] of values.entries())
      for (let k = 0; k < v.length; k++) {
        const x = v[k]!;
        v[k] = x + h;
        const up = ((await run()).loss!.data as Float64Array)[0]!;
        v[k] = x - h;
        const down = ((await run()).loss!.data as Float64Array)[0]!;
        v[k] = x;
        const got = (at[`d${i}`]!.data as Float64Array)[k]!,
          want = (up - down) / (2 * h);
        expect(Math.abs(got - want), `d/dx${i}[${k}]: ${got} instead of ${want}`).toBeLessThan(
          1e-6 * Math.max(1, Math.abs(want)),
        );
      }
    await session.release();
  });

  it('shares a maximum among ties', async () => {
    const g = new Graph('f64'),
      x = g.input('x', 'f64', [4]);
    const loss = e.sumAll(e.maxOver(x, 0));
    g.output('d', gradients(loss, [x])[0]!);
    const s = await sessionOf(g);
    expect([...((await s.run({ x: f64([2, 1, 2, 0], [4]) })).d!.data as Float64Array)]).toEqual([0.5, 0, 0.5, 0]);
    await s.release();
  });
  it('refuses what the loss does not depend on', () => {
    const g = new Graph('f64'),
      x = g.input('x', 'f64', [1]),
      y = g.input('y', 'f64', [1]);
    expect(() => gradients(e.sumAll(x), [y])).toThrow(/does not depend/);
  });
  it('stops gradients where told', async () => {
    const g = new Graph('f64'),
      x = g.input('x', 'f64', [2]);
    g.output('d', gradients(e.sumAll(e.mul(x, e.stopGradient(x))), [x])[0]!);
    const s = await sessionOf(g),
      d = (await s.run({ x: f64([3, -2], [2]) })).d!.data as Float64Array;
    expect(relative(d[0]!, 3) + relative(d[1]!, -2)).toBeLessThan(1e-12);
    await s.release();
  });
});
