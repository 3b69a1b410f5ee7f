/**
 * What sets the panels apart: when two inputs share a panel, how it is called, which folders its page may read.
 */
import { basename } from 'node:path';
import type { ControlState } from '../../runtime/protocol/types.js';
import type { PageInput, PageKind } from '../../webview/protocol.js';
import { panels } from '../ids.js';
import { t } from '../words.js';

export interface PanelKind {
  readonly viewType: string;
  /** `media/icons/<icon>-{light,dark}.svg`. */
  readonly icon: string;
  readonly find: boolean;
}
export const panelKinds: Readonly<Record<PageKind, PanelKind>> = {
  dashboard: { viewType: panels.dashboard, icon: 'dashboard', find: false },
  compareRuns: { viewType: panels.compareRuns, icon: 'compare', find: true },
  inspector: { viewType: panels.inspector, icon: 'trajectory', find: true },
  compare: { viewType: panels.compare, icon: 'compare', find: true },
  live: { viewType: panels.live, icon: 'desktop', find: false },
  table: { viewType: panels.table, icon: 'table', find: false },
};

/**
 * Inputs with the same key are shown in one panel, one after the other: one per run, and for pictures one per desktop.
 */
export function panelKey(i: PageInput): string {
  switch (i.kind) {
    case 'live':
      return `live ${i.desktop}`;
    case 'compareRuns':
      return `runs ${[...i.runs].sort().join('\n')}`;
    default:
      return `${i.kind} ${i.run ?? ''}`;
  }
}
/** Ids of what people and other programs made are paths; their end tells them apart. */
const short = (rollout: string): string => rollout.split('/').slice(-2).join('/');
/** `held`: a person has the desktop. */
export function panelTitle(i: PageInput, held?: ControlState): string {
  switch (i.kind) {
    case 'dashboard':
      return t('Dashboard: {0}', basename(i.run));
    case 'compareRuns':
      return t('Compare {0} runs', i.runs.length);
    case 'inspector':
      return t('Trajectory {0}', short(i.rollout));
    case 'compare':
      return t('{0} and {1}', short(i.left), short(i.right));
    case 'table':
      return t('Trajectories: {0}', basename(i.run));
    case 'live':
      return held?.purpose === 'record' && held.session === i.session
        ? t('Demonstration: {0}', short(held.family))
        : t('Desktop {0}', i.desktop);
  }
}
/** Folders with the pictures that the page shows. */
export const panelFolders = (i: PageInput): readonly string[] => ('run' in i && i.run ? [i.run] : []);
