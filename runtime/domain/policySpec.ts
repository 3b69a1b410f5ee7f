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
  /** Instruction tokens: at most `maxTokens`, each (bucket, class); bucket 0 = padding. */
  readonly instruction: { readonly maxTokens: number; readonly buckets: number; readonly classes: number };
  /** The last `length` decisions, newest last, as (type+1, row+1, col+1, argument+1); 0 = none. */
  readonly history: { readonly length: number; readonly maxSteps: number };
  readonly types: readonly EmbeddedActionType[];
  /** Chords of the `key` head, e.g. 'ctrl+s'. */
  readonly keys: readonly string[];
  /** Fixed texts of the `text` head; they come after the `maxTokens` copy positions. */
  readonly phrases: readonly string[];
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
 * One model input: what the policy sees before a decision. Lengths: obs width*height; instruction maxTokens*2; history
 * length*4 + 1 (last = step index, capped).
 */
export interface EncodedState {
  readonly obs: Uint8Array;
  readonly instruction: Int32Array;
  readonly history: Int32Array;
}

/** The quick start's policy: a 640x400 desktop seen at half size, 40 x 25 cells of 16 screen pixels. */
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
