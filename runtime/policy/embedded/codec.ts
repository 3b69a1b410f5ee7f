/**
 * The embedded policy's codec: screens, instructions and past actions to model inputs, and actions to choices and back.
 * The same functions serve the rollout (online) and the building of training samples from stored trajectories
 * (offline); the history is a function of the actions alone, so both give the same numbers. Shapes:
 * domain/policySpec.ts.
 */
import { createHash } from 'node:crypto';
import type {
  Action,
  ChoicePlaces,
  EmbeddedActionType,
  EmbeddedPolicySpec,
  EncodedState,
  Head,
  Size,
  Step,
} from '../../domain/index.js';
import { HEADS_OF_TYPE, SEEN, choiceOf, gridOf, headOffsets, seenText } from '../../domain/index.js';
import { canonicalChord } from '../../domain/keys.js';
import type { InstructionToken } from './instruction.js';
import { encodeInstruction, tokenizeInstruction } from './instruction.js';
import type { View } from './observation.js';
import { cellAt, cellCentre, viewOf } from './observation.js';

/** Wheel clicks of a decoded `scroll_*`; UI-TARS's own default. */
export const SCROLL_CLICKS = 5;
/** How long a decoded `wait` lasts; the loop settles the desktop afterwards anyway. */
export const WAIT_MS = 500;

/**
 * The state before a decision, from the screen's observation and size. `priorSteps` are the episode's earlier steps in
 * order; only their actions count.
 */
export function encodeState(
  spec: EmbeddedPolicySpec,
  obs: Uint8Array,
  screen: Size,
  instruction: string,
  priorSteps: readonly Pick<Step, 'actions'>[],
): EncodedState {
  const tokens = tokenizeInstruction(spec, instruction);
  return {
    obs,
    instruction: encodeInstruction(spec, tokens),
    history: encodeHistory(
      spec,
      viewOf(spec, screen),
      tokens,
      priorSteps.map((s) => s.actions),
    ),
  };
}

/** The choice ids of a step; null unless it is one action that the embedded policy can express. */
export function encodeActions(
  spec: EmbeddedPolicySpec,
  screen: Size,
  instruction: string,
  actions: readonly Action[],
): Int32Array | null {
  return actions.length === 1
    ? encodeAction(spec, viewOf(spec, screen), tokenizeInstruction(spec, instruction), actions[0]!)
    : null;
}

/** Equal keys = equal model inputs (EmbeddedSample.stateKey): 128 bits of SHA-256 over the three arrays. */
export function stateKey(s: EncodedState): string {
  const h = createHash('sha256');
  for (const a of [s.obs, s.instruction, s.history]) h.update(new Uint8Array(a.buffer, a.byteOffset, a.byteLength));
  return h.digest('hex').slice(0, 32);
}

/**
 * The last `history.length` actions, newest last, each (type+1, row+1, col+1, argument+1), then the number of earlier
 * steps (capped at
 * `maxSteps`). The argument is the text source or the chord. An action the policy could not have taken is a row of
 * zeros.
 */
export function encodeHistory(
  spec: EmbeddedPolicySpec,
  view: View,
  tokens: readonly InstructionToken[],
  steps: readonly (readonly Action[])[],
): Int32Array {
  const { length, maxSteps } = spec.history;
  const { cols } = gridOf(spec);
  const out = new Int32Array(length * 4 + 1);
  const last = steps.flat().slice(-length);
  last.forEach((action, k) => {
    const ids = encodeAction(spec, view, tokens, action);
    if (ids === null) return;
    const at = (length - last.length + k) * 4;
    out[at] = ids[0]! + 1;
    for (let c = 1; c < ids.length; c++) {
      const { head, index } = choiceOf(spec, ids[c]!);
      if (head === 'cell') {
        out[at + 1] = Math.floor(index / cols) + 1;
        out[at + 2] = (index % cols) + 1;
      } else if (head === 'text' || head === 'key') out[at + 3] = index + 1;
    }
  });
  out[length * 4] = Math.min(steps.length, maxSteps);
  return out;
}

/**
 * Global choice ids of an action, or null when the policy cannot express it: clicks with modifiers, points off the
 * screen, sideways scrolling, actions that the spec has no type for, chords outside the `key` head, texts that are
 * neither an instruction token nor a phrase. A policy that types what it reads takes such a text from the screen; the
 * place is not in the action, so its choice is missing at the end: whoever trains on it looks for the text first.
 * Scroll amounts, waiting times and answers are not part of a choice and are dropped.
 */
export function encodeAction(
  spec: EmbeddedPolicySpec,
  view: View,
  tokens: readonly InstructionToken[],
  a: Action,
): Int32Array | null {
  switch (a.type) {
    case 'click':
    case 'left_double':
    case 'right_single':
      return a.modifiers?.length ? null : ids(spec, a.type, { cell: cellAt(spec, view, a.at) });
    case 'drag':
      return a.modifiers?.length
        ? null
        : ids(spec, 'drag', { cell: cellAt(spec, view, a.from), cell2: cellAt(spec, view, a.to) });
    case 'scroll':
      if (a.direction !== 'up' && a.direction !== 'down') return null;
      return ids(spec, `scroll_${a.direction}`, { cell: cellAt(spec, view, a.at) });
    case 'hotkey':
      return ids(spec, 'key', { key: keyIndex(spec, a.keys) });
    case 'type': {
      if (a.text === '\n') return ids(spec, 'key', { key: keyIndex(spec, ['enter']) });
      if (a.text === '\t') return ids(spec, 'key', { key: keyIndex(spec, ['tab']) });
      const enter = a.text.endsWith('\n');
      return ids(spec, enter ? 'type_enter' : 'type', {
        text: textIndex(spec, tokens, enter ? a.text.slice(0, -1) : a.text),
      });
    }
    case 'wait':
    case 'finished':
    case 'fail':
      return ids(spec, a.type, {});
    default:
      return null;
  }
}

/**
 * The typed text that has to be found on the screen to complete a choice (`encodeAction`); undefined for all other
 * choices.
 */
export function textToFind(
  spec: EmbeddedPolicySpec,
  choices: ArrayLike<number>,
  actions: readonly Action[],
): string | undefined {
  const [a] = actions;
  if (choices.length !== 2 || a?.type !== 'type' || !isSeen(spec, choices[1]!)) return undefined;
  return a.text.endsWith('\n') ? a.text.slice(0, -1) : a.text;
}
/** The cell from which a typed text is read; undefined for choices that type nothing, or type something else. */
export function placeOfText(spec: EmbeddedPolicySpec, choices: ArrayLike<number>): number | undefined {
  return choices.length === 3 && isSeen(spec, choices[1]!) ? choiceOf(spec, choices[2]!).index : undefined;
}
function isSeen(spec: EmbeddedPolicySpec, choice: number): boolean {
  const { head, index } = choiceOf(spec, choice);
  return head === 'text' && index === seenText(spec);
}

/**
 * The action of a decision's choice ids. `read` is the text at the chosen cell, for choices that type what is read;
 * where there is none, the action is a wait. Throws RangeError when the ids are not a decision of this spec.
 */
export function decodeChoices(
  spec: EmbeddedPolicySpec,
  view: View,
  tokens: readonly InstructionToken[],
  choices: ArrayLike<number>,
  read?: string,
): Action {
  const first = choiceOf(spec, choices[0] ?? -1);
  const type = first.head === 'type' ? spec.types[first.index] : undefined;
  if (type === undefined) throw new RangeError(`choice ${choices[0]} is not an action type`);
  const heads: Head[] = [...HEADS_OF_TYPE[type]];
  if (heads[0] === 'text' && choices.length > 1 && isSeen(spec, choices[1]!)) heads.push('cell2');
  if (choices.length !== heads.length + 1)
    throw new RangeError(`${type} takes ${heads.length} further choices, got ${choices.length - 1}`);
  const picked: Partial<Record<Head, number>> = {};
  heads.forEach((head, i) => {
    const c = choiceOf(spec, choices[i + 1]!);
    if (c.head !== head) throw new RangeError(`${type} needs a choice of ${head}, got one of ${c.head}`);
    picked[head] = c.index;
  });
  const at = (head: 'cell' | 'cell2'): { x: number; y: number } => cellCentre(spec, view, picked[head]!);
  switch (type) {
    case 'click':
    case 'left_double':
    case 'right_single':
      return { type, at: at('cell') };
    case 'drag':
      return { type, from: at('cell'), to: at('cell2') };
    case 'scroll_up':
    case 'scroll_down':
      return { type: 'scroll', at: at('cell'), direction: type === 'scroll_up' ? 'up' : 'down', amount: SCROLL_CLICKS };
    case 'key':
      return { type: 'hotkey', keys: spec.keys[picked.key!]!.split('+') };
    case 'type':
    case 'type_enter':
      if (picked.text === seenText(spec) && !read) return { type: 'wait', ms: WAIT_MS };
      if (picked.text === seenText(spec)) return { type: 'type', text: read + (type === 'type_enter' ? '\n' : '') };
      return { type: 'type', text: textOf(spec, tokens, picked.text!) + (type === 'type_enter' ? '\n' : '') };
    case 'wait':
      return { type, ms: WAIT_MS };
    case 'finished':
    case 'fail':
      return { type };
  }
}

/** A choice in words, for people. */
export function choiceLabel(
  spec: EmbeddedPolicySpec,
  view: View,
  tokens: readonly InstructionToken[],
  choice: number,
): string {
  const { head, index } = choiceOf(spec, choice);
  switch (head) {
    case 'type':
      return spec.types[index] ?? `type ${index}`;
    case 'cell':
    case 'cell2': {
      const p = cellCentre(spec, view, index);
      return `${p.x},${p.y}`;
    }
    case 'key':
      return spec.keys[index] ?? `key ${index}`;
    case 'text':
      if (index === seenText(spec)) return 'what it reads';
      return JSON.stringify(
        index < spec.instruction.maxTokens
          ? (tokens[index]?.text ?? '')
          : (spec.phrases[index - spec.instruction.maxTokens] ?? ''),
      );
  }
}

/** Alternatives of a position choice as cells; undefined for any other choice. */
export function placesOf(
  spec: EmbeddedPolicySpec,
  view: View,
  token: number,
  alternatives: readonly { readonly choice: number; readonly probability: number }[],
): ChoicePlaces | undefined {
  const of = alternatives.map((a) => choiceOf(spec, a.choice));
  if (of.length === 0 || (of[0]!.head !== 'cell' && of[0]!.head !== 'cell2')) return undefined;
  return {
    token,
    grid: [view.x, view.y, view.width, view.height, spec.obs.cell, gridOf(spec).cols],
    cells: Int32Array.from(of, (c) => c.index),
    probabilities: Float32Array.from(alternatives, (a) => a.probability),
  };
}

function ids(
  spec: EmbeddedPolicySpec,
  type: EmbeddedActionType,
  picked: Partial<Record<Head, number | undefined>>,
): Int32Array | null {
  const t = spec.types.indexOf(type);
  if (t < 0) return null;
  const heads = HEADS_OF_TYPE[type];
  const off = headOffsets(spec);
  const out = new Int32Array(heads.length + 1);
  out[0] = t;
  for (let i = 0; i < heads.length; i++) {
    const index = picked[heads[i]!];
    if (index === undefined || index < 0) return null;
    out[i + 1] = off[heads[i]!] + index;
  }
  return out;
}

const keyIndex = (spec: EmbeddedPolicySpec, keys: readonly string[]): number => {
  const chord = canonicalChord(keys);
  return spec.keys.findIndex((k) => canonicalChord(k.split('+')) === chord);
};

/** The first token with exactly this spelling, else a phrase, else what may be read; -1 when there is none of them. */
function textIndex(spec: EmbeddedPolicySpec, tokens: readonly InstructionToken[], text: string): number {
  const copy = tokens.findIndex((t) => t.text === text);
  if (copy >= 0) return copy;
  const phrase = spec.phrases.indexOf(text);
  if (phrase < 0 && text !== '') return seenText(spec);
  return phrase < 0 || text === SEEN ? -1 : spec.instruction.maxTokens + phrase;
}

function textOf(spec: EmbeddedPolicySpec, tokens: readonly InstructionToken[], index: number): string {
  const text =
    index < spec.instruction.maxTokens ? tokens[index]?.text : spec.phrases[index - spec.instruction.maxTokens];
  if (text === undefined)
    throw new RangeError(`text choice ${index} points beyond the ${tokens.length} instruction tokens`);
  return text;
}
