import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TaskRow } from '../../runtime/protocol/types.js';
import { wilson } from '../../runtime/protocol/shared.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { dashboardPages, drawn } from '../helpers/pages/dashboard/pages.js';
import { makeRun, type MadeRun } from '../helpers/pages/dashboard/run.js';
import { themes } from '../helpers/pages/page.js';

const found = await openBrowser();
if ('why' in found) console.warn(`dashboard page tests skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

/** As OSWorld's task files name applications. */
const spelt = [
  ['libreoffice_calc', 'libreoffice_calc'],
  ['libreoffice calc', 'libreoffice_calc'],
  ['calc', 'libreoffice_calc'],
  ['vscode', 'vs_code'],
  ['vs_code', 'vs_code'],
  ['os', 'os'],
  ['libreoffice_writer', 'multi_apps'],
] as const;
function osworld(scores: boolean): MadeRun {
  const run = makeRun({ minutes: 2.2 }),
    tasks = Array.from({ length: 28 }, (_, i): TaskRow => {
      const [app, domain] = spelt[i % spelt.length]!,
        successes = i % 3;
      return {
        family: `task-${i}`,
        title: `${app}: Do something`,
        apps: [app],
        domain,
        rollouts: 8,
        successes: 2,
        spark: [],
        evaluation: {
          version: 3,
          episodes: 4,
          successes,
          ...wilson(successes, 4),
          ...(scores && domain === 'libreoffice_calc' ? { score: successes / 4 + 0.1 } : {}),
        },
      };
    });
  return { ...run, tasks, detail: { ...run.detail, tasks } };
}

describe.skipIf('why' in found)('success by application', () => {
  const { axe } = found as RealBrowser,
    { show } = dashboardPages(found as RealBrowser);

  it.each(themes)('%s: a row an application, with mean scores where a task has a part', async (theme) => {
    const t = await show({ theme }, osworld(true)),
      p = await drawn(t),
      table = p.locator('.applications table');
    await table.waitFor();
    await p.evaluate("document.querySelector('.applications').scrollIntoView({ block: 'center' })");
    if (shots) await p.screenshot({ path: join(shots, `dashboard-applications-${theme}.png`) });
    expect(await table.locator('tbody th').allInnerTexts()).toEqual([
      'LibreOffice Calc',
      'Operating system',
      'VS Code',
      'Several applications',
    ]);
    expect(await table.locator('thead th').allInnerTexts()).toEqual([
      'Application',
      'Tasks',
      'Evaluation',
      'Mean score of the evaluation',
      'Rollouts that succeeded',
    ]);
    expect(await table.locator('tbody tr').first().locator('td').nth(2).innerText()).toMatch(/^0\.\d\d$/);
    expect(await t.axe(axe)).toEqual([]);
  });
  it('has no mean scores where all are 0 or 1', async () => {
    const t = await show({}, osworld(false)),
      p = await drawn(t);
    await p.locator('.applications table').waitFor();
    expect(await p.locator('.applications thead th').count()).toBe(4);
  });
});
