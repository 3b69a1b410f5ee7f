import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CLASSES } from '../../../domain/alphabet.js';
import {
  FACTS,
  gridOf,
  HEADS,
  READ_AT_ONCE,
  readerGraphFiles,
  spells,
  type EmbeddedPolicySpec,
  type Head,
} from '../../../domain/index.js';
import { replaceFile } from '../../../files/replaceFile.js';
import { reshape } from '../graph/elementwise.js';
import { Graph, type Tensor } from '../graph/graph.js';
import { GLYPH_SIZE, glyphForward, glyphParams, inputShapes, type GlyphSize } from './glyph.js';
import { layoutOf, unpack, type ParamLayout } from './params.js';
import { READER_SIZE, readerForward, readerParams, towerLength, type ReaderSize } from './reader.js';
import { bandsGraph, rowsGraph } from './rowReader.js';
import { TOWER_SIZE, towerForward, towerGrid } from './tower.js';

/** What the whole trainer needs to know about one policy: its spec, its size, its parameters. */
export interface PolicyModel {
  readonly spec: EmbeddedPolicySpec;
  readonly layout: ParamLayout;
  /** Size of a policy that knows words by number; absent for one that spells. */
  readonly size: GlyphSize;
  /** Present for a policy that spells. */
  readonly reader?: {
    readonly size: ReaderSize;
    /** Number of the reader's parameters, which come first. */
    readonly parameters: number;
  };
}
/** The network of a spec: the one that spells where its instructions carry spellings, else that of version 0.1. */
export function policyModel(
  spec: EmbeddedPolicySpec,
  size: GlyphSize = GLYPH_SIZE,
  reader: ReaderSize = READER_SIZE,
): PolicyModel {
  const defs = spells(spec) ? readerParams(spec, reader) : glyphParams(spec, size);
  return {
    spec,
    layout: layoutOf(defs),
    size,
    ...(spells(spec) ? { reader: { size: reader, parameters: towerLength(defs) } } : {}),
  };
}

/** Inputs that a policy which spells has besides (reader.ts, Found). */
export function foundShapes(m: PolicyModel, b: number): Record<'features' | 'found' | 'facts', number[]> {
  const { rows, cols } = towerGrid(m.spec),
    grid = gridOf(m.spec),
    tokens = m.spec.instruction.maxTokens;
  return {
    features: [b, rows * cols, TOWER_SIZE.width],
    found: [b, tokens, grid.rows * grid.cols],
    facts: [b, tokens, FACTS],
  };
}

/** The policy's logits in graph `g`, whose inputs it adds. */
export function policyLogits(
  m: PolicyModel,
  params: (name: string) => Tensor,
  g: Graph,
  b: number,
): Record<Head, Tensor> {
  const shape = inputShapes(m.spec, b),
    inputs = {
      obs: g.input('obs', 'u8', shape.obs),
      instruction: g.input('instruction', 'i32', shape.instruction),
      history: g.input('history', 'i32', shape.history),
    };
  if (!m.reader) return glyphForward(params, m.spec, m.size, inputs);
  const found = foundShapes(m, b),
    more = (k: keyof typeof found): Tensor => g.input(k, g.float, found[k]);
  return readerForward(params, m.spec, m.reader.size, {
    ...inputs,
    features: more('features'),
    found: more('found'),
    facts: more('facts'),
  });
}

/**
 * The forward graph. Inputs: theta f32[P] (unless `theta` is given, which makes it a constant), obs u8[b,h,w],
 * instruction i32[b,2n], history i32[b,4l+1], and for a policy that spells features, found and facts (`foundShapes`).
 * Outputs: logits `type`, `cell`, `cell2`, `text`, `key`, f32[b, head size].
 */
export function policyGraph(m: PolicyModel, batch = 1, theta?: Float32Array): Graph {
  const g = new Graph(),
    logits = policyLogits(m, unpack(weights(g, m, theta), m.layout), g, batch);
  for (const h of HEADS) g.output(h, logits[h]);
  return g;
}

/**
 * The graph of the reader of a policy that spells. Inputs theta (unless given) and obs u8[b,h,w]; outputs `features` as
 * the policy graph takes them and `logits` f32[b, rows*columns, classes] (domain/align.ts).
 */
export function towerGraph(m: PolicyModel, batch = 1, theta?: Float32Array): Graph {
  const g = new Graph(),
    { rows, cols } = towerGrid(m.spec),
    seen = towerForward(
      unpack(weights(g, m, theta), m.layout),
      m.spec,
      TOWER_SIZE,
      g.input('obs', 'u8', inputShapes(m.spec, batch).obs),
    );
  g.output('features', reshape(seen.features, foundShapes(m, batch).features));
  g.output('logits', reshape(seen.logits, [batch, rows * cols, CLASSES]));
  return g;
}
const weights = (g: Graph, m: PolicyModel, theta: Float32Array | undefined): Tensor =>
  theta ? g.floats(theta, [m.layout.total]) : g.input('theta', 'f32', [m.layout.total]);

/** Writes the graphs with theta as an input, for replicas that swap weights in place. Atomic. */
export async function writePolicyGraph(spec: EmbeddedPolicySpec, file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const m = policyModel(spec),
    about = { spec: spec.id, parameters: String(m.layout.total) };
  if (m.reader) {
    const { bands, rows } = readerGraphFiles(file);
    for (const [n, k] of READ_AT_ONCE.bands.entries())
      await replaceFile(bands[n]!, bandsGraph(spec, k).toModel('bands', about));
    for (const [n, k] of READ_AT_ONCE.rows.entries())
      await replaceFile(rows[n]!, rowsGraph(spec, k).toModel('rows', about));
  }
  await replaceFile(file, policyGraph(m).toModel('policy', about));
}
