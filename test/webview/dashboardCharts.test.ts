import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../runtime/protocol/types.js';
import { answersOf, goTo } from '../helpers/pages/dashboard/open.js';
import { dashboardPages, drawn, slider, textOf } from '../helpers/pages/dashboard/pages.js';
import { makeRun } from '../helpers/pages/dashboard/run.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';

const found = await openBrowser();
if ('why' in found) console.warn(`dashboard page tests skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('charts of the dashboard', () => {
  const { run, show } = dashboardPages(found as RealBrowser);

  it('charts below the fold are not drawn before they are seen', async () => {
    const t = await show({ height: 700 });
    await drawn(t);
    await expect.poll(() => t.page.evaluate("document.querySelectorAll('#trainer .uplot').length")).toBe(0);
    await goTo(t, 'trainer', '.uplot canvas');
  });

  it('a part of the ledger, a point of a chart by mouse and by key, and a bar open the list behind them', async () => {
    const t = await show(),
      p = await drawn(t);
    await goTo(t, 'ledger', '.ledger-part');
    await p.locator('.ledger-part', { hasText: 'trained' }).first().click();
    await expect
      .poll(() => t.actions)
      .toEqual([{ action: 'openTable', run: run.run, filter: { ledger: ['trained'] } }]);
    // Its band in the picture beside it does the same.
    await p
      .locator('.ledger-ribbon.trained')
      .first()
      .click({ position: { x: 5, y: 5 } });
    await expect.poll(() => t.actions.length).toBe(2);
    expect(t.actions[1]).toEqual(t.actions[0]);
    await goTo(t, 'curation', '.uplot canvas');
    const bars = slider(t, 'Staleness');
    await bars.focus();
    await bars.locator('canvas').waitFor(); // it is drawn when it comes into view
    await bars.press('End');
    await expect.poll(() => bars.getAttribute('aria-valuetext')).not.toBe('No point chosen');
    await bars.press('Enter');
    await expect.poll(() => t.actions.length).toBe(3);
    expect(t.actions[2]).toEqual({ action: 'openTable', run: run.run, filter: { lag: { min: 2, max: 2 } } });
    t.actions.length = 0;
    await goTo(t, 'success', '.uplot canvas');
    const s = slider(t, 'All tasks');
    await s.focus();
    await s.locator('canvas').first().waitFor();
    await s.press('End');
    await s.press('ArrowLeft');
    await expect.poll(() => s.getAttribute('aria-valuetext')).not.toBe('No point chosen');
    await s.press('Enter');
    await expect.poll(() => t.actions.length).toBe(1);
    const box = (await s.boundingBox())!;
    await p.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    await p.mouse.move(box.x + box.width * 0.5 + 1, box.y + box.height / 2);
    await p.mouse.down();
    await p.mouse.up();
    await expect.poll(() => t.actions.length).toBe(2);
    for (const a of t.actions) expect(a).toMatchObject({ action: 'openTable', run: run.run });
    // A drag zooms, and opens nothing.
    await p.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2);
    await p.mouse.down();
    await p.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 4 });
    await p.mouse.up();
    await t.until(
      "[...document.querySelectorAll('#success vscode-button')].some((b) => b.textContent.includes('Reset zoom') && !b.hidden)",
    );
    expect(t.actions.length).toBe(2);
  });

  it('events bring new points at once, and ask again for what they made stale', async () => {
    const t = await show();
    await drawn(t);
    await goTo(t, 'trainer', '.uplot canvas');
    await t.post({
      type: 'events',
      run: run.run,
      live: true,
      nextSeq: 41_210,
      events: [
        { seq: 41_201, at: run.now + 8000, type: 'metrics', source: 'update', version: 99, values: { gradNorm: 3.33 } },
      ],
    });
    await t.until("document.querySelector('#trainer').textContent.includes('3.33')");
    const before = t.requests.filter((r) => r.method === 'run/curves').length;
    await t.post({
      type: 'events',
      run: run.run,
      live: true,
      nextSeq: 41_220,
      events: run.events(run.now, 1000, 41_210),
    });
    await expect.poll(() => t.requests.filter((r) => r.method === 'run/curves').length).toBe(before + 1);
    const point = { ...run.detail.evals.at(-1)!, at: run.now + 9000, successes: 64, low: 0.94, high: 1, version: 99 };
    await t.post({
      type: 'events',
      run: run.run,
      live: true,
      nextSeq: 41_221,
      events: [{ seq: 41_220, at: run.now + 9000, type: 'eval', point }],
    });
    await t.until("document.querySelector('.dashboard > [role=status]').textContent.includes('100 %')");
  });

  it('a runtime that goes away is asked nothing and accused of nothing; a part that failed is no longer said when it is there', async () => {
    let fails: string | undefined;
    const t = await show({
        answer: (m, p) => {
          if (m === 'run/curation' && fails !== undefined)
            throw { kind: fails, message: 'It is not there.', remedy: 'Bring it back.' };
          return answersOf(run)(m, p);
        },
      }),
      post = (seq: number, e: object): Promise<void> =>
        t.post({
          type: 'events',
          run: run.run,
          live: true,
          nextSeq: seq + 1,
          events: [{ seq, at: run.now + seq, ...e } as RunEvent],
        }),
      asked = (method: string): number => t.requests.filter((r) => r.method === method).length;
    await drawn(t);
    await expect.poll(() => asked('run/footprint')).toBe(1);
    fails = 'daemon.stopped';
    const banners = (): Promise<string[]> =>
      t.page.evaluate<string[]>("[...document.querySelectorAll('.ds-banner')].map((b) => b.textContent)");
    // The runtime stopped, and the page does not know it yet.
    await post(41_201, { type: 'trained', batch: 'b', version: 81, rollouts: [] });
    await expect.poll(() => asked('run/curation')).toBe(2);
    await t.post({ type: 'daemon', state: 'stopped' });
    await expect.poll(banners).toEqual([expect.stringContaining('The runtime is stopped')]);
    const before = t.requests.length;
    await post(41_202, { type: 'ended', row: run.failures(1)[0]! });
    fails = 'store.io';
    await t.post({ type: 'daemon', state: 'ready' });
    await expect.poll(banners).toEqual([expect.stringContaining('It is not there. Bring it back.')]);
    expect(t.requests[before]!.method).toBe('run/get');
    fails = undefined;
    await t.post({ type: 'daemon', state: 'reconnecting' });
    await t.post({ type: 'daemon', state: 'ready' });
    await expect.poll(banners).toEqual([]);
  });

  it('a chart is read by keyboard, zoomed, and shown as a table', async () => {
    const t = await show(),
      p = await drawn(t),
      chart = slider(t, 'All tasks');
    await chart.focus();
    await p.keyboard.press('End');
    await expect
      .poll(() => chart.getAttribute('aria-valuetext'))
      .toMatch(
        /^13:36: evaluation, fixed tasks \d+ % .*training, mean of 13 tasks, newest 5 rollouts each \d+ % \(\d+ % to \d+ %\)/,
      );
    await p.keyboard.press('Home');
    await expect.poll(() => chart.getAttribute('aria-valuetext')).toMatch(/^0:07: evaluation, fixed tasks \d+ %/);
    await p.keyboard.press('ArrowRight');
    await expect.poll(() => chart.getAttribute('aria-valuenow')).toBe('1');
    await t.until("document.querySelector('#success .legend-place').textContent.startsWith('at 3:')");
    await p.keyboard.press('Escape');
    await expect.poll(() => chart.getAttribute('aria-valuetext')).toBe('No point chosen');
    const id = (await chart.getAttribute('aria-describedby'))!;
    await expect
      .poll(() => textOf(t, `#${id}`))
      .toMatch(
        /^Success over all tasks\. \d+ evaluations; .* training, mean of 13 tasks, newest 5 rollouts each: \d+ % at first/,
      );
    await p.getByRole('button', { name: 'All tasks: show as table' }).click();
    await t.until("document.querySelector('#success .chart-table tbody tr')");
    await expect
      .poll(() =>
        p.evaluate<string[]>(
          "[...document.querySelectorAll('#success .chart-table thead th')].map((x) => x.textContent)",
        ),
      )
      .toEqual([
        'Time since the run began',
        'evaluation, fixed tasks',
        'training, mean of 13 tasks, newest 5 rollouts each',
      ]);
    await expect
      .poll(() => p.getByRole('button', { name: 'All tasks: show as table' }).getAttribute('aria-pressed'))
      .toBe('true');
  });

  it('copies a chart as CSV and as a picture, by button and by key', async () => {
    const t = await show(),
      p = await drawn(t);
    await p.getByRole('button', { name: 'All tasks: copy as CSV' }).click();
    const copied = (): Promise<string> =>
      expect
        .poll(() => t.actions.findLast((a) => a.action === 'copy'))
        .toBeTruthy()
        .then(() => (t.actions.findLast((a) => a.action === 'copy') as { readonly text: string }).text);
    const csv = await copied();
    expect(csv.split('\n')[0]).toBe(
      '"Time since the run began, s","evaluation, fixed tasks","evaluation, fixed tasks, low","evaluation, fixed tasks, high","training, mean of 13 tasks, newest 5 rollouts each","training, mean of 13 tasks, newest 5 rollouts each, low","training, mean of 13 tasks, newest 5 rollouts each, high"',
    );
    expect(csv.split('\n').length).toBeGreaterThan(50);
    // A page that may not write pictures into the clipboard hands it over for a file.
    await p.evaluate("navigator.clipboard.write = () => Promise.reject(new Error('not allowed'))");
    await p.getByRole('button', { name: 'All tasks: copy as PNG' }).click();
    await expect.poll(() => t.actions.at(-1)).toMatchObject({ action: 'saveChart', name: 'All tasks' });
    const { png } = t.actions.at(-1) as { readonly png: string };
    expect(Buffer.from(png, 'base64').subarray(1, 4).toString()).toBe('PNG');
    if (shots) await writeFile(join(shots, 'chart-copied.png'), Buffer.from(png, 'base64'));
    // A small chart has no buttons; its keys do the same.
    await p.evaluate("document.querySelector('.card .chart-plot').focus()");
    await p.keyboard.press('c');
    await expect.poll(() => t.actions.at(-1)).toMatchObject({ action: 'copy' });
    expect((t.actions.at(-1) as { readonly text: string }).text).not.toBe(csv);
  });

  it('what one chart is zoomed to the others of the run show too, and a button brings everything back', async () => {
    const t = await show(),
      p = await drawn(t),
      place = (name: string): Promise<{ x: number; y: number; width: number; height: number } | null> =>
        slider(t, name).boundingBox();
    const reset = (part: string): string =>
      `[...document.querySelectorAll('#${part} .chart-controls > vscode-button')].filter((b) => b.textContent.trim() === 'Reset zoom')`;
    await t.until(`${reset('success')}.every((b) => b.hidden)`);
    const box = (await place('All tasks'))!,
      middle = box.y + box.height / 2;
    await p.mouse.move(box.x + box.width * 0.5, middle);
    await p.mouse.down();
    await p.mouse.move(box.x + box.width * 0.6, middle, { steps: 4 });
    await p.mouse.up();
    await t.until(`${reset('success')}.some((b) => !b.hidden)`);
    if (shots) await p.screenshot({ path: join(shots, 'dashboard-zoomed.png') });
    await goTo(t, 'trainer', '.uplot canvas');
    await t.until(`${reset('trainer')}.length >= 4 && ${reset('trainer')}.every((b) => !b.hidden)`);
    if (shots) await p.screenshot({ path: join(shots, 'dashboard-zoomed-trainer.png') });
    await p.evaluate(`${reset('trainer')}[0].click()`);
    await t.until(`[...${reset('trainer')}, ...${reset('success')}].every((b) => b.hidden)`);
  });

  it('an outage interrupts the lines and is marked with the phases', async () => {
    const t = await show({}, makeRun({ outages: [[400_000, 640_000]] })),
      p = await drawn(t);
    await expect
      .poll(async () => textOf(t, `#${(await slider(t, 'All tasks').getAttribute('aria-describedby'))!}`))
      .toContain('The run was not active from 6:40 to 10:40.');
    // In the middle of the outage no pixel has the colour of the line.
    const blue = (from: number, to: number): string =>
      `(() => { const c = document.querySelector('#success .chart:not(.chart-compact) canvas'), g = c.getContext('2d'), x = (s) => Math.round(c.width * s), d = g.getImageData(x(${from}), 0, Math.max(1, x(${to}) - x(${from})), c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (Math.abs(d[i] - 55) < 3 && Math.abs(d[i + 1] - 148) < 3 && Math.abs(d[i + 2] - 255) < 3) n++; return n; })()`;
    await t.until(`${blue(0.3, 0.45)} > 20`);
    await expect.poll(() => p.evaluate(blue(0.62, 0.7))).toBe(0);
    if (shots) await p.screenshot({ path: join(shots, 'dashboard-outage.png') });
  });

  it('a task is made large and small again; axis and folded sections outlive a reload', async () => {
    const t = await show(),
      p = await drawn(t);
    await p.locator('.card-name', { hasText: 'form-one' }).click();
    await t.until(
      "document.querySelector('.card-large [role=slider]') && document.activeElement.getAttribute('aria-expanded') === 'true'",
    );
    await p.evaluate("document.querySelector('#throughput summary').click()");
    await p.evaluate(
      "{ const d = document.querySelector('vscode-dropdown[aria-label=\"Horizontal axis\"]'); d.value = 'rollouts'; d.dispatchEvent(new Event('change')); }",
    );
    await p.evaluate(
      "{ const d = document.querySelector('vscode-dropdown[aria-label=\"Rollouts of the mean\"]'); d.value = '256'; d.dispatchEvent(new Event('change')); }",
    );
    await expect
      .poll(() => t.saved)
      .toMatchObject({
        input: { kind: 'dashboard', run: run.run },
        closed: ['throughput'],
        success: { axis: 'rollouts', window: '256', enlarged: 'desk/form-one' },
      });
    await expect
      .poll(() => t.requests.findLast((r) => r.method === 'run/curves'))
      .toMatchObject({ params: { window: 256 } });
    await t.page.reload();
    await drawn(t);
    await expect.poll(() => p.evaluate("document.querySelector('#throughput details').open")).toBe(false);
    await expect
      .poll(() => p.evaluate("document.querySelector('.card-large').getAttribute('aria-label')"))
      .toBe('desk/form-one');
    await slider(t, 'All tasks').focus();
    await p.keyboard.press('End');
    await expect.poll(() => slider(t, 'All tasks').getAttribute('aria-valuetext')).toMatch(/^[\d,]+ rollouts: /);
  });

  it('lanes: a span is found by keyboard and mouse, its trajectory opened, the window zoomed and moved', async () => {
    const t = await show(),
      p = await drawn(t),
      asked = (): readonly { from: number; to: number }[] =>
        t.requests.filter((r) => r.method === 'run/lanes').map((r) => r.params as { from: number; to: number });
    await goTo(t, 'lanes', 'canvas.lanes-canvas');
    await expect.poll(() => asked().length).toBe(1);
    await t.until("document.querySelector('#lanes-summary').textContent.includes('Desktops busy')");
    await p.locator('.lanes-body').focus();
    await p.keyboard.press('ArrowLeft');
    await p.keyboard.press('ArrowLeft');
    await expect.poll(() => textOf(t, '.lanes > [role=status]')).toMatch(/^desktop-1, \w+ [\d.]+ m?s, at 13:\d\d\.\d/);
    await p.keyboard.press('ArrowDown');
    await expect.poll(() => textOf(t, '.lanes > [role=status]')).toMatch(/^desktop-2/);
    while (!/rollout r\d+, version \d+$/.test(await textOf(t, '.lanes > [role=status]')))
      await p.keyboard.press('ArrowLeft');
    await p.keyboard.press('Enter');
    await expect.poll(() => t.actions[0]).toMatchObject({ action: 'openTrajectory', run: run.run });
    await p.keyboard.press('0');
    await expect.poll(() => asked().length).toBe(2);
    expect(asked()[1]!.to - asked()[1]!.from).toBeGreaterThan(800_000);
    await expect.poll(() => t.saved).toMatchObject({ lanes: { from: run.createdAt } });
    for (let i = 0; i < 8; i++) await p.keyboard.press('+');
    await expect.poll(() => asked().length).toBeGreaterThan(2);
    await p.keyboard.press('PageUp');
    await t.until("document.querySelector('.lanes-tools vscode-button').getAttribute('aria-pressed') === 'false'");
    await p.keyboard.press('f');
    await t.until("document.querySelector('.lanes-tools vscode-button').getAttribute('aria-pressed') === 'true'");
    const box = await p.evaluate<{ x: number; y: number }>(
      "(({ x, y, width }) => ({ x: x + width * 0.6, y: y + 150 }))(document.querySelector('.lanes-canvas').getBoundingClientRect())",
    );
    await p.mouse.move(box.x, box.y);
    await t.until("/desktop-1 · /.test(document.querySelector('.lanes-read').textContent)");
  });

  it('another theme is drawn in its colours without a reload', async () => {
    const t = await show(),
      p = await drawn(t),
      has = (r: number, g: number, bl: number): string =>
        `(() => { const c = document.querySelector('#success canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255 && Math.abs(d[i] - ${r}) < 3 && Math.abs(d[i + 1] - ${g}) < 3 && Math.abs(d[i + 2] - ${bl}) < 3) return true; return false; })()`;
    await t.until(has(55, 148, 255));
    await p.evaluate("document.documentElement.dataset.theme = 'light'; document.body.className = 'vscode-light'");
    await t.until(`${has(26, 133, 255)} && !${has(55, 148, 255)}`);
  });

  it('forced colours: drawn in the colours of the system', async () => {
    const t = await show(),
      p = await drawn(t),
      cdp = await p.context().newCDPSession(p);
    await cdp.send('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }] });
    // LinkText as Chromium's forced-colors emulation has it: nothing of the theme's blue is left.
    await t.until(
      "(() => { const c = document.querySelector('#success canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255 && Math.abs(d[i] - 55) < 3 && Math.abs(d[i + 1] - 148) < 3) return false; return true; })()",
    );
    await goTo(t, 'lanes', 'canvas.lanes-canvas');
    if (shots) await p.screenshot({ path: join(shots, 'dashboard-forced-colors.png') });
  });
});
