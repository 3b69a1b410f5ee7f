/** Commands of the Trajectories view, the inspector and the comparison. */
import { orUndefined } from '../../runtime/protocol/failures.js';
import { Uri, window } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import { nameOfTask } from '../../runtime/protocol/shared.js';
import type { GroupView, RunPath } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import { outcomeWord, sorts, sortWord } from '../model/filter.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage } from '../toasts.js';
import { nodeOf, trajectoriesOf, type NodeOf } from '../views/nodes.js';
import { steps, t } from '../words.js';
import type { Actions } from './action.js';
import { choose, pickRun, pickTrajectory } from './ask.js';
import { editFilter } from './filterTrajectories.js';
import { exportTrajectory, openAsText, openTrajectoryFile } from './trajectoryFiles.js';

type Ids =
  | typeof commands.openTrajectory
  | typeof commands.openTrajectoryBeside
  | typeof commands.compare
  | typeof commands.filterTrajectories
  | typeof commands.clearTrajectoryFilter
  | typeof commands.showTaskTrajectories
  | typeof commands.sortTrajectories
  | typeof commands.loadMore
  | typeof commands.openAsTrajectory
  | typeof commands.openAsText
  | typeof commands.exportTrajectory
  | typeof commands.copyStep
  | typeof commands.saveScreenshot
  | typeof commands.nextEntropyStep
  | typeof commands.previousEntropyStep;

export const trajectoryCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.openTrajectory]: { doing: t('open the trajectory'), run: (arg) => open(s, arg, false) },
  [commands.openTrajectoryBeside]: { doing: t('open the trajectory'), run: (arg) => open(s, arg, true) },
  [commands.compare]: { doing: t('compare the trajectories'), run: (arg, selected) => compare(s, arg, selected) },
  [commands.filterTrajectories]: {
    doing: t('filter the trajectories'),
    run: async () => {
      const filter = await editFilter(s.list.filter, s.model);
      if (filter) await s.filter(filter);
    },
  },
  [commands.clearTrajectoryFilter]: { doing: t('clear the filter'), run: () => s.filter({}) },
  [commands.showTaskTrajectories]: { doing: t('show the trajectories of the task'), run: (arg) => showTask(s, arg) },
  [commands.sortTrajectories]: { doing: t('sort the trajectories'), run: () => sort(s) },
  [commands.loadMore]: { doing: t('load more trajectories'), run: () => s.list.loadMore() },
  [commands.openAsTrajectory]: {
    doing: t('open the file'),
    run: (arg) => openTrajectoryFile(arg instanceof Uri ? arg : window.activeTextEditor?.document.uri),
  },
  [commands.openAsText]: { doing: t('open the trajectory as text'), run: (arg) => openAsText(s, arg) },
  [commands.exportTrajectory]: { doing: t('export the trajectory'), run: (arg) => exportTrajectory(s, arg) },
  [commands.copyStep]: { doing: t('copy the step'), run: (arg) => inPage(s, 'copyStep', arg) },
  [commands.saveScreenshot]: { doing: t('save the screenshot'), run: (arg) => inPage(s, 'saveScreenshot', arg) },
  [commands.nextEntropyStep]: { doing: t('go to the step'), run: (arg) => inPage(s, 'nextEntropy', arg) },
  [commands.previousEntropyStep]: { doing: t('go to the step'), run: (arg) => inPage(s, 'previousEntropy', arg) },
});

/** The page that has the focus carries it out. */
function inPage(s: StudioContext, what: string, context: unknown): void {
  const host = s.activeHost;
  if (host) host.do(what, context);
  else void showInformationMessage(t('Open a trajectory first.'));
}

async function open(s: StudioContext, arg: unknown, beside: boolean): Promise<void> {
  const [named] = trajectoriesOf(arg);
  // The focus stays in the list, so that arrow keys and clicks go on from there.
  if (named) {
    s.panels.show({ kind: 'inspector', ...named }, { beside, preserveFocus: true });
    return;
  }
  const run = s.client.state === 'ready' ? s.model.selected : undefined;
  if (run === undefined) {
    await openTrajectoryFile(undefined);
    return;
  }
  const row = await pickTrajectory(s, run, t('Open Trajectory'), { withFile: true });
  if (row === 'file') await openTrajectoryFile(undefined);
  else if (row) s.panels.show({ kind: 'inspector', run, rollout: row.rollout }, { beside });
}

async function compare(s: StudioContext, arg: unknown, selected: unknown): Promise<void> {
  const nodes = (Array.isArray(selected) ? selected : s.trees.trajectories.view.selection)
    .map((n) => nodeOf(n, 'trajectory'))
    .filter((n) => n !== undefined);
  const clicked = nodeOf(arg, 'trajectory');
  const [a, b] = clicked && !nodes.includes(clicked) ? [clicked] : nodes;
  if (a && b) {
    s.panels.show({ kind: 'compare', run: a.run, left: a.row.rollout, right: b.row.rollout });
    return;
  }
  await s.ensureRuntime();
  const left = clicked ?? a ?? (await first(s));
  if (!left) return;
  const right = await sibling(s, left);
  if (right !== undefined) s.panels.show({ kind: 'compare', run: left.run, left: left.row.rollout, right });
}
/** The trajectory of the focused inspector, or a choice. */
async function first(s: StudioContext): Promise<NodeOf<'trajectory'> | undefined> {
  const shown = s.activeHost?.input;
  if (shown?.kind === 'inspector' && shown.run !== undefined) {
    const { row } = await s.client.request(methods.getTrajectory, { run: shown.run, rollout: shown.rollout });
    return { kind: 'trajectory', run: shown.run, row };
  }
  const run = s.model.selected ?? (await pickRun(s, t('Compare Trajectories')));
  if (run === undefined) return undefined;
  const row = await pickTrajectory(s, run, t('Compare Trajectories: the first'));
  return row && row !== 'file' ? { kind: 'trajectory', run, row } : undefined;
}
/** A rollout of the same group, which had the same task and start; else any other one. */
async function sibling(s: StudioContext, left: NodeOf<'trajectory'>): Promise<string | undefined> {
  // The row in the list may have joined its group after it was drawn.
  const known = s.list.rows.find((r) => r.rollout === left.row.rollout) ?? left.row;
  const group = await groupOf(s, left.run, known.group),
    others = group?.members.filter((m) => m.rollout !== left.row.rollout) ?? [];
  if (others.length > 0)
    return choose(
      t('Compare Trajectories: the second'),
      others.map((m) => ({
        label: m.rollout,
        description: `${outcomeWord(m.outcome)} · ${steps(m.steps)}`,
        detail: m.injected ? t('from the experience pool') : undefined,
        value: m.rollout,
      })),
      t('Rollouts of the same group'),
    );
  const row = await pickTrajectory(s, left.run, t('Compare Trajectories: the second'), {
    fits: (r) => r.rollout !== left.row.rollout,
  });
  return row && row !== 'file' ? row.rollout : undefined;
}
const groupOf = (s: StudioContext, run: RunPath, group: string | undefined): Promise<GroupView | undefined> =>
  group === undefined
    ? Promise.resolve(undefined)
    : orUndefined(s.client.request(methods.getGroup, { run, group }), 'without it one picks from all trajectories');

async function showTask(s: StudioContext, arg: unknown): Promise<void> {
  const family =
    nodeOf(arg, 'task')?.row.family ??
    (await choose(
      t('Show Trajectories of Task'),
      s.model.tasks.map((k) => ({ label: nameOfTask(k), description: k.title || undefined, value: k.family })),
    ));
  if (family === undefined) return;
  await s.filter({ ...s.list.filter, family });
}
async function sort(s: StudioContext): Promise<void> {
  const by = await choose(
    t('Sort Trajectories'),
    sorts.map((x) => ({ label: sortWord(x), description: x === s.list.sort ? t('current') : undefined, value: x })),
  );
  if (by) await s.sort(by);
}
