import { CLASSES } from '../../../domain/alphabet.js';
import { gridOf, READING, type EmbeddedPolicySpec } from '../../../domain/index.js';
import { convPool, convTaps, tapsOf, type Grid } from '../graph/conv.js';
import { abs, add, cast, mul, relu, reshape } from '../graph/elementwise.js';
import type { Tensor } from '../graph/graph.js';
import { concat, pad, slice, split, transpose } from '../graph/structure.js';
import { HE, lin, norm, type ParamList, type Params } from './layers.js';

/**
 * The reader of the policy that spells: which character stands in every column of every text row
 * (runtime/trainer/README.md#a-policy-that-reads). Pixels -> 3x3 convolution, magnitude, maximum over 4 x 2 pixels,
 * norm -> 4x5 convolution to text rows of 8 pixels (a letter, wherever in its row it stands) -> 1x5 convolution (what is
 * beside it) -> for every column of 2 pixels a logit for every class of domain/alphabet.ts. No position enters: a character looks the same everywhere.
 */
export interface TowerSize {
  readonly stem: number;
  readonly width: number;
}
export const TOWER_SIZE: TowerSize = { stem: 12, width: 32 };

/** Pixels pooled by the stem, and the rows of these that are one text row. */
const POOL_Y = READING.band,
  POOL_X = READING.column,
  STRIDE = 2;
/** Height of a text row and width of a column, in observation pixels. */
export const ROW = POOL_Y * STRIDE,
  COLUMN = POOL_X;
/** The stem's convolution, and the pixels of which it keeps the largest. */
export const READER_STEM = { kernel: 3, rows: POOL_Y, cols: POOL_X };
const KERNEL = READER_STEM.kernel,
  TALL = 4,
  WIDE = 5,
  BESIDE = 5;
/** A reader that knows nothing yet takes every column for blank; without it lessons take three times as long. */
const RARE = -5;

export const towerGrid = (s: EmbeddedPolicySpec): { readonly rows: number; readonly cols: number } => ({
  rows: s.obs.height / ROW,
  cols: s.obs.width / COLUMN,
});
/** Features of the columns beside each other that make a cell. */
export function featuresOfCell(s: EmbeddedPolicySpec, z: TowerSize): number {
  if (s.obs.cell !== ROW) throw new RangeError(`the reader sees cells of ${ROW} pixels, not of ${s.obs.cell}`);
  return (towerGrid(s).cols / gridOf(s).cols) * z.width;
}

export function towerParams(d: ParamList, z: TowerSize): void {
  d.random('reader.stem.w', [KERNEL ** 2, z.stem], HE / KERNEL);
  d.constant('reader.stem.b', [z.stem], 0);
  d.norm('reader.stem.norm', z.stem);
  d.random('reader.conv.w', [TALL * WIDE, z.stem, z.width], HE / Math.sqrt(TALL * WIDE * z.stem));
  d.constant('reader.conv.b', [z.width], 0);
  d.norm('reader.beside.norm', z.width);
  d.random('reader.beside.w', [BESIDE, z.width, z.width], HE / Math.sqrt(BESIDE * z.width));
  d.constant('reader.beside.b', [z.width], 0);
  d.norm('reader.norm', z.width);
  d.random('reader.out.w', [z.width, CLASSES], 1 / Math.sqrt(z.width));
  d.list('reader.out.b', [0, ...new Array<number>(CLASSES - 1).fill(RARE)]);
}

export interface Seen {
  /** [b*rows*cols, width] */
  readonly features: Tensor;
  /** [b*rows*cols, classes] */
  readonly logits: Tensor;
}

export function towerForward(p: Params, s: EmbeddedPolicySpec, z: TowerSize, obs: Tensor): Seen {
  const b = obs.shape[0]!,
    { width, height } = s.obs,
    { rows, cols } = towerGrid(s);
  const light = reshape(add(mul(cast(obs, obs.graph.float), 1 / 127.5), -1), [b, height, width, 1]);
  const strokes = convPool(light, p('reader.stem.w'), KERNEL, POOL_Y, z.stem, {
    q: POOL_X,
    // Dark on light or light on dark: the same strokes.
    before: (t) => abs(add(t, reshape(p('reader.stem.b'), [z.stem, 1, 1]))),
  });
  const tall = tallRows(reshape(norm(p, 'reader.stem.norm', strokes), [b, rows, STRIDE, cols, z.stem]));
  return readRows(p, z, tall, { batch: b, rows, cols });
}

/** The characters of each column, from what the stem sees in its four bands, [batch*rows*cols, 4 stem]. */
export function readRows(p: Params, z: TowerSize, tall: Tensor, grid: Grid): Seen {
  const kernel = reshape(transpose(reshape(p('reader.conv.w'), [TALL, WIDE, z.stem, z.width]), [1, 0, 2, 3]), [
    WIDE,
    TALL * z.stem,
    z.width,
  ]);
  const conv = relu(convTaps(tall, kernel, tapsOf(grid, 1, WIDE, 1, 1), p('reader.conv.b')));
  const taps = tapsOf(grid, 1, BESIDE, 1, 1),
    beside = convTaps(norm(p, 'reader.beside.norm', conv), p('reader.beside.w'), taps, p('reader.beside.b'));
  const features = norm(p, 'reader.norm', add(conv, relu(beside)));
  return { features, logits: lin(p, 'reader.out', features) };
}

/**
 * Each text row with the half rows above and below it: x[b, rows, 2, cols, c] -> [b*rows*cols, 4c]. Columns are then
 * gathered in long stretches, which is several times faster than taps one by one.
 */
function tallRows(x: Tensor): Tensor {
  const [b, rows, , cols, c] = x.shape as [number, number, number, number, number],
    [top, bottom] = split(x, [1, 1], 2).map((t) => reshape(t, [b, rows, cols, c])) as [Tensor, Tensor],
    above = pad(slice(bottom, 1, 0, rows - 1), [0, 1, 0, 0], [0, 0, 0, 0]),
    below = pad(slice(top, 1, 1, rows), [0, 0, 0, 0], [0, 1, 0, 0]);
  return reshape(concat([above, top, bottom, below], 3), [b * rows * cols, 4 * c]);
}
