import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { goTo, openDashboard } from '../helpers/pages/dashboard/open.js';
import { makeComparison } from '../helpers/pages/dashboard/comparison.js';
import { makeRun } from '../helpers/pages/dashboard/run.js';
import { FakeAnnotations } from '../helpers/pages/annotations.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { failuresOn, stripOn } from '../helpers/pages/failureData.js';
import { bundle, TestPage, type Answer, type Bundle, type OpenOptions } from '../helpers/pages/page.js';
import { bare, pseudo } from '../helpers/pages/pseudo.js';
import { PageSession } from '../helpers/pages/session.js';
import { TableData } from '../helpers/pages/tableData.js';
import { richPlans, view, type Plan } from '../helpers/pages/trajectories.js';
import { Desk } from '../helpers/pages/live/desk.js';
import { controlState, report } from '../helpers/pages/live/samples.js';

const found = await openBrowser();
/** A session closes its browser: each part has its own. */
const another = async (): Promise<RealBrowser> =>
  'why' in found ? (found as never) : ((await openBrowser()) as RealBrowser);
const browsers = {
  inspector: await another(),
  compare: await another(),
  runs: await another(),
  table: await another(),
  live: await another(),
};
if ('why' in found) console.warn(`tests of translated pages skipped: ${found.why}`);

describe.skipIf('why' in found)('translated pages', () => {
  describe('dashboard', () => {
    const { browser } = found as RealBrowser,
      run = makeRun();
    let b: Bundle, open: TestPage | undefined;
    const show = async (o: Partial<OpenOptions>): Promise<TestPage> => (open = await openDashboard(browser, b, run, o));
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

    it('says what waits, what it knows and what stands in tables made as it loads in the language; what has no translation stays English', async () => {
      const words = {
        'Starting the runtime…': 'Runtime startet…',
        Running: 'Läuft',
        Throughput: 'Durchsatz </script><b>',
        'Steps per minute': 'Schritte je Minute',
        '{0} steps on average.': 'Im Mittel {0} Schritte.',
        toString: 'nie',
      };
      const waiting = await show({ words, daemon: 'starting', answer: () => new Promise(() => undefined) });
      await waiting.until("document.querySelector('.ds-progress')?.textContent === 'Runtime startet…'");
      expect(waiting.faults).toEqual([]);
      await waiting.close();
      const t = await show({ words });
      await t.until("document.querySelector('.state')?.textContent === 'Läuft'");
      const texts = (selector: string): Promise<readonly string[]> => t.page.locator(selector).allInnerTexts();
      await expect.poll(() => texts('h2')).toEqual(expect.arrayContaining(['Durchsatz </script><b>', 'Curation']));
      await expect
        .poll(() => texts('.tile-label'))
        .toEqual(expect.arrayContaining(['Schritte je Minute', 'Rollouts per hour']));
      await t.until(
        "[...document.querySelectorAll('.card-facts')].some((x) => /Im Mittel [\\d.]+ Schritte\\./.test(x.getAttribute('aria-description')))",
      );
    });
    it('leaves no word out', async () => {
      const t = await show({ words: pseudo });
      await t.until(
        "document.querySelector('#success .uplot canvas') && document.querySelectorAll('.ledger-part').length && document.querySelectorAll('.card').length",
      );
      for (const [id, sign] of [
        ['lanes', '.lanes-legend li'],
        ['curation', '.pick > *'],
        ['ledger', '.ledger-part'],
      ] as const)
        await goTo(t, id, sign);
      const chart = (i: number): string => `document.querySelectorAll('.chart:not(.chart-compact)')[${i}]`;
      const charts = await t.page.evaluate<number>("document.querySelectorAll('.chart:not(.chart-compact)').length");
      expect(charts).toBeGreaterThan(12);
      for (let i = 0; i < charts; i++) {
        await t.page.evaluate(`${chart(i)}.scrollIntoView({ block: 'center' })`);
        await t.until(`${chart(i)}.querySelector('.uplot canvas')`);
        await t.page.evaluate(`${chart(i)}.querySelector('vscode-button[aria-label*="show as table"]')?.click()`);
        await t.until(`${chart(i)}.querySelector('.chart-table table')`);
      }
      expect(await t.page.locator('.chart:not(.chart-compact) .chart-table table').count()).toBe(charts);
      await t.page.locator('vscode-button', { hasText: 'Open newest failures' }).click();
      await t.until("document.querySelectorAll('dialog[open] .failure').length === 12");
      await expect
        .poll(() =>
          bare(t, [run.detail, run.status, run.tasks, run.failures(12)], ['quickstart', 'training', 'desk', '812 MB']),
        )
        .toEqual([]);
    });
  });

  describe('inspector', () => {
    const run = '/runs/demo',
      rollout = 'r-000102';
    let plans: Plan[], rich: ReturnType<typeof view>, fake: FakeAnnotations;
    const pictures: Answer = (method, p) => {
      if (method === 'frame/thumbnails') return session.frames.answer(p);
      throw { kind: 'not.found', message: `No ${method}.`, remedy: '' };
    };
    const session = new PageSession(
      browsers.inspector,
      'inspector',
      () => ({
        words: pseudo,
        input: { kind: 'inspector', run, rollout, annotate: true, queue: true },
        answer: fake.answer(pictures),
      }),
      async (s) => {
        plans = await richPlans(s.frames);
        rich = view(plans, s.dir, { outcome: 'failure' });
      },
    );
    it('leaves no word out, at any step, in annotate mode', async () => {
      fake = new FakeAnnotations().add(rich);
      fake.edit(rollout, 0, [
        { op: 'outcome', value: 'success', reason: 'It was done.' },
        { op: 'tags', tags: ['popup'] },
        { op: 'note', text: 'Ask again.' },
        { op: 'mark', step: 0, mark: 'key', on: true },
        { op: 'mark', step: 1, mark: 'wrong', on: true },
        { op: 'delete', steps: [3] },
        { op: 'thought', step: 4, text: 'The code, then the city.' },
      ]);
      fake.queue = {
        items: [{ row: rich.row, priority: 3, why: 'seldom solved', reviewed: false }],
        total: 41,
        reviewed: 12,
      };
      const t = await session.show(),
        p = t.page,
        also = [
          'popup',
          ...rich.steps.flatMap(
            (x) => x.tokens?.flatMap((token) => [token.label, ...(token.alternatives ?? []).map((a) => a.label)]) ?? [],
          ),
        ],
        data = [rich, fake.queue, ['It was done.', 'popup', 'Ask again.', 'The code, then the city.']];
      await p.locator('.ds-shot.selected').waitFor();
      await p.locator('.an-tools').waitFor();
      await p.keyboard.press('h');
      await p.locator('.ds-report > summary').click();
      await p.locator('[role=listbox]').first().focus();
      for (let i = 0; i < plans.length; i++) {
        await p.keyboard.press(i === 0 ? 'Home' : 'ArrowRight');
        await t.until(`document.querySelector('.ds-shot.selected .ds-shot-number')?.textContent === '${i + 1}'`);
        await expect.poll(() => bare(t, data, also), { message: `step ${i + 1}` }).toEqual([]);
      }
      await p.keyboard.press('?');
      await p.locator('dialog[open]').waitFor();
      await expect.poll(() => bare(t, data, also)).toEqual([]);
    });
  });

  describe('compare', () => {
    let left: ReturnType<typeof view>, right: ReturnType<typeof view>;
    const answer: Answer = (method, p) =>
      method === 'frame/thumbnails'
        ? session.frames.answer(p)
        : [left, right].find((v) => v.row.rollout === p['rollout']);
    const session = new PageSession(
      browsers.compare,
      'compare',
      () => ({
        words: pseudo,
        input: { kind: 'compare', run: '/runs/demo', left: 'r-000102', right: 'r-000101' },
        answer,
      }),
      async (s) => {
        const plans = await richPlans(s.frames);
        left = view(plans, s.dir);
        right = view(
          plans
            .slice(0, 9)
            .map((x, i) => (i === 2 ? { ...x, action: { type: 'click', at: { x: 398, y: 147 } } as const } : x)),
          s.dir,
          { rollout: 'r-000101', outcome: 'failure' },
        );
      },
    );
    it('leaves no word out, where both go on and where one has ended', async () => {
      const t = await session.show(),
        p = t.page;
      for (const key of ['Home', 'x', 'End']) {
        await p.locator('.ds-shot.selected').first().waitFor();
        await p.keyboard.press(key);
        await expect.poll(() => bare(t, [left, right])).toEqual([]);
      }
    });
  });

  describe('comparison of runs', () => {
    const made = makeComparison(),
      { browser } = browsers.runs;
    let open: TestPage | undefined;
    afterAll(async () => {
      const faults = open?.faults ?? [];
      await open?.close();
      await browser.close();
      expect(faults).toEqual([]);
    });
    it('leaves no word out: tables, charts and what they are as tables', async () => {
      const t = (open = await TestPage.open(browser, await bundle('compareRuns'), {
        words: pseudo,
        input: { kind: 'compareRuns', runs: made.runs.map((r) => r.run) },
        folders: [],
        answer: () => ({
          ...made,
          missing: [{ run: '/work/runs/gone', error: { kind: 'not.found', message: 'Gone.', remedy: 'List again.' } }],
        }),
      }));
      await t.until("document.querySelectorAll('#success .uplot canvas').length === 2");
      await t.page.evaluate("document.querySelectorAll('details').forEach((x) => { x.open = true; })");
      const chart = (i: number): string => `document.querySelectorAll('.chart')[${i}]`,
        charts = await t.page.evaluate<number>("document.querySelectorAll('.chart').length");
      expect(charts).toBeGreaterThan(10);
      for (let i = 0; i < charts; i++) {
        await t.page.evaluate(`${chart(i)}.scrollIntoView({ block: 'center' })`);
        await t.until(`${chart(i)}.querySelector('.uplot canvas')`);
        await t.page.evaluate(`${chart(i)}.querySelector('vscode-button[aria-label*="show as table"]')?.click()`);
        await t.until(`${chart(i)}.querySelector('.chart-table table')`);
      }
      for (const grouped of [true, false]) {
        if (!grouped) await t.page.locator('.runs-check input').first().click();
        await expect
          .poll(() => bare(t, made, ['/work/runs/gone: Gone. List again', 'quickstart', 'lr 0.0003', 'lr 0.001']), {
            message: `${grouped}`,
          })
          .toEqual([]);
      }
    });
  });

  describe('trajectory table', () => {
    let plans: Plan[], data: TableData;
    const answer: Answer = (method, p) => {
      switch (method) {
        case 'trajectory/columns':
          return data.part(p as { limit: number });
        case 'trajectory/frames':
          return { frames: Object.fromEntries((p['rollouts'] as string[]).map((r) => [r, plans[0]!.frame.hash])) };
        case 'frame/thumbnails':
          return session.frames.answer(p);
        case 'run/failures':
          return failuresOn(plans, p['family'] as string | undefined);
        default:
          return { strips: (p['rollouts'] as string[]).map((r, i) => stripOn(r, plans, i + 2)) };
      }
    };
    const session = new PageSession(
      browsers.table,
      'table',
      () => ({
        words: pseudo,
        input: {
          kind: 'table',
          run: '/runs/demo',
          saved: [{ name: 'Long ones', filter: { steps: { min: 20 }, outcome: ['failure'] } }],
        },
        answer,
      }),
      async (s) => {
        plans = await richPlans(s.frames);
        data = new TableData(300);
      },
    );
    const known = (): unknown => [data.part({ limit: 300 }), failuresOn(plans), plans, 'Long ones'];
    it('leaves no word out: rows, the menu of every column, filters in effect and saved ones', async () => {
      const t = await session.show(),
        p = t.page;
      await t.until("document.querySelectorAll('img.tb-picture[src]').length > 10");
      const filters = await p.locator('.tb-filter').all();
      expect(filters.length).toBeGreaterThan(8);
      for (const f of filters) {
        await f.click();
        await p.locator('.tb-popover').waitFor();
        await expect.poll(() => bare(t, known())).toEqual([]);
        await p.keyboard.press('Escape');
      }
      await p.locator('.tb-place').first().click();
      await p.locator('.tb-chip').first().waitFor();
      await p.locator('.tb-bar vscode-button').last().click();
      await p.locator('.tb-saved').first().waitFor();
      await expect.poll(() => bare(t, known())).toEqual([]);
      await p.keyboard.press('Escape');
      await p.keyboard.press('?');
      await p.locator('dialog[open]').waitFor();
      await expect.poll(() => bare(t, known())).toEqual([]);
    });
    it('leaves no word out: failures in clusters, of one task with its clicks, and what changed', async () => {
      const t = await session.show(),
        p = t.page;
      await p.locator('#tb-tab-failures').click();
      await t.until("document.querySelectorAll('.tb-cluster').length === 3");
      await expect.poll(() => bare(t, known())).toEqual([]);
      await p.locator('vscode-dropdown').click();
      await p.locator('vscode-option', { hasText: 'form-one' }).last().click();
      await t.until("document.querySelector('.tb-scatter .tb-mark')");
      await expect.poll(() => bare(t, known())).toEqual([]);
      await p.locator('#tb-tab-changes').click();
      await t.until("document.querySelectorAll('.tb-strip').length >= 2");
      await expect.poll(() => bare(t, known())).toEqual([]);
    });
  });

  describe('live desktop', () => {
    const { browser } = browsers.live;
    let b: Bundle, open: Desk | undefined;
    beforeAll(async () => {
      b = await bundle('live');
    });
    afterEach(async () => {
      const faults = open?.page.faults ?? [];
      await open?.page.close();
      open = undefined;
      expect(faults).toEqual([]);
    });
    afterAll(async () => {
      await browser.close();
    });
    const record = (o: Parameters<typeof controlState>[0]): ReturnType<typeof controlState> =>
      controlState({ purpose: 'record', ...o });
    it.each([
      ['watched', undefined],
      ['recorded', record({ doing: 'typing' })],
      [
        'stepped through',
        controlState({
          mode: 'step',
          left: 3,
          proposal: {
            id: 7,
            thought: 'Now OK.',
            actions: [{ type: 'click', at: { x: 398, y: 147 } }],
            probability: 0.78,
            labels: ['click'],
          },
        }),
      ],
      [
        'kept',
        record({
          mode: 'ended',
          verdict: { outcome: 'success', reward: 1, report: report(true) },
          kept: { rollout: 'd000001', pooled: true },
        }),
      ],
      ['not solved', record({ mode: 'ended', verdict: { outcome: 'failure', reward: 0.5, report: report(false) } })],
    ] as const)('leaves no word out: %s', async (_name, state) => {
      open = await Desk.open(browser, b, { words: pseudo, ...(state ? { state } : {}) });
      await open.page.until(
        state
          ? "document.querySelector('.live-now h2').textContent !== ''"
          : "document.querySelector('.live-facts').textContent.includes('Melon')",
      );
      await expect.poll(() => bare(open!.page, [state, open!.desktops], ['Enter', 'typing', 'true'])).toEqual([]);
    });
  });
});
