import { gridOf, headSizes, type EmbeddedPolicySpec, type Head } from '../../../domain/index.js';
import { add, cast, equal, mul, relu, reshape, where } from '../graph/elementwise.js';
import { conv3, convPool, type Grid } from '../graph/conv.js';
import { gatherRows } from '../graph/gather.js';
import type { Tensor } from '../graph/graph.js';
import { matmul } from '../graph/linear.js';
import { softmax } from '../graph/norm.js';
import { concat, pad, slice, split, transpose } from '../graph/structure.js';
import { contextParams, lookParams } from './decider.js';
import { HE, lin, norm, ParamList, transformerLayer, type Params } from './layers.js';
import type { ParamDef } from './params.js';

/**
 * The 'glyph' policy: a small convolutional reader of screens, fused late with the instruction
 * (runtime/trainer/README.md#embedded-policy-learning). pixels -> stride-1 5x5 conv, 4x4 max-pool -> 3x3 conv, 2x2
 * max-pool -> one vector per 8x8-pixel cell + row/column
 * embedding
 * -> residual blocks of dilated 3x3 convs -> cells X; instruction, history, step and a summary token -> transformer ->
 * h; twice: h looks at X (attention), h += MLP([h,
 * seen]); where: X u(h) + row(h) + column(h), what is seen there and where such things usually are; what to type:
 * pointer into
 * the instruction tokens; type and key: linear in h. Keys and values of the attention over cells are absorbed into
 * the query and the MLP (K q = X (Wk^T q)), so no product is made per cell and head.
 */
export interface GlyphSize {
  readonly stem: number;
  readonly cell: number;
  readonly hidden: number;
  readonly dilations: readonly number[];
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly looks: number;
  readonly lookHeads: number;
}
export const GLYPH_SIZE: GlyphSize = {
  stem: 8,
  cell: 32,
  hidden: 48,
  dilations: [1, 2, 3],
  width: 64,
  layers: 1,
  heads: 4,
  looks: 2,
  lookHeads: 4,
};

export const STEM_POOL = 4,
  STEM_KERNEL = 5,
  CELL_POOL = 2;
const MASKED = -1e9;

export interface PolicyInputs {
  readonly obs: Tensor;
  readonly instruction: Tensor;
  readonly history: Tensor;
}
/** Inputs of a batch of b screens: obs u8[b,h,w], instruction i32[b,2n], history i32[b,4l+1]. */
export const inputShapes = (s: EmbeddedPolicySpec, b: number): Record<keyof PolicyInputs, number[]> => ({
  obs: [b, s.obs.height, s.obs.width],
  instruction: [b, s.instruction.maxTokens * 2],
  history: [b, s.history.length * 4 + 1],
});

/** Every parameter in its order in `theta`: checkpoints depend on it. */
export function glyphParams(s: EmbeddedPolicySpec, z: GlyphSize): ParamDef[] {
  const d = new ParamList();
  screenParams(d, s, z);
  tokenParams(d, s, z);
  headParams(d, s, z);
  return d.defs;
}

/** Pixels to one vector per cell. */
function screenParams(d: ParamList, s: EmbeddedPolicySpec, z: GlyphSize): void {
  const { cols, rows } = gridOf(s);
  d.random('stem.w', [STEM_KERNEL ** 2, z.stem], HE / STEM_KERNEL);
  d.constant('stem.b', [z.stem], 0);
  d.random('conv.w', [9, z.stem * z.cell], HE / Math.sqrt(9 * z.stem));
  d.constant('conv.b', [z.cell], 0);
  d.random('pos.row', [rows, 1, z.cell], 0.1);
  d.random('pos.col', [1, cols, z.cell], 0.1);
  z.dilations.forEach((_, i) => {
    d.norm(`block${i}.norm`, z.cell);
    d.random(`block${i}.conv.w`, [9, z.cell, z.hidden], HE / Math.sqrt(9 * z.cell));
    d.constant(`block${i}.conv.b`, [z.hidden], 0);
    d.linear(`block${i}.out`, z.hidden, z.cell, 0.7);
  });
  d.norm('cells.norm', z.cell);
}

/** Instruction and history, and the layers over them. */
function tokenParams(d: ParamList, s: EmbeddedPolicySpec, z: GlyphSize): void {
  const { width } = z;
  d.random('token.bucket', [s.instruction.buckets, width], 0.5);
  d.random('token.class', [s.instruction.classes, width], 0.5);
  contextParams(d, s, z);
}

/** The looks at the screen, and the heads. */
function headParams(d: ParamList, s: EmbeddedPolicySpec, z: GlyphSize): void {
  const n = headSizes(s),
    { width } = z;
  lookParams(d, s, z);
  d.linear('seek', width, 2 * width, 0.3);
  d.linear('find', width, z.cell, 0.5);
  d.linear('pointer', width, width, 0.3);
  d.linear('phrase', width, Math.max(1, s.phrases.length), 0.1);
  d.linear('type', width, n.type, 0.1);
  d.linear('key', width, n.key, 0.1);
}

/** Pixels -> one normalised vector per cell, [b*rows*cols, cell]. */
function readScreen(p: Params, z: GlyphSize, s: EmbeddedPolicySpec, obs: Tensor): Tensor {
  const b = obs.shape[0]!,
    { cols, rows } = gridOf(s),
    { width, height } = s.obs;
  if (s.obs.cell !== STEM_POOL * CELL_POOL)
    throw new RangeError(`the glyph policy pools to cells of ${STEM_POOL * CELL_POOL} pixels, not ${s.obs.cell}`);
  const light = add(mul(cast(obs, obs.graph.float), 1 / 127.5), -1);
  // The bias and ReLU commute with the maximum, and there are 16 times fewer values after it.
  const strokes = relu(
    add(convPool(reshape(light, [b, height, width, 1]), p('stem.w'), STEM_KERNEL, STEM_POOL, z.stem), p('stem.b')),
  );
  const cells = relu(
    add(
      convPool(reshape(strokes, [b, height / STEM_POOL, width / STEM_POOL, z.stem]), p('conv.w'), 3, CELL_POOL, z.cell),
      p('conv.b'),
    ),
  );

  const grid: Grid = { batch: b, rows, cols };
  let x = reshape(add(reshape(cells, [b, rows, cols, z.cell]), add(p('pos.row'), p('pos.col'))), [
    b * rows * cols,
    z.cell,
  ]);
  z.dilations.forEach((dilation, i) => {
    const bias = p(`block${i}.conv.b`),
      y = relu(conv3(norm(p, `block${i}.norm`, x), p(`block${i}.conv.w`), grid, { dilation, bias }));
    x = add(x, lin(p, `block${i}.out`, y));
  });
  return norm(p, 'cells.norm', x);
}

/**
 * Instruction, history, step and summary as tokens through the transformer: [b, n, width], the summary first, then the
 * instruction.
 */
function readWords(
  p: Params,
  z: GlyphSize,
  s: EmbeddedPolicySpec,
  instruction: Tensor,
  history: Tensor,
): { readonly tokens: Tensor; readonly padding: Tensor; readonly meanings: Tensor } {
  const b = instruction.shape[0]!,
    d = z.width,
    m = s.instruction.maxTokens,
    l = s.history.length;
  const [bucket, cls] = split(reshape(instruction, [b, m, 2]), [1, 1], 2).map((t) => reshape(t, [b, m])) as [
    Tensor,
    Tensor,
  ];
  const meanings = gatherRows(p('token.bucket'), bucket);
  const words = add(add(meanings, gatherRows(p('token.class'), cls)), p('pos.token'));
  const past = split(reshape(slice(history, 1, 0, 4 * l), [b, l, 4]), [1, 1, 1, 1], 2).map((t) => reshape(t, [b, l]));
  const deeds = ['type', 'row', 'col', 'argument']
    .map((k, i) => gatherRows(p(`past.${k}`), past[i]!))
    .reduce((x, y) => add(x, y));
  const step = gatherRows(p('step'), slice(history, 1, 4 * l, 4 * l + 1));
  const summary = add(step, reshape(p('pos.summary'), [1, 1, d]));
  const n = 1 + m + l;
  let x = reshape(concat([summary, words, add(deeds, p('pos.past'))], 1), [b * n, d]);

  const isPadding = reshape(equal(bucket, bucket.graph.constant(Int32Array.of(0), [], 'i32')), [b, m]);
  const padding = where(isPadding, MASKED, 0);
  const keyMask = reshape(pad(padding, [0, 1], [0, l]), [b, 1, 1, n]);
  for (let i = 0; i < z.layers; i++) x = transformerLayer(p, `layer${i}`, x, keyMask, z.heads);
  return { tokens: reshape(norm(p, 'tokens.norm', x), [b, n, d]), padding, meanings };
}

/**
 * Logits of every head, [b, head size]. Copy positions that hold padding get about -1e9 in the graph itself, so that
 * replica and trainer agree.
 */
export function glyphForward(
  p: Params,
  s: EmbeddedPolicySpec,
  z: GlyphSize,
  inputs: PolicyInputs,
): Record<Head, Tensor> {
  const b = inputs.obs.shape[0]!,
    { cols, rows } = gridOf(s),
    cells = rows * cols,
    d = z.width,
    m = s.instruction.maxTokens;
  const x = reshape(readScreen(p, z, s, inputs.obs), [b, cells, z.cell]);
  const { tokens, padding, meanings } = readWords(p, z, s, inputs.instruction, inputs.history);
  const xT = transpose(x, [0, 2, 1]);
  let h = reshape(slice(tokens, 1, 0, 1), [b, d]);
  for (let i = 0; i < z.looks; i++) {
    const query = reshape(lin(p, `look${i}.query`, h), [b, z.lookHeads, z.cell]);
    const seen = matmul(softmax(mul(matmul(query, xT), 1 / Math.sqrt(z.cell))), x);
    const both = concat([h, reshape(seen, [b, z.lookHeads * z.cell])], 1);
    h = norm(p, `look${i}.norm`, add(h, lin(p, `look${i}.down`, relu(lin(p, `look${i}.up`, both)))));
  }
  const words = slice(tokens, 1, 1, 1 + m);
  const sought = softmax(
    add(
      mul(matmul(reshape(lin(p, 'seek', h), [b, 2, d]), transpose(words, [0, 2, 1])), 1 / Math.sqrt(d)),
      reshape(padding, [b, 1, m]),
    ),
  );
  const found = reshape(lin(p, 'find', reshape(matmul(sought, meanings), [b * 2, d])), [b, 2, z.cell]);
  const aims = add(
    concat(
      ['cell', 'cell2'].map((head) => reshape(lin(p, head, h), [b, 1, z.cell])),
      1,
    ),
    found,
  );
  const [cell, cell2] = split(matmul(aims, xT), [1, 1], 1).map((t, i) => {
    const head = i === 0 ? 'cell' : 'cell2';
    const place = add(reshape(lin(p, `${head}.row`, h), [b, rows, 1]), reshape(lin(p, `${head}.col`, h), [b, 1, cols]));
    return reshape(add(reshape(t, [b, rows, cols]), place), [b, cells]);
  }) as [Tensor, Tensor];
  const pointer = reshape(matmul(words, reshape(lin(p, 'pointer', h), [b, d, 1])), [b, m]);
  const copy = add(mul(pointer, 1 / Math.sqrt(d)), padding);
  const text = s.phrases.length > 0 ? concat([copy, lin(p, 'phrase', h)], 1) : copy;
  return { type: lin(p, 'type', h), cell, cell2, text, key: lin(p, 'key', h) };
}

/**
 * Finds words on the screen: logits over cells, [b, r, cells], for words given by their buckets i32[b, r]. Uses the
 * policy's own screen layers and `find`.
 */
export function glyphRead(p: Params, s: EmbeddedPolicySpec, z: GlyphSize, obs: Tensor, buckets: Tensor): Tensor {
  const [b, r] = buckets.shape as [number, number],
    { cols, rows } = gridOf(s);
  const x = reshape(readScreen(p, z, s, obs), [b, rows * cols, z.cell]);
  const aims = reshape(lin(p, 'find', reshape(gatherRows(p('token.bucket'), buckets), [b * r, z.width])), [
    b,
    r,
    z.cell,
  ]);
  return matmul(aims, transpose(x, [0, 2, 1]));
}
