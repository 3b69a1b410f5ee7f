import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { serializeTrajectory } from '../../runtime/protocol/trajectoryFile.js';
import { FrameFolder } from '../helpers/pages/screens.js';
import { richPlans, view } from '../helpers/pages/trajectories.js';
import { Cockpit, tinyRun } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { pictures } from '../helpers/workbench/ui.js';
import { until } from '../helpers/workbench/workbench.js';

/** Restricted Mode: recorded trajectories can be looked at, nothing is started. */
const missing = whyNoWorkbench('latest');
if (missing) console.warn(`skipped: the extension in Restricted Mode (${missing})`);

describe.skipIf(missing !== undefined)('VS Code, current, an untrusted folder', () => {
  let c: Cockpit, given: Given;
  beforeAll(async () => {
    c = await Cockpit.start({
      which: 'latest',
      restricted: true,
      settings: { 'security.workspace.trust.startupPrompt': 'never' },
      files: { 'tiny.dart-run.json': tinyRun('local') },
    });
    writeFileSync(
      join(c.w.folder, 'recorded.traj.jsonl'),
      serializeTrajectory(view(await richPlans(new FrameFolder(join(c.w.folder, 'frames'))), 'frames')),
    );
    given = new Given(c);
  });
  afterAll(() => c?.stop());

  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );

  flow('nothing is started, also not by those who do not ask the palette', async () => {
    expect(await c.w.host.run((v) => v.workspace.isTrusted)).toBe(false);
    await c.ui.openContainer();
    const welcome = c.ui.section('Runs').locator('.welcome-view-content');
    await welcome.filter({ hasText: 'Restricted Mode' }).waitFor();
    expect(await c.ui.offered('DART Studio: Start Training')).not.toContainEqual(
      expect.stringContaining('Start Training…'),
    );
    await c.w.host.begin('dartStudio.startTraining');
    await c.ui.notification('not trusted').waitFor();
    await c.picture('restricted');
    expect(c.daemon).toBeUndefined();
  });

  flow('nothing is recorded, imported or annotated either', async () => {
    await c.ui.openContainer();
    for (const title of ['Record Demonstration', 'Import Trajectories', 'Take Over', 'Annotate Trajectory'])
      expect(await c.ui.offered(`DART Studio: ${title}`), title).not.toContainEqual(
        expect.stringContaining(`DART Studio: ${title}`),
      );
    const refused = {
      recordDemonstration: 'record a demonstration',
      importTrajectories: 'import the trajectories',
      takeOver: 'take over the desktop',
      annotateTrajectory: 'annotate the trajectory',
      reviewTrajectories: 'review the trajectories',
      addToPool: 'add to the experience pool',
      attachRuntime: 'attach to the runtime',
    };
    for (const [command, words] of Object.entries(refused)) {
      // One refusal is one toast, whoever met it: until the last one is gone the next says nothing.
      await until(async () => {
        await c.w.host.command('notifications.clearAll');
        await c.w.host.begin(`dartStudio.${command}`);
        return c.ui
          .notification(`could not ${words}: This workspace is not trusted`)
          .waitFor({ timeout: 3000 })
          .then(
            () => true,
            () => false,
          );
      }, `${command} is refused in words`);
    }
    expect(c.daemon).toBeUndefined();
  });

  flow('a recorded trajectory is viewed', async () => {
    await c.w.host.command('workbench.view.explorer');
    await c.w.page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'recorded.traj.jsonl' }).dblclick();
    const page = await c.ui.webview('inspector');
    await page.locator('.ds-shot').first().waitFor();
    await page.locator('.ds-surface img').waitFor();
    await pictures(page);
    await expect
      .poll(() =>
        page.evaluate<boolean>('document.images.length > 0 && [...document.images].some((i) => i.naturalWidth > 0)'),
      )
      .toBe(true);
    expect(c.daemon).toBeUndefined();
  });

  flow('the sample run is viewed whole, by a runtime that knows no other run', async () => {
    await c.ui.palette('DART Studio: Open Sample Run');
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await page.locator('.state', { hasText: 'Finished' }).waitFor({ timeout: 60_000 });
    await page.locator('#success .uplot canvas').first().waitFor();
    await c.picture('restricted-sample');
    expect(c.daemon).toBeUndefined();
    // Nothing of it can be changed from here.
    await page.getByRole('button', { name: 'Export as HTML…' }).click();
    await c.ui.notification('not trusted').waitFor();
  });
});
