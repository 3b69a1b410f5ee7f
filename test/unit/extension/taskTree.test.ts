import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nameOfTask } from '../../../runtime/protocol/shared.js';
import type { TaskRow } from '../../../runtime/protocol/types.js';
import { taskRow } from '../../../extension/views/rows.js';
import type { Node } from '../../../extension/views/nodes.js';
import { taskChildren, taskGroupRow } from '../../../extension/views/taskTree.js';
import { task } from '../../helpers/extension/rows.js';

const evaluated = (episodes: number, successes: number): TaskRow['evaluation'] => ({
  version: 3,
  episodes,
  successes,
  rate: successes / episodes,
  low: 0,
  high: 1,
});
const many = (n: number, apps: (i: number) => readonly string[] | undefined): TaskRow[] =>
  Array.from({ length: n }, (_, i) => {
    const named = apps(i);
    return task({ family: `task-${i}`, rollouts: 2, successes: 1, ...(named ? { apps: named } : {}) });
  });
const names = (nodes: readonly Node[]): unknown[] =>
  nodes.map((n) => (n.kind === 'taskGroup' ? n.app : n.kind === 'task' ? n.row.family : n.kind));

describe('the name of a task', () => {
  const osworld = '94d95f96-9699-4208-98ba-3c3119edf9c2';
  it('is its words where it is called by a number, as those of OSWorld are', () => {
    const named = task({ family: osworld, title: 'os: Install Spotify', apps: ['os'] });
    expect([
      nameOfTask(named),
      nameOfTask(task({ family: osworld })),
      nameOfTask(task({ family: 'desk/x', title: 'y' })),
    ]).toEqual(['Install Spotify', osworld, 'desk/x']);
    expect(taskRow(named)).toMatchObject({ id: `task ${osworld}`, label: 'Install Spotify' });
    expect(taskRow(named).tooltip).toContain('94d95f96');
  });
});

describe('the tree Tasks', () => {
  it('is flat while tasks are few, or of one application', () => {
    const few = many(20, (i) => [`app-${i}`]),
      one = many(30, () => ['chrome']);
    for (const tasks of [few, one]) expect(names(taskChildren(tasks, undefined))).toEqual(tasks.map((r) => r.family));
  });
  it('groups many by application: by name, then those of several, then those of none', () => {
    const tasks = many(24, (i) => [['vlc'], ['chrome', 'vlc'], undefined, ['chrome']][i % 4]),
      groups = taskChildren(tasks, undefined);
    expect(names(groups)).toEqual(['Chrome', 'VLC', '', undefined]);
    expect(names(taskChildren(tasks, groups[3]))).toEqual([
      'task-2',
      'task-6',
      'task-10',
      'task-14',
      'task-18',
      'task-22',
    ]);
  });
  it('shows each task once, however they are grouped', () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 2 }), { nil: undefined }), {
          maxLength: 60,
        }),
        (apps) => {
          const tasks = many(apps.length, (i) => apps[i]),
            leaves = (parent: Node | undefined): readonly string[] =>
              taskChildren(tasks, parent).flatMap((n) => (n.kind === 'task' ? [n.row.family] : leaves(n))),
            shown = leaves(undefined);
          expect([...shown].sort()).toEqual(tasks.map((r) => r.family).sort());
        },
      ),
    );
  });
  it('a task that was added since stands in the group that is open', () => {
    const before = many(24, (i) => [i % 2 ? 'vlc' : 'chrome']),
      [open] = taskChildren(before, undefined),
      after = [...before, task({ family: 'new', apps: ['chrome'] })];
    expect(names(taskChildren(after, open)).at(-1)).toBe('new');
  });
});

describe('a group of tasks', () => {
  it('says how many they are and what their evaluation came to, all episodes together', () => {
    const rows = many(3, () => ['chrome']).map((r, i) => (i === 0 ? r : { ...r, evaluation: evaluated(4, i) })),
      row = taskGroupRow('Chrome', rows);
    expect([row.label, row.description]).toEqual(['Chrome', '3 tasks · evaluation 38 % (3 of 8 episodes)']);
    expect(row.tooltip).toContain('3 of 6 rollouts succeeded');
    expect(row.spoken).toBe('Chrome, 3 tasks, evaluation 38 % (3 of 8 episodes)');
  });
  it('says mean scores where one of its tasks has a part', () => {
    const rows = many(2, () => ['chrome']).map((r, i) => ({
        ...r,
        ...(i === 0 ? { score: 0.75, evaluation: { ...evaluated(4, 1)!, score: 0.5 } } : {}),
      })),
      row = taskGroupRow('Chrome', rows);
    expect(row.description).toBe('2 tasks · evaluation 25 % (1 of 4 episodes) · mean score 0.50');
    expect(row.tooltip).toContain('2 of 4 rollouts succeeded · mean score 0.63');
    expect(row.spoken).toContain('mean score 0.50');
  });
  it('has a name where its tasks are of several applications or of none, and no rate before an evaluation', () => {
    expect(
      taskGroupRow(
        '',
        many(1, () => undefined),
      ),
    ).toMatchObject({ label: 'Several applications', description: '1 task' });
    expect(
      taskGroupRow(
        undefined,
        many(2, () => undefined),
      ),
    ).toMatchObject({ label: 'No application', description: '2 tasks' });
  });
  it('lets no name of an application become markup', () => {
    expect(
      taskGroupRow(
        '[x](command:evil)',
        many(1, () => undefined),
      ).tooltip,
    ).not.toContain('[x](');
  });
});
