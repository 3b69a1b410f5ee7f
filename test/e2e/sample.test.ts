import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Cockpit } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import { axeSource, whyNoWorkbench } from '../helpers/workbench/rig.js';
import { pictures, violations } from '../helpers/workbench/ui.js';
import { saveAs } from '../helpers/workbench/saveAs.js';
import { until } from '../helpers/workbench/workbench.js';

/** The sample run as a newcomer opens it, and what is shared of it. No desktop, no Docker, no training. */
const missing = whyNoWorkbench('latest');
if (missing) console.warn(`skipped: the sample run (${missing})`);

describe.skipIf(missing !== undefined)('VS Code, current, the sample run', () => {
  let c: Cockpit, given: Given;
  beforeAll(async () => {
    c = await Cockpit.start({ which: 'latest', files: {} });
    given = new Given(c);
  });
  afterAll(() => c?.stop());
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );
  const opened = async (): ReturnType<Cockpit['ui']['webview']> => {
    await c.ui.palette('DART Studio: Open Sample Run');
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await page.locator('.state', { hasText: 'Finished' }).waitFor({ timeout: 60_000 });
    return page;
  };

  flow('opens with its dashboard: curves, evaluations, ledger; and is listed', async () => {
    const page = await opened();
    await page.locator('#success .uplot canvas').first().waitFor();
    const said = await page.evaluate<string>("document.querySelector('#success .chart > .sr-only').textContent");
    expect(said).toMatch(/^Success over all tasks\. \d+ evaluations; the first \d+ %, the last \d+ %/);
    // It has no checkpoints: what would need one is not offered.
    expect(await page.getByRole('button', { name: /^(Resume|Evaluate|Try Policy)/ }).count()).toBe(0);
    expect(await violations(page, axeSource())).toEqual([]);
    await c.picture('sample-dashboard');
    await c.ui.openContainer();
    await c.ui
      .section('Runs')
      .getByRole('treeitem', { name: /sample/ })
      .first()
      .waitFor();
  });

  flow('has trajectories with screens, which open in the inspector', async () => {
    await opened();
    await c.ui.palette('DART Studio: Open Trajectory Table');
    const table = await c.ui.webview('table');
    await table.locator('.tb-row[aria-rowindex="2"]').waitFor();
    const search = table.getByRole('textbox', { name: /Search/ });
    await search.fill('probe/final');
    await table.locator('.tb-row[aria-rowindex="2"]', { hasText: 'evaluation' }).first().waitFor();
    await table.locator('.tb-row[aria-rowindex="2"]').click();
    const page = await c.ui.webview('inspector');
    await page.locator('.ds-surface img').waitFor();
    await pictures(page);
    await c.picture('sample-trajectory');
  });

  flow('is exported as one file', async () => {
    const page = await opened(),
      file = join(c.w.folder, 'shared.html');
    await page.getByRole('button', { name: 'Export as HTML…' }).click();
    await saveAs(c.w.page, 'Export as HTML', file);
    await c.ui.told('without a network');
    const html = readFileSync(file, 'utf8');
    expect(statSync(file).size).toBeLessThan(5_000_000);
    expect(html).toContain("default-src 'none'");
    expect(html).toContain('Examples of success');
    expect(html).not.toContain(c.storage);
  });

  /** Chooses Copy Link and reads the clipboard. */
  const copied = async (of: RegExp): Promise<string> => {
    await c.w.host.run((v) => v.env.clipboard.writeText(''));
    await c.ui.palette('DART Studio: Copy Link');
    let link = '';
    await until(async () => {
      link = await c.w.host.run((v) => v.env.clipboard.readText());
      return of.test(link);
    }, 'the link is copied');
    return link;
  };
  /** VS Code hands it to the extension whose name it has. */
  const follow = (link: string): Promise<void> =>
    c.w.host.run((v, to) => {
      void v.commands.executeCommand('vscode.open', v.Uri.parse(to, true));
    }, link);

  flow('a link opens the run, or the trajectory at its step; a link to another run says where to look', async () => {
    // In a browser the clipboard is the page's, which would ask somebody.
    await c.w.page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await opened();
    const toRun = await copied(/\/open\?run=/);
    expect(toRun).toMatch(/^[\w-]+:\/\/dart-studio\.dart-studio\/open\?run=[\w.+-]+$/);
    await c.ui.palette('DART Studio: Open Trajectory Table');
    const table = await c.ui.webview('table');
    await table.getByRole('textbox', { name: /Search/ }).fill('probe/final');
    const row = table.locator('.tb-row[aria-rowindex="2"]');
    await row.filter({ hasText: 'evaluation' }).waitFor();
    await row.click();
    const page = await c.ui.webview('inspector');
    await page.locator('.ds-surface img').waitFor();
    await page.locator('.ds-surface').press('ArrowRight');
    await page.locator('h2', { hasText: 'Step 2' }).waitFor();
    const toStep = await copied(/rollout=/);
    expect(toStep).toMatch(/&rollout=[^&]+&step=2$/);
    await c.closeEditors();

    await follow(toStep);
    await (await c.ui.webview('inspector')).locator('h2', { hasText: 'Step 2' }).waitFor();
    await c.closeEditors();
    await follow(toRun);
    await (await c.ui.webview('dashboard')).locator('.state', { hasText: 'Finished' }).waitFor();
    await c.closeEditors();
    await follow(toRun.replace(/run=.*$/, 'run=somebody-elses'));
    await c.ui.told('The run somebody-elses of this link is not in this window');
    await follow(toRun.replace('/open?', '/delete?'));
    await c.ui.told('This link is not one of DART Studio');
    expect(await c.tabs).toEqual([]);
  });
});
