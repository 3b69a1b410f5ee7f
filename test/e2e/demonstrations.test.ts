import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { RunFile } from '../../runtime/config/index.js';
import { connectEngine, ensureImage } from '../../runtime/cluster/imageBuild.js';
import { readLog } from '../../runtime/annotations/log.js';
import { put } from '../helpers/interchange/make.js';
import { untaughtRun } from '../helpers/run/untaughtRun.js';
import { engineHere } from '../helpers/cluster/engine.js';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { Cockpit, tinyRun } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import { demonstrationFlows, filesOf } from '../helpers/workbench/demonstrationFlows.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { foundInThemes } from '../helpers/workbench/themes.js';
import { tryTakeOverAndKeep } from '../helpers/workbench/tryFlow.js';
import { until } from '../helpers/workbench/workbench.js';

/**
 * Demonstrations as a person makes them: by pointer and keys in the webview, on real desktops, with the packaged
 * extension. Each flow states what it takes as given; what one records or imports serves the next ones too.
 */
const engine = await engineHere(),
  noLocal = await whyNoLocalDesktops(),
  provider = engine ? 'docker' : 'local';
const missing = whyNoWorkbench('latest') ?? (provider === 'local' ? noLocal : undefined);
if (missing) console.warn(`skipped: demonstrations in VS Code (${missing})`);

/**
 * As small as a run can be before its first rollout of training, and with a trainer that leaves the desktops to the
 * rollouts.
 */
const tiny = JSON.parse(tinyRun(provider)) as RunFile;
const shortRun = JSON.stringify({
  ...tiny,
  name: 'short',
  tasks: { families: ['form-two'] },
  trainer: { batchGroups: 4 },
  warmStart: { demonstrations: 1, steps: 1 },
  evaluation: { episodes: 1, everyMinutes: 0 },
} satisfies RunFile);

describe.skipIf(missing !== undefined)(`VS Code, current, demonstrations on ${provider} desktops`, () => {
  let c: Cockpit, given: Given;
  beforeAll(async () => {
    if (provider === 'docker') await ensureImage(connectEngine());
    c = await Cockpit.start({
      which: 'latest',
      settings: { 'dartStudio.desktops.provider': provider },
      files: { 'short.dart-run.json': shortRun },
    });
    given = new Given(c, 'short');
  });
  afterAll(() => c?.stop());
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );
  const {
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
  } = demonstrationFlows(
    () => c,
    () => given,
  );

  flow('nothing is recorded yet: the pool says how to begin', async () => {
    await given.noRuntime();
    rmSync(run(''), { recursive: true, force: true });
    await given.sideBar('Experience Pool');
    await c.ui
      .section('Experience Pool')
      .locator('.welcome-view-content', { hasText: 'while the runtime is running' })
      .waitFor();
    await c.ui.palette('DART Studio: Start Runtime');
    await c.ui
      .section('Experience Pool')
      .locator('.welcome-view-content', { hasText: 'Record Demonstration' })
      .waitFor({ timeout: 60_000 });
    await c.picture('pool-empty');
  });

  flow('a demonstration is recorded by real pointer and keys, verified, and joins the pool', async () => {
    await given.runtime();
    await given.sideBar('Experience Pool');
    await c.ui.palette('DART Studio: Record Demonstration');
    await c.w.page
      .locator('.quick-input-list .monaco-list-row', { hasText: 'desk/' })
      .first()
      .waitFor({ timeout: 60_000 });
    await c.picture('record-pick');
    await c.w.page.keyboard.press('Escape');
    const page = await recordWhichTerminal();
    await until(
      async () => /experience pool/.test(await page.locator('.live-now').innerText()),
      'it is said that it joined the pool',
    );
    await c.picture('record-success');
    await until(() => inPool('desk/term-which'), 'the pool lists its task', 60_000);
    expect(existsSync(join(run('demonstrations'), 'run.json'))).toBe(true);
    await c.ui.row('Experience Pool', 'desk/term-which').click();
    await until(() => inPool(/^human, \d steps/), "its entry is a person's");
    await c.picture('pool');
  });

  flow('an entry of the pool is turned off and on by its check box', async () => {
    await givenDemonstration();
    const box = c.ui.row('Experience Pool', /\d steps/).locator('.custom-view-tree-node-item-checkbox');
    await box.click();
    await until(() => inPool('turned off'), 'it is off', 30_000);
    await box.click();
    await until(async () => !(await inPool('turned off')), 'it is on again', 30_000);
  });

  flow('it is annotated, replayed on a fresh desktop, and verified', async () => {
    await givenDemonstration();
    await c.ui.row('Experience Pool', /\d steps/).click();
    const first = await c.ui.webview('inspector');
    await first.locator('.ds-shot').first().waitFor();
    await c.ui.palette('DART Studio: Annotate Trajectory');
    const page = await c.ui.webview('inspector'),
      bar = page.locator('.an-bar');
    await bar.waitFor();
    const tag = page.locator('.ds-tagging input');
    await tag.fill('seen');
    await tag.press('Enter');
    await until(
      async () => /Saved, revision \d/.test(await page.locator('.an-state').innerText()),
      'the edit is on disk',
    );
    expect(await foundInThemes(c, page, 'annotate')).toEqual([]);
    await c.ui.expand('Trajectories');
    await until(
      async () => (await c.ui.section('Trajectories').locator('.monaco-list-row', { hasText: '#seen' }).count()) === 1,
      'the list shows its tag',
      30_000,
    );
    await c.ui.palette('DART Studio: Replay and Verify');
    await c.ui.told('Replayed: success', 180_000);
    await c.picture('replayed');
  });

  flow('a recording whose page is closed says what happens, and is found again after a reload', async () => {
    await given.runtime();
    await pickTask('term-touch');
    await handOn();
    await until(
      async () => /recording/.test(await c.ui.status.innerText()),
      'the status bar says that something is being recorded',
    );
    await c.closeEditors();
    await c.ui.told('still open');
    await c.picture('abandoned');
    await c.ui.press('still open', 'Show');
    await handOn();
    await c.w.reload();
    await until(
      async () => /recording/.test(await c.ui.status.innerText().catch(() => '')),
      'the reloaded window knows of it',
      60_000,
    );
    const hand = await handOn();
    await (
      await live()
    )
      .getByRole('button', { name: /^Discard/ })
      .first()
      .click();
    await until(
      async () => /Discarded|Ended/.test(await hand.word()) || !(await (await live()).locator('.live-now').isVisible()),
      'it is over',
    );
    await until(async () => !/recording/.test(await c.ui.status.innerText()), 'nothing is being recorded any more');
  });

  flow('a policy is tried: it asks, is taken over, solves it, and is found in the inspector', async () => {
    await given.runtime();
    if (!existsSync(run('untaught')))
      await untaughtRun(run('untaught'), { file: join(process.cwd(), 'dist/runtime.js') });
    await tryTakeOverAndKeep(c);
    expect(existsSync(join(run('tries'), 'run.json'))).toBe(true);
    await c.closeEditors();
  });

  flow('results of OSWorld are looked at before anything is written, and imported', async () => {
    await given.runtime();
    await given.sideBar('Trajectories');
    rmSync(run('imported-osworld-results'), { recursive: true, force: true });
    await beginImport(await osworldResults());
    expect(existsSync(run('imported-osworld-results'))).toBe(false);
    await c.picture('import-preview');
    await c.ui.pick('Show Report');
    await until(
      async () =>
        await c.w.host.run((v) =>
          v.workspace.textDocuments.some(
            (d) => d.uri.scheme === 'dart-studio-report' && d.getText().includes('tripleClick'),
          ),
        ),
      'the report names what cannot be imported',
    );
    await c.ui.told('Nothing has been written yet');
    await c.picture('import-report');
    await c.ui.press('Nothing has been written yet', 'Import…');
    await c.ui.pick('Import 2 trajectories');
    await c.ui.told('Imported 2 trajectories');
    await c.picture('imported');
    await openImported('imported-osworld-results');
    await c.ui.section('Trajectories').locator('.monaco-list-row', { hasText: 'imported' }).first().waitFor();
    expect(existsSync(join(run('imported-osworld-results'), 'run.json'))).toBe(true);
  });

  flow('what is exported and imported again has not changed', async () => {
    await givenImported();
    const out = join(c.w.dir, 'out');
    rmSync(out, { recursive: true, force: true });
    rmSync(run('imported-osworld-results-traj'), { recursive: true, force: true });
    await put(join(out, 'here/x'), '');
    await c.ui.palette('DART Studio: Export Trajectories');
    await c.ui.pick('DART Studio trajectories');
    await c.w.page.locator('.quick-input-widget', { hasText: 'With annotations' }).waitFor();
    await c.picture('export-which');
    await c.ui.enter('With annotations');
    await c.ui.pick('No split');
    await chooseFolder(out);
    await c.ui.told('Exported 2 trajectories');
    const made = join(
      out,
      readdirSync(out).find((f) => f.includes('traj'))!,
    );
    // Into the run it is from: everything is recognised by content. Into another one: the same bytes when it is
    // exported again.
    await beginImport(made);
    await c.ui.pick('Import 2 trajectories');
    await openImported('imported-osworld-results-traj');
    await c.w.host.command('notifications.clearAll');
    await c.ui.palette('DART Studio: Export Trajectories');
    await c.ui.pick('DART Studio trajectories');
    await c.ui.enter('With annotations');
    await c.ui.pick('No split');
    await chooseFolder(out);
    await until(() => readdirSync(out).filter((f) => f.includes('traj')).length === 2, 'there are two exports', 60_000);
    await c.ui.told('Exported 2 trajectories');
    const again = join(
      out,
      readdirSync(out).find((f) => f.includes('traj') && join(out, f) !== made)!,
    );
    expect(filesOf(again)).toEqual(filesOf(made));
  });

  flow('a rollout of a training run is taken over, acted in, and handed back', async () => {
    await given.noTraining();
    await given.sideBar('Trajectories', 'Desktops');
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('short.dart-run.json');
    const dashboard = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await dashboard.locator('.state', { hasText: 'Running' }).waitFor({ timeout: 60_000 });
    // Rollouts of training, not of the evaluation before it.
    await c.ui.row('Trajectories', /\d+ steps · v\d/).waitFor({ timeout: 180_000 });
    // One that was taken over after the policy's last step is handed back: nothing is proposed in it.
    const canPropose = async (): Promise<boolean> => {
      const taken = await c.ui.webview('live', { timeoutMs: 10_000 });
      await handOn();
      if (!(await taken.locator('.live-task').innerText()).includes('0 steps left')) return true;
      await taken
        .getByRole('button', { name: /^Hand Back/ })
        .first()
        .click();
      await c.closeEditors();
      return false;
    };
    // From the row of a desktop that is at work. The rollout may be over before the click: then the next one is taken.
    await until(
      async () => {
        const at = (await c.ui.rows('Desktops')).findIndex((r) =>
          /reading the screen|deciding|acting|settling/.test(r),
        );
        if (at < 0) return false;
        const row = c.ui.section('Desktops').locator('.monaco-list-row').nth(at);
        await row.hover({ timeout: 2000 }).catch(() => undefined);
        await row
          .locator('.actions a[aria-label^="Take Over"]')
          .click({ timeout: 2000 })
          .catch(() => undefined);
        return canPropose().catch(async () => {
          await c.w.host.command('notifications.clearAll');
          return false;
        });
      },
      'a rollout under way is taken over',
      150_000,
    );
    const hand = await handOn();
    await hand.click(5, 395);
    await until(
      async () => (await hand.steps()).some((s) => /click/i.test(s)),
      'what the person did is a step of the rollout',
    );
    const page = await live(),
      over = async (): Promise<boolean> => /Ended|Success|Not solved/.test(await hand.word());
    expect(await foundInThemes(c, page, 'take-over')).toEqual([]);
    // Step by step: what the policy proposes is drawn with its probability, and Enter carries it out.
    await page
      .getByRole('button', { name: /^Step Through/ })
      .first()
      .click();
    await page.locator('.live-proposal[data-state="open"]').waitFor({ timeout: 60_000 });
    expect(await page.locator('.live-proposal .chance').innerText()).toMatch(/\d %/);
    await c.picture('step-through');
    const before = (await hand.steps()).length;
    await until(
      async () => {
        // An Enter that comes too soon for a person to have seen the proposal accepts nothing.
        if ((await hand.steps()).length > before || (await over())) return true;
        await hand.press('Enter');
        return false;
      },
      'the accepted proposal is a step of the rollout',
      60_000,
    );
    // The policy may have proposed that it is done.
    await until(
      async () => {
        if (/policy acts/.test(await hand.word()) || (await over())) return true;
        await page
          .getByRole('button', { name: /^Hand Back/ })
          .first()
          .click({ timeout: 2000 })
          .catch(() => undefined);
        return false;
      },
      'the policy goes on',
      60_000,
    );
    // Others were recorded meanwhile and stand above it: it is found by what it is.
    await c.ui.palette('DART Studio: Filter Trajectories');
    await c.ui.pick('Assistance');
    await c.ui.pick(/^assisted/);
    await until(
      async () => {
        const shown = await c.ui.rows('Trajectories');
        return shown.length > 0 && shown.every((r) => r.includes('assisted'));
      },
      'the list has the assisted rollout, and no other',
      120_000,
    );
    await c.picture('assisted');
    await c.ui.palette('DART Studio: Stop Training');
    await until(
      async () => (await c.ui.rows('Runs')).some((r) => /short, stopped/.test(r)),
      'the run is stopped',
      90_000,
    );
    await c.ui.palette('DART Studio: Filter Trajectories');
    await c.ui.pick('Clear Filter');
  });

  flow('trajectories are reviewed by keyboard alone, and what was said is on disk', async () => {
    await given.trained();
    await c.ui.palette('DART Studio: Review Trajectories');
    const page = await c.ui.webview('inspector'),
      place = page.locator('.an-queue strong'),
      { keyboard } = c.w.page;
    await until(async () => /^1 of \d+/.test(await place.innerText()), 'the first of the queue is shown');
    await page.locator('.ds-shot.selected').waitFor();
    await until(() => page.evaluate<boolean>('document.hasFocus()'), 'the page has the focus');
    const first = await page.locator('.ds-head').getAttribute('data-rollout');
    await keyboard.press('k');
    await until(
      async () => /Saved, revision \d/.test(await page.locator('.an-state').innerText()),
      'the mark of the step is saved',
    );
    expect(await foundInThemes(c, page, 'review')).toEqual([]);
    await keyboard.press('Enter');
    await until(
      async () =>
        /^2 of \d+/.test(await place.innerText()) &&
        (await page.locator('.ds-head').getAttribute('data-rollout')) !== first,
      'the next one is shown',
    );
    await until(async () => (await c.tabs).some((x) => x.startsWith('Set ')), 'the tab is called as the task');
    await keyboard.press('[');
    await until(
      async () => (await page.locator('.ds-head').getAttribute('data-rollout')) === first,
      'it goes back to the first',
    );
    await page.getByRole('button', { name: 'Not reviewed' }).waitFor();
    const ops = (await readLog(c.runs.find((r) => basename(r).includes('short'))!)).lines
      .get(first!)
      ?.edits.flatMap((e) => e.ops);
    expect(ops).toEqual([
      expect.objectContaining({ op: 'mark', mark: 'key', on: true }),
      expect.objectContaining({ op: 'reviewed', value: true }),
    ]);
  });

  flow('the same in a light theme', async () => {
    await given.runtime();
    await c.setTheme('Light Modern');
    await c.ui.palette('DART Studio: Show Experience Pool');
    await c.ui.palette('DART Studio: Record Demonstration');
    await c.w.page.locator('.quick-input-list .monaco-list-row', { hasText: 'desk/' }).first().waitFor();
    await c.picture('record-pick-light');
    await c.w.page.keyboard.press('Escape');
    await c.picture('pool-light');
    await c.setTheme('Dark Modern');
  });
});
