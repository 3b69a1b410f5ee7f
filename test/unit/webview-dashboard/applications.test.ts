import { describe, expect, it } from 'vitest';
import type { TaskRow } from '../../../runtime/protocol/types.js';
import { applicationRows } from '../../../webview/dashboard/applications.js';
import { task } from '../../helpers/extension/rows.js';

const evaluated = (episodes: number, successes: number): Pick<TaskRow, 'evaluation'> => ({
    evaluation: { version: 3, episodes, successes, rate: successes / episodes, low: 0, high: 1 },
  }),
  tasks = (n: number, app: string, more: Partial<TaskRow>): TaskRow[] =>
    Array.from({ length: n }, (_, i) =>
      task({ family: `${app}-${i}-${more.infeasible === true}`, apps: [app], rollouts: 4, successes: 1, ...more }),
    );

describe('success by application', () => {
  it('sums the newest evaluations of its tasks, and counts what cannot be done apart', () => {
    const rows = applicationRows([
      ...tasks(12, 'gimp', evaluated(2, 1)),
      ...tasks(10, 'vlc', {}),
      ...tasks(3, 'vlc', { infeasible: true, ...evaluated(4, 4) }),
    ]);
    expect(rows).toEqual([
      {
        name: 'gimp',
        tasks: '12',
        evaluation: expect.stringMatching(/^50\s%, 31–69\s% \(12 of 24 episodes\)$/) as string,
        rollouts: '12 of 48',
      },
      { name: 'vlc', tasks: '10', evaluation: '', rollouts: '10 of 40' },
      {
        name: 'Cannot be done',
        tasks: '3',
        evaluation: expect.stringMatching(/^100\s%, 76–100\s% \(12 of 12 episodes\)$/) as string,
        rollouts: '3 of 12',
      },
    ]);
  });
  it('is not shown for few tasks, or for those of one application', () => {
    expect(applicationRows(tasks(40, 'gimp', {}))).toEqual([]);
    expect(applicationRows([...tasks(5, 'gimp', {}), ...tasks(5, 'vlc', {})])).toEqual([]);
  });
});
