/** The comparison's actions for the keyboard, the menus and VS Code's commands. */
import type { Command } from '../ui/commands.js';
import type { Stage } from '../ui/stage.js';
import { t } from '../ui/words.js';

export interface CompareActions {
  selected(): number;
  /** Goes to a step in both. */
  go(at: number): void;
  first(): void;
  /** Goes to the next difference. */
  jump(direction: 1 | -1): void;
  swap(): void;
  toggleShot(): void;
  /** Applies it to both screenshots. */
  both(change: (stage: Stage) => void): void;
  copy(context?: unknown): void;
  saveImage(context?: unknown): void;
}

export function compareCommands(a: CompareActions): readonly Command[] {
  const steps = t('Steps'),
    differences = t('Differences'),
    page = t('Page'),
    by = (n: number) => (): void => a.go(a.selected() + n),
    end = (): void => a.go(Number.MAX_SAFE_INTEGER);
  return [
    { name: 'nextStep', keys: ['ArrowRight'], words: t('Next step in both'), group: steps, run: by(1) },
    { name: 'previousStep', keys: ['ArrowLeft'], words: t('Previous step in both'), group: steps, run: by(-1) },
    { name: 'firstStep', keys: ['Home'], words: t('First step'), group: steps, run: () => a.go(0) },
    { name: 'lastStep', keys: ['End'], words: t('Last step'), group: steps, run: end },
    { name: 'firstDifference', keys: ['x'], words: t('First difference'), group: differences, run: () => a.first() },
    { name: 'nextDifference', keys: ['n'], words: t('Next difference'), group: differences, run: () => a.jump(1) },
    {
      name: 'previousDifference',
      keys: ['p'],
      words: t('Previous difference'),
      group: differences,
      run: () => a.jump(-1),
    },
    { name: 'swap', keys: ['w'], words: t('Swap sides'), group: differences, run: () => a.swap() },
    ...screenshotCommands(a),
    { name: 'copyStep', keys: ['c'], words: t('Copy both steps as JSON'), group: page, run: (c) => a.copy(c) },
    {
      name: 'saveScreenshot',
      keys: ['s'],
      words: t('Save the left screenshot'),
      group: page,
      run: (c) => a.saveImage(c),
    },
  ];
}

function screenshotCommands(a: CompareActions): readonly Command[] {
  const group = t('Screenshots'),
    both = (change: (stage: Stage) => void) => (): void => a.both(change),
    pan = (x: number, y: number) => both((s) => s.pan(x, y));
  return [
    {
      name: 'toggleShot',
      keys: [' ', 'b'],
      words: t('Screen before or after the action'),
      group,
      run: () => a.toggleShot(),
    },
    { name: 'zoomIn', keys: ['+', '='], words: t('Zoom in'), group, run: both((s) => s.zoom(1)) },
    { name: 'zoomOut', keys: ['-'], words: t('Zoom out'), group, run: both((s) => s.zoom(-1)) },
    { name: 'zoomFit', keys: ['0'], words: t('Fit the whole screen'), group, run: both((s) => s.fit()) },
    { name: 'zoomActual', keys: ['1'], words: t('Actual size'), group, run: both((s) => s.actual()) },
    { name: 'panLeft', keys: ['ArrowLeft'], alt: true, words: t('Pan left'), group, run: pan(64, 0) },
    { name: 'panRight', keys: ['ArrowRight'], alt: true, words: t('Pan right'), group, run: pan(-64, 0) },
    { name: 'panUp', keys: ['ArrowUp'], alt: true, words: t('Pan up'), group, run: pan(0, 64) },
    { name: 'panDown', keys: ['ArrowDown'], alt: true, words: t('Pan down'), group, run: pan(0, -64) },
  ];
}
