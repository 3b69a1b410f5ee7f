/**
 * Annotations of single steps, as filmstrip and timeline show them: a shape and a word each, never only a colour. Pure.
 */
import type { StepMark, StepView } from '../../runtime/protocol/types.js';
import { t } from './words.js';

export interface StepNote {
  readonly marks: readonly StepMark[];
  readonly deleted: boolean;
  /** Thought or actions were edited. */
  readonly changed: boolean;
}
export type Notes = ReadonlyMap<number, StepNote>;
export const noNotes: Notes = new Map();

/** Codicon, and the same shape as a path within [-4, 4] for the timeline. */
export const markShapes: Readonly<Record<StepMark, { readonly icon: string; readonly path: string }>> = {
  key: { icon: 'star-full', path: 'M0,-4.5L1.3,-1.4L4.5,-1.4L2,0.7L2.9,4L0,2L-2.9,4L-2,0.7L-4.5,-1.4L-1.3,-1.4z' },
  redundant: { icon: 'layers', path: 'M-4,-2.5h8M-4,1h8' },
  wrong: { icon: 'close', path: 'M-3,-3L3,3M3,-3L-3,3' },
};
export const markWords: Readonly<Record<StepMark, string>> = {
  key: t('key'),
  redundant: t('redundant'),
  wrong: t('wrong'),
};
export function noteWords(n: StepNote | undefined): string {
  return n
    ? [
        n.deleted ? t('deleted') : '',
        n.marks.length
          ? t(
              'marked {0}',
              n.marks.map((m) => markWords[m]).reduce((a, b) => t('{0} and {1}', a, b)),
            )
          : '',
        n.changed ? t('edited') : '',
      ]
        .filter(Boolean)
        .join(', ')
    : '';
}

/** The human or script that decided a step, where no policy did. */
export const originWords: Readonly<Record<StepView['origin'], string>> = {
  policy: t('the policy'),
  human: t('a person'),
  oracle: t('a script'),
};
export const originIcons: Readonly<Record<StepView['origin'], string>> = {
  policy: 'robot',
  human: 'person',
  oracle: 'wand',
};
