/** Buttons of the trajectory in the page's header, and what the page's controls do. */
import { h } from '../ui/dom.js';
import { roving } from '../ui/roving.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import type { HeaderActions } from './header.js';
import type { Colouring, Shot } from './state.js';

export interface PageActions extends HeaderActions {
  select(position: number): void;
  shot(shot: Shot): void;
  heat(on: boolean): void;
  colour(by: Colouring): void;
  follow(): void;
  retry(): void;
  copy(): void;
  save(): void;
  text(): void;
  link(): void;
  exportPage(): void;
  contrast(): void;
  help(): void;
  annotate(): void;
  host(command: 'startRuntime' | 'showLog'): void;
  split(width: number): void;
}

/** Buttons that show a state or come and go: follow, compare, annotate, facts. */
export function switches(a: PageActions & { facts(): void }): [HTMLElement, HTMLElement, HTMLElement, HTMLElement] {
  const follow = button(t('Follow'), a.follow, {
    icon: 'pinned',
    pressed: true,
    title: t('Follow the newest step (f)'),
    keys: 'f',
  });
  const contrast = button(t('Compare'), a.contrast, {
    icon: 'split-horizontal',
    title: t('Side by side with the sibling that differs most (d)'),
    keys: 'd',
  });
  const annotate = button(t('Annotate'), a.annotate, {
    icon: 'edit',
    pressed: false,
    title: t('Correct, mark and edit this trajectory; the recording is never changed (e)'),
    keys: 'e',
  });
  // A review needs the screen large: facts, group and entropies are put away until they are asked for.
  const facts = button(t('Facts'), a.facts, {
    icon: 'list-unordered',
    pressed: false,
    title: t('Show facts, group and entropies of the steps'),
  });
  return [follow, contrast, annotate, facts];
}
/** A toolbar with one tab stop; arrow keys go from button to button. */
export function toolbar(a: PageActions, ...first: readonly HTMLElement[]): HTMLElement {
  const bar = h(
    'div',
    { class: 'ds-head-actions', role: 'toolbar', 'aria-label': t('Trajectory') },
    first,
    button(t('Copy step as JSON'), a.copy, {
      kind: 'icon',
      icon: 'copy',
      title: t('Copy step as JSON (c)'),
      keys: 'c',
    }),
    button(t('Save screenshot'), a.save, {
      kind: 'icon',
      icon: 'device-camera',
      title: t('Save screenshot… (s)'),
      keys: 's',
    }),
    button(t('Open as text'), a.text, {
      kind: 'icon',
      icon: 'go-to-file',
      title: t('Open as text (t)'),
      keys: 't',
    }),
    button(t('Export as HTML…'), a.exportPage, {
      kind: 'icon',
      icon: 'share',
      title: t('Export as HTML…: one file for people without VS Code (Shift+H)'),
      keys: 'Shift+H',
    }),
    button(t('Keyboard shortcuts'), a.help, {
      kind: 'icon',
      icon: 'question',
      title: t('Keyboard shortcuts (?)'),
      keys: '?',
    }),
  );
  roving(bar, 'vscode-button');
  return bar;
}
