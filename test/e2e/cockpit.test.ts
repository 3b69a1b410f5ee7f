import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { connectEngine, ensureImage } from '../../runtime/cluster/imageBuild.js';
import { engineHere } from '../helpers/cluster/engine.js';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { serializeTrajectory } from '../../runtime/protocol/trajectoryFile.js';
import { FrameFolder } from '../helpers/pages/screens.js';
import { richPlans, view } from '../helpers/pages/trajectories.js';
import { isAlive } from '../helpers/machine/processes.js';
import { Cockpit, tinyRun } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import type { Frame } from '../helpers/workbench/playwright.js';
import { axeSource, whyNoWorkbench } from '../helpers/workbench/rig.js';
import { themes } from '../helpers/workbench/themes.js';
import { pictures, Ui, violations } from '../helpers/workbench/ui.js';
import { until } from '../helpers/workbench/workbench.js';
import { openLanes, sharesAgree } from './cockpitRuns/busyShares.js';

/**
 * The packaged extension, the real daemon and real desktops, driven as a person does. One workbench and one training
 * run for all flows, each of which states what it takes as given (`Given`) and so can run alone.
 */
const engine = await engineHere(),
  noLocal = await whyNoLocalDesktops(),
  provider = engine ? 'docker' : 'local';
const missing = whyNoWorkbench('latest') ?? (provider === 'local' ? noLocal : undefined);
if (missing) console.warn(`skipped: the extension in VS Code (${missing})`);

describe.skipIf(missing !== undefined)(`VS Code, current, ${provider} desktops`, () => {
  let c: Cockpit, given: Given;
  beforeAll(async () => {
    if (provider === 'docker') await ensureImage(connectEngine());
    c = await Cockpit.start({
      which: 'latest',
      files: { 'tiny.dart-run.json': tinyRun(provider), 'notes.txt': 'a file' },
    });
    given = new Given(c);
  });
  afterAll(() => c?.stop());
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );

  /** Steps that a trajectory page shows. */
  const shots = (f: Frame): Promise<number> =>
    f.evaluate<number>("Number(document.querySelector('.ds-shot')?.getAttribute('aria-setsize') ?? 0)");

  flow('nothing runs until it is asked for', async () => {
    await given.nothingStarted();
    expect(await c.isActive).toBe(false);
    expect(c.daemon).toBeUndefined();
    // The workbench learns whether its folder is trusted while it starts: until then the command is not offered.
    await expect
      .poll(() => c.ui.offered('DART Studio: Start Training'), { timeout: 30_000 })
      .toContainEqual(expect.stringContaining('DART Studio: Start Training'));
    await c.ui.openContainer();
    await expect
      .poll(() => c.ui.section('Runs').locator('.welcome-view-content').innerText())
      .toContain('The runtime is not running');
  });

  flow('a trajectory file opens in the inspector from the Explorer', async () => {
    await given.noRuntime();
    const dir = join(c.w.folder, 'frames'),
      plans = await richPlans(new FrameFolder(dir));
    writeFileSync(join(c.w.folder, 'recorded.traj.jsonl'), serializeTrajectory(view(plans, 'frames')));
    await c.w.host.command('workbench.view.explorer');
    await c.w.page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'recorded.traj.jsonl' }).dblclick();
    const page = await c.ui.webview('inspector');
    await page.locator('.ds-shot').first().waitFor();
    await expect.poll(() => shots(page)).toBe(plans.length);
    expect(
      await c.w.host.run((v) => {
        const i = v.window.tabGroups.activeTabGroup.activeTab?.input;
        return i instanceof v.TabInputCustom ? i.viewType : '';
      }),
    ).toBe('dartStudio.trajectory');
    expect(c.daemon).toBeUndefined();
  });

  flow('the walkthrough opens', async () => {
    await c.ui.palette('DART Studio: Open Walkthrough');
    const steps = c.w.page.locator('.gettingStartedContainer .getting-started-step');
    await steps.first().waitFor();
    await expect.poll(() => steps.count()).toBe(5);
  });

  flow('training is started from the palette, and steps arrive', async () => {
    await given.noTraining();
    const before = c.runs.length;
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('tiny.dart-run.json');
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await page.locator('.state', { hasText: 'Running' }).waitFor();
    expect(c.runs).toHaveLength(before + 1);
    await given.sideBar('Trajectories');
    // Rollouts of training, not of the evaluation before it.
    await c.ui.row('Trajectories', /\d+ steps · v\d/).waitFor({ timeout: 300_000 });
    await until(
      async () => /\d+ %|\/h/.test(await c.ui.status.innerText()),
      'the status bar shows how it goes',
      60_000,
    );
    await c.picture('training');
  });

  flow('a running rollout is watched step by step', async () => {
    await given.training();
    let grown = 0;
    await until(
      async () => {
        const runs = await c.ui
          .section('Trajectories')
          .locator('.monaco-list-row[aria-label*="running"]')
          .first()
          .click({ timeout: 5000 })
          .then(
            () => true,
            () => false,
          );
        // While the trainer is behind, none may run for a while.
        if (!runs) return false;
        const page = await c.ui.webview('inspector');
        await page.locator('.ds-badge-slot .ds-outcome').waitFor();
        const before = await shots(page);
        // It may have ended meanwhile: then the next one is watched.
        await until(
          async () =>
            (grown = await shots(page)) > before ||
            !(await page.locator('.ds-badge-slot .ds-outcome.running').isVisible()),
          'it goes on or ends',
        );
        return grown > before;
      },
      'a rollout grows while it is looked at',
      180_000,
    );
    const page = await c.ui.webview('inspector');
    await pictures(page);
    await c.picture('live');
  });

  flow('the runtime dies: another one goes on with the run, and says so', async () => {
    await given.training();
    const page = await given.dashboard(),
      { pid } = c.daemon!;
    await page.locator('.state', { hasText: 'Running' }).waitFor();
    process.kill(pid, 'SIGKILL');
    await c.ui.told(/Training run .*: It was interrupted/, 60_000);
    await c.picture('resumed');
    await until(
      () => Promise.resolve(c.daemon !== undefined && c.daemon.pid !== pid),
      'there is another runtime',
      60_000,
    );
    await page.locator('.state', { hasText: 'Running' }).waitFor({ timeout: 60_000 });
    await until(
      async () => (await c.ui.rows('Runs')).some((r) => r.includes('running')),
      'the list of runs follows it',
      60_000,
    );
  });

  flow('a reload during training finds everything again', async () => {
    await given.training();
    await given.dashboard();
    const shown = await given.inspector(),
      { pid } = c.daemon!,
      { runs } = c;
    let tabs: readonly string[] = [];
    await until(async () => {
      tabs = await c.tabs;
      const title = tabs[1]?.replace(/…$/, '') ?? '';
      return title !== '' && (await shown.locator('.ds-head').innerText()).includes(title);
    }, 'the tab is called as the task');
    expect(tabs).toHaveLength(2);
    await c.showTab(1);
    await c.w.reload();
    await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    expect(c.daemon?.pid).toBe(pid);
    await expect.poll(() => c.tabs, { timeout: 30_000 }).toEqual(tabs);
    const page = await c.ui.webview('dashboard');
    await page.locator('.state', { hasText: 'Running' }).waitFor();
    await until(
      async () => /DART .*(%|\/h)/.test(await c.ui.status.innerText()),
      'the status bar shows the run again',
      60_000,
    );
    await c.showTab(2);
    await (await c.ui.webview('inspector')).locator('.ds-shot').first().waitFor();
    expect(c.runs).toEqual(runs);
  });

  flow('a second window sees the same', async () => {
    await given.training();
    const second = new Ui(await c.w.secondWindow());
    try {
      // It shows the container by itself only if the first window had time to keep that it does.
      await second.openContainer();
      await until(
        async () => /DART .*(%|\/h)/.test(await second.status.innerText().catch(() => '')),
        'its status bar shows the run',
      );
    } finally {
      await second.page.close();
    }
  });

  flow('a finished rollout: n jumps to a step of high entropy', async () => {
    await given.training();
    // The list grows at its top while training goes on: a row is known by what it says, never by its place.
    const lengths = Array.from({ length: 9 }, (_, i) => i + 5),
      several = c.ui
        .section('Trajectories')
        .locator(
          ['failure', 'success']
            .flatMap((o) => lengths.map((n) => `.monaco-list-row[aria-label*="${o}, ${n} steps"]`))
            .join(', '),
        );
    let page!: Frame,
      tried = 0;
    await until(
      async () => {
        const there = await several.count();
        if (
          there === 0 ||
          !(await several
            .nth(tried++ % there)
            .click({ timeout: 5000 })
            .then(
              () => true,
              () => false,
            ))
        )
          return false;
        page = await c.ui.webview('inspector');
        // A page that shows another rollout still, or one whose steps are all below its group's threshold, has no mark
        // here: then it is another's turn.
        const strip = page.locator('.ds-film-list'),
          selected = (what: string): Promise<boolean> =>
            page.evaluate<boolean>(`!!document.querySelector('.ds-shot.selected${what}')`);
        if (
          !(await until(
            () =>
              page.evaluate<boolean>(
                "document.querySelectorAll('.ds-shot').length >= 4 && !!document.querySelector('.ds-shot .ds-diamond')",
              ),
            'a step is marked',
            5000,
          ).then(
            () => true,
            () => false,
          ))
        )
          return false;
        await strip.press('Home');
        if (!(await selected(' .ds-diamond'))) await strip.press('n');
        return selected(' .ds-diamond');
      },
      'a step of high entropy is selected',
      120_000,
    );
    await expect.poll(() => page.locator('.ds-detail').innerText()).toMatch(/Step \d+ of \d+/);
    await pictures(page);
    await c.picture('finished');
  });

  flow('two rollouts of a group are compared', async () => {
    await given.training();
    const page = await given.inspector();
    await page.locator('.ds-sibling button.compare').first().click();
    const compare = await c.ui.webview('compare');
    await compare.locator('.ds-shot').first().waitFor();
    await until(
      async () => /step \d+|same/i.test(await compare.locator('.cp-words').innerText()),
      'it says where they part',
    );
    await pictures(compare);
    await c.picture('compare');
  });

  flow('lanes and cards of a run that trains say the same of desktops, replicas and trainer', async () => {
    await given.training();
    const page = await given.dashboard();
    await openLanes(page);
    // What the card is about grows on, and what the lanes know of it comes once a second.
    await sharesAgree(page, 3);
    await c.picture('live-lanes');
  });

  flow('training is stopped: a checkpoint is there and no desktop is left', async () => {
    await given.training();
    const page = await given.dashboard();
    await given.sideBar('Desktops');
    await until(async () => (await c.ui.rows('Desktops')).length > 0, 'its desktops are listed');
    await c.ui.palette('DART Studio: Stop Training');
    await page.locator('.state', { hasText: 'Stopped' }).waitFor({ timeout: 180_000 });
    await openLanes(page);
    await sharesAgree(page, 2);
    const run = given.runFolder!,
      checkpoints = join(run, 'checkpoints');
    expect(
      readdirSync(checkpoints).filter((f) => existsSync(join(checkpoints, f, 'policy.onnx'))).length,
    ).toBeGreaterThan(0);
    await until(async () => (await c.ui.rows('Desktops')).length === 0, 'the list of desktops is empty');
    if (provider === 'docker')
      expect(
        await connectEngine().listContainers({
          all: true,
          filters: { label: ['app=dart-studio', `run=${basename(run)}`] },
        }),
      ).toEqual([]);
    expect(isAlive(c.daemon!.pid)).toBe(true);
  });

  flow('four themes: pictures, and nothing for axe to find', async () => {
    await given.trained();
    await given.dashboard();
    await (await given.inspector()).locator('.ds-sibling button.compare').first().click();
    await c.ui.webview('compare');
    const axe = axeSource(),
      found: string[] = [],
      pages = ['dashboard', 'inspector', 'compare'] as const;
    for (const [theme, name] of themes) {
      await c.setTheme(theme);
      for (const [i, kind] of pages.entries()) {
        await c.showTab(i + 1);
        const page = await c.ui.webview(kind);
        await page
          .locator(kind === 'dashboard' ? '.state' : '.ds-shot')
          .first()
          .waitFor();
        await pictures(page);
        await c.picture(`${kind}-${name}`);
        for (const v of await violations(page, axe))
          found.push(`${kind}, ${name}: ${v.id} (${v.impact}): ${v.nodes.slice(0, 3).join(' | ')}`);
      }
    }
    await c.setTheme('Dark Modern');
    expect(found).toEqual([]);
  });

  flow('a runtime that dies under a window that only attached: it says so, and starts it when asked', async () => {
    await given.trained();
    await given.attachedOnly();
    const { pid } = c.daemon!;
    process.kill(pid, 'SIGKILL');
    const toast = c.ui.notification('The runtime ended');
    await toast.waitFor({ timeout: 60_000 });
    await c.picture('lost');
    await toast.hover();
    await toast.getByRole('button', { name: 'Start Runtime' }).click();
    await until(
      async () => (await c.ui.rows('Runs')).some((r) => r.includes('stopped')),
      'the run is listed again',
      60_000,
    );
    await until(
      () => Promise.resolve(c.daemon !== undefined && c.daemon.pid !== pid),
      'there is another runtime',
      60_000,
    );
  });

  flow('a runtime that dies in a run under a window that only attached: nobody is asked, the run goes on', async () => {
    await given.training();
    await given.attachedOnly();
    const { pid } = c.daemon!,
      said = new Set<string>();
    process.kill(pid, 'SIGKILL');
    await until(
      async () => {
        for (const x of await c.ui.notificationTexts()) said.add(x);
        return [...said].some((x) => /has been resumed/.test(x));
      },
      'it is said that the run was resumed',
      60_000,
    );
    expect([...said].filter((x) => /Start the runtime/.test(x))).toEqual([]);
    expect(c.daemon?.pid).not.toBe(pid);
    await until(async () => (await c.ui.rows('Runs')).some((r) => /^tiny, running/.test(r)), 'its row says so', 60_000);
  });
});
