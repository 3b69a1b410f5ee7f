/**
 * The extension's facts about each page: how its panel looks and is called, when two inputs share a panel, and what is
 * taken of the input of a restored page.
 */
import { basename } from 'node:path';
import { isProviderChoice, tableFilterOf } from '../../runtime/protocol/shared.js';
import type { ControlState } from '../../runtime/protocol/types.js';
import type { InputOf, PageInput, PageKind } from '../../webview/protocol.js';
import { t } from '../words.js';
import { isObject, maxRuns, text, texts, viewOf, whole, type Raw } from './checks.js';

interface PanelKind<I extends PageInput = PageInput> {
  /** `media/icons/<icon>-{light,dark}.svg`. */
  readonly icon: string;
  readonly find: boolean;
  /** `held`: a person has the desktop. */
  title(i: I, held?: ControlState): string;
  /** Inputs with the same key are shown in one panel, one after the other; left out: one panel for each run. */
  key?(i: I): string;
  /** The valid part of a restored page's input. VS Code stores it, so it is as untrusted as a message. */
  checked(i: Raw): I | undefined;
}
/** Ids of what people and other programs made are paths; their end tells them apart. */
const short = (rollout: string): string => rollout.split('/').slice(-2).join('/');

export const panelKinds: { readonly [K in PageKind]: PanelKind<InputOf<K>> } = {
  dashboard: {
    icon: 'dashboard',
    find: false,
    title: (i) => t('Dashboard: {0}', basename(i.run)),
    checked: ({ run }) => (text(run) ? { kind: 'dashboard', run } : undefined),
  },
  compareRuns: {
    icon: 'compare',
    find: true,
    title: (i) => t('Compare {0} runs', i.runs.length),
    key: (i) => `runs ${[...i.runs].sort().join('\n')}`,
    checked: ({ runs }) =>
      Array.isArray(runs) && runs.length > 0 && runs.length <= maxRuns && runs.every((r) => text(r))
        ? { kind: 'compareRuns', runs: runs as string[] }
        : undefined,
  },
  inspector: {
    icon: 'trajectory',
    find: true,
    title: (i) => t('Trajectory {0}', short(i.rollout)),
    checked: ({ run, rollout, step, annotate, queue }) =>
      text(run) && text(rollout, 200)
        ? {
            kind: 'inspector',
            run,
            rollout,
            step: whole(step) ? step : undefined,
            annotate: annotate === true || undefined,
            queue: queue === true || undefined,
          }
        : undefined,
  },
  compare: {
    icon: 'compare',
    find: true,
    title: (i) => t('{0} and {1}', short(i.left), short(i.right)),
    checked: ({ run, left, right }) =>
      text(run) && text(left, 200) && text(right, 200) ? { kind: 'compare', run, left, right } : undefined,
  },
  live: {
    icon: 'desktop',
    find: false,
    title: (i, held) =>
      held?.purpose === 'record' && held.session === i.session
        ? t('Demonstration: {0}', short(held.family))
        : t('Desktop {0}', i.desktop),
    key: (i) => `live ${i.desktop}`,
    checked: ({ desktop, session }) =>
      text(desktop, 200) ? { kind: 'live', desktop, session: text(session, 200) ? session : undefined } : undefined,
  },
  try: {
    icon: 'desktop',
    find: false,
    title: () => t('Try Policy'),
    // There is one page and one session.
    key: () => 'try',
    checked: ({ roots, files, base, run, version, provider, desktop, session }) =>
      texts(roots) && texts(files) && text(base)
        ? {
            kind: 'try',
            roots,
            files,
            base,
            run: text(run) ? run : undefined,
            version: whole(version) ? version : undefined,
            provider: text(provider) && isProviderChoice(provider) ? provider : undefined,
            ...(text(desktop, 200) && text(session, 200) ? { desktop, session } : {}),
          }
        : undefined,
  },
  table: {
    icon: 'table',
    find: false,
    title: (i) => t('Trajectories: {0}', basename(i.run)),
    checked: ({ run, view, filter }) =>
      text(run) ? { kind: 'table', run, ...viewOf(view), filter: tableFilterOf(filter) } : undefined,
  },
};
const kindOf = (i: PageInput): PanelKind => panelKinds[i.kind];

export const panelKey = (i: PageInput): string => kindOf(i).key?.(i) ?? `${i.kind} ${'run' in i ? (i.run ?? '') : ''}`;
export const panelTitle = (i: PageInput, held?: ControlState): string => kindOf(i).title(i, held);
/** The input of an open page that is to show `input`: a choice of the page that it does not name stays. */
export function inPage(old: PageInput, input: PageInput): PageInput {
  if (input.kind === 'table' && old.kind === 'table' && old.run === input.run) return { ...old, ...input };
  // A running try goes on; another policy is only chosen.
  if (input.kind === 'try' && old.kind === 'try' && old.session !== undefined)
    return { desktop: old.desktop, session: old.session, ...input };
  if (input.kind !== 'inspector' || old.kind !== 'inspector' || input.document || input.step !== undefined)
    return input;
  if (old.document || input.run !== old.run || input.rollout !== old.rollout) return input;
  return input.annotate ? { ...old, annotate: true, queue: input.queue ?? old.queue } : old;
}
const told = (i: PageInput): string =>
  JSON.stringify(
    Object.entries(i)
      .filter(([, v]) => v !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
export const sameInput = (a: PageInput, b: PageInput): boolean => told(a) === told(b);
/** Folders with the pictures that the page shows. */
export const panelFolders = (i: PageInput): readonly string[] => ('run' in i && i.run ? [i.run] : []);
/** The input that a restored page kept in its state. */
export function restoredInput(state: unknown, kind: PageKind): PageInput | undefined {
  const i = isObject(state) ? state['input'] : undefined;
  return isObject(i) && i['kind'] === kind ? panelKinds[kind].checked(i) : undefined;
}
