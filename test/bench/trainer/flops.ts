import { CELL_POOL, STEM_KERNEL, STEM_POOL } from '../../../runtime/trainer/native/model/glyph.js';
import type { PolicyModel } from '../../../runtime/trainer/native/model/policyGraph.js';

/**
 * Operations that the network asks for, of those that its graph executes per state: the two pooled convolutions are
 * products with block-Toeplitz matrices (native/graph/conv.ts), of whose 4 p^2 columns a row k x k has k^2 that are not
 * zero. Forward they are one product each; in an update the first has the gradient of its kernel besides, the second
 * that and the gradient of its input.
 */
export function usefulFlops(m: PolicyModel, executed: number, pass: 'forward' | 'update'): number {
  const { width, height } = m.spec.obs,
    { stem, cell } = m.size,
    zerosOf = (k: number, p: number, cin: number, cout: number, outputs: number, products: number): number =>
      products * 2 * (cout * p * p) * (4 * p * p * cin) * outputs * (1 - (k * k) / (4 * p * p));
  const cells = (width * height) / STEM_POOL ** 2,
    zeros =
      zerosOf(STEM_KERNEL, STEM_POOL, 1, stem, cells, pass === 'forward' ? 1 : 2) +
      zerosOf(3, CELL_POOL, stem, cell, cells / CELL_POOL ** 2, pass === 'forward' ? 1 : 3);
  return executed - zeros;
}
