import { GLYPH_SPEC, HEADS, headSizes, type Step } from '../../domain/index.js';
import { choiceLabel } from './codec.js';
import { tokenizeInstruction } from './instruction.js';
import { viewOf } from './observation.js';

const choices = HEADS.reduce((n, h) => n + headSizes(GLYPH_SPEC)[h], 0);

/** What a step's choices are called, made again from their ids; undefined when they are not this policy's. */
export function choiceNames(step: Pick<Step, 'tokens' | 'frame'>, instruction: string): string[] | undefined {
  const ids = step.tokens?.ids;
  if (!ids || ids.some((c) => c < 0 || c >= choices)) return undefined;
  const tokens = tokenizeInstruction(GLYPH_SPEC, instruction),
    view = viewOf(GLYPH_SPEC, step.frame);
  return Array.from(ids, (c) => choiceLabel(GLYPH_SPEC, view, tokens, c));
}
