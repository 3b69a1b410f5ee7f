/** The inspector's actions for the keyboard, the menus and VS Code's commands. */
import type { Command } from '../ui/commands.js';
import type { Stage } from '../ui/stage.js';
import { t } from '../ui/words.js';
import type { Change, State } from './state.js';

export interface InspectorActions {
  state(): State;
  stage(): Stage;
  dispatch(c: Change): void;
  /** The zoom is kept. */
  save(): void;
  /** Goes to the next step of high entropy. */
  jump(direction: 1 | -1): void;
  copy(context?: unknown): void;
  saveImage(context?: unknown): void;
  openText(): void;
  link(): void;
  exportPage(): void;
  contrast(): void;
}

export function inspectorCommands(a: InspectorActions): readonly Command[] {
  const group = t('Steps'),
    select = (at: number) => (): void => a.dispatch({ type: 'select', at }),
    by = (steps: number) => (): void => select(a.state().selected + steps)();
  return [
    { name: 'nextStep', keys: ['ArrowRight'], words: t('Next step'), group, run: by(1) },
    { name: 'previousStep', keys: ['ArrowLeft'], words: t('Previous step'), group, run: by(-1) },
    { name: 'firstStep', keys: ['Home'], words: t('First step'), group, run: select(0) },
    { name: 'lastStep', keys: ['End'], words: t('Last step'), group, run: select(Number.MAX_SAFE_INTEGER) },
    { name: 'nextEntropy', keys: ['n'], words: t('Next high-entropy step'), group, run: () => a.jump(1) },
    { name: 'previousEntropy', keys: ['p'], words: t('Previous high-entropy step'), group, run: () => a.jump(-1) },
    {
      name: 'follow',
      keys: ['f'],
      words: t('Follow a live rollout'),
      group,
      run: () => {
        if (a.state().view?.live) a.dispatch({ type: 'follow' });
      },
    },
    ...screenshotCommands(a),
    ...pageCommands(a),
  ];
}

function screenshotCommands(a: InspectorActions): readonly Command[] {
  const group = t('Screenshot'),
    zoom = (change: (stage: Stage) => void) => (): void => {
      change(a.stage());
      a.save();
    },
    pan = (x: number, y: number) => (): void => a.stage().pan(x, y),
    toggleShot = (): void => a.dispatch({ type: 'shot', shot: a.state().shot === 'before' ? 'after' : 'before' }),
    toggleHeat = (): void => a.dispatch({ type: 'heat', on: !a.state().heat }),
    toggleColour = (): void =>
      a.dispatch({ type: 'colour', by: a.state().colour === 'entropy' ? 'weight' : 'entropy' });
  return [
    { name: 'toggleShot', keys: [' ', 'b'], words: t('Screen before or after the action'), group, run: toggleShot },
    { name: 'toggleHeat', keys: ['h'], words: t('Click heat map'), group, run: toggleHeat },
    { name: 'toggleColour', keys: ['m'], words: t('Tokens by entropy or by weight'), group, run: toggleColour },
    {
      name: 'zoomIn',
      keys: ['+', '='],
      words: t('Zoom in (also Ctrl with the wheel)'),
      group,
      run: zoom((s) => s.zoom(1)),
    },
    { name: 'zoomOut', keys: ['-'], words: t('Zoom out'), group, run: zoom((s) => s.zoom(-1)) },
    { name: 'zoomFit', keys: ['0'], words: t('Fit the whole screen'), group, run: zoom((s) => s.fit()) },
    { name: 'zoomActual', keys: ['1'], words: t('Actual size'), group, run: zoom((s) => s.actual()) },
    { name: 'panLeft', keys: ['ArrowLeft'], alt: true, words: t('Pan left'), group, run: pan(64, 0) },
    { name: 'panRight', keys: ['ArrowRight'], alt: true, words: t('Pan right'), group, run: pan(-64, 0) },
    { name: 'panUp', keys: ['ArrowUp'], alt: true, words: t('Pan up'), group, run: pan(0, 64) },
    { name: 'panDown', keys: ['ArrowDown'], alt: true, words: t('Pan down'), group, run: pan(0, -64) },
  ];
}

function pageCommands(a: InspectorActions): readonly Command[] {
  const group = t('Page');
  return [
    { name: 'copyStep', keys: ['c'], words: t('Copy step as JSON'), group, run: (context) => a.copy(context) },
    { name: 'saveScreenshot', keys: ['s'], words: t('Save screenshot'), group, run: (context) => a.saveImage(context) },
    { name: 'openText', keys: ['t'], words: t('Open as text'), group, run: () => a.openText() },
    { name: 'copyLink', keys: ['u'], words: t('Copy a link to this step'), group, run: () => a.link() },
    { name: 'exportPage', keys: ['H'], words: t('Export as HTML…'), group, run: () => a.exportPage() },
    {
      name: 'compare',
      keys: ['d'],
      words: t('Compare with the sibling that differs most'),
      group,
      run: () => a.contrast(),
    },
  ];
}
