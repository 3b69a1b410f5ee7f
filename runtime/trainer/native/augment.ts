import {
  choiceOf,
  gridOf,
  headOffsets,
  spells,
  type EmbeddedPolicySpec,
  type EncodedState,
  type Random,
} from '../../domain/index.js';
import type { Augmentation } from '../types.js';

/** A demonstration moved across the screen: the picture and the click cells shifted by dx and dy observation pixels. */
export interface Shifted {
  readonly state: EncodedState;
  readonly choices: Int32Array;
}

const moved = (cell: number, cols: number, size: number, dx: number, dy: number): { row: number; col: number } => ({
  // A cell stands for its centre pixel.
  row: Math.floor((Math.floor(cell / cols) * size + size / 2 + dy) / size),
  col: Math.floor(((cell % cols) * size + size / 2 + dx) / size),
});

/** Share of quoted words that a lesson shows as unknown. */
const FORGOTTEN = 0.5;
/** Class of a quoted span (policy/embedded/instruction.ts). */
const QUOTED = 3;

/**
 * Some of the quoted words as words that the policy does not know, so that it finds by spelling what it has never met.
 * For a policy that spells; another one has nothing else to go by.
 */
export function forgetful(spec: EmbeddedPolicySpec, state: EncodedState, rng: Random): EncodedState {
  if (!spells(spec)) return state;
  const { maxTokens, buckets } = spec.instruction,
    instruction = Int32Array.from(state.instruction);
  for (let t = 0; t < maxTokens; t++)
    if (instruction[2 * t + 1] === QUOTED && rng.next() < FORGOTTEN) instruction[2 * t] = buckets - 1;
  return { ...state, instruction };
}

/** Pixels moved by (dx, dy); uncovered pixels repeat the edge. */
export function shiftPixels(obs: Uint8Array, width: number, height: number, dx: number, dy: number): Uint8Array {
  const out = new Uint8Array(obs.length);
  const from = Math.max(0, -dx),
    n = width - Math.abs(dx),
    to = Math.max(0, dx);
  for (let y = 0; y < height; y++) {
    const src = Math.min(height - 1, Math.max(0, y - dy)) * width,
      row = y * width;
    out.set(obs.subarray(src + from, src + from + n), row + to);
    if (to > 0) out.fill(obs[src]!, row, row + to);
    if (dx < 0) out.fill(obs[src + width - 1]!, row + n, row + width);
  }
  return out;
}

/** Moves screen, targets and positions in the history; undefined when a target would leave the screen. */
export function shiftSample(
  spec: EmbeddedPolicySpec,
  state: EncodedState,
  choices: Int32Array,
  dx: number,
  dy: number,
): Shifted | undefined {
  const { cols, rows } = gridOf(spec),
    size = spec.obs.cell,
    offset = headOffsets(spec);
  const next = Int32Array.from(choices);
  for (let i = 0; i < choices.length; i++) {
    const { head, index } = choiceOf(spec, choices[i]!);
    if (head !== 'cell' && head !== 'cell2') continue;
    const { row, col } = moved(index, cols, size, dx, dy);
    if (row < 0 || row >= rows || col < 0 || col >= cols) return undefined;
    next[i] = offset[head] + row * cols + col;
  }
  const history = Int32Array.from(state.history);
  for (let i = 0; i < spec.history.length; i++) {
    const r = history[4 * i + 1]!,
      c = history[4 * i + 2]!;
    if (r === 0 || c === 0) continue;
    const { row, col } = moved((r - 1) * cols + (c - 1), cols, size, dx, dy);
    history[4 * i + 1] = 1 + Math.min(rows - 1, Math.max(0, row));
    history[4 * i + 2] = 1 + Math.min(cols - 1, Math.max(0, col));
  }
  return {
    state: {
      obs: shiftPixels(state.obs, spec.obs.width, spec.obs.height, dx, dy),
      instruction: state.instruction,
      history,
    },
    choices: next,
  };
}

/** The least contrast that other tones leave, and how far the middle grey moves (exponent of 2). */
const LEAST_CONTRAST = 0.5,
  GAMMA_REACH = 1;

/**
 * Luminance through a random curve, now rising and now falling: a light theme looks like a dark one, a strong one like
 * a faint one. With probability 1 - `share` the screen stays as it is.
 */
export function retone(obs: Uint8Array, share: number, rng: Random): Uint8Array {
  if (share <= 0 || rng.next() >= share) return obs;
  const contrast = LEAST_CONTRAST + (1 - LEAST_CONTRAST) * rng.next(),
    darkest = (1 - contrast) * rng.next(),
    gamma = 2 ** (GAMMA_REACH * (2 * rng.next() - 1)),
    falling = rng.next() < 0.5;
  const curve = Uint8Array.from({ length: 256 }, (_, i) => {
    const v = (i / 255) ** gamma;
    return Math.round(255 * (darkest + contrast * (falling ? 1 - v : v)));
  });
  return obs.map((x) => curve[x]!);
}

/** Moved and in other tones at random; where it is when its target would leave the screen. */
export function augment(
  spec: EmbeddedPolicySpec,
  state: EncodedState,
  choices: Int32Array,
  how: Augmentation,
  rng: Random,
): Shifted {
  const { shift } = how,
    dx = shift > 0 ? rng.int(2 * shift + 1) - shift : 0,
    dy = shift > 0 ? rng.int(2 * shift + 1) - shift : 0,
    moved = (dx === 0 && dy === 0 ? undefined : shiftSample(spec, state, choices, dx, dy)) ?? { state, choices };
  const obs = retone(moved.state.obs, how.tones ?? 0, rng);
  return obs === moved.state.obs ? moved : { ...moved, state: { ...moved.state, obs } };
}

/** Cells above, below, left and right of a chosen cell, as choice ids of the same head. */
export function neighbourChoices(spec: EmbeddedPolicySpec, choice: number): number[] {
  const { head, index } = choiceOf(spec, choice),
    { cols, rows } = gridOf(spec);
  if (head !== 'cell' && head !== 'cell2') return [];
  const row = Math.floor(index / cols),
    col = index % cols,
    at = headOffsets(spec)[head];
  return [
    [row - 1, col],
    [row + 1, col],
    [row, col - 1],
    [row, col + 1],
  ].flatMap(([r, c]) => (r! >= 0 && r! < rows && c! >= 0 && c! < cols ? [at + r! * cols + c!] : []));
}
