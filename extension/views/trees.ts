/** The trees of the activity bar container and what makes each of them redraw. */
import type { Command } from 'vscode';
import type { QueueItem } from '../../runtime/protocol/types.js';
import { Disposables, type Ends } from '../dispose.js';
import { commands, views } from '../ids.js';
import { filterWords, isEmpty, sortWord } from '../model/filter.js';
import type { ControlSessions } from '../model/controlSessions.js';
import type { PoolModel } from '../model/poolModel.js';
import { arranged, isGroup } from '../model/runOrder.js';
import type { ListedRun } from '../model/savedRuns.js';
import { isActive, type StudioModel } from '../model/studioModel.js';
import type { TrajectoryList } from '../model/trajectoryList.js';
import { t } from '../words.js';
import type { Node } from './nodes.js';
import { desktopRow, moreRow, taskRow, trajectoryRow, type Row } from './rows.js';
import { queuedRow, queueRow } from './queueRows.js';
import { checkpointRow, evalRow, runGroupRow, runRow } from './runRows.js';
import { poolDescription } from './poolRows.js';
import { poolRow, poolSource } from './poolTree.js';
import { taskChildren, taskGroupRow } from './taskTree.js';
import { StudioTree, type TreeSource } from './tree.js';

export interface Trees extends Ends {
  readonly runs: StudioTree;
  readonly tasks: StudioTree;
  readonly desktops: StudioTree;
  readonly trajectories: StudioTree;
  readonly pool: StudioTree;
  /** Trajectories of the run that wait to be reviewed; said once somebody reviews. */
  setReview(waiting: number | undefined): void;
}

export interface TreeParts {
  readonly model: StudioModel;
  readonly list: TrajectoryList;
  readonly pool: PoolModel;
  readonly sessions: ControlSessions;
  readonly now: () => number;
  /** Check boxes of the pool. */
  readonly setPool: (run: string, rollouts: readonly string[], enabled: boolean) => void;
}

export function createTrees(o: TreeParts): Trees {
  const { model, list, sessions, now } = o;
  const own = new Disposables();
  const runs = own.add(new StudioTree(views.runs, runsSource(model, now), { multiple: true }));
  const tasks = own.add(new StudioTree(views.tasks, tasksSource(model)));
  const desktops = own.add(new StudioTree(views.desktops, desktopsSource(model, sessions)));
  const trajectories = own.add(new StudioTree(views.trajectories, trajectoriesSource(list), { multiple: true }));
  const pool = own.add(new StudioTree(views.pool, poolSource(o.pool, now, o.setPool), { multiple: true }));
  const draw = (): void => {
    const active = model.runs.filter(isActive).length;
    runs.view.badge =
      active > 0
        ? { value: active, tooltip: active === 1 ? t('1 active run') : t('{0} active runs', active) }
        : undefined;
    runs.refresh();
  };
  const drawList = (): void => {
    const words = filterWords(list.filter),
      count =
        list.rows.length === 0
          ? ''
          : list.older > 0
            ? t('{0} of {1}, {2} older ones are only counted', list.rows.length, list.total, list.older)
            : t('{0} of {1}', list.rows.length, list.total);
    trajectories.view.description = [words, list.sort === 'newest' ? '' : sortWord(list.sort), count]
      .filter((x) => x !== '')
      .join(' · ');
    trajectories.refresh();
    // An empty list has the welcome view of its state; a filter that leaves nothing is said in words as well.
    if (!list.loading && !list.problem && list.rows.length === 0 && !isEmpty(list.filter) && list.run !== undefined)
      trajectories.view.message = t('No matches for the filter: {0}.', words);
  };
  own.defer(
    model.onChange((c) => {
      if (c === 'runs' || c === 'status' || c === 'detail' || c === 'daemon') draw();
      if (c === 'tasks' || c === 'daemon') {
        tasks.view.description = model.summary(model.selected)?.name ?? '';
        tasks.refresh();
      }
      if (c === 'desktops' || c === 'daemon') desktops.refresh();
    }),
  );
  const drawPool = (): void => {
    pool.view.description = o.pool.view ? poolDescription(o.pool.view) : '';
    pool.refresh();
  };
  own.defer(list.onChange(drawList));
  own.defer(o.pool.onChange(drawPool));
  own.defer(sessions.onChange(() => desktops.refresh()));
  own.add(pool.view.onDidChangeVisibility((v) => o.pool.seen(v.visible)));
  o.pool.seen(pool.view.visible);
  draw();
  drawList();
  const setReview = (waiting: number | undefined): void => {
    trajectories.view.badge = waiting
      ? {
          value: waiting,
          tooltip: waiting === 1 ? t('1 trajectory to review') : t('{0} trajectories to review', waiting),
        }
      : undefined;
  };
  return { runs, tasks, desktops, trajectories, pool, setReview, dispose: () => own.dispose() };
}

const rowOf = (node: Node): Row => {
  switch (node.kind) {
    case 'eval':
      return evalRow(node.run, node.point, node.index);
    case 'checkpoint':
      return checkpointRow(node.run, node.version, node.path);
    case 'taskGroup':
      return taskGroupRow(node.app, node.rows);
    case 'task':
      return taskRow(node.row);
    case 'desktop':
      return desktopRow(node.row);
    case 'trajectory':
      return trajectoryRow(node.run, node.row);
    case 'run':
      return runRow(node.summary, { selected: false, now: 0 });
    case 'queue':
      return queueRow(node.view.items.filter(queuedStill).length, node.view.paused);
    case 'queued':
      return queuedRow(node.item);
    case 'runGroup':
      return runGroupRow(node.group, node.runs.length);
    case 'more':
      return moreRow(0, 0);
    case 'poolCoverage':
    case 'poolMissing':
    case 'poolFamily':
    case 'poolEntry':
      return poolRow(node, 0);
  }
};

/** The run that is under way stands among the runs. */
const queuedStill = (i: QueueItem): boolean => i.state === 'waiting' || i.state === 'failed';
function queueOf(model: StudioModel): Node[] {
  const { queue } = model;
  return queue?.items.some(queuedStill) ? [{ kind: 'queue', view: queue }] : [];
}
function runsSource(model: StudioModel, now: () => number): TreeSource {
  return {
    children(parent) {
      const nodeOfRun = (s: ListedRun): Node => ({ kind: 'run', run: s.run, summary: s });
      if (!parent)
        return [
          ...queueOf(model),
          ...arranged(model.runs, model.archived).map((x): Node =>
            isGroup(x) ? { kind: 'runGroup', group: x.group, runs: x.runs } : nodeOfRun(x),
          ),
        ];
      if (parent.kind === 'queue')
        return parent.view.items.filter(queuedStill).map((item): Node => ({ kind: 'queued', item }));
      if (parent.kind === 'runGroup') return parent.runs.map(nodeOfRun);
      const d = model.detail;
      if (parent.kind !== 'run' || d?.summary.run !== parent.run) return [];
      return [
        ...d.evals.map((point, index): Node => ({ kind: 'eval', run: parent.run, point, index })).reverse(),
        ...d.checkpoints
          .map((c): Node => ({ kind: 'checkpoint', run: parent.run, version: c.version, path: c.path }))
          .sort((a, b) => (a.kind === 'checkpoint' && b.kind === 'checkpoint' ? b.version - a.version : 0)),
      ];
    },
    row: (n) =>
      n.kind === 'run'
        ? runRow(n.summary, {
            selected: n.run === model.selected && model.runs.length > 1,
            now: now(),
            namesake: model.runs.some((r) => r.run !== n.run && r.name === n.summary.name),
            unreachable: model.reconnecting && isActive(n.summary),
          })
        : rowOf(n),
    // Evaluations and checkpoints are read for the selected run alone.
    foldable: (n) =>
      n.kind === 'runGroup' || n.kind === 'queue' ? 'open' : n.kind === 'run' && n.run === model.selected,
    command: (n): Command | undefined =>
      n.kind !== 'run'
        ? undefined
        : // Without a runtime there is nothing to show of a selected run: its page starts one.
          model.fromFolders
          ? { command: commands.openDashboard, title: t('Open Dashboard'), arguments: [n] }
          : { command: commands.selectRun, title: t('Select Run'), arguments: [n] },
    // Only the first reading is waited for; later ones renew the shown rows.
    get loading() {
      return model.loaded ? undefined : model.loading;
    },
    get problem() {
      return model.problem;
    },
    get note() {
      return model.fromFolders && model.runs.length > 0
        ? t('The runtime is not running. These runs are listed from their folders; open one to start it.')
        : undefined;
    },
  };
}
function tasksSource(model: StudioModel): TreeSource {
  return {
    children: (parent) => taskChildren(model.tasks, parent),
    row: rowOf,
    get note(): string | undefined {
      const e = model.detail?.tasksUnread;
      return e && `${t('The tasks of this run cannot be read, so they have no names here.')} ${e.message} ${e.remedy}`;
    },
    foldable: (n) => n.kind === 'taskGroup',
    command: (n): Command | undefined =>
      n.kind === 'task'
        ? { command: commands.showTaskTrajectories, title: t('Show Trajectories'), arguments: [n] }
        : undefined,
  };
}
function desktopsSource(model: StudioModel, sessions: ControlSessions): TreeSource {
  return {
    children: (parent) => (parent ? [] : model.desktops.map((row): Node => ({ kind: 'desktop', row }))),
    row: (n) => (n.kind === 'desktop' ? desktopRow(n.row, sessions.of(n.row.desktop)) : rowOf(n)),
    command: (n): Command => ({ command: commands.watchDesktop, title: t('Watch Desktop'), arguments: [n] }),
  };
}
function trajectoriesSource(list: TrajectoryList): TreeSource {
  return {
    children(parent) {
      const { run } = list;
      if (parent || run === undefined) return [];
      const rows = list.rows.map((row): Node => ({ kind: 'trajectory', run, row }));
      return list.more ? [...rows, { kind: 'more' }] : rows;
    },
    row: (n) => (n.kind === 'more' ? moreRow(list.rows.length, list.total) : rowOf(n)),
    command: (n): Command =>
      n.kind === 'more'
        ? { command: commands.loadMore, title: t('Load more') }
        : { command: commands.openTrajectory, title: t('Open Trajectory'), arguments: [n] },
    get loading() {
      return list.rows.length === 0 ? list.loading : undefined;
    },
    get problem() {
      return list.problem;
    },
  };
}
