import { CLASSES } from '../../../domain/alphabet.js';
import { gridOf, type EmbeddedPolicySpec } from '../../../domain/index.js';
import { convPool, convTaps, tapsOf } from '../graph/conv.js';
import { abs, add, cast, clamp, maxOver, mul, relu, reshape, sub } from '../graph/elementwise.js';
import type { Tensor } from '../graph/graph.js';
import { concat } from '../graph/structure.js';
import { HE, lin, norm, type ParamList, type Params } from './layers.js';

/**
 * The reader of the policy that spells: which character stands in every column of every text row
 * (runtime/trainer/README.md#a-policy-that-reads). Pixels -> 3x3 convolution, magnitude, maximum over 4 x 2 pixels,
 * norm -> 3x5 convolution of stride 2 -> 1x5 convolution beside it -> two columns of 2 pixels each, with a logit for
 * every class of domain/alphabet.ts. No position enters: a character looks the same everywhere.
 */
export interface TowerSize {
  readonly stem: number;
  readonly width: number;
}
export const TOWER_SIZE: TowerSize = { stem: 12, width: 48 };

/** Pixels pooled by the stem, the stride after it, and the columns that one of its places is read as. */
const POOL_Y = 4,
  POOL_X = 2,
  STRIDE = 2,
  HALVES = 2;
/** Height of a text row and width of a column, in observation pixels. */
export const ROW = POOL_Y * STRIDE,
  COLUMN = (POOL_X * STRIDE) / HALVES;
const KERNEL = 3,
  TALL = 3,
  WIDE = 5,
  LEAST = -8;
/** A reader that knows nothing yet takes every column for blank; without it lessons take three times as long. */
const RARE = -5;

export interface TowerGrid {
  readonly rows: number;
  /** Places with features; each is two columns. */
  readonly places: number;
  readonly cols: number;
}
export function towerGrid(s: EmbeddedPolicySpec): TowerGrid {
  const places = s.obs.width / (POOL_X * STRIDE);
  return { rows: s.obs.height / ROW, places, cols: places * HALVES };
}
/** Features of the two places beside each other that make a cell. */
export function featuresOfCell(s: EmbeddedPolicySpec, z: TowerSize): number {
  if (s.obs.cell !== ROW) throw new RangeError(`the reader sees cells of ${ROW} pixels, not of ${s.obs.cell}`);
  return (towerGrid(s).places / gridOf(s).cols) * z.width;
}

export function towerParams(d: ParamList, z: TowerSize): void {
  d.random('reader.stem.w', [KERNEL ** 2, z.stem], HE / KERNEL);
  d.constant('reader.stem.b', [z.stem], 0);
  d.norm('reader.stem.norm', z.stem);
  d.random('reader.conv.w', [TALL * WIDE, z.stem, z.width], HE / Math.sqrt(TALL * WIDE * z.stem));
  d.constant('reader.conv.b', [z.width], 0);
  d.norm('reader.beside.norm', z.width);
  d.random('reader.beside.w', [WIDE, z.width, z.width], HE / Math.sqrt(WIDE * z.width));
  d.constant('reader.beside.b', [z.width], 0);
  d.norm('reader.norm', z.width);
  for (let k = 0; k < HALVES; k++) {
    d.random(`reader.out${k}.w`, [z.width, CLASSES], 1 / Math.sqrt(z.width));
    d.list(`reader.out${k}.b`, [0, ...new Array<number>(CLASSES - 1).fill(RARE)]);
  }
}

export interface Seen {
  /** [b*rows*places, width] */
  readonly features: Tensor;
  /** [b*rows*cols, classes] */
  readonly logits: Tensor;
}

export function towerForward(p: Params, s: EmbeddedPolicySpec, z: TowerSize, obs: Tensor): Seen {
  const b = obs.shape[0]!,
    { width, height } = s.obs,
    { rows, places, cols } = towerGrid(s);
  const light = reshape(add(mul(cast(obs, obs.graph.float), 1 / 127.5), -1), [b, height, width, 1]);
  const strokes = convPool(light, p('reader.stem.w'), KERNEL, POOL_Y, z.stem, {
    q: POOL_X,
    // Dark on light or light on dark: the same strokes.
    before: (t) => abs(add(t, reshape(p('reader.stem.b'), [z.stem, 1, 1]))),
  });
  const pooled = { batch: b, rows: height / POOL_Y, cols: width / POOL_X };
  const conv = relu(
    add(
      convTaps(norm(p, 'reader.stem.norm', strokes), p('reader.conv.w'), tapsOf(pooled, TALL, WIDE, STRIDE, STRIDE)),
      p('reader.conv.b'),
    ),
  );
  const beside = convTaps(
    norm(p, 'reader.beside.norm', conv),
    p('reader.beside.w'),
    tapsOf({ batch: b, rows, cols: places }, 1, WIDE, 1, 1),
  );
  const features = norm(p, 'reader.norm', add(conv, relu(add(beside, p('reader.beside.b')))));
  const halves = Array.from({ length: HALVES }, (_, k) =>
    reshape(lin(p, `reader.out${k}`, features), [b * rows * places, 1, CLASSES]),
  );
  return { features, logits: reshape(concat(halves, 1), [b * rows * cols, CLASSES]) };
}

/** Scores for aligning (domain/align.ts): logits less the largest of their column, bounded. [b*rows*cols, classes] */
export const scoresOf = (logits: Tensor): Tensor =>
  clamp(sub(logits, reshape(maxOver(logits, 1), [logits.shape[0]!, 1])), LEAST, 0);
