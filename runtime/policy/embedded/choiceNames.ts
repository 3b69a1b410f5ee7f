import { HEADS, READER_SPEC, headSizes, type Step } from '../../domain/index.js';
import { choiceLabel } from './codec.js';
import { tokenizeInstruction } from './instruction.js';
import { viewOf } from './observation.js';

const choices = HEADS.reduce((n, h) => n + headSizes(READER_SPEC)[h], 0);

/** The names of a step's choices, derived from their ids; undefined when they are not choices of this policy. */
export function choiceNames(step: Pick<Step, 'tokens' | 'frame'>, instruction: string): string[] | undefined {
  const ids = step.tokens?.ids;
  if (!ids || ids.some((c) => c < 0 || c >= choices)) return undefined;
  const tokens = tokenizeInstruction(READER_SPEC, instruction),
    view = viewOf(READER_SPEC, step.frame);
  return Array.from(ids, (c) => choiceLabel(READER_SPEC, view, tokens, c));
}
