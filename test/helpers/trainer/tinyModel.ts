import * as ort from 'onnxruntime-node';
import { headSizes, HEADS, random, SEEN, type EmbeddedPolicySpec, type Random } from '../../../runtime/domain/index.js';
import type { Graph } from '../../../runtime/trainer/native/graph/graph.js';
import type { GlyphSize } from '../../../runtime/trainer/native/model/glyph.js';
import { initialTheta } from '../../../runtime/trainer/native/model/params.js';
import { policyModel, type PolicyModel } from '../../../runtime/trainer/native/model/policyGraph.js';
import type { ReaderSize } from '../../../runtime/trainer/native/model/reader.js';
import { TOWER_SIZE } from '../../../runtime/trainer/native/model/tower.js';

/** A policy small enough for exact checks: 4 x 2 cells, every head and every layer kind present. */
export const TINY: EmbeddedPolicySpec = {
  id: 'tiny',
  obs: { width: 32, height: 16, cell: 8 },
  instruction: { maxTokens: 3, buckets: 6, classes: 3 },
  history: { length: 2, maxSteps: 3 },
  types: ['click', 'drag', 'key', 'type', 'wait'],
  keys: ['enter', 'tab'],
  phrases: ['yes'],
};
export const TINY_SIZE: GlyphSize = {
  stem: 3,
  cell: 5,
  hidden: 4,
  dilations: [1, 2],
  width: 8,
  layers: 1,
  heads: 2,
  looks: 2,
  lookHeads: 2,
};
export const tinyModel = (): PolicyModel => policyModel(TINY, TINY_SIZE);

/**
 * Initial weights with every array moved off its special values (zero offsets, unit gains), so that no gradient is zero
 * by accident.
 */
export function roughTheta(m: PolicyModel, seed: number): Float64Array {
  const rng = random(`rough/${seed}`);
  return Float64Array.from(initialTheta(m.layout, seed), (x) => x + 0.05 * rng.normal());
}

export type Numbers = Float32Array | Float64Array;
export async function sessionOf(g: Graph): Promise<ort.InferenceSession> {
  return ort.InferenceSession.create(g.toModel('test'), {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
  });
}
export const f64 = (values: ArrayLike<number>, dims: readonly number[]): ort.Tensor =>
  new ort.Tensor('float64', Float64Array.from(values), dims);
export const f32 = (values: ArrayLike<number>, dims: readonly number[]): ort.Tensor =>
  new ort.Tensor('float32', Float32Array.from(values), dims);
export const ints = (values: ArrayLike<number>, dims: readonly number[]): ort.Tensor =>
  new ort.Tensor('int32', Int32Array.from(values), dims);

/** Random model inputs of a batch; the last instruction token is padding. */
export function randomStates(
  s: EmbeddedPolicySpec,
  b: number,
  rng: Random,
): Record<'obs' | 'instruction' | 'history', ort.Tensor> {
  const n = s.instruction.maxTokens,
    l = s.history.length,
    cols = s.obs.width / s.obs.cell,
    rows = s.obs.height / s.obs.cell;
  const instruction = Array.from({ length: b }, () =>
    Array.from({ length: n }, (_, i) =>
      i === n - 1 ? [0, 0] : [1 + rng.int(s.instruction.buckets - 1), rng.int(s.instruction.classes)],
    ),
  ).flat(2);
  const history = Array.from({ length: b }, () => [
    ...Array.from({ length: l }, () => [
      rng.int(s.types.length + 1),
      rng.int(rows + 1),
      rng.int(cols + 1),
      rng.int(3),
    ]).flat(),
    rng.int(s.history.maxSteps + 1),
  ]).flat();
  return {
    obs: new ort.Tensor(
      'uint8',
      Uint8Array.from({ length: b * s.obs.width * s.obs.height }, () => rng.int(256)),
      [b, s.obs.height, s.obs.width],
    ),
    instruction: ints(instruction, [b, 2 * n]),
    history: ints(history, [b, 4 * l + 1]),
  };
}
export const choiceCount = (s: EmbeddedPolicySpec): number => HEADS.reduce((n, h) => n + headSizes(s)[h], 0);

/** Central difference of f along `direction`. */
export async function slope(
  f: (theta: Float64Array) => Promise<number>,
  theta: Float64Array,
  direction: Float64Array,
  h: number,
): Promise<number> {
  const at = (s: number): Float64Array => theta.map((x, i) => x + s * direction[i]!);
  return ((await f(at(h))) - (await f(at(-h)))) / (2 * h);
}
export const relative = (a: number, b: number): number => Math.abs(a - b) / Math.max(1e-6, Math.abs(a), Math.abs(b));

/** The same as a policy that spells: its own network, and two characters of each token. */
export const TINY_READER: EmbeddedPolicySpec = {
  ...TINY,
  id: 'tiny-reader',
  instruction: { ...TINY.instruction, spelling: 2 },
  beside: true,
  phrases: ['yes', SEEN],
};
export const TINY_READER_SIZE: ReaderSize = {
  tower: TOWER_SIZE,
  patch: 3,
  cell: 5,
  hidden: 4,
  dilations: [1, 2],
  width: 8,
  bucket: 4,
  layers: 1,
  heads: 2,
  looks: 1,
  lookHeads: 2,
};
export const tinyReaderModel = (): PolicyModel => policyModel(TINY_READER, TINY_SIZE, TINY_READER_SIZE);
