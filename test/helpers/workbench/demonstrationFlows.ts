import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { osworldTask, put } from '../interchange/make.js';
import type { Cockpit } from './cockpit.js';
import type { Given } from './given.js';
import { Hand, whichTerminal } from './hand.js';
import type { Frame } from './playwright.js';
import { until } from './workbench.js';

/** What the flows of demonstrations have in common: recording one, importing, exporting, and what they take as given. */
export function demonstrationFlows(cockpit: () => Cockpit, given: () => Given) {
  const run = (name: string): string => join(cockpit().w.folder, 'runs', name);
  const live = (): Promise<Frame> => cockpit().ui.webview('live', { timeoutMs: 180_000 });
  const handOn = async (): Promise<Hand> => {
    const h = new Hand(cockpit().w.page, await live());
    await h.waits(/in control/, 180_000);
    return h;
  };
  /** The view has the focus before its run is selected: what is opened afterwards stays open. */
  const isSelected = async (name: string): Promise<boolean> =>
    (await cockpit()
      .ui.section('Runs')
      .locator('.monaco-list-row', { hasText: new RegExp(`${name}\\s*selected`) })
      .count()) === 1;
  /**
   * From the notification that says so. Those that are shown move as others come and go, and a press may miss: it
   * stays, and is pressed again.
   */
  const openImported = (name: string): Promise<void> =>
    until(
      async () => {
        const said = await cockpit().ui.told('Imported 2 trajectories', 10_000);
        await said.hover({ timeout: 2000 }).catch(() => undefined);
        if (
          !(await said
            .getByRole('button', { name: 'Open' })
            .click({ timeout: 2000 })
            .then(
              () => true,
              () => false,
            ))
        )
          return false;
        return until(() => isSelected(name), 'it is selected', 10_000).then(
          () => true,
          () => false,
        );
      },
      `${name} is opened and selected`,
      90_000,
    );
  /**
   * In the dialog of folders, which fills its own field once it has read where it begins. `dir` has a folder named
   * "here".
   */
  const chooseFolder = async (dir: string): Promise<void> => {
    const widget = cockpit().w.page.locator('.quick-input-widget', { hasText: 'Export Into' }),
      field = widget.locator('.quick-input-box input');
    await widget.waitFor();
    await until(async () => {
      if ((await field.inputValue()) !== `${dir}/`) {
        await field.fill(`${dir}/`);
        return false;
      }
      return (await widget.locator('.monaco-list-row', { hasText: 'here' }).count()) > 0;
    }, 'the folder is chosen');
    await widget.locator('.quick-input-action a', { hasText: 'Export Here' }).click();
  };
  const pickTask = async (name: string): Promise<void> => {
    await cockpit().ui.palette('DART Studio: Record Demonstration');
    const rows = cockpit().w.page.locator('.quick-input-list .monaco-list-row', { hasText: 'desk/' });
    await rows.first().waitFor({ timeout: 120_000 });
    await cockpit().w.page.locator('.quick-input-widget .quick-input-box input').fill(name);
    await cockpit().ui.pick(`desk/${name}`);
  };
  /** Records "run a line in one of two terminals" by pointer and keys, up to its verdict. */
  const recordWhichTerminal = async (): Promise<Frame> => {
    await pickTask('term-which');
    const hand = await handOn(),
      { click, line } = whichTerminal(await hand.seed());
    await hand.click(click.x + 90, click.y + 110);
    await until(async () => (await hand.steps()).some((s) => /click/i.test(s)), 'the click is recorded as a step');
    await hand.type(line);
    await hand.press('Enter');
    await until(
      async () => (await hand.steps()).some((s) => s.includes(line)),
      'the line is recorded as one action',
      30_000,
    );
    const page = await live();
    await cockpit().picture('record-live');
    await page
      .getByRole('button', { name: /^Finish/ })
      .first()
      .click();
    await hand.waits(/Success/);
    return page;
  };
  const inPool = async (text: string | RegExp): Promise<boolean> =>
    (await cockpit().ui.rows('Experience Pool')).some((r) =>
      typeof text === 'string' ? r.includes(text) : text.test(r),
    );
  /** A demonstration is in the pool, and its entry is shown under its task. */
  const givenDemonstration = async (): Promise<void> => {
    await given().runtime();
    await given().sideBar('Experience Pool');
    if (existsSync(join(run('demonstrations'), 'run.json')))
      await cockpit().w.host.command('dartStudio.selectRun', run('demonstrations'));
    else {
      await recordWhichTerminal();
      await given().clearWorkbench();
    }
    await until(() => inPool('desk/term-which'), 'the pool lists its task', 60_000);
    if (!(await inPool(/^human, \d steps/))) await cockpit().ui.row('Experience Pool', 'desk/term-which').click();
    await until(() => inPool(/^human, \d steps/), 'its entry is shown');
  };
  /** Results of OSWorld: two episodes that can be imported and one that cannot. */
  const osworldResults = async (): Promise<string> => {
    const results = join(cockpit().w.dir, 'osworld-results');
    await osworldTask(
      results,
      'os',
      'aaa',
      [
        { action: 'pyautogui.click(30, 40)', response: "Thought: open\nAction: click(start_box='(30,40)')" },
        { action: 'pyautogui.typewrite("hello")' },
        { action: 'DONE' },
      ],
      { initial: true },
    );
    await osworldTask(results, 'os', 'bbb', [{ action: 'pyautogui.click(50, 20)' }, { action: 'DONE' }], {
      initial: true,
      result: '0.0\n',
    });
    await osworldTask(results, 'os', 'ccc', [{ action: 'pyautogui.tripleClick(30, 40)' }], { initial: true });
    await put(join(cockpit().w.dir, 'tasks/os/aaa.json'), JSON.stringify({ instruction: 'Open it.' }));
    return results;
  };
  /** Begins an import, and waits for what it proposes. */
  const beginImport = async (from: string): Promise<void> => {
    await cockpit().w.host.run((v, path) => {
      void v.commands.executeCommand('dartStudio.importTrajectories', v.Uri.file(path));
    }, from);
    await cockpit()
      .w.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Import 2 trajectories' })
      .waitFor({ timeout: 60_000 });
  };
  /** The results are imported, and their run is the one selected. */
  const givenImported = async (): Promise<void> => {
    await given().runtime();
    const imported = run('imported-osworld-results');
    if (existsSync(join(imported, 'run.json'))) await cockpit().w.host.command('dartStudio.selectRun', imported);
    else {
      await beginImport(await osworldResults());
      await cockpit().ui.pick('Import 2 trajectories');
      await openImported('imported-osworld-results');
      await cockpit().w.host.command('notifications.clearAll');
    }
    await until(() => isSelected('imported-osworld-results'), 'it is selected');
  };

  return {
    run,
    live,
    handOn,
    openImported,
    chooseFolder,
    pickTask,
    recordWhichTerminal,
    inPool,
    givenDemonstration,
    osworldResults,
    beginImport,
    givenImported,
  };
}

/** Every file of a folder by its path, with its content; but when a step was written into its run is that run's own. */
export function filesOf(dir: string): Readonly<Record<string, string>> {
  const names = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile())
    .map((e) => join(e.parentPath, e.name))
    .sort();
  return Object.fromEntries(
    names.map((f) => [
      f.slice(dir.length),
      f.endsWith('.jsonl')
        ? readFileSync(f, 'utf8').replace(/^(\{"index":\d+,)"at":\d+,/gm, '$1')
        : readFileSync(f).toString('base64'),
    ]),
  );
}
