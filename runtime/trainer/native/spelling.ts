import { BLANK } from '../../domain/alphabet.js';
import { type EmbeddedPolicySpec, type Random } from '../../domain/index.js';
import type { ReadingScreen } from '../types.js';
import { shiftPixels } from './augment.js';
import { COLUMN, ROW, towerGrid } from './model/tower.js';

/** A middle so near to the next text row, in pixels, may be read there as well: that row is not asked. */
const BETWEEN = 2.5;
/** Weight of all blank columns together, beside that of all characters. */
const BLANK_SHARE = 0.4;

/** One screen as the reader's lesson takes it: a class for every column of every text row, and what it counts. */
export interface SpellingLesson {
  readonly obs: Uint8Array;
  readonly targets: Int32Array;
  /** 1 for a character, `BLANK_SHARE` for a blank, 0 for what is not asked. */
  readonly weight: Float32Array;
  readonly characters: number;
}

/** The columns of a screen moved by a random shift; characters that leave the screen are left out. */
export function spellingLesson(
  spec: EmbeddedPolicySpec,
  screen: ReadingScreen,
  reach: number,
  rng: Random,
): SpellingLesson {
  const { width, height } = spec.obs,
    { rows, cols } = towerGrid(spec),
    dx = reach > 0 ? rng.int(2 * reach + 1) - reach : 0,
    dy = reach > 0 ? rng.int(2 * reach + 1) - reach : 0;
  const targets = new Int32Array(rows * cols).fill(BLANK),
    weight = new Float32Array(rows * cols).fill(BLANK_SHARE),
    { marks } = screen;
  const places: number[] = [];
  for (let i = 0; i < marks.length; i += 3) {
    const col = Math.floor((marks[i + 1]! + dx) / COLUMN),
      y = marks[i + 2]! + dy,
      row = Math.floor(y / ROW);
    if (col < 0 || col >= cols || row < 0 || row >= rows) continue;
    const into = y - row * ROW,
      beside = into < BETWEEN ? row - 1 : into > ROW - BETWEEN ? row + 1 : row;
    if (beside >= 0 && beside < rows && beside !== row && targets[beside * cols + col] === BLANK)
      weight[beside * cols + col] = 0;
    places.push(row * cols + col);
    targets[row * cols + col] = marks[i]!;
  }
  for (const at of places) weight[at] = 1;
  return {
    obs: dx === 0 && dy === 0 ? screen.obs : shiftPixels(screen.obs, width, height, dx, dy),
    targets,
    weight,
    characters: new Set(places).size,
  };
}
