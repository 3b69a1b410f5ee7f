/** The tree Experience Pool: coverage first, then a node per task with its trajectories. */
import type { Command } from 'vscode';
import { commands } from '../ids.js';
import type { PoolModel } from '../model/poolModel.js';
import { t } from '../words.js';
import type { Node, NodeOf } from './nodes.js';
import { coverageRow, entryRow, familyRow, poolOrder, shownFamilies, uncovered, uncoveredRow } from './poolRows.js';
import type { Row } from './rows.js';
import type { TreeSource } from './tree.js';

type PoolNode = NodeOf<'poolCoverage' | 'poolMissing' | 'poolFamily' | 'poolEntry'>;
export function poolRow(n: PoolNode, now: number): Row {
  switch (n.kind) {
    case 'poolCoverage':
      return coverageRow(n.view);
    case 'poolMissing':
      return uncoveredRow(n.run, n.family);
    case 'poolFamily':
      return familyRow(n.run, n.family, now);
    case 'poolEntry':
      return entryRow(n.run, n.entry, now);
  }
}

export function poolChildren(pool: Pick<PoolModel, 'run' | 'view'>, parent: Node | undefined): readonly Node[] {
  const { run, view } = pool;
  if (run === undefined || view === undefined) return [];
  if (!parent) {
    const families = poolOrder(shownFamilies(view)).map((family): Node => ({ kind: 'poolFamily', run, family }));
    return view.neverSolved > 0 ? [{ kind: 'poolCoverage', run, view }, ...families] : families;
  }
  if (parent.kind === 'poolCoverage')
    return uncovered(view).map((family): Node => ({ kind: 'poolMissing', run, family }));
  // The parent may be a node of an earlier drawing.
  if (parent.kind === 'poolFamily')
    return (view.families.find((f) => f.family === parent.family.family) ?? parent.family).entries.map(
      (entry): Node => ({ kind: 'poolEntry', run, entry }),
    );
  return [];
}

export function poolSource(
  pool: PoolModel,
  now: () => number,
  set: (run: string, rollouts: readonly string[], enabled: boolean) => void,
): TreeSource {
  return {
    children: (parent) => poolChildren(pool, parent),
    row: (n) => poolRow(n as PoolNode, now()),
    foldable: (n) => n.kind === 'poolFamily' || (n.kind === 'poolCoverage' && uncovered(n.view).length > 0),
    command: (n): Command | undefined =>
      n.kind === 'poolEntry'
        ? { command: commands.openTrajectory, title: t('Open Trajectory'), arguments: [n] }
        : undefined,
    check: (nodes, on) => {
      const entries = nodes.filter((n): n is NodeOf<'poolEntry'> => n.kind === 'poolEntry'),
        run = entries[0]?.run;
      if (run !== undefined)
        set(
          run,
          entries.map((n) => n.entry.rollout),
          on,
        );
    },
    get loading() {
      return pool.view ? undefined : pool.loading;
    },
    get problem() {
      return pool.problem;
    },
  };
}
