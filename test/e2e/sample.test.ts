import { readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Cockpit } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import { axeSource, whyNoWorkbench } from '../helpers/workbench/rig.js';
import { pictures, violations } from '../helpers/workbench/ui.js';
import { busyShares, openLanes } from './cockpitRuns/busyShares.js';
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

  flow('its lanes and its cards say the same of desktops, replicas and trainer', async () => {
    const page = await opened();
    await openLanes(page);
    await c.picture('sample-lanes');
    const { lanes, cards } = await busyShares(page);
    expect(Object.keys(cards).sort()).toEqual(['desktops', 'replicas', 'trainer']);
    for (const [part, share] of Object.entries(cards))
      expect(Math.abs(lanes[part]! - share), part).toBeLessThanOrEqual(2);
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

  /** What a file is for somebody without a network: its words, its pictures, what it asked for and complained of. */
  const offline = async (
    file: string,
  ): Promise<{ readonly text: string; readonly pictures: number; readonly trouble: readonly string[] }> => {
    const context = await c.w.page
        .context()
        .browser()!
        .newContext({ viewport: { width: 1200, height: 900 }, offline: true }),
      page = await context.newPage(),
      url = pathToFileURL(file).href,
      trouble: string[] = [];
    page.on('console', (m) => {
      if (m.type() === 'error' || m.type() === 'warning') trouble.push(m.text());
    });
    page.on('pageerror', (e) => trouble.push(String(e)));
    page.on('request', (r) => {
      if (r.url() !== url && !r.url().startsWith('data:')) trouble.push(`asked for ${r.url()}`);
    });
    try {
      await page.goto(url);
      await page.screenshot({ path: `test/e2e/screenshots/offline-${basename(file, '.html')}.png` });
      return {
        text: await page.evaluate<string>('document.body.innerText'),
        // A screen shows a picture of the file, by its name.
        pictures:
          await page.evaluate<number>(`Promise.all([...document.querySelectorAll('svg.screen use')].map(async (u) => {
          const read = new Image(),
            find = (ref) => {
              const kept = document.querySelector(ref);
              return kept.querySelector('image') ?? find(kept.querySelector('use').getAttribute('href'));
            };
          read.src = find(u.getAttribute('href')).getAttribute('href');
          await read.decode();
          return read.naturalWidth;
        })).then((all) => all.filter((width) => width > 0).length)`),
        trouble,
      };
    } finally {
      await context.close();
    }
  };

  flow('run and trajectory are exported as one file each, which opens without a network', async () => {
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
    const run = await offline(file);
    expect(run.trouble).toEqual([]);
    expect(run.text).toMatch(/Examples of success/);
    expect(run.pictures).toBeGreaterThan(0);

    await c.ui.palette('DART Studio: Open Trajectory Table');
    const table = await c.ui.webview('table');
    await table.getByRole('textbox', { name: /Search/ }).fill('probe/final');
    const row = table.locator('.tb-row[aria-rowindex="2"]');
    await row.filter({ hasText: 'evaluation' }).waitFor();
    const asked = (await row.locator('.tb-asked').innerText()).trim(),
      one = join(c.w.folder, 'trajectory.html');
    await row.click();
    await (await c.ui.webview('inspector')).locator('.ds-surface img').waitFor();
    await c.w.host.command('notifications.clearAll');
    await c.ui.palette('DART Studio: Export as HTML');
    await saveAs(c.w.page, 'Export as HTML', one);
    await c.ui.told('without a network');
    expect(statSync(one).size).toBeLessThan(5_000_000);
    const trajectory = await offline(one);
    expect(trajectory.trouble).toEqual([]);
    expect(trajectory.text).toContain(asked);
    expect(trajectory.text).toMatch(/Step 1\b/);
    expect(trajectory.pictures).toBeGreaterThan(0);
  });

  flow('all rollouts and all metrics of a run are exported as tables', async () => {
    const rollouts = join(c.w.folder, 'rollouts.csv'),
      metrics = join(c.w.folder, 'metrics.parquet');
    for (const [what, file] of [
      ['Rollouts', rollouts],
      ['Metrics', metrics],
    ] as const) {
      await c.w.host.command('notifications.clearAll');
      await c.ui.palette('DART Studio: Export Run Data');
      await c.ui.pick(what);
      await saveAs(c.w.page, 'Export Run Data', file);
      await c.ui.told(/rows\./);
    }
    const [head, ...lines] = readFileSync(rollouts, 'utf8').trim().split('\n');
    expect(head).toMatch(/^id,family,task,.*outcome,reward/);
    expect(lines.length).toBeGreaterThan(10);
    expect(readFileSync(metrics).subarray(0, 4).toString()).toBe('PAR1');
  });

  flow('a chart is copied as CSV, all of its points, and as PNG', async () => {
    await c.w.page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await opened();
    await page.locator('#success .uplot canvas').first().waitFor();
    await c.w.host.run((v) => v.env.clipboard.writeText(''));
    await page.getByRole('button', { name: 'All tasks: copy as CSV' }).click();
    let csv = '';
    await until(async () => (csv = await c.w.host.run((v) => v.env.clipboard.readText())) !== '', 'it is copied');
    const lines = csv.trim().split('\n');
    expect(lines[0]).toMatch(/^"?Time since the run began, s"?,"?evaluation, fixed tasks"?,.*low.*,.*high/);
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.slice(1).every((l) => /^\d+(\.\d+)?(,-?[\d.e-]*)+$/.test(l))).toBe(true);
    await page.getByRole('button', { name: 'All tasks: copy as PNG' }).click();
    let picture = '';
    await until(async () => {
      picture = await c.w.page.evaluate<string>(`navigator.clipboard.read().then(async ([item]) => {
        if (!item.types.includes('image/png')) return '';
        const b = await createImageBitmap(await item.getType('image/png'));
        return b.width + ' ' + b.height;
      })`);
      return picture !== '';
    }, 'the picture is in the clipboard');
    const [width, height] = picture.split(' ').map(Number) as [number, number],
      box = (await page.locator('#success .uplot canvas').first().boundingBox())!;
    expect(width).toBe(Math.round(box.width));
    // Title and legend stand above what is drawn.
    expect(height).toBeGreaterThan(box.height + 20);
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
