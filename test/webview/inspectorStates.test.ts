import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { inspectorPages, input, on, read, shown } from '../helpers/pages/inspectorPages.js';
import { themes } from '../helpers/pages/page.js';
import { longPlans, step, view } from '../helpers/pages/trajectories.js';

const found = await openBrowser();
if ('why' in found) console.warn(`inspector page tests skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('states of the inspector', () => {
  const { axe } = found as RealBrowser,
    pages = inspectorPages(found as RealBrowser),
    { show, served } = pages;

  it('live: steps arrive and are followed; looking back is left in peace; the end fills the header in', async () => {
    let now = view(pages.plans.slice(0, 3), pages.dir, { outcome: 'running', formed: false });
    const t = await show({ answer: served(() => now) }),
      p = await shown(t);
    await on(t, 3);
    await t.until("document.querySelector('.ds-outcome')?.textContent === 'Running'");
    await expect
      .poll(() => t.subscriptions)
      .toEqual([expect.objectContaining({ run: '/runs/demo', sinceSeq: 4711, rollout: 'r-000102' })]);
    const push = (from: number, to: number): Promise<void> =>
      t.post({
        type: 'events',
        run: '/runs/demo',
        events: pages.plans.slice(from, to).map((x, i): RunEvent => ({
          seq: 5000 + from + i,
          at: 0,
          type: 'step',
          rollout: 'r-000102',
          step: step(from + i, x, undefined),
        })),
        nextSeq: 5000 + to,
        live: true,
      });
    await push(3, 5);
    await on(t, 5);
    await p.keyboard.press('ArrowLeft');
    await on(t, 4);
    await push(5, 7);
    await t.until("document.querySelector('.ds-shot')?.getAttribute('aria-setsize') === '7'");
    await on(t, 4);
    await expect.poll(() => p.getByRole('button', { name: 'Follow' }).getAttribute('aria-pressed')).toBe('false');
    await p.getByRole('button', { name: 'Follow' }).click();
    await on(t, 7);
    await push(7, 8);
    await on(t, 8);
    now = pages.rich;
    await t.post({
      type: 'events',
      run: '/runs/demo',
      events: [
        ...pages.plans.slice(8).map((x, i): RunEvent => ({
          seq: 6000 + i,
          at: 0,
          type: 'step',
          rollout: 'r-000102',
          step: step(8 + i, x, undefined),
        })),
        { seq: 6100, at: 0, type: 'ended', row: pages.rich.row },
      ],
      nextSeq: 6101,
      live: true,
      ended: true,
    });
    await t.until("document.querySelector('.ds-report summary')?.textContent.includes('3 of 3')");
    await on(t, 12);
    await expect.poll(() => p.locator('.ds-head').innerText()).toContain('Success');
    await expect.poll(() => p.getByRole('button', { name: 'Follow' }).isVisible()).toBe(false);
    await expect.poll(() => t.subscriptions.length).toBe(1);
  });

  it('shows pictures where paths are those of Windows, from a drive whose letter is written otherwise', async () => {
    const there = (path: string): string => path.replace(pages.dir, 'C:\\u\\cache').replaceAll('/', '\\'),
      answer = served(() => pages.rich);
    const t = await show({
      named: () => 'c:\\u\\cache',
      answer: async (method, p) => {
        const a = await answer(method, p);
        if (method !== 'frame/thumbnails') return a;
        const { paths } = a as { readonly paths: Readonly<Record<string, string>> };
        return { paths: Object.fromEntries(Object.entries(paths).map(([hash, path]) => [hash, there(path)])) };
      },
    });
    await t.until("document.querySelector('.ds-surface img')?.naturalWidth === 640");
    await t.until("document.querySelector('.ds-thumb img')?.naturalWidth === 320");
  });

  it.each(themes)('%s: a partial score is said with the outcome, and who judged with the check', async (theme) => {
    const failed = view(pages.plans, pages.dir, { outcome: 'failure' }),
      partial = {
        ...failed,
        row: { ...failed.row, reward: 0.7, truncated: true },
        report: {
          checks: [
            {
              what: 'compare_table: vm_file /home/user/Sales.xlsx',
              expected: 'Sales_gold.xlsx',
              found: 'Sales.xlsx, 4,812 bytes',
              score: 0.7,
              judge: { name: 'desktop-env', version: '1.0.3', ms: 2140, files: ['/home/user/Sales.xlsx'] },
            },
          ],
        },
      };
    const t = await show({ theme, answer: served(() => partial) }),
      p = await shown(t);
    expect(await p.locator('.ds-head .ds-outcome').first().innerText()).toBe('Failure at the step limit, score 0.7');
    await p.locator('.ds-report > summary').click();
    await p.locator('.ds-report .ds-script summary').click();
    const report = await p.locator('.ds-report').innerText();
    for (const w of ['0 of 1 check passed', 'desktop-env 1.0.3, 2.1 s', '/home/user/Sales.xlsx', '0.7'])
      expect(report).toContain(w);
    expect(await read(t, "document.querySelector('.ds-report tbody th').innerHTML")).toContain('passed in part');
    if (shots) await p.screenshot({ path: join(shots, `inspector-partial-${theme}.png`) });
    expect(await t.axe(axe)).toEqual([]);
  });

  it('ten thousand steps: a window of them exists, and both ends are one key away', async () => {
    const long = view(longPlans(pages.plans, 10_000), pages.dir);
    const t = await show({ answer: served(() => long) }),
      p = await shown(t);
    await expect.poll(() => p.locator('.ds-shot').count()).toBeLessThan(40);
    await p.keyboard.press('End');
    await on(t, 10_000);
    await expect.poll(() => p.locator('.ds-shot').count()).toBeLessThan(40);
    await expect.poll(() => p.locator('.ds-time-bars .bar').count()).toBeLessThan(600);
    await p.keyboard.press('PageUp');
    await p.keyboard.press('Home');
    await on(t, 1);
    for (let i = 0; i < 30; i++) await p.keyboard.press('ArrowRight');
    await on(t, 31);
    await expect.poll(() => read(t, "document.querySelectorAll('[role=option][aria-selected=true]').length")).toBe(1);
  });

  it('what cannot be read is said with its remedy, and trying again works', async () => {
    let broken = true;
    const t = await show({
      answer: (m, p) => {
        if (broken && m === 'trajectory/get')
          throw {
            kind: 'not.found',
            message: 'No rollout r-000102 in this run.',
            remedy: 'Refresh the list of trajectories.',
          };
        return served(() => pages.rich)(m, p);
      },
    });
    await t.page.locator('.ds-lack').waitFor();
    await expect.poll(() => t.page.locator('.ds-lack').innerText()).toContain('Refresh the list of trajectories.');
    expect(await t.axe(axe)).toEqual([]);
    broken = false;
    await t.page.getByRole('button', { name: 'Try again' }).click();
    await shown(t);
  });

  it('missing pictures and thumbnails leave a place, the marks and the reason', async () => {
    const gone = { hash: 'f'.repeat(64), width: 640, height: 400 },
      some = view(
        pages.plans.map((x, i) => (i === 1 ? { ...x, frame: gone } : x)),
        pages.dir,
      );
    const t = await show({
        answer: (m, p) => {
          if (m === 'frame/thumbnails') throw { kind: 'store.io', message: 'Disk full.', remedy: '' };
          return served(() => some)(m, p);
        },
      }),
      p = await shown(t);
    await t.until(
      "[...document.querySelectorAll('.ds-thumb img')].filter((i) => i.complete && i.naturalWidth === 640).length >= 6",
    );
    await p.keyboard.press('ArrowRight');
    await on(t, 2);
    await t.until("document.querySelector('.ds-placeholder')?.checkVisibility()");
    await expect.poll(() => p.locator('.ds-placeholder').innerText()).toContain('missing or damaged');
    await t.until("document.querySelectorAll('.ds-overlay .mark').length === 1");
    expect(await t.axe(axe)).toEqual([]);
    await p.keyboard.press('ArrowRight');
    await on(t, 3);
    await p.locator('.ds-placeholder').waitFor({ state: 'hidden' });
  });

  it('pictures that were asked for while the runtime was away come when it is back', async () => {
    let away = true;
    // In packs: no picture lies beside it.
    const packed = view(pages.plans, `${pages.dir}/packed`),
      t = await show({
        answer: (m, p) => {
          if (away && m === 'frame/thumbnails') throw { kind: 'connection.lost', message: 'Lost.', remedy: '' };
          return served(() => packed)(m, p);
        },
      }),
      whole = (selector: string, width: number): string =>
        `[...document.querySelectorAll('${selector}')].filter((i) => i.complete && i.naturalWidth === ${width}).length`;
    await t.until("document.querySelector('.ds-placeholder')?.textContent.includes('missing or damaged')");
    await t.until("document.querySelectorAll('.ds-no-thumb .codicon').length >= 6");
    expect(await read(t, whole('.ds-thumb img, .ds-surface img', 640))).toBe(0);
    away = false;
    await t.post({ type: 'daemon', state: 'reconnecting' });
    await t.post({ type: 'daemon', state: 'ready' });
    await t.until(`${whole('.ds-surface img', 640)} === 1`);
    await t.until(`${whole('.ds-thumb img', 320)} >= 6`);
    await t.page.locator('.ds-placeholder').waitFor({ state: 'hidden' });
    await t.page.keyboard.press('ArrowRight');
    await on(t, 2);
    await t.until(`${whole('.ds-surface img', 640)} === 1`);
  });

  it('the connection’s state is said in words, with what to do, and the page asks again when it is back', async () => {
    const t = await show({
        answer: served(() => view(pages.plans.slice(0, 3), pages.dir, { outcome: 'running', formed: false })),
      }),
      p = await shown(t);
    await t.post({ type: 'daemon', state: 'reconnecting' });
    await t.until("document.querySelector('.ds-banner')?.textContent.includes('reconnecting')");
    await t.post({ type: 'daemon', state: 'stopped' });
    await p.getByRole('button', { name: 'Start runtime' }).click();
    await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'command', command: 'startRuntime' });
    expect(await t.axe(axe)).toEqual([]);
    await t.post({ type: 'daemon', state: 'ready' });
    await p.locator('.ds-banner').waitFor({ state: 'detached' });
    await t.until('true');
    await expect.poll(() => t.requests.filter((r) => r.method === 'trajectory/get').length).toBe(2);
  });

  it('a file: no runtime is asked, pictures come from beside it, lines that could not be used are named', async () => {
    const t = await show({
        daemon: 'stopped',
        input: {
          kind: 'inspector',
          rollout: 'r-000102',
          document: { ...pages.rich, live: false },
          skipped: [{ line: 4, why: 'not a JSON object' }],
        },
      }),
      p = await shown(t);
    expect(t.requests).toEqual([]);
    await expect
      .poll(() => p.locator('.ds-banner').allInnerTexts())
      .toEqual([expect.stringContaining('line 4, not a JSON object')]);
    await expect
      .poll(() => read(t, "[...document.querySelectorAll('.ds-sibling .open')].map((b) => b.disabled).join()"))
      .toBe('true,false,true,true,true');
    expect(await t.axe(axe)).toEqual([]);
    await t.until("[...document.querySelectorAll('.ds-thumb img')].some((i) => i.complete && i.naturalWidth === 640)");
    await p.keyboard.press('ArrowRight');
    await on(t, 2);
    await t.post({
      type: 'show',
      input: {
        kind: 'inspector',
        rollout: 'r-000102',
        document: { ...pages.rich, live: false, steps: pages.rich.steps.slice(0, 5) },
      },
      roots: [{ path: pages.dir, uri: (await read<string>(t, 'location.origin')) + `/root${pages.dir}` }],
    });
    await t.until("document.querySelector('.ds-shot')?.getAttribute('aria-setsize') === '5'");
    await on(t, 2);
    await expect.poll(() => p.locator('.ds-banner').count()).toBe(0);
  });

  it('hidden and shown again: step, toggles and zoom are as they were', async () => {
    const t = await show(),
      p = await shown(t);
    await p.keyboard.press('ArrowRight');
    await p.keyboard.press('ArrowRight');
    await p.keyboard.press('h');
    await p.keyboard.press('+');
    await on(t, 3);
    await expect
      .poll(() => t.saved)
      .toMatchObject({ input: { step: 2 }, heat: true, zoom: expect.any(Number) as number });
    const scale = `${Math.round((t.saved as { zoom: number }).zoom * 100)} %`;
    await p.reload();
    await shown(t);
    await on(t, 3);
    await t.until(`document.querySelector('.ds-scale').textContent === ${JSON.stringify(scale)}`);
    await expect.poll(() => p.locator('.ds-legend').isVisible()).toBe(true);
    expect(JSON.stringify(t.saved)).not.toContain('timings');
  });

  it('hidden and shown again: at the step where it was left, though it was opened at another', async () => {
    const t = await show({ input: { kind: 'inspector', run: '/runs/demo', rollout: 'r-000102', step: 4 } }),
      p = await shown(t);
    await on(t, 5);
    await p.keyboard.press('ArrowRight');
    await on(t, 6);
    await expect.poll(() => t.saved).toMatchObject({ input: { step: 5 } });
    await p.reload();
    await shown(t);
    await on(t, 6);
  });

  it('a page that is closed before anything has loaded still knows what it was to show', async () => {
    const first = await show({ answer: () => new Promise(() => undefined) });
    await expect.poll(() => first.kept[0]).toMatchObject({ input });
    expect(await first.axe(axe)).toEqual([]);
    const again = await show({
      answer: () => new Promise(() => undefined),
      saved: { input: { ...input, step: 2 }, pinned: false },
    });
    await expect.poll(() => again.kept[0]).toMatchObject({ input: { step: 2 } });
  });
});
