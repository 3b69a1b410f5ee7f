import { CELL_POOL, STEM_KERNEL, STEM_POOL } from '../../../runtime/trainer/native/model/glyph.js';
import { policyGraph, towerGraph, type PolicyModel } from '../../../runtime/trainer/native/model/policyGraph.js';
import { READER_STEM } from '../../../runtime/trainer/native/model/tower.js';
import { gradGraph, type GradVariant } from '../../../runtime/trainer/native/model/lossGraph.js';
import type { TrainerOptions } from '../../../runtime/trainer/native/options.js';

export type Pass = 'forward' | 'update';

/** Operations of the matrix products that the graphs execute per state. A policy that reads looks once, before either. */
export function executedFlops(m: PolicyModel, o: TrainerOptions): Record<Pass, number> {
  const variant: GradVariant = { algorithm: o.algorithm, tis: o.tis.enabled, fresh: true, reference: false },
    look = m.reader ? towerGraph(m).gemmFlops() : 0;
  return {
    forward: look + policyGraph(m).gemmFlops(),
    update: look + gradGraph(m, o.microBatch, o.slots, variant).gemmFlops() / o.microBatch,
  };
}

/**
 * Of these, those that the network asks for: pooled convolutions are products with block-Toeplitz matrices
 * (native/graph/conv.ts), of whose 4 p q columns a row k x k has k^2 that are not zero. In version 0.1's network two
 * convolutions are: forward one product each; in an update the first has the gradient of its kernel besides, the second
 * that and the gradient of its input. In the shipped one it is the reader's stem, which no gradient reaches.
 */
export function usefulFlops(m: PolicyModel, executed: number, pass: Pass): number {
  const { width, height } = m.spec.obs,
    pixels = width * height;
  if (m.reader) {
    const { kernel, rows, cols } = READER_STEM;
    return executed - zeros({ kernel, rows, cols, from: 1, to: m.reader.size.tower.stem, pixels });
  }
  const { stem, cell } = m.size,
    square = (p: number): { rows: number; cols: number } => ({ rows: p, cols: p }),
    strokes = zeros({ kernel: STEM_KERNEL, ...square(STEM_POOL), from: 1, to: stem, pixels }),
    cells = zeros({ kernel: 3, ...square(CELL_POOL), from: stem, to: cell, pixels: pixels / STEM_POOL ** 2 });
  return executed - (pass === 'forward' ? strokes + cells : 2 * strokes + 3 * cells);
}

/** Operations on zeros in one product of a pooled convolution. */
function zeros(c: {
  readonly kernel: number;
  /** Pooled into one value. */
  readonly rows: number;
  readonly cols: number;
  /** Channels. */
  readonly from: number;
  readonly to: number;
  readonly pixels: number;
}): number {
  const pool = c.rows * c.cols,
    columns = 4 * pool * c.from;
  return 2 * c.to * pool * columns * (c.pixels / pool) * (1 - c.kernel ** 2 / (4 * pool));
}
