import { afterAll, beforeAll, describe, expect, it, onTestFailed } from 'vitest';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { Cockpit, tinyRun } from '../helpers/workbench/cockpit.js';
import { rig, whyNoWorkbench } from '../helpers/workbench/rig.js';
import { pictures } from '../helpers/workbench/ui.js';
import { until } from '../helpers/workbench/workbench.js';

/** The oldest VS Code that the manifest admits: the same extension trains and shows in it. */
const noLocal = await whyNoLocalDesktops(),
  missing = whyNoWorkbench('min') ?? noLocal;
if (missing) console.warn(`skipped: the extension in the oldest VS Code (${missing})`);

describe.skipIf(missing !== undefined)('VS Code, oldest, local desktops', () => {
  let c: Cockpit;
  beforeAll(async () => {
    c = await Cockpit.start({ which: 'min', files: { 'tiny.dart-run.json': tinyRun('local') } });
  });
  afterAll(() => c?.stop());

  it('training is started, a rollout is looked at, training is stopped', async () => {
    onTestFailed(() => c.picture('failed-oldest'));
    expect(await c.w.host.run((v) => v.version)).toBe(rig().versions.min);
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('tiny.dart-run.json');
    const dashboard = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await dashboard.locator('.state', { hasText: 'Running' }).waitFor();
    await c.ui.openContainer();
    await c.ui.row('Trajectories', /\d+ steps · v\d/).waitFor({ timeout: 120_000 });
    await c.ui.row('Trajectories', /\d+ steps · v\d/).click();
    const page = await c.ui.webview('inspector');
    await page.locator('.ds-shot').first().waitFor();
    await pictures(page);
    await c.picture('oldest');
    await c.ui.palette('DART Studio: Stop Training');
    await until(async () => (await c.ui.rows('Runs')).some((r) => r.includes('stopped')), 'the run is stopped', 90_000);
  });
});
