import { FACTS, gridOf, headSizes, type EmbeddedPolicySpec, type Head } from '../../../domain/index.js';
import { conv3, toBlocks, type Grid } from '../graph/conv.js';
import { add, cast, equal, mul, relu, reshape, sum, where } from '../graph/elementwise.js';
import { gatherRows } from '../graph/gather.js';
import type { Tensor } from '../graph/graph.js';
import { linear, matmul } from '../graph/linear.js';
import { softmax } from '../graph/norm.js';
import { concat, pad, slice, split, transpose } from '../graph/structure.js';
import { contextParams, lookParams } from './decider.js';
import { HE, lin, norm, ParamList, transformerLayer, type Params } from './layers.js';
import type { ParamDef } from './params.js';
import { featuresOfCell, TOWER_SIZE, towerParams, type TowerSize } from './tower.js';

/**
 * The policy that spells (runtime/trainer/README.md#a-policy-that-reads). The reader (tower.ts) says which character
 * stands where; plain code finds every instruction token by its spelling (domain/align.ts); this network decides with
 * what was found. Per cell: the reader's features, the pixels, and where the words stand that matter now -> residual
 * blocks -> X. Instruction, history, step and a summary token -> transformer -> h; h looks at X twice. Where: X u(h) +
 * row(h) + column(h) + gain x where the words stand that h seeks, so many cells from them, and in their rows and columns
 * as much as h says: what a word names is often beside it. What to type: pointer into the instruction; type and key: linear in h. No gradient
 * reaches the reader from here.
 */
export interface ReaderSize {
  readonly tower: TowerSize;
  readonly patch: number;
  readonly cell: number;
  readonly hidden: number;
  readonly dilations: readonly number[];
  readonly width: number;
  readonly bucket: number;
  readonly layers: number;
  readonly heads: number;
  readonly looks: number;
  readonly lookHeads: number;
}
export const READER_SIZE: ReaderSize = {
  tower: TOWER_SIZE,
  patch: 24,
  cell: 32,
  hidden: 48,
  dilations: [1, 2, 3],
  width: 64,
  bucket: 16,
  layers: 1,
  heads: 4,
  looks: 2,
  lookHeads: 4,
};

const MASKED = -1e9;
/** Words that the network may seek at once: two for what it sees, two for where it acts. */
const SOUGHT = 2;
/** Initial logit of a cell that holds the sought word: enough against a thousand others. */
const GAIN = 9;
/** Cells that a place may be from the word that names it: a form's field is beside its name. */
const APART = { rows: { back: 3, on: 3 }, cols: { back: 6, on: 12 } } as const;
/** Initial logit of standing on the word itself: about half, so that what is beside it is tried as well. */
const ON_IT = 3;
/** Heads that choose a cell. */
const PLACES = ['cell', 'cell2'] as const;
/** Scale of what it counts to be in line with a sought word. */
const IN_LINE = 3;

/** The network's inputs besides those of the glyph policy (native/perception.ts). */
export interface Found {
  /** f[b, rows*cols, width]: the reader's features. */
  readonly features: Tensor;
  /** f[b, tokens, cells]: how surely each token stands in each cell. */
  readonly found: Tensor;
  /** f[b, tokens, FACTS] */
  readonly facts: Tensor;
}
export interface ReaderInputs extends Found {
  readonly obs: Tensor;
  readonly instruction: Tensor;
  readonly history: Tensor;
}

export function readerParams(s: EmbeddedPolicySpec, z: ReaderSize): ParamDef[] {
  const d = new ParamList();
  towerParams(d, z.tower);
  const { cols, rows } = gridOf(s),
    n = headSizes(s),
    { width } = z;
  d.linear('patch', s.obs.cell ** 2, z.patch, HE);
  d.linear('cells', featuresOfCell(s, z.tower) + z.patch, z.cell);
  d.linear('marked', SOUGHT, z.cell, 1);
  d.random('pos.row', [rows, 1, z.cell], 0.1);
  d.random('pos.col', [1, cols, z.cell], 0.1);
  z.dilations.forEach((_, i) => {
    d.norm(`block${i}.norm`, z.cell);
    d.random(`block${i}.conv.w`, [9, z.cell, z.hidden], HE / Math.sqrt(9 * z.cell));
    d.constant(`block${i}.conv.b`, [z.hidden], 0);
    d.linear(`block${i}.out`, z.hidden, z.cell, 0.7);
  });
  d.norm('cells.norm', z.cell);
  // Zero at first: a word that no lesson had means nothing, whatever its number.
  d.constant('token.bucket', [s.instruction.buckets - 1, z.bucket], 0);
  d.random('token.meaning', [z.bucket, width], 2 / Math.sqrt(z.bucket));
  d.random('token.class', [s.instruction.classes, width], 0.5);
  d.linear('token.found', FACTS, width, 0.5);
  contextParams(d, s, z);
  lookParams(d, s, z);
  d.linear('mark', width, SOUGHT * width, 0.5);
  d.linear('seek', width, SOUGHT * width, 0.5);
  d.constant('seek.gain', [1, SOUGHT, 1], GAIN);
  if (s.beside)
    for (const lines of ['rows', 'cols'] as const) {
      d.linear(`apart.${lines}`, width, SOUGHT * spanOf(APART[lines]), 0.3);
      d.linear(`line.${lines}`, width, PLACES.length * SOUGHT, 0.1);
    }
  d.linear('pointer', width, width, 0.3);
  d.linear('phrase', width, Math.max(1, s.phrases.length), 0.1);
  d.linear('type', width, n.type, 0.1);
  d.linear('key', width, n.key, 0.1);
  return d.defs;
}

/** The reader's parameters come first; no other lesson may change them. */
export const towerLength = (defs: readonly ParamDef[]): number =>
  defs.filter((d) => d.name.startsWith('reader.')).reduce((n, d) => n + d.shape.reduce((a, x) => a * x, 1), 0);

/** One normalised vector per cell, [b, cells, cell]. `marks` [b, SOUGHT, cells]: where the words that matter are. */
function lookAtScreen(p: Params, s: EmbeddedPolicySpec, z: ReaderSize, i: ReaderInputs, marks: Tensor): Tensor {
  const b = i.obs.shape[0]!,
    { cols, rows } = gridOf(s),
    n = b * rows * cols,
    { width, height, cell } = s.obs;
  const light = add(mul(cast(i.obs, i.obs.graph.float), 1 / 127.5), -1),
    pixels = reshape(toBlocks(reshape(light, [b, height, width, 1]), cell), [n, cell * cell]),
    patch = relu(lin(p, 'patch', pixels)),
    perCell = featuresOfCell(s, z.tower),
    features = reshape(i.features, [n, perCell]),
    [ofFeatures, ofPatch] = split(p('cells.w'), [perCell, z.patch], 0) as [Tensor, Tensor];
  // A product each, not one of both beside each other: no gradient is needed of the features.
  const seen = add(
    add(linear(features, ofFeatures, p('cells.b')), linear(patch, ofPatch)),
    lin(p, 'marked', reshape(transpose(marks, [0, 2, 1]), [n, SOUGHT])),
  );
  const grid: Grid = { batch: b, rows, cols };
  let x = reshape(add(reshape(relu(seen), [b, rows, cols, z.cell]), add(p('pos.row'), p('pos.col'))), [n, z.cell]);
  z.dilations.forEach((dilation, k) => {
    const bias = p(`block${k}.conv.b`),
      y = relu(conv3(norm(p, `block${k}.norm`, x), p(`block${k}.conv.w`), grid, { dilation, bias }));
    x = add(x, lin(p, `block${k}.out`, y));
  });
  return reshape(norm(p, 'cells.norm', x), [b, rows * cols, z.cell]);
}

/** Instruction, history, step and summary through the transformer: [b, n, width], the summary first. */
function readInstruction(
  p: Params,
  s: EmbeddedPolicySpec,
  z: ReaderSize,
  i: ReaderInputs,
): { readonly tokens: Tensor; readonly padding: Tensor } {
  const b = i.instruction.shape[0]!,
    d = z.width,
    m = s.instruction.maxTokens,
    l = s.history.length;
  const [bucket, cls] = split(reshape(i.instruction, [b, m, 2]), [1, 1], 2).map((t) => reshape(t, [b, m])) as [
    Tensor,
    Tensor,
  ];
  // The last bucket is a word that is not known: it means nothing, as one that was never learned.
  const table = pad(p('token.bucket'), [0, 0], [1, 0]),
    meaning = reshape(matmul(reshape(gatherRows(table, bucket), [b * m, z.bucket]), p('token.meaning')), [b, m, d]);
  const words = [gatherRows(p('token.class'), cls), lin(p, 'token.found', i.facts), p('pos.token')].reduce(
    (x, y) => add(x, y),
    meaning,
  );
  const past = split(reshape(slice(i.history, 1, 0, 4 * l), [b, l, 4]), [1, 1, 1, 1], 2).map((t) => reshape(t, [b, l]));
  const deeds = ['type', 'row', 'col', 'argument']
    .map((k, at) => gatherRows(p(`past.${k}`), past[at]!))
    .reduce((x, y) => add(x, y));
  const step = gatherRows(p('step'), slice(i.history, 1, 4 * l, 4 * l + 1)),
    summary = add(step, reshape(p('pos.summary'), [1, 1, d])),
    n = 1 + m + l;
  let x = reshape(concat([summary, words, add(deeds, p('pos.past'))], 1), [b * n, d]);
  const isPadding = reshape(equal(bucket, bucket.graph.constant(Int32Array.of(0), [], 'i32')), [b, m]),
    padding = where(isPadding, MASKED, 0),
    keyMask = reshape(pad(padding, [0, 1], [0, l]), [b, 1, 1, n]);
  for (let k = 0; k < z.layers; k++) x = transformerLayer(p, `layer${k}`, x, keyMask, z.heads);
  return { tokens: reshape(norm(p, 'tokens.norm', x), [b, n, d]), padding };
}

type Span = (typeof APART)[keyof typeof APART];
const spanOf = ({ back, on }: Span): number => back + 1 + on;

/** [span, n * n]: entry (k, i * n + j) is 1 where j is k - back from i. */
function steps(span: Span, n: number): Float32Array {
  const out = new Float32Array(spanOf(span) * n * n);
  for (let k = 0; k < spanOf(span); k++)
    for (let i = 0; i < n; i++) {
      const j = i + k - span.back;
      if (j >= 0 && j < n) out[(k * n + i) * n + j] = 1;
    }
  return out;
}
/** [b, SOUGHT, n, n]: how much of what stands at i goes to j, as h says. */
function going(p: Params, name: string, h: Tensor, span: Span, n: number): Tensor {
  const k = spanOf(span),
    b = h.shape[0]!,
    g = h.graph,
    stays = g.floats(
      Array.from({ length: k }, (_, i) => (i === span.back ? ON_IT : 0)),
      [k],
    ),
    far = softmax(add(reshape(lin(p, name, h), [b * SOUGHT, k]), stays));
  return reshape(linear(far, g.floats(steps(span, n), [k, n * n])), [b, SOUGHT, n, n]);
}
/** Where words stand, [b, SOUGHT, rows, cols], moved by as many cells as h says; what leaves the screen is gone. */
function moved(p: Params, h: Tensor, grid: Tensor): Tensor {
  const [rows, cols] = grid.shape.slice(2) as [number, number],
    up = transpose(going(p, 'apart.rows', h, APART.rows, rows), [0, 1, 3, 2]);
  return matmul(matmul(up, grid), going(p, 'apart.cols', h, APART.cols, cols));
}

/**
 * What it counts for each place to be in line with sought words, [b, places, n], with `stands` [b, SOUGHT, n]: how much of
 * each word is in each of n rows or columns (a word is over several columns, and in line with each of them alike).
 */
function inLine(p: Params, name: string, h: Tensor, stands: Tensor): Tensor {
  const b = h.shape[0]!,
    counts = mul(reshape(lin(p, name, h), [b, PLACES.length, SOUGHT]), IN_LINE),
    atMostOne = add(mul(relu(add(mul(stands, -1), 1)), -1), 1);
  return matmul(counts, atMostOne);
}

/**
 * Logits of both places, [b, cells] each, from what the cells look like (xT [b, cell, cells]) and where the sought words
 * stand, [b, SOUGHT, cells].
 */
function placeLogits(
  p: Params,
  s: EmbeddedPolicySpec,
  h: Tensor,
  { xT, words }: { readonly xT: Tensor; readonly words: Tensor },
): [Tensor, Tensor] {
  const { cols, rows } = gridOf(s),
    [b, cell, cells] = xT.shape as [number, number, number],
    aims = concat(
      PLACES.map((head) => reshape(lin(p, head, h), [b, 1, cell])),
      1,
    ),
    grid = reshape(words, [b, SOUGHT, rows, cols]),
    sought = s.beside ? reshape(moved(p, h, grid), [b, SOUGHT, cells]) : words,
    places = add(matmul(aims, xT), mul(sought, p('seek.gain'))),
    inRows = s.beside ? inLine(p, 'line.rows', h, sum(grid, [3])) : undefined,
    inCols = s.beside ? inLine(p, 'line.cols', h, sum(grid, [2])) : undefined;
  return split(places, [1, 1], 1).map((t, k) => {
    const side = (name: string, n: number, lines: Tensor | undefined): Tensor => {
      const anyhow = lin(p, `${PLACES[k]}.${name}`, h);
      return lines ? add(anyhow, reshape(slice(lines, 1, k, k + 1), [b, n])) : anyhow;
    };
    const place = add(
      reshape(side('row', rows, inRows), [b, rows, 1]),
      reshape(side('col', cols, inCols), [b, 1, cols]),
    );
    return reshape(add(reshape(t, [b, rows, cols]), place), [b, cells]);
  }) as [Tensor, Tensor];
}

/** Logits of every head, [b, head size]; copy positions that hold padding get about -1e9. */
export function readerForward(p: Params, s: EmbeddedPolicySpec, z: ReaderSize, i: ReaderInputs): Record<Head, Tensor> {
  const b = i.obs.shape[0]!,
    d = z.width,
    m = s.instruction.maxTokens;
  const { tokens, padding } = readInstruction(p, s, z, i),
    spoken = slice(tokens, 1, 1, 1 + m);
  /** Where the words that h attends to are, [b, SOUGHT, cells]. */
  const whereabouts = (name: string, h: Tensor): Tensor => {
    const query = reshape(lin(p, name, h), [b, SOUGHT, d]),
      scores = mul(matmul(query, transpose(spoken, [0, 2, 1])), 1 / Math.sqrt(d));
    return matmul(softmax(add(scores, reshape(padding, [b, 1, m]))), i.found);
  };
  let h = reshape(slice(tokens, 1, 0, 1), [b, d]);
  const x = lookAtScreen(p, s, z, i, whereabouts('mark', h)),
    xT = transpose(x, [0, 2, 1]);
  for (let k = 0; k < z.looks; k++) {
    const query = reshape(lin(p, `look${k}.query`, h), [b, z.lookHeads, z.cell]),
      seen = matmul(softmax(mul(matmul(query, xT), 1 / Math.sqrt(z.cell))), x),
      both = concat([h, reshape(seen, [b, z.lookHeads * z.cell])], 1);
    h = norm(p, `look${k}.norm`, add(h, lin(p, `look${k}.down`, relu(lin(p, `look${k}.up`, both)))));
  }
  const [cell, cell2] = placeLogits(p, s, h, { xT, words: whereabouts('seek', h) });
  const pointer = reshape(matmul(spoken, reshape(lin(p, 'pointer', h), [b, d, 1])), [b, m]),
    copy = add(mul(pointer, 1 / Math.sqrt(d)), padding),
    text = s.phrases.length > 0 ? concat([copy, lin(p, 'phrase', h)], 1) : copy;
  return { type: lin(p, 'type', h), cell, cell2, text, key: lin(p, 'key', h) };
}
