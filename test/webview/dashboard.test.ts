import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Ledger } from '../../runtime/protocol/types.js';
import type { Page } from '../helpers/workbench/playwright.js';
import { answersOf, goTo, openDashboard } from '../helpers/pages/dashboard/open.js';
import { makeRun, type MadeRun } from '../helpers/pages/dashboard/run.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { bundle, themes, type Bundle, type OpenOptions, type TestPage } from '../helpers/pages/page.js';

const found = await openBrowser();
if ('why' in found) console.warn(`dashboard page tests skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('dashboard page', () => {
  const { browser, axe } = found as RealBrowser,
    run = makeRun();
  let b: Bundle, open: TestPage | undefined;
  const show = async (o: Partial<OpenOptions> = {}, r: MadeRun = run): Promise<TestPage> =>
    (open = await openDashboard(browser, b, r, o));
  const drawn = async (t: TestPage): Promise<Page> => {
    await t.until("document.querySelector('#success .uplot canvas')");
    return t.page;
  };
  const status = (t: TestPage, s: Partial<MadeRun['status']>, ledger: Ledger = run.ledger): Promise<void> =>
    t.post({ type: 'status', run: run.run, status: { ...run.status, ...s }, ledger });
  const textOf = (t: TestPage, selector: string): Promise<string> =>
    t.page.evaluate<string>(`document.querySelector('${selector}')?.textContent ?? ''`);
  const slider = (t: TestPage, name: string): ReturnType<Page['locator']> =>
    t.page.locator(`[role=slider][aria-label="${name}: cursor"]`);

  beforeAll(async () => {
    b = await bundle('dashboard');
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

  it('a short run names its phases without one name in another', async () => {
    const t = await show({}, makeRun({ minutes: 2.2 })),
      p = await drawn(t);
    if (shots) await p.screenshot({ path: join(shots, 'dashboard-short.png') });
    // What the page says of itself, in words: the phases stand as steps, too.
    const steps = await p.locator('.run-step').allInnerTexts();
    expect(steps.map((x) => x.trim().split(/[\n,]/)[0])).toEqual([
      'Untrained',
      'Reading',
      'Demonstrations',
      'Warm start',
      'RL',
      'Evaluation',
    ]);
    expect(await p.locator('.run-step[aria-current=step]').innerText()).toContain('RL');
  });

  it('says what the run is, and opens its run file', async () => {
    const t = await show(),
      p = await drawn(t);
    await t.until("document.querySelectorAll('.fact').length === 6");
    const facts = await p.locator('.fact').allInnerTexts();
    expect(facts.map((f) => f.replace(/\s*\n\s*/g, ': '))).toEqual([
      'Seed: 1',
      'Policy: embedded, 275 k parameters',
      'Tasks: desk, 13 families',
      'Learning rate: 0.00012',
      'Disk: 812 MB, 58.3 GB free',
      'Machine: 2 cores, 8.3 GB memory',
    ]);
    await expect.poll(() => textOf(t, '.top-facts')).toMatch(/6:24 left, until about /);
    await p.getByRole('button', { name: 'Open Run File' }).click();
    await p.getByRole('button', { name: 'Duplicate with Changes…' }).click();
    expect(t.actions).toEqual([
      { action: 'command', command: 'openRunFile', argument: run.run },
      { action: 'command', command: 'duplicateRun', argument: run.run },
    ]);
  });

  it('the bundle is small', () => {
    expect(b.js.length + b.css.length).toBeLessThan(400_000);
  });

  it.each(themes)('%s: nothing that axe finds, in every part of the page', async (theme) => {
    const t = await show({ theme }, makeRun({ infeasible: theme === 'light' })),
      p = await drawn(t);
    if (shots) await p.screenshot({ path: join(shots, `dashboard-${theme}.png`) });
    expect(await t.axe(axe)).toEqual([]);
    for (const [id, sign] of [
      ['throughput', '.uplot canvas'],
      ['lanes', 'canvas.lanes-canvas'],
      ['curation', '.uplot canvas'],
      ['ledger', '.ledger-ribbon'],
      ['trainer', '.uplot canvas'],
    ] as const) {
      await goTo(t, id, sign);
      if (shots) {
        await t.until(
          `[...document.querySelectorAll('#${id} .chart')].every((c) => c.getBoundingClientRect().top > innerHeight || c.querySelector('canvas'))`,
        );
        await p.screenshot({ path: join(shots, `dashboard-${theme}-${id}.png`) });
      }
    }
    await p.evaluate(
      'document.querySelectorAll(\'vscode-button[aria-label$="show as table"]\').forEach((x) => x.click())',
    );
    await t.until("document.querySelectorAll('.chart-table table').length >= 4");
    // Nothing lies under the header that sticks.
    await p.evaluate("document.getElementById('app').scrollTo(0, 0)");
    expect(await t.axe(axe)).toEqual([]);
    await p.getByRole('button', { name: 'Open newest failures' }).click();
    await t.until("document.querySelectorAll('dialog[open] .failure').length === 12");
    if (shots) await p.screenshot({ path: join(shots, `dashboard-${theme}-failures.png`) });
    expect(await t.axe(axe)).toEqual([]);
  });

  it('tells the run, its state and its key figures, and follows it from where the answer ends', async () => {
    const t = await show();
    await drawn(t);
    const head = await textOf(t, '.top');
    for (const w of ['quickstart', 'Running', '13:36 of 20:00', `v${run.status.version}`]) expect(head).toContain(w);
    const tiles = await t.page.locator('.tile').all(),
      labels = await Promise.all(tiles.map((x) => x.getAttribute('aria-label')));
    expect(labels[0]).toMatch(/^Last evaluation: 9\d %, 8\d–9\d % · \d\d of 64 at v\d+$/);
    expect(labels[2]).toMatch(/^Rollouts per hour: [\d,]+, \d+ % of the limit 29,200, limited by the trainer$/);
    for (const x of tiles) expect((await x.getAttribute('aria-description'))!.length).toBeGreaterThan(40);
    await expect.poll(() => t.subscriptions).toMatchObject([{ run: run.run, sinceSeq: run.detail.seq }]);
    await expect.poll(() => t.subscriptions[0]!.types).toContain('spans');
    await expect.poll(() => t.page.evaluate('document.title')).toMatch(/^quickstart, .*\d\d.* · DART Studio$/);
  });

  it('charts below the fold are not drawn before they are seen', async () => {
    const t = await show({ height: 700 });
    await drawn(t);
    await expect.poll(() => t.page.evaluate("document.querySelectorAll('#trainer .uplot').length")).toBe(0);
    await goTo(t, 'trainer', '.uplot canvas');
  });

  it('a part of the ledger, and a point of a chart by mouse and by key, open the list behind them', async () => {
    const t = await show(),
      p = await drawn(t);
    await goTo(t, 'ledger', '.ledger-part');
    await p.locator('.ledger-part', { hasText: 'trained' }).first().click();
    await expect
      .poll(() => t.actions)
      .toEqual([{ action: 'openTable', run: run.run, filter: { ledger: ['trained'] } }]);
    await goTo(t, 'success', '.uplot canvas');
    const s = slider(t, 'All tasks');
    await s.focus();
    await s.press('End');
    await s.press('ArrowLeft');
    await s.press('Enter');
    await expect.poll(() => t.actions.length).toBe(2);
    const box = (await s.boundingBox())!;
    await p.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    await p.mouse.move(box.x + box.width * 0.5 + 1, box.y + box.height / 2);
    await p.mouse.down();
    await p.mouse.up();
    await expect.poll(() => t.actions.length).toBe(3);
    for (const a of t.actions.slice(1)) expect(a).toMatchObject({ action: 'openTable', run: run.run });
    // A drag zooms, and opens nothing.
    await p.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2);
    await p.mouse.down();
    await p.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 4 });
    await p.mouse.up();
    await t.until(
      "[...document.querySelectorAll('#success vscode-button')].some((b) => b.textContent.includes('Reset zoom') && !b.hidden)",
    );
    expect(t.actions.length).toBe(3);
  });

  it('a status moves tiles, ledger and state, and a change of state is announced', async () => {
    const t = await show();
    await drawn(t);
    await status(
      t,
      { rollouts: 4321, rolloutsPerHour: 29_480, errors: 3 },
      {
        ...run.ledger,
        generated: run.ledger.generated + 10,
        trained: run.ledger.trained + 10,
        human: { rollouts: 2, steps: 7 },
      },
    );
    await t.until(
      "document.querySelector('.tiles').textContent.includes('4,321') && document.querySelector('.tiles').textContent.includes('at the limit of 29,200')",
    );
    await expect
      .poll(() => textOf(t, '.ledger-sum'))
      .toContain(`${(run.ledger.generated + 10).toLocaleString('en')} planned =`);
    await expect
      .poll(() => textOf(t, '.ledger-sum'))
      .toContain('All rollouts accounted for. In 2 a person acted: those 7 steps are imitated');
    await status(t, { state: 'paused' });
    await t.until(
      "document.querySelector('.state').textContent === 'Paused' && document.querySelector('.dashboard > [role=status]').textContent === 'Run: Paused.'",
    );
    await t.page.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(() => t.actions).toEqual([{ action: 'command', command: 'resume', argument: run.run }]);
  });

  it('a ledger that does not close is shown as a fault', async () => {
    const t = await show();
    await drawn(t);
    await status(t, {}, { ...run.ledger, generated: run.ledger.generated + 2, closes: false });
    await t.until("document.querySelector('.ledger-sum').classList.contains('fault')");
    await expect.poll(() => textOf(t, '.ledger-sum')).toMatch(/≠.*2 rollouts are missing.*report/);
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

  it('a chart is read by keyboard, zoomed, and shown as a table', async () => {
    const t = await show(),
      p = await drawn(t),
      chart = slider(t, 'All tasks');
    await chart.focus();
    await p.keyboard.press('End');
    await expect
      .poll(() => chart.getAttribute('aria-valuetext'))
      .toMatch(
        /^13:36: evaluation, held-out tasks \d+ % .*training, mean of 13 tasks, newest 5 rollouts each \d+ % \(\d+ % to \d+ %\)/,
      );
    await p.keyboard.press('Home');
    await expect.poll(() => chart.getAttribute('aria-valuetext')).toMatch(/^0:07: evaluation, held-out tasks \d+ %/);
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
        'evaluation, held-out tasks',
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
      '"Time since the run began, s","evaluation, held-out tasks","evaluation, held-out tasks, low","evaluation, held-out tasks, high","training, mean of 13 tasks, newest 5 rollouts each","training, mean of 13 tasks, newest 5 rollouts each, low","training, mean of 13 tasks, newest 5 rollouts each, high"',
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

  it('a task is headed by its evaluation with the interval, and its window says how many rollouts it has', async () => {
    const t = await show();
    await drawn(t);
    const card = "[...document.querySelectorAll('.card')].find((c) => c.textContent.includes('form-one'))";
    await expect.poll(() => t.page.evaluate(`${card}.querySelector('.card-rate').textContent`)).toMatch(/^\d+ %$/);
    await expect
      .poll(() => t.page.evaluate(`${card}.querySelector('.card-facts').textContent`))
      .toMatch(/^evaluation, \d+–\d+ %\nlast 16 rollouts \d+ %\n\d+ per group · max \d+ steps · [\d,]+ rollouts$/);
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

  it('lessons and warm start are not taken for a run that was only evaluated', async () => {
    const nothing: Ledger = { generated: 0, trained: 0, inFlight: 0, byState: {}, retired: {}, closes: true },
      summary = { ...run.detail.summary, status: { ...run.status, phase: 'warm start', rollouts: 0 } as const };
    const t = await show({}, { ...run, curves: [], detail: { ...run.detail, ledger: nothing, tasks: [], summary } });
    await drawn(t);
    expect(await t.page.evaluate("document.querySelector('.ds-banner')")).toBeNull();
    await t.until("!document.getElementById('lanes').hidden && !document.getElementById('trainer').hidden");
  });

  it('a run that is over says nothing of "now" or "yet", and its counts agree', async () => {
    const over = makeRun({ state: 'finished' }),
      t = await show(
        {},
        {
          ...over,
          series: [],
          curves: [],
          curation: { charts: [] },
          detail: { ...over.detail, evals: [], tasks: [], ledger: { ...over.ledger, begun: 6255 } },
        },
      );
    await t.until("document.querySelector('.tiles')?.textContent.includes('6,255')");
    for (const id of ['throughput', 'curation', 'ledger', 'trainer']) await goTo(t, id, 'figcaption, svg');
    await expect.poll(() => textOf(t, '.ledger-sum')).toMatch(/planned = .* \+ \d+ waiting \+ .*6,255 of them began/);
    const words = await t.page.evaluate<string>(
      "[...document.querySelectorAll('.tiles, .ledger, .chart-empty, .banners')].map((e) => e.textContent).join(' ')",
    );
    expect(words).not.toMatch(/\byet\b|being measured|in flight|still to come|X\*/);
  });

  it('every number says what it is on focus, and Esc closes that', async () => {
    const t = await show(),
      p = await drawn(t);
    await p.locator('.tile').first().focus();
    await p.keyboard.press('ArrowRight');
    await t.until(
      "document.querySelector('[role=tooltip]:not([hidden])')?.textContent.includes('newest training rollouts')",
    );
    await p.keyboard.press('Escape');
    await t.until("document.querySelector('[role=tooltip]').hidden");
    await expect
      .poll(() => p.evaluate("document.activeElement.getAttribute('aria-label')"))
      .toMatch(/^Training success/);
    await expect.poll(() => p.evaluate('document.querySelectorAll(\'.tile[tabindex="0"]\').length')).toBe(1);
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

  it('newest failures: one press opens one', async () => {
    const t = await show(),
      p = await drawn(t);
    await p.getByRole('button', { name: 'Open newest failures' }).click();
    await t.until("document.activeElement.classList.contains('failure')");
    await expect
      .poll(() => t.requests.findLast((r) => r.method === 'trajectory/list'))
      .toMatchObject({ params: { filter: { outcome: ['failure'] }, sort: 'newest' } });
    await p.keyboard.press('Enter');
    await expect
      .poll(() => t.actions)
      .toMatchObject([{ action: 'openTrajectory', rollout: run.failures(1)[0]!.rollout }]);
    await expect.poll(() => p.evaluate("document.querySelector('dialog').open")).toBe(false);
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

  it.each([400, 620, 900, 2000])('%i px wide: nothing is cut off sideways', async (width) => {
    const t = await show({ width });
    await t.until("document.getElementById('success')");
    for (const id of ['success', 'throughput', 'lanes', 'curation', 'ledger', 'trainer'])
      await goTo(t, id, 'canvas, svg');
    // Only the page's own scroller scrolls: the header stays where it is.
    await expect
      .poll(() =>
        t.page.evaluate(
          '[document.documentElement.scrollHeight - innerHeight, document.body.scrollTop, document.documentElement.scrollTop]',
        ),
      )
      .toEqual([0, 0, 0]);
    await expect
      .poll(() =>
        t.page.evaluate(
          "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.getElementById('app'))",
        ),
      )
      .toBe(0);
    await expect
      .poll(() =>
        t.page.evaluate<string[]>(
          "[...document.querySelectorAll('.dashboard *')].filter((e) => !e.closest('.sr-only, svg, .chart-table, dialog') && e.getBoundingClientRect().width > 0 && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className)",
        ),
      )
      .toEqual([]);
  });

  it('states: no run, runtime stopped, a run that cannot be read, connection lost and found', async () => {
    const none = await show({ input: { kind: 'dashboard', run: '' } });
    await none.until("document.querySelector('h1')?.textContent === 'No run yet'");
    await none.page.getByRole('button', { name: 'Start Training…' }).click();
    await expect.poll(() => none.actions).toMatchObject([{ command: 'startTraining' }]);
    expect(await none.axe(axe)).toEqual([]);
    await none.close();
    const stopped = await show({ daemon: 'stopped' });
    await stopped.until("document.querySelector('h1')?.textContent === 'The runtime is not connected'");
    await stopped.post({ type: 'daemon', state: 'ready' });
    await drawn(stopped);
    await stopped.post({ type: 'daemon', state: 'reconnecting' });
    await stopped.until(
      "document.querySelector('.ds-banner')?.textContent.includes('trying again') && document.querySelector('.buttons vscode-button').hasAttribute('disabled')",
    );
    const asked = stopped.requests.length;
    await stopped.post({ type: 'daemon', state: 'ready' });
    await stopped.until("!document.querySelector('.ds-banner')");
    await expect.poll(() => stopped.requests.slice(asked).map((r) => r.method)).toContain('run/get');
    await stopped.close();
    let broken = true;
    const failing = await show({
      answer: (m, p) => {
        if (broken)
          throw {
            kind: 'store.damaged',
            message: 'The journal of this run is damaged.',
            remedy: 'Restore the folder from a copy.',
          };
        return answersOf(run)(m, p);
      },
    });
    await failing.until("document.querySelector('h1')?.textContent === 'The journal of this run is damaged.'");
    await expect.poll(() => textOf(failing, '.ds-lack')).toContain('Restore the folder from a copy.');
    broken = false;
    await failing.page.getByRole('button', { name: 'Try Again' }).click();
    await drawn(failing);
  });

  it('a run that is over offers resume and evaluation; a failed one says why', async () => {
    const over = makeRun({ state: 'failed' }),
      t = await show(
        {},
        {
          ...over,
          detail: {
            ...over.detail,
            summary: {
              ...over.detail.summary,
              status: {
                ...over.status,
                error: {
                  kind: 'desktop.unavailable',
                  message: 'No desktop could be started.',
                  remedy: 'Run Check This Machine.',
                },
              },
            },
          },
        },
      );
    await drawn(t);
    await expect.poll(() => textOf(t, '.ds-banner')).toContain('No desktop could be started. Run Check This Machine.');
    await expect.poll(() => t.page.evaluate("document.querySelector('.lanes-tools vscode-button').hidden")).toBe(true);
    expect(t.subscriptions).toEqual([]);
    await t.page.getByRole('button', { name: 'Evaluate…' }).click();
    await expect.poll(() => t.actions).toEqual([{ action: 'command', command: 'evaluate', argument: over.run }]);
  });

  it('a run that was only evaluated hides what training alone has', async () => {
    const ledger: Ledger = { generated: 0, trained: 0, inFlight: 0, byState: {}, retired: {}, closes: true };
    const t = await show(
      {},
      {
        ...run,
        curves: [],
        detail: {
          ...run.detail,
          ledger,
          tasks: [],
          timeline: { phases: [], outages: [] },
          summary: { ...run.detail.summary, state: 'finished', status: undefined },
        },
      },
    );
    await drawn(t);
    await expect.poll(() => textOf(t, '.ds-banner')).toContain('only evaluated');
    await expect
      .poll(() =>
        t.page.evaluate(
          "['throughput', 'lanes', 'curation', 'ledger', 'trainer'].every((id) => document.getElementById(id).hidden)",
        ),
      )
      .toBe(true);
  });
});
