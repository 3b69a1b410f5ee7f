import { gridOf, type EmbeddedPolicySpec, type Random } from '../../domain/index.js';
import type { ReadingScreen } from '../types.js';
import { shiftPixels } from './augment.js';

/** Words of one screen in a lesson, and target cells drawn from each word's box. */
export const READ_WORDS = 24,
  READ_CELLS = 3;

/** One screen as the reading graph takes it. */
export interface Lesson {
  readonly obs: Uint8Array;
  readonly buckets: Int32Array;
  readonly targets: Int32Array;
  readonly weight: Float32Array;
  readonly words: number;
}

/**
 * Draws words and target cells of a screen, moved by a random shift. A word whose box leaves the screen or holds no
 * cell centre is left out.
 */
export function lesson(spec: EmbeddedPolicySpec, screen: ReadingScreen, reach: number, rng: Random): Lesson {
  const { width, height, cell } = spec.obs,
    { cols } = gridOf(spec);
  const dx = reach > 0 ? rng.int(2 * reach + 1) - reach : 0,
    dy = reach > 0 ? rng.int(2 * reach + 1) - reach : 0;
  const buckets = new Int32Array(READ_WORDS),
    targets = new Int32Array(READ_WORDS * READ_CELLS),
    weight = new Float32Array(READ_WORDS * READ_CELLS);
  let n = 0;
  for (const i of rng.shuffle([...screen.buckets.keys()])) {
    if (n === READ_WORDS) break;
    const [x0, y0, x1, y1] = [
      screen.boxes[4 * i]! + dx,
      screen.boxes[4 * i + 1]! + dy,
      screen.boxes[4 * i + 2]! + dx,
      screen.boxes[4 * i + 3]! + dy,
    ];
    if (x0 < 0 || y0 < 0 || x1 > width || y1 > height) continue;
    const inside: number[] = [];
    for (let r = Math.ceil((y0 - cell / 2) / cell); r * cell + cell / 2 < y1; r++)
      for (let c = Math.ceil((x0 - cell / 2) / cell); c * cell + cell / 2 < x1; c++) inside.push(r * cols + c);
    if (inside.length === 0) continue;
    buckets[n] = screen.buckets[i]!;
    for (let k = 0; k < READ_CELLS; k++) {
      targets[n * READ_CELLS + k] = rng.pick(inside);
      weight[n * READ_CELLS + k] = 1;
    }
    n++;
  }
  return {
    obs: dx === 0 && dy === 0 ? screen.obs : shiftPixels(screen.obs, width, height, dx, dy),
    buckets,
    targets,
    weight,
    words: n,
  };
}
