/** Flows through the pages of finished runs. */
import { expect } from 'vitest';
import type { Frame, Locator } from '../../helpers/workbench/playwright.js';
import { trained } from '../../helpers/workbench/runEpisodes.js';
import { pictures, when } from '../../helpers/workbench/ui.js';
import { until } from '../../helpers/workbench/workbench.js';
import { flowsOfComparisons } from './compared.js';
import { flowsOfDrawings } from './drawn.js';
import { flowsOfTables } from './tables.js';
import { goTo, textOf, type Flow, type RunsWindow } from './window.js';

export function flowsOfPages(flow: Flow, w: () => RunsWindow): void {
  flow('without a runtime the runs are listed from their folders; namesakes and damaged ones can be told', async () => {
    const on = w(),
      { c, given } = on;
    await given.noRuntime();
    await given.sideBar();
    await until(async () => (await on.rows()).length === 4, 'all four are listed');
    const rows = await on.rows();
    expect(rows.filter((r) => r.startsWith('trained'))).toEqual([
      expect.stringMatching(/Nov 17, .* · seed 4 · evaluation 55 % · finished/),
      expect.stringMatching(/Nov 16, .* · seed 3 · evaluation 55 % · finished/),
    ]);
    expect(rows.find((r) => r.startsWith('broken'))).toContain('cannot be read');
    expect(await c.ui.section('Runs').innerText()).toContain('These runs are listed from their folders');
    expect(c.daemon).toBeUndefined();
    await c.picture('runs-listed');
  });

  flow('a row opens its run: one number for one thing, phases, facts, and nothing that is not so', async () => {
    const on = w(),
      { c, given } = on;
    await given.noRuntime();
    await given.sideBar('Tasks');
    await until(async () => (await on.rows()).length === 4, 'all four are listed');
    await on.row(3).click();
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await when(
      page,
      "document.querySelector('#success .uplot canvas') && document.querySelectorAll('.fact').length === 6",
    );
    await c.picture('run-over');
    // Where it is, from beginning to end, and what it is.
    expect((await page.locator('.run-step').allInnerTexts()).map((x) => x.trim().split(/[\n,]/)[0])).toEqual([
      'Untrained',
      'Reading',
      'Demonstrations',
      'Warm start',
      'RL',
      'Evaluation',
    ]);
    expect(await page.evaluate("document.querySelectorAll('.run-step.done').length")).toBe(6);
    const facts = (await page.locator('.fact').allInnerTexts()).map((f) => f.replace(/\s*\n\s*/g, ': '));
    expect(facts.slice(0, 4)).toEqual([
      'Seed: 3',
      expect.stringMatching(/^Policy: embedded, 12 ?k parameters$/i),
      'Tasks: desk, 2 families',
      'Learning rate: 0.0007',
    ]);
    expect(facts[4]).toMatch(/^Disk: [\d.]+ [kM]B, [\d.]+ [MGT]B free$/);
    expect(facts[5]).toMatch(/^Machine: \d+ cores?, [\d.]+ GB memory$/);
    // The evaluation leads, with its interval; the window says of how many rollouts it is.
    expect(await page.locator('.tile').first().getAttribute('aria-label')).toMatch(
      /^Last evaluation: 55 %, 34–74 % · 11 of 20 at v5$/,
    );
    const card = page.locator(`[aria-label="${trained.families.formOne}"]`);
    expect(await card.locator('.card-rate').innerText()).toBe('20 %');
    expect(await card.locator('.card-facts').innerText()).toMatch(
      /^evaluation, 6–51 %\nlast 16 rollouts 100 %\n.*20 rollouts$/s,
    );
    await c.ui.row('Tasks', 'evaluation 20 % (6 % to 51 %)').waitFor();
    expect(await c.ui.section('Tasks').locator('.monaco-list-row').first().innerText()).toMatch(
      /form-one.*evaluation 20 %.*last 16 rollouts 100 %/s,
    );
    expect(await textOf(page, '#success')).toContain('Judge by the evaluations');
    expect(await page.locator('.tile').nth(1).innerText()).toMatch(/mean of 2 tasks, newest \d+ each/);
    // Phases and the ten minutes in which nobody worked on it.
    expect(await textOf(page, '#success .chart > .sr-only')).toMatch(
      /Phases: reading from 1:00, demonstrations from 2:\d\d, warm start from 3:00, RL from 4:30\. The run was not active from 8:\d\d to 20:00\./,
    );
    // Not taken for one that was only evaluated; what never will be known is not promised.
    expect(await textOf(page, '.banners')).toBe('');
    await goTo(page, 'ledger', '.ledger-part');
    const said = await textOf(page, 'body');
    expect(said).not.toMatch(/not known yet|in flight|10[1-9] %|only evaluated/i);
    expect(await textOf(page, '.ledger-sum')).toContain(`${trained.rollouts} of them started on a desktop`);
    expect(await textOf(page, '.ledger-parts')).toMatch(/untrained when the run ended/);
    expect(await page.locator('.tile').nth(6).getAttribute('aria-label')).toMatch(
      new RegExp(`^Rollouts: ${trained.rollouts}\\b`),
    );
    // Measured as 101 % of its limit, it is at the limit; half of one is half of it.
    const rate = (name: string): Promise<string | null> =>
      page.locator(`.tile[aria-label^="${name}: "]`).getAttribute('aria-label');
    expect(await rate('Rollouts per hour')).toBe('Rollouts per hour: 200, at the limit of 198, at the end of the run');
    expect(await rate('Steps per minute')).toBe('Steps per minute: 10, 50 % of the limit 20, at the end of the run');
    expect((await c.ui.rows('Runs')).find((r) => r.includes('finished') && r.includes('seed 3'))).toContain(
      `${trained.rollouts} rollouts`,
    );
    // Buttons of this run, which is over.
    const buttons = await page.locator('.top vscode-button').allInnerTexts();
    expect(buttons.map((b) => b.trim())).toEqual([
      'Resume Run…',
      'Evaluate…',
      'Try Policy…',
      'Open newest failures',
      'Export as HTML…',
    ]);
    expect(await c.ui.offered('DART Studio: Stop Training')).not.toContainEqual(
      expect.stringMatching(/^DART Studio: Stop Training/),
    );
  });

  flow('lanes: trainer and replica first, and six desktops that replaced one another in two places', async () => {
    const on = w();
    await on.listed();
    const page = await on.dashboard('trained-3');
    await goTo(page, 'lanes', 'canvas.lanes-canvas');
    await when(page, "/desktops busy/i.test(document.getElementById('lanes-summary').textContent)");
    expect(await textOf(page, '#lanes-summary')).toMatch(/: Trainer busy .*; Policy replicas busy .*; Desktops busy /);
    const lanes = page.locator('.lanes-body'),
      lane = async (): Promise<string> => (await textOf(page, '.lanes-read')).split(' · ')[0]!,
      seen: string[] = [];
    await lanes.focus();
    await lanes.press('ArrowRight');
    for (let i = 0; i < 6; i++) await lanes.press('ArrowUp');
    for (let i = 0; i < 6; i++) {
      seen.push(await lane());
      await lanes.press('ArrowDown');
    }
    // The last row stays the last one: there are four.
    expect(seen.slice(0, 2)).toEqual(['trainer', 'replica-1']);
    expect(seen.slice(2).every((x) => x.startsWith('sandbox-'))).toBe(true);
    expect(new Set(seen).size).toBeLessThanOrEqual(4);
  });

  flow(
    'what one chart is zoomed to the others show too, with a button back; KL, learning rate and entropy have charts',
    async () => {
      const on = w(),
        { c } = on;
      await on.listed();
      const page = await on.dashboard('trained-3'),
        chart = (name: string): Locator =>
          page.locator('.chart', { has: page.locator(`[role=slider][aria-label="${name}: cursor"]`) }),
        slider = (name: string): Locator => page.locator(`[role=slider][aria-label="${name}: cursor"]`);
      await goTo(page, 'curation', '.uplot canvas');
      await slider('KL divergence').waitFor();
      // What it is drawn on is said, for it alone.
      const summary = (name: string): Promise<string> =>
        page.evaluate<string>(
          `document.getElementById(document.querySelector('[role=slider][aria-label="${name}: cursor"]').getAttribute('aria-describedby')).textContent`,
        );
      await until(async () => /On a logarithmic scale\.$/.test(await summary('KL divergence')), 'KL is on a log scale');
      expect(await summary('Importance weights')).not.toContain('logarithmic');
      await goTo(page, 'trainer', '.uplot canvas');
      for (const name of ['Policy entropy', 'Learning rate', 'Loss']) await slider(name).waitFor();
      const back = chart('Learning rate').getByRole('button', { name: 'Reset zoom' });
      expect(await back.isVisible()).toBe(false);
      await slider('Policy entropy').focus();
      await slider('Policy entropy').press('Home');
      await slider('Policy entropy').press('+');
      await back.waitFor();
      await c.picture('zoomed');
      await back.click();
      await back.waitFor({ state: 'hidden' });
      expect(await chart('Policy entropy').getByRole('button', { name: 'Reset zoom' }).isVisible()).toBe(false);
    },
  );

  flow('Open Dashboard opens the selected run, and a tab that was restored is not opened twice', async () => {
    const on = w(),
      { c, given } = on;
    await on.listed();
    await on.row(4).click();
    await until(async () => (await on.rows()).some((r) => /selected · .*seed 4/.test(r)), 'it is the one selected');
    await c.ui.palette('DART Studio: Open Dashboard');
    // The page of the flow before may still be on its way out.
    await until(
      async () =>
        (await c.ui.webview('dashboard', { timeoutMs: 60_000, text: /Seed\s*4/ }))
          .evaluate<boolean>("[...document.querySelectorAll('.fact')].some((f) => f.textContent === 'Seed4')")
          .catch(() => false),
      'the page of the selected run is there',
      60_000,
    );
    await on.dashboard('trained-3');
    await until(async () => {
      const tabs = await c.tabs;
      return tabs.length === 2 && tabs.every((t) => /trained, Nov 1[67]/.test(t));
    }, 'both tabs are there and have their names');
    expect(await c.tabs).toHaveLength(2);
    await c.w.reload();
    await until(async () => (await c.tabs).length === 2, 'both are there again');
    await given.sideBar();
    await until(
      async () => (await on.rows()).some((r) => /selected · .*seed 4/.test(r)),
      'it is selected still',
      60_000,
    );
    // VS Code has restored the one in front; the other is a tab without a page.
    await c.ui.palette('DART Studio: Open Dashboard');
    await when(
      await c.ui.webview('dashboard', { timeoutMs: 60_000, text: /Seed\s*4/ }),
      "document.querySelector('#success .uplot canvas')",
    );
    await until(async () => (await c.tabs).every((t) => /trained, Nov 1[67]/.test(t)), 'they have their names again');
    expect([...(await c.tabs)].sort()).toEqual([
      expect.stringContaining('trained, Nov 16'),
      expect.stringContaining('trained, Nov 17'),
    ]);
  });

  flow('a damaged journal is said in its page and its row; a broken run.json says why', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    const page = await on.dashboard('spoiled-5');
    await page.locator('.banners', { hasText: /bytes of this run’s journal are damaged/ }).waitFor();
    await c.picture('damaged');
    await c.w.host.command('dartStudio.refresh');
    await until(
      async () => (await on.rows()).some((r) => r.startsWith('spoiled') && r.includes('journal damaged')),
      'its row says it',
    );
    await c.w.host.begin('dartStudio.openDashboard', on.run('broken'));
    await c.ui.webview('dashboard', { text: /run\.json of .*broken cannot be understood/ });
  });

  flow('a review leaves the screenshot its room, a few stops of the tab key away', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    await c.w.host.command('dartStudio.selectRun', on.run('trained-3'));
    await c.ui.palette('DART Studio: Review Trajectories');
    const page = await c.ui.webview('inspector', { timeoutMs: 60_000 });
    await page.locator('.an-queue').waitFor();
    await pictures(page);
    await c.picture('review');
    const width = (f: Frame): Promise<number> =>
        f.evaluate<number>("document.querySelector('.ds-box').getBoundingClientRect().width"),
      reviewing = await width(page);
    // From the beginning of the page, as somebody comes to it by the keyboard.
    const stops = async (f: Frame): Promise<readonly string[]> => {
      const seen: string[] = [];
      await f.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')");
      await until(async () => {
        await c.w.page.keyboard.press('Tab');
        seen.push(await f.evaluate<string>('document.activeElement.outerHTML.slice(0, 120)'));
        return f.evaluate<boolean>("document.activeElement.closest('.ds-stage') !== null");
      }, 'the tab key comes to the screenshot');
      return seen;
    };
    expect((await stops(page)).length).toBeLessThanOrEqual(9);
    await c.closeEditors();
    await c.w.host.command('dartStudio.openTrajectory', {
      kind: 'trajectory',
      run: on.run('trained-3'),
      row: { rollout: 'r0036' },
    });
    const plain = await c.ui.webview('inspector');
    await plain.locator('.ds-box').waitFor();
    await pictures(plain);
    expect(reviewing / (await width(plain))).toBeGreaterThan(0.85);
    expect((await stops(plain)).length).toBeLessThanOrEqual(6);
    // Of a run that is over: nothing about it will be known later.
    expect(await textOf(plain, '.ds-detail')).not.toMatch(/not known yet|not trained yet/);
  });
  flowsOfComparisons(flow, w);
  flowsOfDrawings(flow, w);
  flowsOfTables(flow, w);
}
