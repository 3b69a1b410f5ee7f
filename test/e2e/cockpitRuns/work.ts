/** Flows of what is done with runs and run files: imported, exported, renamed, queued. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { activeRunsFile, type ActiveRun } from '../../../runtime/protocol/activeRuns.js';
import { osworldTask } from '../../helpers/interchange/make.js';
import type { Locator } from '../../helpers/workbench/playwright.js';
import { openFile, saveAs } from '../../helpers/workbench/saveAs.js';
import { when } from '../../helpers/workbench/ui.js';
import { until } from '../../helpers/workbench/workbench.js';
import { counted, textOf, type Flow, type RunsWindow } from './window.js';

export function flowsOfWork(flow: Flow, w: () => RunsWindow): void {
  flow('an import of OSWorld with its imports on the line is a collection: nothing to resume or evaluate', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
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
    await on.menuItem('Open Dashboard').waitFor();
    for (const title of ['Resume Run', 'Evaluate']) expect(await on.menuItem(title).count(), title).toBe(0);
    await c.ui.closeMenu();
    await c.w.host.command('dartStudio.openDashboard', on.run('imported-osworld-results'));
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await page.locator('.top .run-name', { hasText: 'imported' }).waitFor();
    await when(page, "document.querySelector('.top vscode-button')");
    expect(await textOf(page, '.top .buttons')).not.toMatch(/Resume|Evaluate/);
    for (const command of ['Resume Run', 'Evaluate Checkpoint']) {
      await c.ui.palette(`DART Studio: ${command}`);
      const runs = await c.ui.picks();
      expect(runs.filter((p) => p.includes('trained')).length, command).toBeGreaterThan(0);
      expect(
        runs.filter((p) => p.includes('imported')),
        command,
      ).toEqual([]);
      await on.closePicker();
    }
    await c.ui.palette('DART Studio: Try Policy');
    const policies = (await c.ui.webview('try', { timeoutMs: 60_000 })).locator('.try-field select').first();
    await until(async () => (await policies.innerText()).includes('trained'), 'policies are offered');
    expect(await policies.innerText()).not.toContain('imported');
    await c.closeEditors();
    // Both steps came, and the first is the click where it was.
    const table = await on.table('imported-osworld-results');
    await counted(table, '2 trajectories');
    await table.locator('.tb-body .tb-row').first().click();
    const shown = await c.ui.webview('inspector');
    await shown.locator('.ds-shot').first().waitFor();
    expect(await shown.locator('.ds-shot').first().getAttribute('aria-setsize')).toBe('2');
    const step = async (key: string, n: number): Promise<string> => {
      await shown.locator('.ds-film-list').press(key);
      await shown.locator('h2', { hasText: `Step ${n}` }).waitFor();
      return (await shown.locator('.ds-actions').allInnerTexts()).join(' ');
    };
    expect(await step('Home', 1)).toMatch(/click at 30,40/i);
    expect(await step('End', 2)).toMatch(/finish/i);
    await c.picture('imported');
    await c.w.host.command('dartStudio.selectRun', on.run('trained-3'));
  });

  flow('of only successes and only failures one can be ticked', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    await c.w.host.command('dartStudio.selectRun', on.run('trained-3'));
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
    await pick('Only successes').click();
    await until(async () => (await ticked('Only successes')) && !(await ticked('Only failures')), 'and the other way');
    await c.picture('either');
    await c.w.page.keyboard.press('Escape');
  });

  flow('errors of a run file: each is a problem at its place, and the file is a click away', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    const file = join(c.w.folder, 'wrong.json');
    await c.w.host.run(async (v, path) => {
      await v.window.showTextDocument(v.Uri.file(path));
    }, file);
    const found = (): Promise<readonly (readonly [source: string, words: string])[]> =>
        c.w.host.run((v) =>
          v.languages
            .getDiagnostics()
            .filter(([uri]) => uri.path.endsWith('wrong.json'))
            .flatMap(([, all]) => all.map((d) => [d.source ?? '', `${d.range.start.line + 1}: ${d.message}`] as const)),
        ),
      problems = async (): Promise<readonly string[]> =>
        (await found()).filter(([source]) => source === 'DART Studio').map(([, words]) => words),
      // Of the editor, which has read the schema from the address that the file names.
      bySchema = async (): Promise<readonly string[]> =>
        (await found()).filter(([source]) => source !== 'DART Studio').map(([, words]) => words);
    // By its $schema alone, as soon as it is open.
    await until(async () => (await problems()).length === 2, 'both are in the Problems view');
    expect([...(await problems())].sort()).toEqual([expect.stringMatching(/^4: /), expect.stringMatching(/^7: /)]);
    await until(async () => (await bySchema()).some((p) => /^4: Incorrect type/.test(p)), 'the editor finds it too');
    expect((await bySchema()).filter((p) => /load|resolve/i.test(p))).toEqual([]);
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

  flow('training is started from a plain JSON file: it is a run file from then on, and may say so', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    const file = join(c.w.folder, 'plain.json'),
      command = 'DART Studio: Start Training with This File',
      offered = async (): Promise<boolean> => (await c.ui.offered(command)).some((x) => x.startsWith(command));
    // What is wrong in it keeps it from being trained; nothing in it says that it is a run file.
    writeFileSync(file, JSON.stringify({ name: 'plain', desktops: { count: 'two' } }, null, 2));
    await c.w.host.run(async (v, path) => {
      await v.window.showTextDocument(v.Uri.file(path), { preview: false });
    }, file);
    expect(await offered()).toBe(false);
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('Another Run File');
    await openFile(c.w.page, 'Run File', file);
    await c.ui.told('plain.json does not name the schema of run files');
    await c.ui.told('Training was not started: plain.json has a problem');
    expect(await offered()).toBe(true);
    await c.ui.press('plain.json does not name the schema of run files', 'Add $schema');
    const text = (): Promise<string> => c.w.host.run((v) => v.window.activeTextEditor?.document.getText() ?? '');
    await until(
      async () => (await text()).includes('"$schema": "dart-studio:/run.schema.json"'),
      'it names the schema',
    );
    expect(JSON.parse(await text())).toMatchObject({ name: 'plain' });
    expect(c.runs.some((r) => r.includes('plain'))).toBe(false);
  });

  flow(
    'a run with which the runtime ended again and again is left stopped, and a notification offers to resume it',
    async () => {
      const on = w(),
        { c } = on;
      await on.given.noRuntime();
      const left: ActiveRun = {
        run: on.run('trained-4'),
        id: 'trained-4',
        name: 'trained',
        since: Date.now(),
        deaths: 2,
        idleDeaths: 2,
      };
      writeFileSync(join(c.storage, activeRunsFile), JSON.stringify({ runs: [left] }), { mode: 0o600 });
      await on.given.runtime();
      const toast = await c.ui.told(
        /Training run trained: The runtime ended 3 times in a row while this run was active/,
      );
      await toast.hover();
      const offers = toast.getByRole('button', { name: /^(Resume Run…|Show Runtime Log|Open)$/ });
      await until(async () => (await offers.count()) === 3, 'it offers to resume it, its log and its page');
      await c.picture('left-stopped');
      await toast.getByRole('button', { name: 'Resume Run…' }).click();
      // Of that run, without asking which.
      await until(
        async () => (await c.ui.picks()).some((p) => p.startsWith('10 more minutes')),
        'it asks for how long',
      );
      await on.closePicker();
    },
  );

  flow('the run file of a run is opened, and duplicated with changes', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    const page = await on.dashboard('trained-3');
    await page.getByRole('button', { name: 'Open Run File' }).click();
    await until(async () => (await c.tabs).includes('run.json'), 'it is open');
    await c.closeEditors();
    const again = await on.dashboard('trained-3');
    await again.getByRole('button', { name: 'Duplicate with Changes…' }).click();
    const made = join(c.w.folder, 'again.dart-run.json');
    await saveAs(c.w.page, 'Duplicate with Changes', made);
    const text = JSON.parse(readFileSync(made, 'utf8')) as { readonly trainer: unknown; readonly seed: unknown };
    expect(text).toMatchObject({ name: 'trained', seed: 3, trainer: { lr: 7e-4 } });
  });

  flow('a run is grouped, renamed, noted, tagged, pinned, archived, found again, restored and deleted', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    await on.act(on.row(4), 'Move Run to Group…');
    await c.ui.pick('New group…');
    await on.answer('Name of the group', 'paper runs');
    const group = c.ui.section('Runs').locator('.monaco-list-row[aria-level="1"]', { hasText: 'paper runs' });
    await group.waitFor();
    await until(
      () =>
        c.ui
          .section('Runs')
          .locator('.monaco-list-row[aria-level="1"]:has-text("paper runs") + .monaco-list-row[aria-level="2"]')
          .filter({ hasText: 'seed 4' })
          .isVisible(),
      'the run stands in its group',
    );
    await on.act(on.row(3), 'Rename Run…');
    await on.answer('Rename Run', 'best so far');
    await c.ui.row('Runs', 'best so far').waitFor();
    await on.act(c.ui.row('Runs', 'best so far'), 'Edit Notes of Run…');
    await on.answer('Edit Notes of Run', 'the learning rate of the paper');
    await on.act(c.ui.row('Runs', 'best so far'), 'Edit Tags of Run…');
    await on.answer('Edit Tags of Run', 'keep, paper');
    await c.ui.row('Runs', '#keep #paper').waitFor();
    await on.act(c.ui.row('Runs', 'best so far'), 'Pin or Unpin Run');
    await until(async () => /^best so far.*pinned/.test((await on.rows())[0] ?? ''), 'it stands first');
    await on.act(c.ui.row('Runs', 'best so far'), 'Pin or Unpin Run');
    await until(
      async () => (await on.rows()).some((r) => r.startsWith('best so far') && !r.includes('pinned')),
      'it is not pinned any more',
    );
    await on.act(c.ui.row('Runs', 'spoiled'), 'Archive or Restore Run');
    await until(async () => !(await on.rows()).some((r) => r.startsWith('spoiled')), 'it is put away');
    await c.picture('managed');
    await c.ui.palette('DART Studio: Find Run');
    await until(async () => {
      await on.input.fill('archived');
      return (await c.ui.picks()).some((p) => p.includes('spoiled'));
    }, 'it is found');
    await c.ui.pick('spoiled');
    await c.ui.webview('dashboard', { timeoutMs: 60_000, text: /spoiled/ });
    await until(async () => (await on.rows()).some((r) => r.startsWith('spoiled')), 'archived runs are listed now');
    const spoiled = async (): Promise<string | undefined> => (await on.rows()).find((r) => r.startsWith('spoiled'));
    expect(await spoiled()).toContain('archived');
    await on.act(c.ui.row('Runs', 'spoiled'), 'Archive or Restore Run');
    await until(async () => (await spoiled())?.includes('archived') === false, 'it is no longer put away');
    await c.w.host.command('dartStudio.showArchivedRuns');
    // What is listed now are the runs that are not put away.
    expect(await spoiled()).toBeDefined();
    await c.ui.palette('DART Studio: Find Run');
    await until(async () => {
      await on.input.fill('learning rate of the paper');
      const found = await c.ui.picks();
      return found.length === 1 && found[0]!.includes('best so far');
    }, 'it is found by its note');
    await c.w.page.keyboard.press('Escape');
    await on.act(c.ui.row('Runs', 'broken'), 'Delete Run…');
    await c.ui
      .dialog()
      .filter({ hasText: 'Delete the run broken?' })
      .getByRole('button', { name: 'Move to Trash' })
      .click();
    // The machine of a web workbench has no trash: it asks once more.
    await until(async () => {
      const forever = c.ui.dialog().getByRole('button', { name: 'Delete Permanently' });
      if (await forever.isVisible()) await forever.click({ timeout: 2000 }).catch(() => undefined);
      return !existsSync(on.run('broken'));
    }, 'its folder is gone');
    await until(async () => !(await on.rows()).some((r) => r.startsWith('broken')), 'and its row');
  });

  flow('a queue is paused, filled with seeds, reordered and emptied', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    await c.ui.palette('DART Studio: Turn Queue On or Off');
    await on.enqueue('first.dart-run.json', '7, 8');
    const queued = async (): Promise<readonly string[]> => (await on.rows()).filter((r) => /^first ?seed/.test(r));
    await until(async () => (await queued()).length === 2, 'both wait');
    expect(await queued()).toEqual([expect.stringContaining('seed 7'), expect.stringContaining('seed 8')]);
    expect((await on.rows()).find((r) => r.startsWith('Queue'))).toMatch(/2 runs · paused/);
    await c.picture('queue');
    const second = c.ui.row('Runs', 'seed 8');
    await second.hover();
    await second.locator('.actions a[aria-label^="Move Up"]').click();
    await until(async () => (await queued())[0]?.includes('seed 8') ?? false, 'the other one is first');
    await on.act(c.ui.row('Runs', 'seed 8'), 'Move Down in Queue');
    await until(async () => (await queued())[0]?.includes('seed 7') ?? false, 'and last again');
    for (const seed of [8, 7]) {
      const waiting = c.ui.section('Runs').locator('.monaco-list-row', { hasText: `firstseed ${seed}` });
      await waiting.first().hover();
      await waiting.first().locator('.actions a[aria-label^="Remove from Queue"]').click();
      await until(async () => !(await queued()).some((r) => r.includes(`seed ${seed}`)), 'it is taken out');
    }
    await c.w.host.command('dartStudio.pauseQueue');
    expect(c.runs.some((r) => r.includes('first'))).toBe(false);
  });
}
