import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ComparedRun, Comparison } from '../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { makeComparison } from '../helpers/pages/dashboard/comparison.js';
import { bundle, TestPage, themes, type Bundle, type OpenOptions } from '../helpers/pages/page.js';

const found = await openBrowser();
if ('why' in found) console.warn(`tests of the comparison of runs skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('comparison of runs', () => {
  const { browser, axe } = found as RealBrowser,
    made = makeComparison();
  let b: Bundle, open: TestPage | undefined;
  const show = async (o: Partial<OpenOptions> = {}, c: Comparison = made): Promise<TestPage> => {
    const t = (open = await TestPage.open(browser, b, {
      input: { kind: 'compareRuns', runs: c.runs.map((r) => r.run) },
      folders: [],
      answer: (_, p) => ({ ...c, runs: c.runs.filter((r) => (p['runs'] as string[]).includes(r.run)) }),
      ...o,
    }));
    await t.until("document.querySelectorAll('#success .uplot canvas').length === 2");
    return t;
  };
  const legend = (t: TestPage): Promise<string[]> =>
    t.page.evaluate<string[]>(
      "[...document.querySelectorAll('#success .chart')].at(0).querySelectorAll('.legend-label').values().map((x) => x.textContent).toArray()",
    );
  beforeAll(async () => {
    b = await bundle('compareRuns');
  });
  afterEach(async () => {
    const faults = open?.faults ?? [];
    await open?.close();
    open = undefined;
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser.close();
  });

  it.each(themes)('%s: nothing that axe finds, in every part of the page', async (theme) => {
    const t = await show({ theme });
    if (shots) await t.page.screenshot({ path: join(shots, `compareRuns-${theme}.png`) });
    for (const id of ['config', 'tasks', 'training', 'other']) {
      await t.page.evaluate<void>(
        `(() => { const e = document.getElementById('${id}'); e.querySelector('details').open = true; e.scrollIntoView(); })()`,
      );
      await t.until(`document.querySelector('#${id} table, #${id} .uplot canvas')`);
      if (shots) await t.page.screenshot({ path: join(shots, `compareRuns-${theme}-${id}.png`) });
    }
    expect(await t.axe(axe)).toEqual([]);
  });

  it('takes seeds together with their range, and apart again; what is hidden is in no chart', async () => {
    const t = await show();
    expect(await legend(t)).toEqual(['quickstart, lr 0.0003, 3 seeds', 'quickstart, lr 0.001, 2 seeds', 'with-kl']);
    await t.page.getByLabel('Group seeds').click();
    await t.until("document.querySelectorAll('#success .chart:first-child .legend-label').length === 6");
    expect((await legend(t))[1]).toBe('quickstart, lr 0.0003, seed 2');
    await t.page.getByLabel('Show with-kl').click();
    await t.until("document.querySelectorAll('#success .chart:first-child .legend-label').length === 5");
    expect(t.saved).toMatchObject({ grouped: false, hidden: ['/work/runs/with-kl-2-s1'] });
    // Where they were when the page comes back.
    await t.close();
    const again = await show({ saved: t.saved });
    expect(await legend(again)).toHaveLength(5);
  });

  it('places the curves by what is chosen, by keyboard; opens a run, leaves one out, asks for others', async () => {
    const t = await show(),
      words = (): Promise<string> =>
        t.page.evaluate<string>("document.querySelector('#success [role=slider]').getAttribute('aria-valuetext')");
    await t.page.getByRole('slider', { name: 'Evaluations: cursor' }).focus();
    await t.page.keyboard.press('End');
    expect(await words()).toMatch(/^\d+:\d\d: quickstart, lr 0\.0003/);
    await t.page.getByRole('combobox', { name: 'Horizontal axis' }).focus();
    // An arrow chooses at once; Enter would open the list, which takes the focus back a frame later.
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await t.page.keyboard.press(key);
    await t.page.getByRole('slider', { name: 'Evaluations: cursor' }).focus();
    await t.page.keyboard.press('End');
    await expect.poll(words).toMatch(/^[\d,]+ trained actions: /);
    await t.page.getByRole('combobox', { name: 'Horizontal axis' }).focus();
    await t.page.keyboard.press('ArrowDown');
    await t.page.getByRole('slider', { name: 'Evaluations: cursor' }).focus();
    await t.page.keyboard.press('End');
    await expect.poll(words).toMatch(/^[\d,]+ trained tokens: /);
    expect(await words()).not.toContain('with-kl');
    expect(await t.page.locator('.banners').innerText()).toContain('have no curves on this axis: with-kl.');
    await t.page.getByRole('button', { name: 'with-kl', exact: true }).click();
    await t.page.getByRole('button', { name: 'Choose Runs…' }).click();
    await t.page.getByRole('button', { name: 'Remove with-kl from the comparison' }).click();
    await t.until("document.querySelector('h1').textContent === 'Compare 5 runs'");
    expect(t.actions).toEqual([
      { action: 'command', command: 'openDashboard', argument: '/work/runs/with-kl-2-s1' },
      { action: 'command', command: 'compareRuns', argument: made.runs.map((r) => r.run).join('\n') },
    ]);
  });

  it('hidden and shown again: a run that was left out stays out', async () => {
    const t = await show(),
      headed = (n: number): Promise<void> =>
        t.until(`document.querySelector('h1')?.textContent === 'Compare ${n} runs'`);
    await t.page.getByLabel('Group seeds').click();
    await t.page.reload();
    await headed(6);
    await t.page.getByRole('button', { name: 'Remove with-kl from the comparison' }).click();
    await headed(5);
    await t.page.reload();
    await headed(5);
    await t.page.getByLabel('Group seeds').click();
    await expect.poll(() => t.saved).toMatchObject({ grouped: true, input: { runs: { length: 5 } } });
    await t.page.reload();
    await headed(5);
  });

  it('reads again what a run told while it was not to be read yet, and at once that it is over', async () => {
    // What waits longer than any control of the page waits until the test says so.
    const before = `{ const later = window.setTimeout, clock = performance.now.bind(performance), held = [];
      let ahead = 0;
      performance.now = () => clock() + ahead;
      window.setTimeout = (f, ms, ...a) => ms > 4000 ? held.push({ f, at: performance.now() + ms }) * 0 : later(f, ms, ...a);
      window.pass = (ms) => { ahead += ms; for (const x of held.splice(0)) if (x.at <= performance.now()) x.f(); else held.push(x); }; }`;
    const live = made.runs.at(-1)!,
      state = (): Promise<string> =>
        t.page.locator('.runs-list tr', { hasText: live.name }).locator('.runs-state').innerText(),
      reads = (): number => t.requests.length,
      pass = (ms: number): Promise<void> => t.page.evaluate<void>(`pass(${ms})`),
      status = (): Promise<void> => t.post({ type: 'status', run: live.run, status: {} as never, ledger: {} as never });
    let now = made;
    const becomes = (state: ComparedRun['state']): void => {
      now = { ...made, runs: made.runs.map((r) => (r === live ? { ...r, state } : r)) };
    };
    const t = await show({ before, answer: () => now });
    expect(await state()).toContain('Running');
    await pass(2000);
    becomes('stopping');
    await status();
    await pass(15_000);
    await expect.poll(reads).toBe(2);
    await expect.poll(state).toContain('Stopping');
    // No status comes of a run that is over.
    becomes('finished');
    await t.post({ type: 'do', what: 'reload' });
    await expect.poll(state).toContain('Finished');
    expect(reads()).toBe(3);
    // What ended while the runtime was away has told nobody.
    becomes('failed');
    for (const state of ['reconnecting', 'ready'] as const) await t.post({ type: 'daemon', state });
    await expect.poll(state).toContain('Failed');
  });

  it('says which run cannot be read, and what to do without a runtime', async () => {
    const error = { kind: 'not.found', message: 'There is no run in /work/runs/gone.', remedy: 'List the runs again.' };
    const t = await show({}, { ...made, missing: [{ run: '/work/runs/gone', error: error as never }] });
    expect(await t.page.locator('.banners').innerText()).toContain('There is no run in /work/runs/gone.');
    await t.close();
    open = await TestPage.open(browser, b, {
      input: { kind: 'compareRuns', runs: ['/a', '/b'] },
      folders: [],
      answer: () => new Promise(() => undefined),
    });
    await open.until("document.querySelector('h1')?.textContent === 'Loading runs…'");
    expect(await open.axe(axe)).toEqual([]);
    await open.close();
    open = await TestPage.open(browser, b, {
      input: { kind: 'compareRuns', runs: ['/a', '/b'] },
      folders: [],
      answer: () => made,
      daemon: 'stopped',
    });
    await open.page.getByRole('button', { name: 'Start Runtime' }).click();
    await expect.poll(() => open!.actions).toEqual([{ action: 'command', command: 'startRuntime' }]);
  });
});
