import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { osworldTask } from '../helpers/interchange/make.js';
import { Cockpit } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import type { Frame, Locator } from '../helpers/workbench/playwright.js';
import { axeSource, whyNoWorkbench } from '../helpers/workbench/rig.js';
import { trained } from '../helpers/workbench/runEpisodes.js';
import { damageJournal, writeBrokenRun, writeTrainedRun } from '../helpers/workbench/runFolders.js';
import { pictures, violations, when } from '../helpers/workbench/ui.js';
import { until } from '../helpers/workbench/workbench.js';

/**
 * Runs that are over, as an engineer looks at them: no desktop is needed and nothing is trained. One window on a
 * workspace with prepared run folders for all flows.
 */
const missing = whyNoWorkbench('latest');
if (missing) console.warn(`skipped: finished runs in VS Code (${missing})`);

const begin = Date.UTC(2026, 10, 16, 9),
  day = 24 * 3_600_000;

describe.skipIf(missing !== undefined)('VS Code, current, finished runs', () => {
  let c: Cockpit, given: Given;
  const run = (name: string): string => join(c.w.folder, 'runs', name);
  beforeAll(async () => {
    c = await Cockpit.start({
      which: 'latest',
      files: {
        'first.dart-run.json': JSON.stringify({ name: 'first', tasks: { families: ['press-button'] } }),
        'wrong.json': JSON.stringify(
          { $schema: 'dart-studio:/run.schema.json', desktops: { count: 'two' }, trainer: { lr: -1 } },
          null,
          2,
        ),
      },
      prepare: async (folder) => {
        const runs = join(folder, 'runs');
        await Promise.all([
          writeTrainedRun(join(runs, 'trained-3'), { name: 'trained', seed: 3, lr: 5e-4, begin }),
          writeTrainedRun(join(runs, 'trained-4'), { name: 'trained', seed: 4, lr: 1e-3, begin: begin + day }),
          writeTrainedRun(join(runs, 'spoiled-5'), { name: 'spoiled', seed: 5, lr: 5e-4, begin: begin - day }),
          writeBrokenRun(join(runs, 'broken')),
        ]);
        await damageJournal(join(runs, 'spoiled-5'), 4000);
      },
    });
    given = new Given(c, 'trained');
  });
  afterAll(() => c?.stop());
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );
  const rowsOf = (): Promise<readonly string[]> =>
    c.ui
      .section('Runs')
      .locator('.monaco-list-row')
      .allInnerTexts()
      .then((all) => all.map((r) => r.replace(/\s+/g, ' ').trim()));
  /** Of the two runs of one name, by seed. */
  const row = (seed: number): Locator => c.ui.row('Runs', new RegExp(`seed ${seed}`));
  const textOf = (f: Frame, selector: string): Promise<string> =>
    f.evaluate<string>(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`);
  const givenRuns = async (): Promise<void> => {
    await given.runtime();
    await given.sideBar();
  };
  /** The dashboard of a run, with its curves. */
  const dashboard = async (name: string): Promise<Frame> => {
    await c.w.host.command('dartStudio.openDashboard', run(name));
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await when(page, "document.querySelector('#success .uplot canvas')");
    return page;
  };
  /** Brings a part of a page into view and waits until it is drawn. */
  const goTo = (f: Frame, id: string, sign: string): Promise<void> =>
    when(f, `(document.getElementById('${id}').scrollIntoView(), document.querySelector('#${id} ${sign}'))`);
  const table = async (name: string): Promise<Frame> => {
    await c.w.host.command('dartStudio.openTrajectoryTable', run(name));
    const page = await c.ui.webview('table', { timeoutMs: 60_000 });
    await page.locator('.tb-top').waitFor();
    return page;
  };
  const counted = (f: Frame, words: string): Promise<void> =>
    when(f, `document.querySelector('.tb-top [role=status]')?.textContent === ${JSON.stringify(words)}`);
  const menuItem = (title: string): Locator =>
    c.w.page.locator('.monaco-menu [role=menuitem]', { hasText: title }).first();
  const quickInput = (): Locator => c.w.page.locator('.quick-input-widget .quick-input-box input');
  /** Answers a question that asks for a text. */
  const answer = async (title: string, text: string): Promise<void> => {
    await c.w.page.locator('.quick-input-widget', { hasText: title }).waitFor();
    await until(async () => {
      await quickInput().fill(text);
      return (await quickInput().inputValue()) === text;
    }, `${title} has its answer`);
    await quickInput().press('Enter');
  };

  flow('without a runtime the runs are listed from their folders; namesakes and damaged ones can be told', async () => {
    await given.noRuntime();
    await given.sideBar();
    await until(async () => (await rowsOf()).length === 4, 'all four are listed');
    const rows = await rowsOf();
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
    await given.noRuntime();
    await given.sideBar('Tasks');
    await until(async () => (await rowsOf()).length === 4, 'all four are listed');
    await row(3).click();
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
      expect.stringContaining('Policy: embedded'),
      'Tasks: desk, 2 families',
      'Learning rate: 0.0005',
    ]);
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
    expect(await page.locator('.tile').nth(1).innerText()).toMatch(/mean of 2 tasks, newest \d+ each/);
    // Phases and the ten minutes in which nobody worked on it.
    expect(await textOf(page, '#success figure .sr-only')).toMatch(
      /Phases: reading from 1:00, demonstrations from 2:\d\d, warm start from 3:00, rollouts from 4:30\. The run was not active from 8:\d\d to 20:00\./,
    );
    // Not taken for one that was only evaluated; what never will be known is not promised.
    expect(await textOf(page, '.banners')).toBe('');
    await goTo(page, 'ledger', '.ledger-part');
    const said = await textOf(page, 'body');
    expect(said).not.toMatch(/not known yet|in flight|10[1-9] %|only evaluated/i);
    expect(await textOf(page, '.ledger-sum')).toContain(`${trained.rollouts} of them began on a desktop`);
    expect(await textOf(page, '.ledger-parts')).toMatch(/untrained when the run ended/);
    expect(await page.locator('.tile').nth(6).getAttribute('aria-label')).toMatch(
      new RegExp(`^Rollouts: ${trained.rollouts}\\b`),
    );
    expect((await c.ui.rows('Runs')).find((r) => r.includes('finished') && r.includes('seed 3'))).toContain(
      `${trained.rollouts} rollouts`,
    );
    // Buttons of this run, which is over.
    const buttons = await page.locator('.top vscode-button').allInnerTexts();
    expect(buttons.map((b) => b.trim())).toEqual(['Resume Run…', 'Evaluate…', 'Open newest failures']);
    expect(await c.ui.offered('DART Studio: Stop Training')).not.toContainEqual(
      expect.stringMatching(/^DART Studio: Stop Training/),
    );
  });

  flow('lanes: trainer and replica first, and six desktops that replaced one another in two places', async () => {
    await givenRuns();
    const page = await dashboard('trained-3');
    await goTo(page, 'lanes', 'canvas.lanes-canvas');
    await when(page, "/desktops? busy/.test(document.getElementById('lanes-summary').textContent)");
    expect(await textOf(page, '#lanes-summary')).toMatch(/: trainer busy .*; replicas? busy .*; desktops busy /i);
    const lanes = page.locator('.lanes-body'),
      lane = async (): Promise<string> => (await textOf(page, '.lanes-read')).split(' · ')[0]!,
      seen: string[] = [];
    await lanes.focus();
    await lanes.press('ArrowRight');
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
      await givenRuns();
      const page = await dashboard('trained-3'),
        chart = (name: string): Locator =>
          page.locator('.chart', { has: page.locator(`[role=slider][aria-label="${name}: cursor"]`) }),
        slider = (name: string): Locator => page.locator(`[role=slider][aria-label="${name}: cursor"]`);
      await goTo(page, 'curation', '.uplot canvas');
      await slider('KL divergence').waitFor();
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
    await givenRuns();
    await row(4).click();
    await until(async () => (await rowsOf()).some((r) => /selected · .*seed 4/.test(r)), 'it is the one selected');
    await c.ui.palette('DART Studio: Open Dashboard');
    await when(
      await c.ui.webview('dashboard', { timeoutMs: 60_000 }),
      "[...document.querySelectorAll('.fact')].some((f) => f.textContent === 'Seed4')",
    );
    await dashboard('trained-3');
    await until(async () => (await c.tabs).every((t) => /trained, Nov 1[67]/.test(t)), 'both tabs have their names');
    expect(await c.tabs).toHaveLength(2);
    await c.w.reload();
    await until(async () => (await c.tabs).length === 2, 'both are there again');
    await given.sideBar();
    await until(
      async () => (await rowsOf()).some((r) => /selected · .*seed 4/.test(r)),
      'it is selected still',
      60_000,
    );
    // VS Code has restored the one in front; the other is a tab without a page.
    await c.ui.palette('DART Studio: Open Dashboard');
    await when(
      await c.ui.webview('dashboard', { timeoutMs: 60_000, text: /Seed\s*4/ }),
      "document.querySelector('#success .uplot canvas')",
    );
    expect([...(await c.tabs)].sort()).toEqual([
      expect.stringContaining('trained, Nov 16'),
      expect.stringContaining('trained, Nov 17'),
    ]);
  });

  flow('a damaged journal is said in its page and its row; a broken run.json says why', async () => {
    await givenRuns();
    const page = await dashboard('spoiled-5');
    await page.locator('.banners', { hasText: /bytes of this run’s journal are damaged/ }).waitFor();
    await c.picture('damaged');
    await c.w.host.command('dartStudio.refresh');
    await until(
      async () => (await rowsOf()).some((r) => r.startsWith('spoiled') && r.includes('journal damaged')),
      'its row says it',
    );
    await c.w.host.begin('dartStudio.openDashboard', run('broken'));
    await c.ui.webview('dashboard', { text: /run\.json of .*broken cannot be understood/ });
  });

  flow('runs are compared: success, options that differ, tasks, and by what', async () => {
    await givenRuns();
    await row(4).click();
    await row(3).click({ modifiers: ['Control'] });
    await row(3).click({ button: 'right' });
    await menuItem('Compare Runs…').click();
    const page = await c.ui.webview('compareRuns', { timeoutMs: 60_000 });
    await when(page, "document.querySelectorAll('#success .uplot canvas').length === 2");
    await c.picture('compared');
    expect(await textOf(page, 'h1')).toBe('Compare 2 runs');
    await goTo(page, 'config', 'table');
    expect((await page.locator('#config tbody tr').allInnerTexts()).map((r) => r.split(/\s+/))).toEqual([
      ['trainer.lr', expect.any(String), expect.any(String)],
    ]);
    expect([...(await page.locator('#config tbody td').allInnerTexts())].sort()).toEqual(['0.0005', '0.001']);
    await goTo(page, 'tasks', 'table');
    expect(await page.locator('#tasks tbody').innerText()).toMatch(/form-one\s+20 % 6–51 %\s+20 % 6–51 %\s+0 points/);
    const words = (): Promise<string> =>
      page.evaluate<string>("document.querySelector('#success [role=slider]').getAttribute('aria-valuetext')");
    const axis = page.getByRole('combobox', { name: 'Horizontal axis' }),
      cursor = page.locator('[role=slider][aria-label="Evaluations: cursor"]');
    await cursor.focus();
    await cursor.press('End');
    // Time worked, without the ten minutes in which nobody did.
    expect(await words()).toMatch(/^1[3-5]:\d\d: trained/);
    const places: string[] = [];
    for (let i = 0; i < 3; i++) {
      await axis.focus();
      await axis.press('ArrowDown');
      await axis.press('Enter');
      await cursor.focus();
      await cursor.press('End');
      places.push((await words()).split(':')[0]!);
    }
    expect(places).toEqual(['4 updates', '40 rollouts', expect.stringMatching(/^\d+ trained actions$/)]);
  });

  flow(
    'the table of trajectories: a part of the ledger opens it, it is sorted, filtered, and the filter is saved',
    async () => {
      await givenRuns();
      const before = await dashboard('trained-3');
      await goTo(before, 'ledger', '.ledger-part');
      await before.locator('.ledger-part', { hasText: 'trained' }).first().click();
      const page = await c.ui.webview('table', { timeoutMs: 60_000 });
      await page.locator('.tb-row').first().waitFor();
      const chips = (): Promise<readonly string[]> => page.locator('.tb-chip').allInnerTexts();
      await until(async () => (await chips()).some((x) => /Ledger: trained/.test(x)), 'it lists what was behind it');
      expect(await textOf(page, '.tb-top [role=status]')).toMatch(/^16 of \d+ trajectories$/);
      await page.getByRole('button', { name: 'Clear filters' }).click();
      // 40 rollouts, 12 episodes of evaluations, 2 demonstrations.
      await counted(page, '54 trajectories');
      await when(
        page,
        "[...document.querySelectorAll('img.tb-picture[src]')].filter((i) => i.complete && i.naturalWidth > 0).length > 5",
      );
      await c.picture('table');
      const column = (name: string): Promise<string[]> =>
        page.evaluate<string[]>(
          `[...document.querySelectorAll('.tb-body .tb-row:not([hidden])')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector('.tb-cell.tb-${name}').textContent)`,
        );
      await page
        .getByRole('button', { name: /^Entropy/ })
        .first()
        .click();
      const sorted = (await column('entropy')).map(Number);
      expect(sorted.length).toBeGreaterThan(5);
      expect(sorted).toEqual([...sorted].sort((a, b) => b - a));
      await page.locator('.tb-search').click();
      await c.w.page.keyboard.type('press');
      await until(
        async () => (await column('task')).every((x) => x.includes('press-button')),
        'what was typed filters it',
      );
      const [n] = /^\d+/.exec(await textOf(page, '.tb-top [role=status]')) ?? [];
      await page.getByRole('button', { name: 'Saved filters' }).click();
      await page.getByLabel('Name of the filter').fill('Presses');
      await c.w.page.keyboard.press('Enter');
      await page
        .getByRole('button', { name: 'Clear filters' })
        .click()
        .catch(() => undefined);
      await c.closeEditors();
      const again = await table('trained-4');
      await again.getByRole('button', { name: 'Saved filters' }).click();
      await again.locator('.tb-saved-name', { hasText: 'Presses' }).click();
      await counted(again, `${n} of 54 trajectories`);
      await again.locator('.tb-body .tb-row').first().dblclick();
      await (await c.ui.webview('inspector')).locator('.ds-shot').first().waitFor();
    },
  );

  flow('failures in clusters open an exemplar; what changed shows a held-out task version by version', async () => {
    await givenRuns();
    const page = await table('trained-3');
    await page.locator('#tb-tab-failures').click();
    await page.locator('.tb-cluster').first().waitFor();
    expect((await page.locator('.tb-cluster h2').allInnerTexts())[0]).toMatch(/^\d+ typed without clicking first$/);
    await pictures(page);
    await c.picture('clusters');
    await page.locator('#tb-tab-changes').click();
    await when(page, "document.querySelectorAll('.tb-strip').length === 2");
    expect(await page.locator('.tb-strip').nth(1).innerText()).toContain('differs from step 1');
    await pictures(page);
    await c.picture('changes');
    await page.locator('#tb-tab-failures').click();
    await page.locator('.tb-exemplar').first().click();
    await (await c.ui.webview('inspector')).locator('.ds-shot').first().waitFor();
  });

  flow('a review leaves the screenshot its room, a few stops of the tab key away', async () => {
    await givenRuns();
    await c.w.host.command('dartStudio.selectRun', run('trained-3'));
    await c.ui.palette('DART Studio: Review Trajectories');
    const page = await c.ui.webview('inspector', { timeoutMs: 60_000 });
    await page.locator('.an-queue').waitFor();
    await pictures(page);
    await c.picture('review');
    const share = (selector: string): Promise<number> =>
      page.evaluate<number>(
        `(({ width, height }) => Math.max(width / innerWidth, height / innerHeight))(document.querySelector('${selector}').getBoundingClientRect())`,
      );
    const reviewing = await share('.ds-box');
    let stops = 0;
    await page.evaluate('document.activeElement?.blur(); document.body.focus()');
    await until(async () => {
      await c.w.page.keyboard.press('Tab');
      stops++;
      return page.evaluate<boolean>("document.activeElement?.closest('.ds-stage') !== null");
    }, 'the tab key comes to the screenshot');
    expect(stops).toBeLessThanOrEqual(8);
    await c.closeEditors();
    await c.w.host.command('dartStudio.openTrajectory', run('trained-3'), 'r0004').catch(() => undefined);
    const plain = await c.ui.webview('inspector').catch(() => undefined);
    if (plain) {
      await pictures(plain);
      expect(reviewing).toBeGreaterThan(0.5);
    }
  });

  flow('an import of OSWorld with its imports on the line is a collection: nothing to resume or evaluate', async () => {
    await givenRuns();
    const results = join(c.w.dir, 'osworld-results');
    for (const task of ['aaa', 'bbb'])
      await osworldTask(
        results,
        'os',
        task,
        [{ action: 'import pyautogui; pyautogui.click(30, 40)' }, { action: 'DONE' }],
        { initial: true },
      );
    await c.w.host.run((v, path) => {
      void v.commands.executeCommand('dartStudio.importTrajectories', v.Uri.file(path));
    }, results);
    await c.ui.pick('Import 2 trajectories');
    await c.ui.told('Imported 2 trajectories');
    const collection = c.ui.row('Runs', 'imported-osworld-results');
    await collection.waitFor();
    await until(async () => (await collection.innerText()).includes('collection'), 'it says what it is');
    await c.w.host.command('notifications.clearAll');
    await collection.click({ button: 'right' });
    await menuItem('Open Dashboard').waitFor();
    for (const title of ['Resume Run', 'Evaluate']) expect(await menuItem(title).count(), title).toBe(0);
    await c.w.page.keyboard.press('Escape');
    await c.w.host.command('dartStudio.openDashboard', run('imported-osworld-results'));
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await page.locator('.top .run-name', { hasText: 'imported' }).waitFor();
    await when(page, "document.querySelector('.top vscode-button')");
    expect(await textOf(page, '.top .buttons')).not.toMatch(/Resume|Evaluate/);
    await c.ui.palette('DART Studio: Resume Run');
    expect((await c.ui.picks()).some((p) => p.includes('imported'))).toBe(false);
    await c.w.page.keyboard.press('Escape');
    await c.w.host.command('dartStudio.selectRun', run('trained-3'));
  });

  flow('of only successes and only failures one can be ticked', async () => {
    await givenRuns();
    await c.w.host.command('dartStudio.selectRun', run('trained-3'));
    await c.ui.palette('DART Studio: Export Trajectories');
    await c.ui.pick('DART Studio trajectories');
    const pick = (label: string): Locator =>
        c.w.page.locator('.quick-input-list .monaco-list-row', { hasText: label }).first(),
      ticked = async (label: string): Promise<boolean> =>
        (await pick(label).locator('[aria-checked=true], input:checked').count()) > 0 ||
        (await pick(label).getAttribute('aria-checked')) === 'true';
    await pick('Only successes').waitFor();
    await pick('Only successes').click();
    await until(() => ticked('Only successes'), 'the first is ticked');
    await pick('Only failures').click();
    await until(() => ticked('Only failures'), 'the second is ticked');
    await until(async () => !(await ticked('Only successes')), 'the first is not any more');
    await c.picture('either');
    await c.w.page.keyboard.press('Escape');
  });

  flow('errors of a run file: each is a problem at its place, and the file is a click away', async () => {
    await givenRuns();
    const file = join(c.w.folder, 'wrong.json');
    await c.w.host.run(async (v, path) => {
      await v.window.showTextDocument(v.Uri.file(path));
    }, file);
    const problems = (): Promise<readonly string[]> =>
      c.w.host.run((v) =>
        v.languages
          .getDiagnostics()
          .filter(([uri]) => uri.path.endsWith('wrong.json'))
          .flatMap(([, all]) =>
            all.filter((d) => d.source === 'DART Studio').map((d) => `${d.range.start.line + 1}: ${d.message}`),
          ),
      );
    // By its $schema alone, as soon as it is open.
    await until(async () => (await problems()).length === 2, 'both are in the Problems view');
    expect([...(await problems())].sort()).toEqual([expect.stringMatching(/^4: /), expect.stringMatching(/^7: /)]);
    await c.closeEditors();
    await c.w.host.run((v, path) => {
      void v.commands.executeCommand('dartStudio.startTrainingWithFile', v.Uri.file(path));
    }, file);
    const toast = await c.ui.told('Training was not started: wrong.json has 2 problems');
    await c.closeEditors();
    await toast.hover();
    await toast.getByRole('button', { name: 'Open File' }).click();
    await until(async () => (await c.tabs).includes('wrong.json'), 'the file is open');
    // It has the commands of run files, whatever it is called.
    expect(await c.ui.offered('DART Studio: Start Training with This File')).toContainEqual(
      expect.stringContaining('Start Training with This File'),
    );
  });

  flow('the run file of a run is opened, and duplicated with changes', async () => {
    await givenRuns();
    const page = await dashboard('trained-3');
    await page.getByRole('button', { name: 'Open Run File' }).click();
    await until(async () => (await c.tabs).includes('run.json'), 'it is open');
    await c.closeEditors();
    const again = await dashboard('trained-3');
    await again.getByRole('button', { name: 'Duplicate with Changes…' }).click();
    const made = join(c.w.folder, 'again.dart-run.json'),
      field = c.w.page
        .locator('.quick-input-widget', { hasText: 'Duplicate with Changes' })
        .locator('.quick-input-box input');
    await until(async () => {
      if (existsSync(made)) return true;
      if (await field.isVisible()) {
        if ((await field.inputValue()) === made) await field.press('Enter', { timeout: 2000 }).catch(() => undefined);
        else await field.fill(made, { timeout: 2000 }).catch(() => undefined);
      }
      return false;
    }, 'it is saved');
    const text = JSON.parse(readFileSync(made, 'utf8')) as { readonly trainer: unknown; readonly seed: unknown };
    expect(text).toMatchObject({ name: 'trained', seed: 3, trainer: { lr: 5e-4 } });
  });

  flow('a run is renamed, tagged, pinned, archived, found again and deleted', async () => {
    await givenRuns();
    const act = async (target: Locator, title: string): Promise<void> => {
      await target.click({ button: 'right' });
      await menuItem(title).click();
    };
    await act(row(3), 'Rename Run…');
    await answer('Rename Run', 'best so far');
    await c.ui.row('Runs', 'best so far').waitFor();
    await act(c.ui.row('Runs', 'best so far'), 'Edit Tags of Run…');
    await answer('Edit Tags of Run', 'keep, paper');
    await c.ui.row('Runs', '#keep #paper').waitFor();
    await act(c.ui.row('Runs', 'best so far'), 'Pin or Unpin Run');
    await until(async () => /^best so far.*pinned/.test((await rowsOf())[0] ?? ''), 'it stands first');
    await act(c.ui.row('Runs', 'spoiled'), 'Archive or Restore Run');
    await until(async () => !(await rowsOf()).some((r) => r.startsWith('spoiled')), 'it is put away');
    await c.picture('managed');
    await c.ui.palette('DART Studio: Find Run');
    await until(async () => {
      await quickInput().fill('archived');
      return (await c.ui.picks()).some((p) => p.includes('spoiled'));
    }, 'it is found');
    await c.ui.pick('spoiled');
    await c.ui.webview('dashboard', { timeoutMs: 60_000, text: /spoiled/ });
    await until(async () => (await rowsOf()).some((r) => r.startsWith('spoiled')), 'archived runs are listed now');
    await act(c.ui.row('Runs', 'broken'), 'Delete Run…');
    await c.ui
      .dialog()
      .filter({ hasText: 'Delete the run broken?' })
      .getByRole('button', { name: 'Move to Trash' })
      .click();
    // The machine of a web workbench has no trash: it asks once more.
    await until(async () => {
      const forever = c.ui.dialog().getByRole('button', { name: 'Delete Permanently' });
      if (await forever.isVisible()) await forever.click({ timeout: 2000 }).catch(() => undefined);
      return !existsSync(run('broken'));
    }, 'its folder is gone');
    await until(async () => !(await rowsOf()).some((r) => r.startsWith('broken')), 'and its row');
  });

  flow('a queue is held, filled with seeds, reordered and emptied', async () => {
    await givenRuns();
    await c.ui.palette('DART Studio: Hold or Release Queue');
    await c.ui.palette('DART Studio: Add to Queue');
    const files = c.w.page.locator('.quick-input-list .monaco-list-row', { hasText: 'first.dart-run.json' }).first();
    await files.waitFor();
    await files.click();
    await c.w.page.locator('.quick-input-widget .quick-input-action a', { hasText: 'OK' }).first().click();
    await answer('Add to Queue', '7, 8');
    const queued = async (): Promise<readonly string[]> => (await rowsOf()).filter((r) => /^first seed/.test(r));
    await until(async () => (await queued()).length === 2, 'both wait');
    expect(await queued()).toEqual([expect.stringContaining('seed 7'), expect.stringContaining('seed 8')]);
    expect((await rowsOf()).find((r) => r.startsWith('Queue'))).toMatch(/2 runs · held/);
    await c.picture('queue');
    const second = c.ui.row('Runs', 'seed 8');
    await second.hover();
    await second.locator('.actions a[aria-label^="Move Up"]').click();
    await until(async () => (await queued())[0]?.includes('seed 8') ?? false, 'the other one is first');
    for (const seed of [8, 7]) {
      const waiting = c.ui.section('Runs').locator('.monaco-list-row', { hasText: `firstseed ${seed}` });
      await waiting.first().hover();
      await waiting.first().locator('.actions a[aria-label^="Remove from Queue"]').click();
      await until(async () => !(await queued()).some((r) => r.includes(`seed ${seed}`)), 'it is taken out');
    }
    await c.w.host.command('dartStudio.pauseQueue');
    expect(c.runs.some((r) => r.includes('first'))).toBe(false);
  });

  flow('comparison and table in four themes: nothing for axe to find', async () => {
    await givenRuns();
    const node = (name: string): unknown => ({ kind: 'run', run: run(name) });
    await c.w.host.command('dartStudio.compareRuns', node('trained-3'), [node('trained-3'), node('trained-4')]);
    await c.ui.webview('compareRuns', { timeoutMs: 60_000 });
    const axe = axeSource(),
      found: string[] = [];
    await table('trained-3');
    for (const [theme, name] of [
      ['Dark Modern', 'dark'],
      ['Light Modern', 'light'],
      ['Default High Contrast', 'hc'],
      ['Default High Contrast Light', 'hc-light'],
    ] as const) {
      await c.setTheme(theme);
      for (const [i, kind] of (['compareRuns', 'table'] as const).entries()) {
        await c.showTab(i + 1);
        const page = await c.ui.webview(kind);
        await pictures(page);
        await c.picture(`${kind}-${name}`);
        for (const v of await violations(page, axe))
          found.push(`${kind}, ${name}: ${v.id} (${v.impact}): ${v.nodes.slice(0, 3).join(' | ')}`);
      }
    }
    await c.setTheme('Dark Modern');
    expect(found).toEqual([]);
  });
});
