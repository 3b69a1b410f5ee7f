import {
  classOfCharacter,
  EDGE,
  gridOf,
  headOffsets,
  id,
  instructionLength,
  SEEN,
  spell,
  type EmbeddedPolicySpec,
  type EncodedState,
  type Random,
  type RolloutId,
  type EmbeddedSample,
} from '../../../runtime/domain/index.js';
import type { ReadingScreen } from '../../../runtime/trainer/types.js';

/**
 * Synthetic screens for learning tests: buttons with words in a 5x7 font at random pixel positions; the task is "click
 * WORD".
 */

/** A policy that spells, for such screens. */
export const SMALL_READER: EmbeddedPolicySpec = {
  id: 'small-reader',
  obs: { width: 96, height: 64, cell: 8 },
  instruction: { maxTokens: 4, buckets: 64, classes: 4, spelling: 8 },
  history: { length: 2, maxSteps: 4 },
  types: ['click', 'type', 'wait', 'finished'],
  keys: ['enter'],
  phrases: ['yes', SEEN],
};

/** Columns of A to Z, least significant bit on top (the common 5x7 LCD font). */
const FONT =
  '7E1111117E 7F49494936 3E41414122 7F41413E00 7F49494941 7F09090901 3E41415132 7F0808087F 00417F4100 2040413F01 7F08142241 7F40404040 7F021C027F 7F0408107F 3E4141413E 7F09090906 3E4151215E 7F09192946 2649494932 03017F0103 3F4040403F 1F2040201F 3F4038403F 6314081463 0304780403 6159494D43'
    .split(' ')
    .map((h) => Buffer.from(h, 'hex'));
export const WORDS = [
  'SAVE',
  'OPEN',
  'CLOSE',
  'EDIT',
  'VIEW',
  'HELP',
  'COPY',
  'PASTE',
  'UNDO',
  'FIND',
  'PRINT',
  'EXIT',
  'NEW',
  'FONT',
  'SIZE',
  'BOLD',
  'TABLE',
  'CHART',
  'SHEET',
  'ROW',
  'CELL',
  'SORT',
  'ZOOM',
  'TOOLS',
];

/** Class of a quoted word. */
const QUOTED = 3;

export interface Button {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
  readonly word: string;
}
export interface GlyphTask {
  readonly state: EncodedState;
  readonly buttons: readonly Button[];
  readonly target: Button;
}

const bucketOf = (word: string, buckets: number): number =>
  1 + ([...word].reduce((h, c) => (h * 31 + c.charCodeAt(0)) % 1_000_003, 7) % (buckets - 1));

export function glyphTask(
  spec: EmbeddedPolicySpec,
  rng: Random,
  count = 6,
  words: readonly string[] = WORDS,
): GlyphTask {
  const { width, height } = spec.obs,
    obs = new Uint8Array(width * height);
  const fill = (x: number, y: number, w: number, h: number, v: number): void => {
    for (let r = Math.max(0, y); r < Math.min(height, y + h); r++)
      obs.fill(v, r * width + Math.max(0, x), r * width + Math.min(width, x + w));
  };
  fill(0, 0, width, height, 40 + rng.int(180));
  for (let i = 0; i < 4; i++)
    fill(rng.int(width) - 40, rng.int(height) - 30, 40 + rng.int(160), 30 + rng.int(100), 30 + rng.int(225));
  const buttons: Button[] = [];
  for (const word of rng.shuffle(words)) {
    if (buttons.length === count) break;
    const w = word.length * 6 + 4 + rng.int(8),
      h = 11 + rng.int(5),
      x = rng.int(width - w),
      y = rng.int(height - h);
    if (buttons.some((b) => x < b.x + b.w + 2 && b.x < x + w + 2 && y < b.y + b.h + 2 && b.y < y + h + 2)) continue;
    const dark = rng.int(2) === 0,
      paper = dark ? rng.int(90) : 165 + rng.int(90),
      ink = dark ? 180 + rng.int(76) : rng.int(70);
    fill(x, y, w, h, paper);
    const [tx, ty] = cornerOf({ x, y, w, h, word });
    [...word].forEach((ch, k) => {
      const g = FONT[ch.charCodeAt(0) - 65]!;
      for (let c = 0; c < 5; c++)
        for (let r = 0; r < 7; r++) if ((g[c]! >> r) & 1) obs[(ty + r) * width + tx + k * 6 + c] = ink;
    });
    buttons.push({ x, y, w, h, word });
  }
  const target = rng.pick(buttons),
    { buckets, classes, maxTokens, spelling = 0 } = spec.instruction,
    instruction = new Int32Array(instructionLength(spec));
  instruction.set([bucketOf('click', buckets), 1, bucketOf(target.word, buckets), classes > QUOTED ? QUOTED : 1]);
  instruction.set(spell('click', spelling), 2 * maxTokens);
  instruction.set(spell(target.word, spelling), 2 * maxTokens + spelling);
  return { state: { obs, instruction, history: new Int32Array(spec.history.length * 4 + 1) }, buttons, target };
}

/** Where the text of a button begins. */
const cornerOf = ({ x, y, w, h, word }: Button): [number, number] => [
  x + Math.floor((w - word.length * 6 + 1) / 2),
  y + Math.floor((h - 7) / 2),
];

/** The same screen as a lesson: where every character stands. */
export function readingScreen(t: GlyphTask): ReadingScreen {
  const marks = t.buttons.flatMap((b) => {
    const [x, y] = cornerOf(b),
      middle = y + 3.5;
    return [
      [EDGE, x - 3, middle],
      ...[...b.word].map((c, k) => [classOfCharacter(c)!, x + k * 6 + 2.5, middle]),
      [EDGE, x + b.word.length * 6 + 2, middle],
    ].flat();
  });
  return { obs: t.state.obs, buckets: new Int32Array(), boxes: new Int32Array(), marks: Float32Array.from(marks) };
}

/** The demonstration: click the middle of the right button. */
export function demonstration(spec: EmbeddedPolicySpec, t: GlyphTask, key: string): EmbeddedSample {
  const size = spec.obs.cell,
    { cols } = gridOf(spec),
    b = t.target;
  const cell = Math.floor((b.y + b.h / 2) / size) * cols + Math.floor((b.x + b.w / 2) / size);
  return {
    rollout: id<RolloutId>(key),
    step: 0,
    stateKey: key,
    state: t.state,
    choices: Int32Array.of(spec.types.indexOf('click'), headOffsets(spec).cell + cell),
    kind: 'imitation',
    advantage: 0,
    weight: 1,
  };
}

/** Whether clicking the middle of a cell hits the button. */
export function hits(spec: EmbeddedPolicySpec, b: Button, cell: number): boolean {
  const size = spec.obs.cell,
    { cols } = gridOf(spec),
    x = (cell % cols) * size + size / 2,
    y = Math.floor(cell / cols) * size + size / 2;
  return x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h;
}
