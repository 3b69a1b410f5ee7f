import type { ActionType } from './action.js';

/**
 * The embedded policy's shapes, shared by the codec that turns screens and actions into numbers (policy/embedded) and
 * the trainer that learns from them (trainer/native). A decision is a sequence of discrete choices, each from one head:
 * `type`, then by type: `cell` (where), `cell2` (where a drag ends), `text` (what to type), `key` (which chord).
 * Choice ids are global: head offset + index within the head. See runtime/policy/README.md#embedded-policy.
 */
export interface EmbeddedPolicySpec {
  readonly id: string;
  /** Observation: luminance bytes, `height` rows of `width`; a cell is `cell` x `cell` of these pixels. */
  readonly obs: { readonly width: number; readonly height: number; readonly cell: number };
  /**
   * Instruction tokens: at most `maxTokens`, each (bucket, class); bucket 0 = padding. With `spelling`, at most so many
   * characters of each follow (alphabet.ts, 0 = none), and the policy finds them on the screen: the last bucket then
   * means a word that it does not know.
   */
  readonly instruction: {
    readonly maxTokens: number;
    readonly buckets: number;
    readonly classes: number;
    readonly spelling?: number;
  };
  /** The last `length` decisions, newest last, as (type+1, row+1, col+1, argument+1); 0 = none. */
  readonly history: { readonly length: number; readonly maxSteps: number };
  readonly types: readonly EmbeddedActionType[];
  /** Chords of the `key` head, e.g. 'ctrl+s'. */
  readonly keys: readonly string[];
  /** Fixed texts of the `text` head; they come after the `maxTokens` copy positions. */
  readonly phrases: readonly string[];
  /** A place may also be beside a word of the instruction on the screen: so many cells away, or in its row or column. */
  readonly beside?: boolean;
  /**
   * A cell's name and a sum are also taken apart into tokens of their own ("B4" into B and 4), since a screen shows their
   * parts, and a token of one character is looked for.
   */
  readonly parts?: boolean;
}

/**
 * Embedded action types: UI-TARS's, with scroll direction and "type, then Enter" folded in. A list of its own: an action
 * that is added later is one that this policy cannot take.
 */
export type EmbeddedActionType =
  | Extract<ActionType, 'click' | 'left_double' | 'right_single' | 'drag' | 'type' | 'wait' | 'finished' | 'fail'>
  | 'scroll_up'
  | 'scroll_down'
  | 'key'
  | 'type_enter';

export type Head = 'type' | 'cell' | 'cell2' | 'text' | 'key';
export const HEADS: readonly Head[] = ['type', 'cell', 'cell2', 'text', 'key'];

/** The further heads that each type uses, in order. */
export const HEADS_OF_TYPE: Readonly<Record<EmbeddedActionType, readonly Head[]>> = {
  click: ['cell'],
  left_double: ['cell'],
  right_single: ['cell'],
  drag: ['cell', 'cell2'],
  scroll_up: ['cell'],
  scroll_down: ['cell'],
  key: ['key'],
  type: ['text'],
  type_enter: ['text'],
  wait: [],
  finished: [],
  fail: [],
};

/** The fixed text that stands for what the policy reads on the screen, at a place that it chooses next (`cell2`). */
export const SEEN = '\u0000seen';
/** Index of that choice within the `text` head; -1 where the policy types nothing that it reads. */
export const seenText = (s: EmbeddedPolicySpec): number => {
  const at = s.phrases.indexOf(SEEN);
  return at < 0 ? -1 : s.instruction.maxTokens + at;
};
/** Whether this policy finds words by their spelling. */
export const spells = (s: EmbeddedPolicySpec): boolean => (s.instruction.spelling ?? 0) > 0;
/** Bands and rows that each graph of the reader takes at once: few that changed cost less, many in one call. */
export const READ_AT_ONCE = { bands: [4, 8, 16, 24], rows: [4, 8, 12] } as const;
/** The reader's graphs beside a policy graph (trainer/native/model/rowReader.ts), in the order of `READ_AT_ONCE`. */
export function readerGraphFiles(policyGraph: string): Record<keyof typeof READ_AT_ONCE, string[]> {
  const base = policyGraph.replace(/(\.onnx)?$/, ''),
    of = (what: keyof typeof READ_AT_ONCE): string[] => READ_AT_ONCE[what].map((k) => `${base}.${what}${k}.onnx`);
  return { bands: of('bands'), rows: of('rows') };
}
/**
 * The strips that a policy that spells reads, in observation pixels: bands of `band` lines, two of which are a text row
 * (a row of cells), cut into columns of `column`; `edge` more on every side are seen with each.
 */
export const READING = { band: 4, column: 2, edge: 1 };
/** Bands that a text row is read from: its own two, the one above and the one below. */
export const BANDS = 4;
/** Numbers of an encoded instruction: (bucket, class) of each token, then the spelling of each. */
export const instructionLength = (s: EmbeddedPolicySpec): number =>
  s.instruction.maxTokens * (2 + (s.instruction.spelling ?? 0));

export const gridOf = (s: EmbeddedPolicySpec): { cols: number; rows: number } => ({
  cols: s.obs.width / s.obs.cell,
  rows: s.obs.height / s.obs.cell,
});

export function headSizes(s: EmbeddedPolicySpec): Record<Head, number> {
  const { cols, rows } = gridOf(s);
  return {
    type: s.types.length,
    cell: cols * rows,
    cell2: cols * rows,
    text: s.instruction.maxTokens + s.phrases.length,
    key: s.keys.length,
  };
}

/** First global choice id of each head. */
export function headOffsets(s: EmbeddedPolicySpec): Record<Head, number> {
  const n = headSizes(s);
  return {
    type: 0,
    cell: n.type,
    cell2: n.type + n.cell,
    text: n.type + n.cell + n.cell2,
    key: n.type + n.cell + n.cell2 + n.text,
  };
}

export function choiceOf(s: EmbeddedPolicySpec, globalId: number): { head: Head; index: number } {
  const off = headOffsets(s);
  for (const head of [...HEADS].reverse()) if (globalId >= off[head]) return { head, index: globalId - off[head] };
  throw new RangeError(`choice id ${globalId} is negative`);
}

/**
 * One model input: what the policy sees before a decision. Lengths: obs width*height; instruction instructionLength;
 * history length*4 + 1 (last = step index, capped).
 */
export interface EncodedState {
  readonly obs: Uint8Array;
  readonly instruction: Int32Array;
  readonly history: Int32Array;
}

/** The policy of version 0.1: a 640x400 desktop seen at half size, 40 x 25 cells of 16 screen pixels. */
export const GLYPH_SPEC: EmbeddedPolicySpec = {
  id: 'glyph-2',
  obs: { width: 320, height: 200, cell: 8 },
  instruction: { maxTokens: 24, buckets: 1024, classes: 8 },
  history: { length: 4, maxSteps: 16 },
  types: [
    'click',
    'left_double',
    'right_single',
    'drag',
    'scroll_up',
    'scroll_down',
    'key',
    'type',
    'type_enter',
    'wait',
    'finished',
    'fail',
  ],
  keys: [
    'enter',
    'tab',
    'escape',
    'backspace',
    'delete',
    'space',
    'up',
    'down',
    'left',
    'right',
    'home',
    'end',
    'pageup',
    'pagedown',
    'f2',
    'f5',
    'f10',
    'ctrl+a',
    'ctrl+c',
    'ctrl+v',
    'ctrl+x',
    'ctrl+z',
    'ctrl+s',
    'ctrl+n',
    'ctrl+o',
    'ctrl+q',
    'ctrl+w',
    'ctrl+f',
    'ctrl+h',
    'ctrl+l',
    'ctrl+home',
    'ctrl+end',
    'ctrl+shift+n',
    'ctrl+shift+s',
    'alt+f4',
    'shift+tab',
  ],
  phrases: ['yes', 'no'],
};

/**
 * The quick start's policy: it reads. Its heads are those of version 0.1, so that choices have the same ids and mean the
 * same; where that had the text "no", this one types what it reads.
 */
export const READER_SPEC: EmbeddedPolicySpec = {
  ...GLYPH_SPEC,
  id: 'reader-3',
  instruction: { ...GLYPH_SPEC.instruction, buckets: 4096, spelling: 20 },
  phrases: ['yes', SEEN],
  beside: true,
  parts: true,
};
/** Knew the name of a cell and a sum as a whole alone, and nothing of one character. */
export const READER_2_SPEC: EmbeddedPolicySpec = { ...READER_SPEC, id: 'reader-2', parts: false };
/** The first policy that read: a place was where a word stands, or what the cells look like. */
export const READER_1_SPEC: EmbeddedPolicySpec = { ...READER_2_SPEC, id: 'reader-1', beside: false };
export const POLICY_SPECS: readonly EmbeddedPolicySpec[] = [READER_SPEC, READER_2_SPEC, READER_1_SPEC, GLYPH_SPEC];
