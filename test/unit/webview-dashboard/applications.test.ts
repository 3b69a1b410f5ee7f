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
        name: 'GIMP',
        tasks: '12',
        evaluation: expect.stringMatching(/^50\s%, 31–69\s% \(12 of 24 episodes\)$/) as string,
        rollouts: '12 of 48',
      },
      { name: 'VLC', tasks: '10', evaluation: '', rollouts: '10 of 40' },
      {
        name: 'Cannot be done',
        tasks: '3',
        evaluation: expect.stringMatching(/^100\s%, 76–100\s% \(12 of 12 episodes\)$/) as string,
        rollouts: '3 of 12',
      },
    ]);
  });
  it('names an application as people do, however task files spell it', () => {
    const rows = applicationRows([
      ...['libreoffice_calc', 'libreoffice calc', 'calc'].flatMap((app) => tasks(5, app, {})),
      ...tasks(4, 'vs_code', {}),
      ...tasks(4, 'vscode', {}),
      ...tasks(2, 'os', {}),
      ...tasks(3, 'libreoffice_writer', { domain: 'multi_apps' }),
    ]);
    expect(rows.map((r) => [r.name, r.tasks])).toEqual([
      ['LibreOffice Calc', '15'],
      ['Operating system', '2'],
      ['VS Code', '8'],
      ['Several applications', '3'],
    ]);
  });
  it('has mean scores where a task has a part, of all episodes together', () => {
    const part = evaluated(2, 0).evaluation!,
      rows = applicationRows([
        ...tasks(11, 'gimp', evaluated(2, 1)),
        ...tasks(1, 'gimp', { evaluation: { ...part, score: 0.75 } }),
        ...tasks(10, 'vlc', {}),
      ]);
    expect(rows.map((r) => [r.name, r.score, r.rolloutScore])).toEqual([
      ['GIMP', '0.52', undefined],
      ['VLC', '', undefined],
    ]);
    expect(applicationRows([...tasks(12, 'gimp', {}), ...tasks(12, 'vlc', { score: 0.5 })])).toMatchObject([
      { rolloutScore: '0.25' },
      { rolloutScore: '0.50' },
    ]);
  });
  it('is not shown for few tasks, or for those of one application', () => {
    expect(applicationRows(tasks(40, 'gimp', {}))).toEqual([]);
    expect(applicationRows([...tasks(5, 'gimp', {}), ...tasks(5, 'vlc', {})])).toEqual([]);
  });
});
