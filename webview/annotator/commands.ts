/** Keys of annotate mode and of the review queue. None is used by the inspector otherwise. */
import type { Command } from '../ui/commands.js';
import { markWords } from '../ui/notes.js';
import { t } from '../ui/words.js';
import type { TrajectoryTools } from './trajectoryTools.js';
import { markKeys, type StepTools } from './stepTools.js';
import type { Verify } from './verify.js';
import { stepMarks } from './apply.js';

export interface AnnotatorSurface {
  /** Carries this out on the trajectory shown, once its annotations are there; nothing where none can be edited. */
  edit(run: () => void): void;
  toggle(): void;
  undo(): void;
  redo(): void;
  walk(d: 1 | -1): void;
  review(): void;
  readonly tools: TrajectoryTools;
  readonly step: StepTools;
  readonly verify: Verify;
}

export function annotatorCommands(a: AnnotatorSurface): Command[] {
  const one = (
    name: string,
    keys: readonly string[],
    words: string,
    run: () => void,
    more: Partial<Command> = {},
  ): Command => ({ name, keys, words, group: t('Annotate'), run: () => a.edit(run), ...more });
  return [
    { name: 'annotate', keys: ['e'], words: t('Annotate mode on or off'), group: t('Annotate'), run: () => a.toggle() },
    one('correctOutcome', ['o'], t('Correct the outcome; then its reason'), () => a.tools.flip()),
    one('tag', ['g'], t('Tag'), () => a.tools.focusTags()),
    one('note', ['j'], t('Note'), () => a.tools.focusNote()),
    ...stepMarks.map((m) =>
      one(`mark${m[0]!.toUpperCase()}${m.slice(1)}`, [markKeys[m]], t('Mark the step: {0}', markWords[m]), () =>
        a.step.mark(m),
      ),
    ),
    one('editThought', ['i'], t('Edit the thought'), () => a.step.focusThought()),
    one('editAction', ['a'], t('Edit the action: its text, or its point by the arrow keys'), () =>
      a.step.focusAction(),
    ),
    one('deleteStep', ['x', t('Delete')], t('Delete or restore the step'), () => a.step.toggleDeleted()),
    one('trimBefore', ['<'], t('Delete all steps before'), () => a.step.trim('before')),
    one('trimAfter', ['>'], t('Delete all steps after'), () => a.step.trim('after')),
    one('split', ['/'], t('Split here'), () => a.step.split()),
    one('undoEdit', ['z'], t('Undo'), () => a.undo(), { ctrl: true }),
    one('redoEdit', ['Z', 'y'], t('Redo'), () => a.redo(), { ctrl: true }),
    one('replay', ['v'], t('Replay and verify'), () => void a.verify.run()),
    one('addToPool', ['l'], t('Add to the experience pool'), () => a.verify.toPool()),
    {
      name: 'reviewNext',
      keys: ['Enter'],
      words: t('Mark as reviewed and go to the next'),
      group: t('Review queue'),
      once: true,
      run: () => a.review(),
    },
    {
      name: 'queueNext',
      keys: [']', '.'],
      words: t('Next, without a review'),
      group: t('Review queue'),
      run: () => a.walk(1),
    },
    { name: 'queuePrevious', keys: ['[', ','], words: t('Previous'), group: t('Review queue'), run: () => a.walk(-1) },
  ];
}
