/** Flows through the comparison of runs, and every page of finished runs in four themes. */
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import type { Frame } from '../../helpers/workbench/playwright.js';
import { axeSource } from '../../helpers/workbench/rig.js';
import { writeTrainedRun } from '../../helpers/workbench/runFolders.js';
import { themes } from '../../helpers/workbench/themes.js';
import { pictures, violations, when } from '../../helpers/workbench/ui.js';
import { until } from '../../helpers/workbench/workbench.js';
import { goTo, textOf, type Flow, type RunsWindow } from './window.js';

/** Every curve of the trainer that a run of the embedded policy records. */
const trainerCurves = [
  'Clip fractions: dual',
  'Clip fractions: high',
  'Clip fractions: low',
  'Gradient norm',
  'Importance weights: ESS',
  'Importance weights: mean weight',
  'KL divergence: from before the update',
  'KL divergence: from the acting policy',
  'KL divergence: from the reference',
  'Learning rate',
  'Loss: imitation',
  'Loss: policy',
  'Loss: total',
  'Policy entropy',
  'Time per update',
];

/** A run that differs from that of seed 3 by its seed alone, and learned more of form-one. */
async function secondSeed(on: RunsWindow): Promise<void> {
  if (!existsSync(on.run('trained-6')))
    await writeTrainedRun(on.run('trained-6'), {
      name: 'trained',
      seed: 6,
      lr: 7e-4,
      begin: Date.UTC(2026, 10, 18, 9),
      formOne: 6,
    });
}

export function flowsOfComparisons(flow: Flow, w: () => RunsWindow): void {
  flow('runs are compared: success with a band over seeds, options that differ, tasks, and by what', async () => {
    const on = w(),
      { c } = on;
    await secondSeed(on);
    await on.listed();
    await on.row(4).click();
    // A row that is being drawn again is none that could be chosen.
    await until(async () => (await on.rows()).some((r) => /selected · .*seed 4/.test(r)), 'it is the one selected');
    await on.row(3).click({ modifiers: ['Control'] });
    await on.row(6).click({ modifiers: ['Control'] });
    await on.act(on.row(3), 'Compare Runs…');
    const page = await c.ui.webview('compareRuns', { timeoutMs: 60_000 });
    await when(page, "document.querySelectorAll('#success .uplot canvas').length === 2");
    await c.picture('compared');
    expect(await textOf(page, 'h1')).toBe('Compare 3 runs');
    // Two runs that differ by their seed are one line, which says so; its swatch has a band.
    const legend = page.locator('#success .chart').first().locator('.legend-item');
    expect([...(await legend.locator('.legend-label').allInnerTexts())].sort()).toEqual([
      'trained, lr 0.0007, 2 seeds',
      'trained, lr 0.001',
    ]);
    expect(await legend.filter({ hasText: '2 seeds' }).locator('.swatch-band').count()).toBe(1);
    await goTo(page, 'config', 'table');
    expect((await page.locator('#config tbody tr').allInnerTexts()).map((r) => r.split(/\s+/))).toEqual([
      ['trainer.lr', expect.any(String), expect.any(String)],
    ]);
    expect([...(await page.locator('#config tbody td').allInnerTexts())].sort()).toEqual(['0.0007', '0.001']);
    // Of both seeds together: 2 and 6 of 10.
    await goTo(page, 'tasks', 'table');
    const tasks = await page.locator('#tasks tbody').innerText();
    expect(tasks).toMatch(/form-one/);
    expect(tasks).toMatch(/40 % 22–61 %/);
    expect(tasks).toMatch(/20 % 6–51 %/);
    expect(tasks).toMatch(/20 points/);
    await everyTrainerCurve(page);
    await byWhat(page);
  });

  flow('comparison, table, failures, what changed and Try Policy in four themes: nothing for axe to find', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    const node = (name: string): unknown => ({ kind: 'run', run: on.run(name) });
    await c.w.host.command('dartStudio.compareRuns', node('trained-3'), [node('trained-3'), node('trained-4')]);
    await c.ui.webview('compareRuns', { timeoutMs: 60_000 });
    const axe = axeSource(),
      found: string[] = [];
    await on.table('trained-3');
    await c.w.host.command('dartStudio.tryPolicy', node('trained-3'));
    await c.ui.webview('try', { timeoutMs: 60_000 });
    for (const [theme, name] of themes) {
      await c.setTheme(theme);
      const look = async (page: Frame, what: string, drawn: string): Promise<void> => {
        await when(page, drawn);
        await pictures(page);
        await c.picture(`${what}-${name}`);
        for (const v of await violations(page, axe))
          found.push(`${what}, ${name}: ${v.id} (${v.impact}): ${v.nodes.slice(0, 3).join(' | ')}`);
      };
      await c.showTab(1);
      await look(
        await c.ui.webview('compareRuns'),
        'compareRuns',
        "document.querySelectorAll('#success .uplot canvas').length === 2",
      );
      await c.showTab(2);
      const table = await c.ui.webview('table');
      for (const [view, drawn] of [
        ['failures', "document.querySelector('.tb-cluster')"],
        ['changes', "document.querySelectorAll('.tb-strip').length === 2"],
        ['list', "[...document.querySelectorAll('img.tb-picture[src]')].some((i) => i.naturalWidth > 0)"],
      ] as const) {
        await table.locator(`#tb-tab-${view}`).click();
        await look(table, view === 'list' ? 'table' : view, drawn);
      }
      await c.showTab(3);
      await look(
        await c.ui.webview('try'),
        'try',
        "document.querySelector('.try-field select') && !/Loading/.test(document.querySelector('.try-field select').textContent)",
      );
    }
    await c.setTheme('Dark Modern');
    expect(found).toEqual([]);
  });
}

async function everyTrainerCurve(page: Frame): Promise<void> {
  await goTo(page, 'training', '.uplot canvas');
  const names = await page.evaluate<string[]>(
    "[...document.querySelectorAll('#training [role=slider]')].map((s) => s.getAttribute('aria-label').replace(/: cursor$/, ''))",
  );
  expect([...names].sort()).toEqual(trainerCurves);
  // Each is drawn when it is seen, with both lines.
  await page.evaluate<void>(`(async () => {
    for (const chart of document.querySelectorAll('#training .chart')) {
      chart.scrollIntoView();
      for (let i = 0; i < 300 && !(chart.querySelector('.uplot canvas') && chart.querySelectorAll('.legend-item').length === 2); i++)
        await new Promise((r) => requestAnimationFrame(r));
      if (chart.querySelectorAll('.legend-item').length !== 2) throw new Error('not drawn: ' + chart.textContent);
    }
  })()`);
}

async function byWhat(page: Frame): Promise<void> {
  const words = (): Promise<string> =>
    page.evaluate<string>("document.querySelector('#success [role=slider]').getAttribute('aria-valuetext')");
  const axis = page.getByRole('combobox', { name: 'Horizontal axis' }),
    cursor = page.locator('[role=slider][aria-label="Evaluations: cursor"]');
  await cursor.focus();
  await cursor.press('End');
  // Time worked, without the ten minutes in which nobody did; the seeds came to 55 and 75 %.
  const said = await words();
  expect(said).toMatch(/^1[3-5]:\d\d: /);
  expect(said).toContain('trained, lr 0.0007, 2 seeds 65 % (55 % to 75 %)');
  expect(said).toMatch(/trained, lr 0\.001 55 % \(34 % to 74 %\)/);
  const places: string[] = [];
  for (let i = 0; i < 3; i++) {
    await axis.focus();
    await axis.press('ArrowDown');
    await axis.press('Enter');
    // The list of axes gives the focus back as it closes, and the cursor goes with the focus.
    let place = '';
    await until(async () => {
      await cursor.focus();
      await cursor.press('End');
      place = (await words()).split(':')[0]!;
      return /^\d+ [a-z]/.test(place) && !places.includes(place);
    }, 'the cursor stands at the end of the other axis');
    places.push(place);
  }
  expect(places).toEqual(['4 updates', '40 rollouts', expect.stringMatching(/^\d+ trained actions$/)]);
}
