import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../runtime/protocol/types.js';
import { answersOf, goTo } from '../helpers/pages/dashboard/open.js';
import { dashboardPages, drawn, textOf } from '../helpers/pages/dashboard/pages.js';
import { makeRun } from '../helpers/pages/dashboard/run.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { themes } from '../helpers/pages/page.js';

const found = await openBrowser();
if ('why' in found) console.warn(`dashboard page tests skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('dashboard page', () => {
  const { axe } = found as RealBrowser,
    pages = dashboardPages(found as RealBrowser),
    { run, show, status } = pages;

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
    await expect
      .poll(() => t.actions)
      .toEqual([
        { action: 'command', command: 'openRunFile', argument: run.run },
        { action: 'command', command: 'duplicateRun', argument: run.run },
      ]);
  });

  it('the bundle is small', () => {
    expect(pages.bundle.js.length + pages.bundle.css.length + pages.bundle.ui.length).toBeLessThan(400_000);
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

  it('a task is headed by its evaluation with the interval, and its window says how many rollouts it has', async () => {
    const t = await show();
    await drawn(t);
    const card = "[...document.querySelectorAll('.card')].find((c) => c.textContent.includes('form-one'))";
    await expect.poll(() => t.page.evaluate(`${card}.querySelector('.card-rate').textContent`)).toMatch(/^\d+ %$/);
    await expect
      .poll(() => t.page.evaluate(`${card}.querySelector('.card-facts').textContent`))
      .toMatch(/^evaluation, \d+–\d+ %\nlast 16 rollouts \d+ %\n\d+ per group · max \d+ steps · [\d,]+ rollouts$/);
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
    await expect.poll(() => textOf(t, '.ledger-sum')).toMatch(/planned = .* \+ \d+ waiting \+ .*6,255 of them started/);
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
      "document.querySelector('.ds-banner')?.textContent.includes('reconnecting') && document.querySelector('.buttons vscode-button').hasAttribute('disabled')",
    );
    // What it does and where it is stays as it was: a runtime that is away has not ended it.
    expect(await textOf(stopped, '.figures')).toMatch(/running ·/);
    expect(await textOf(stopped, '.figures')).not.toMatch(/ended|at the end of the run/);
    expect(await textOf(stopped, '.top-facts')).not.toMatch(/ran |started/);
    expect(await textOf(stopped, '.run-step.now')).toContain('RL');
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

  it('a version is a name, not an amount: its digits are not grouped', async () => {
    const { summary } = run.detail,
      late = { version: 32_377 },
      detail = { ...run.detail, summary: { ...summary, ...late, status: { ...run.status, ...late } } },
      t = await show({ answer: (m, p) => (m === 'run/get' ? detail : answersOf(run)(m, p)) });
    await expect.poll(() => textOf(t, '.top-facts')).toContain('v32377');
  });

  it('while the run is read that heads the page, and axe finds nothing', async () => {
    const t = await show({ answer: () => new Promise(() => undefined) });
    await t.until("document.querySelector('h1')?.textContent === 'Loading run…'");
    expect(await t.axe(axe)).toEqual([]);
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
    await t.page.getByRole('button', { name: 'Try Policy…' }).click();
    await expect
      .poll(() => t.actions)
      .toEqual([
        { action: 'command', command: 'evaluate', argument: over.run },
        { action: 'command', command: 'tryPolicy', argument: over.run },
      ]);
  });

  it('a run without checkpoints offers nothing that needs one', async () => {
    const over = makeRun({ state: 'finished' }),
      t = await show(
        {},
        { ...over, detail: { ...over.detail, summary: { ...over.detail.summary, weightless: true } } },
      );
    await drawn(t);
    await t.page.getByRole('button', { name: 'Open newest failures' }).waitFor();
    expect(await t.page.getByRole('button', { name: /^(Resume|Evaluate|Try Policy)/ }).count()).toBe(0);
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
