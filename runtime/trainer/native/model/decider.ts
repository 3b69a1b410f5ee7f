import { gridOf, headSizes, type EmbeddedPolicySpec } from '../../../domain/index.js';
import { HE, transformerParams, type ParamList } from './layers.js';

/** Parameters that both networks have, under the same names and in the same order. */
interface DeciderSize {
  readonly cell: number;
  readonly width: number;
  readonly layers: number;
  readonly looks: number;
  readonly lookHeads: number;
}

/** Places of the instruction's tokens, history, step and summary, and the layers over them. */
export function contextParams(d: ParamList, s: EmbeddedPolicySpec, { width, layers }: DeciderSize): void {
  const { cols, rows } = gridOf(s),
    n = headSizes(s);
  d.random('pos.token', [s.instruction.maxTokens, width], 0.2);
  d.random('past.type', [s.types.length + 1, width], 0.5);
  d.random('past.row', [rows + 1, width], 0.2);
  d.random('past.col', [cols + 1, width], 0.2);
  d.random('past.argument', [Math.max(n.text, n.key) + 1, width], 0.5);
  d.random('pos.past', [s.history.length, width], 0.2);
  d.random('step', [s.history.maxSteps + 1, width], 0.5);
  d.random('pos.summary', [1, width], 0.2);
  for (let i = 0; i < layers; i++) transformerParams(d, `layer${i}`, width);
  d.norm('tokens.norm', width);
}

/** The looks at the screen, and the two heads that choose a cell. */
export function lookParams(d: ParamList, s: EmbeddedPolicySpec, z: DeciderSize): void {
  const { cols, rows } = gridOf(s),
    { cell, width } = z;
  for (let i = 0; i < z.looks; i++) {
    d.linear(`look${i}.query`, width, z.lookHeads * cell);
    d.linear(`look${i}.up`, width + z.lookHeads * cell, 2 * width, HE);
    d.linear(`look${i}.down`, 2 * width, width, 0.7);
    d.norm(`look${i}.norm`, width);
  }
  for (const head of ['cell', 'cell2']) {
    d.linear(head, width, cell, 0.3);
    d.linear(`${head}.row`, width, rows, 0.1);
    d.linear(`${head}.col`, width, cols, 0.1);
  }
}
