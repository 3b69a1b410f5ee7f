import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TrajectoryView } from '../../runtime/protocol/types.js';
import type { PageInput } from '../../webview/protocol.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { themes, type Answer, type TestPage } from '../helpers/pages/page.js';
import { PageSession } from '../helpers/pages/session.js';
import { richPlans, step, view, type Plan } from '../helpers/pages/trajectories.js';

const found = await openBrowser();
if ('why' in found) console.warn(`compare page tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('compare page', () => {
  const { axe } = found as RealBrowser;
  let dir: string, plans: Plan[], left: TrajectoryView, right: TrajectoryView;
  const input: PageInput = { kind: 'compare', run: '/runs/demo', left: 'r-000102', right: 'r-000101' };
  const answer: Answer = (method, p) => {
    if (method === 'frame/thumbnails') return session.frames.answer(p);
    const v = [left, right].find((x) => x.row.rollout === p['rollout']);
    if (!v)
      throw {
        kind: 'not.found',
        message: `No rollout ${String(p['rollout'])} in this run.`,
        remedy: 'Choose another one.',
      };
    return v;
  };
  const session = new PageSession(
    found as RealBrowser,
    'compare',
    () => ({ input, answer }),
    async (s) => {
      dir = s.dir;
      plans = await richPlans(s.frames);
      const other = plans
        .slice(0, 9)
        .map((x, i) =>
          i === 2
            ? { ...x, action: { type: 'click', at: { x: 398, y: 147 } } as const, thought: 'OK closes the list.' }
            : i === 4
              ? { ...x, frame: plans[9]!.frame }
              : x,
        );
      left = view(plans, dir);
      right = view(other, dir, { rollout: 'r-000101', outcome: 'failure' });
    },
  );
  const show = session.show.bind(session);
  /** Step on show on both sides; '-' where it has ended. */
  const on = (t: TestPage, l: string, r: string): Promise<void> =>
    t.until(
      `[...document.querySelectorAll('.cp-side')].map((x) => x.querySelector('.ds-shot.selected .ds-shot-number')?.textContent ?? '-').join() === '${l},${r}'`,
    );

  it('the bundle is small', () => {
    expect(session.bundle.js.length + session.bundle.css.length + session.bundle.ui.length).toBeLessThan(400_000);
  });

  it.each(themes)('%s: opens at the first difference and names it; nothing that axe finds', async (theme) => {
    const t = await show({ theme });
    await on(t, '3', '3');
    await expect
      .poll(() => t.page.locator('.cp-words').innerText())
      .toContain(
        'The same until step 2. At step 3, on the same screen, left: scroll down 3 at 280,160; right: click at 398,147.',
      );
    await t.until("[...document.querySelectorAll('.ds-thumb img, .ds-surface img')].every((i) => i.src && i.complete)");
    if (shots) await t.page.screenshot({ path: join(shots, `compare-${theme}.png`) });
    expect(await t.axe(axe)).toEqual([]);
  });

  it('both sides move as one; differences are marked and one key away; the shorter one says that it has ended', async () => {
    const t = await show(),
      k = t.page.keyboard;
    await on(t, '3', '3');
    await expect
      .poll(() => t.page.locator('.cp-side').first().locator('.ds-shot.flagged .ds-shot-number').allInnerTexts())
      .toEqual(expect.arrayContaining(['3', '5']));
    await k.press('ArrowRight');
    await on(t, '4', '4');
    await expect.poll(() => t.page.locator('.cp-line-head').first().innerText()).toContain('the same');
    await k.press('n');
    await on(t, '5', '5');
    await expect
      .poll(() => t.page.locator('.cp-line-head').first().innerText())
      .toContain('the same action on another screen');
    await k.press('n');
    await on(t, '10', '-');
    await expect.poll(() => t.page.locator('.cp-side').last().innerText()).toContain('Failure: it ended after step 9.');
    await k.press('End');
    await on(t, '12', '-');
    await k.press('x');
    await on(t, '3', '3');
    await k.press('b');
    await t.until("[...document.querySelectorAll('.ds-surface img')].every((i) => i.alt.includes('after the action'))");
    await t.page.locator('.cp-side').last().locator('.ds-shot').nth(1).click();
    await on(t, '2', '2');
    await k.press('w');
    await t.until("document.querySelector('.cp-side .ds-outcome').textContent === 'Failure'");
    await expect
      .poll(() => t.saved)
      .toEqual({ input: { kind: 'compare', run: '/runs/demo', left: 'r-000101', right: 'r-000102' }, selected: 1 });
  });

  it('hidden and shown again: the sides are where they were put', async () => {
    const t = await show(),
      swapped = "document.querySelector('.cp-side .ds-outcome')?.textContent === 'Failure'";
    await on(t, '3', '3');
    await t.page.keyboard.press('ArrowRight');
    await t.page.keyboard.press('w');
    await t.until(swapped);
    await expect.poll(() => t.saved).toMatchObject({ input: { left: 'r-000101' }, selected: 3 });
    await t.page.reload();
    await t.until(swapped);
    await on(t, '4', '4');
  });

  it('another sibling on one side, one that cannot be read, and the inspector of one', async () => {
    const t = await show();
    await on(t, '3', '3');
    await t.page.getByRole('button', { name: 'Open in the inspector' }).last().click();
    await expect
      .poll(() => t.actions)
      .toEqual([{ action: 'openTrajectory', run: '/runs/demo', rollout: 'r-000101', step: 2 }]);
    await t.page.locator('vscode-dropdown').last().click();
    await t.page.locator('vscode-option', { hasText: '5: failure' }).last().click();
    await t.until(
      "document.querySelectorAll('.cp-side')[1].textContent.includes('No rollout r-000105 in this run. Choose another one.')",
    );
    expect(await t.axe(axe)).toEqual([]);
  });

  it('of two of which one cannot be read the other is shown, step by step', async () => {
    const t = await show({ input: { ...input, right: 'r-000109' } });
    await on(t, '1', '-');
    await expect.poll(() => t.page.locator('.cp-words').innerText()).toBe('One of them could not be read.');
    expect(await t.page.locator('.cp-line-head h2').innerText()).toBe('Step 1');
    expect(await t.page.locator('.cp-line-head').innerText()).not.toContain('the same');
    await t.page.keyboard.press('ArrowRight');
    await on(t, '2', '-');
    expect(await t.axe(axe)).toEqual([]);
  });

  it('one that ended before its first step says so', async () => {
    const all = right;
    right = view([], dir, { rollout: 'r-000101', outcome: 'error' });
    try {
      const t = await show();
      await t.until(
        "document.querySelectorAll('.cp-side')[1].textContent.includes('It ended with an error before its first step.')",
      );
      expect(await t.page.locator('.cp-side').last().innerText()).not.toMatch(/after step 0|no policy/);
    } finally {
      right = all;
    }
  });

  it('a live side grows', async () => {
    const all = right,
      few = { ...view(plans.slice(0, 2), dir, { rollout: 'r-000101', outcome: 'running', formed: false }) };
    right = few;
    const t = await show();
    try {
      await t.until(
        "document.querySelectorAll('.cp-side')[1].querySelector('.ds-shot')?.getAttribute('aria-setsize') === '2'",
      );
      await expect.poll(() => t.subscriptions.length).toBe(1);
      await t.post({
        type: 'events',
        run: '/runs/demo',
        events: [{ seq: 1, at: 1, type: 'step', rollout: 'r-000101', step: step(2, plans[2]!, undefined) }],
        nextSeq: 2,
        live: true,
      });
      await t.until(
        "document.querySelectorAll('.cp-side')[1].querySelector('.ds-shot')?.getAttribute('aria-setsize') === '3'",
      );
    } finally {
      right = all;
    }
  });
});
