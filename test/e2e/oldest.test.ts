import { afterAll, beforeAll, describe, expect } from 'vitest';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { Cockpit, tinyRun } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import type { Frame } from '../helpers/workbench/playwright.js';
import { rig, whyNoWorkbench } from '../helpers/workbench/rig.js';
import { pictures } from '../helpers/workbench/ui.js';
import { until } from '../helpers/workbench/workbench.js';

/** The oldest VS Code that the manifest admits: the same extension trains and shows in it. */
const noLocal = await whyNoLocalDesktops(),
  missing = whyNoWorkbench('min') ?? noLocal;
if (missing) console.warn(`skipped: the extension in the oldest VS Code (${missing})`);

describe.skipIf(missing !== undefined)('VS Code, oldest, local desktops', () => {
  let c: Cockpit, given: Given;
  beforeAll(async () => {
    c = await Cockpit.start({ which: 'min', files: { 'tiny.dart-run.json': tinyRun('local') } });
    given = new Given(c);
  });
  afterAll(() => c?.stop());
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );

  flow('training is started from the palette', async () => {
    expect(await c.w.host.run((v) => v.version)).toBe(rig().versions.min);
    await given.noTraining();
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('tiny.dart-run.json');
    const dashboard = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await dashboard.locator('.state', { hasText: 'Running' }).waitFor();
    await given.sideBar('Trajectories');
    await c.ui.row('Trajectories', /\d+ steps · v\d/).waitFor({ timeout: 300_000 });
  });

  flow('a rollout is looked at', async () => {
    await given.training();
    // The list grows at its top while training goes on, so a press may miss.
    let page!: Frame;
    await until(
      async () => {
        await c.ui.row('Trajectories', /\d+ steps · v\d/).click();
        return c.ui.webview('inspector', { timeoutMs: 5000 }).then(
          (found) => {
            page = found;
            return true;
          },
          () => false,
        );
      },
      'the rollout is shown',
      120_000,
    );
    await page.locator('.ds-shot').first().waitFor();
    await pictures(page);
    await c.picture('oldest');
  });

  flow('training is stopped', async () => {
    await given.training();
    await c.ui.palette('DART Studio: Stop Training');
    await until(async () => (await c.ui.rows('Runs')).some((r) => r.includes('stopped')), 'the run is stopped', 90_000);
  });
});
