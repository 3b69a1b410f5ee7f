import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PageInput, PageKind } from '../../webview/protocol.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { answersOf } from '../helpers/pages/dashboard/open.js';
import { makeRun, type MadeRun } from '../helpers/pages/dashboard/run.js';
import { bundle, TestPage, type Answer, type Bundle } from '../helpers/pages/page.js';
import { FrameFolder } from '../helpers/pages/screens.js';
import { TableData } from '../helpers/pages/tableData.js';
import { richPlans, view, type Plan } from '../helpers/pages/trajectories.js';

const found = await openBrowser();
if ('why' in found) console.warn(`tests of narrow pages skipped: ${found.why}`);

describe.skipIf('why' in found)('pages beside another editor', () => {
  const { browser } = found as RealBrowser,
    run = '/runs/demo',
    bundles = new Map<PageKind, Bundle>();
  let dir: string, frames: FrameFolder, plans: Plan[], made: MadeRun, open: TestPage | undefined;
  const show = async (input: PageInput, answer: Answer, width: number): Promise<TestPage> => {
    const b = bundles.get(input.kind) ?? (await bundle(input.kind));
    bundles.set(input.kind, b);
    return (open = await TestPage.open(browser, b, { input, answer, folders: [dir], width, height: 600 }));
  };
  const inspector = (width: number, more: Parameters<typeof view>[2] = {}): Promise<TestPage> => {
    const v = view(plans, dir, more);
    return show(
      { kind: 'inspector', run, rollout: 'r-000102' },
      (method, p) => (method === 'trajectory/get' ? v : frames.answer(p)),
      width,
    );
  };
  const dashboard = (width: number): Promise<TestPage> =>
    show({ kind: 'dashboard', run: made.run }, answersOf(made), width);
  /** The heading can be read, and nothing is beyond the edge. */
  const fits = async (t: TestPage, heading = 'h1'): Promise<void> => {
    await t.page.locator(heading).first().waitFor();
    expect(
      await t.page.evaluate(
        `[document.documentElement.scrollWidth <= document.documentElement.clientWidth, document.querySelector(${JSON.stringify(heading)}).getBoundingClientRect().width >= 120]`,
      ),
    ).toEqual([true, true]);
  };
  const leftOf = (t: TestPage, selector: string): Promise<number> =>
    t.page.evaluate(`document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect().left`);

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'narrow-'));
    frames = new FrameFolder(dir);
    plans = await richPlans(frames);
    made = makeRun();
  });
  afterEach(async () => {
    const faults = open?.faults ?? [];
    await open?.close();
    open = undefined;
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser.close();
    await rm(dir, { recursive: true, force: true });
  });

  describe.each([420, 480, 640])('%i pixels wide', (width) => {
    it('a trajectory', async () => {
      await fits(await inspector(width));
    });
    it('two trajectories', async () => {
      const two = [view(plans, dir), view(plans.slice(0, 9), dir, { rollout: 'r-000101', outcome: 'failure' })];
      const t = await show(
        { kind: 'compare', run, left: 'r-000102', right: 'r-000101' },
        (method, p) =>
          method === 'frame/thumbnails' ? frames.answer(p) : two.find((v) => v.row.rollout === p['rollout']),
        width,
      );
      await t.page.locator('.cp-line-head').first().waitFor();
      await fits(t);
      // The keys are the film strip's, and what is above it stays in sight.
      await t.until("document.activeElement.closest('.ds-film')");
      expect(await t.page.evaluate('document.body.scrollTop + document.documentElement.scrollTop')).toBe(0);
    });
    it('the list of trajectories', async () => {
      const data = new TableData(300),
        t = await show(
          { kind: 'table', run },
          (method, p) =>
            method === 'trajectory/columns' ? data.part(p as { limit: number }) : { frames: {}, pictures: {} },
          width,
        );
      await t.page.locator('.tb-top h1').waitFor();
      expect(
        await t.page.evaluate(
          "[...document.querySelectorAll('.tb-top > *, .tb-tab')].filter((e) => e.getBoundingClientRect().right > innerWidth || e.getBoundingClientRect().height > 40).map((e) => e.className)",
        ),
      ).toEqual([]);
    });
    it('a run, the heads of its charts among it', async () => {
      const t = await dashboard(width);
      await fits(t, '#success .chart-head > :first-child');
      expect(await leftOf(t, '.facts-list')).toBe(await leftOf(t, '.tiles'));
    });
  });

  it('the rollouts of a group stand under its words; what a verifier expected and found have equal room', async () => {
    const t = await inspector(420, {
      outcome: 'failure',
      report: {
        checks: [{ what: 'text of the file', expected: 'a long line of words '.repeat(12), found: 'x', score: 0 }],
      },
    });
    await t.page.locator('.ds-report summary').first().click();
    await t.page.locator('.ds-report table').waitFor();
    expect((await leftOf(t, '.ds-group ul')) - (await leftOf(t, '.ds-group h2'))).toBeLessThan(4);
    const [check, expected, got] = await t.page.evaluate<number[]>(
      "[...document.querySelectorAll('.ds-report thead th')].map((c) => Math.round(c.getBoundingClientRect().width))",
    );
    expect([expected, got]).toEqual([check, check]);
  });

  it('where nothing changed, that is said across the whole page', async () => {
    const data = new TableData(10),
      t = await show(
        { kind: 'table', run, view: 'changes' },
        (method, p) => (method === 'trajectory/columns' ? data.part(p as { limit: number }) : { frames: {} }),
        640,
      );
    await t.page.getByText('Nothing to compare yet').waitFor();
    expect(
      await t.page.evaluate("document.querySelector('.tb-changes > :only-child').getBoundingClientRect().width"),
    ).toBe(640);
  });

  it('words that are read from right to left stand so', async () => {
    const instruction = 'اختر البطيخ من القائمة ثم اضغط موافق',
      v = view(plans, dir),
      one = await show(
        { kind: 'inspector', run, rollout: 'r-000102' },
        (method, p) => (method === 'trajectory/get' ? { ...v, row: { ...v.row, instruction } } : frames.answer(p)),
        640,
      );
    await one.until("getComputedStyle(document.querySelector('.ds-head h1') ?? document.body).direction === 'rtl'");
    await one.close();
    const data = new TableData(20),
      list = await show(
        { kind: 'table', run },
        (method, p) => {
          if (method !== 'trajectory/columns') return { frames: {}, pictures: {} };
          const part = data.part(p as { limit: number }),
            { columns } = part;
          return {
            ...part,
            columns: { ...columns, instruction: { values: [instruction], at: columns.rollout.map(() => 0) } },
          };
        },
        640,
      );
    await list.until("getComputedStyle(document.querySelector('.tb-asked') ?? document.body).direction === 'rtl'");
  });
});
