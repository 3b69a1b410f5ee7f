import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TrajectoryView } from '../../runtime/protocol/types.js';
import type { Page } from '../helpers/workbench/playwright.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { themes, type Answer, type TestPage } from '../helpers/pages/page.js';
import { remoteView } from '../helpers/pages/remote.js';
import { PageSession } from '../helpers/pages/session.js';
import { richPlans, type Plan } from '../helpers/pages/trajectories.js';

const found = await openBrowser();
if ('why' in found) console.warn(`inspector page tests skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('inspector page: a vision-language model’s rollout', () => {
  const { axe } = found as RealBrowser;
  let dir: string, plans: Plan[];
  const served =
    (v: () => TrajectoryView): Answer =>
    (method, p) => {
      if (method === 'trajectory/get') return v();
      if (method === 'frame/thumbnails') return session.frames.answer(p);
      throw { kind: 'not.found', message: `No ${method}.`, remedy: '' };
    };
  const session = new PageSession(
    found as RealBrowser,
    'inspector',
    () => ({
      input: { kind: 'inspector', run: '/runs/demo', rollout: 'r-000102' },
      answer: served(() => remoteView(plans, dir)),
    }),
    async (s) => {
      dir = s.dir;
      plans = await richPlans(s.frames);
    },
  );
  const show = session.show.bind(session);
  const shown = async (t: TestPage): Promise<Page> => {
    await t.page.locator('.ds-shot.selected').waitFor();
    await t.until("((i) => i?.src && i.complete)(document.querySelector('.ds-surface img'))");
    return t.page;
  };
  const on = (t: TestPage, n: number): Promise<void> =>
    t.until(`document.querySelector('.ds-detail h2')?.textContent.startsWith('Step ${n} ')`);
  const remote = (theme?: (typeof themes)[number]): Promise<TestPage> =>
    show({ ...(theme ? { theme } : {}), height: 1000 });

  it.each(themes)('%s: answer, colours, prompt and rejected answers, with nothing that axe finds', async (theme) => {
    const t = await remote(theme),
      p = await shown(t);
    await p.keyboard.press('ArrowRight');
    await on(t, 2);
    await p.locator('.ds-rejected > summary').click();
    await t.until("[...document.querySelectorAll('.ds-shown img')].filter((i) => i.complete).length === 2");
    if (shots) await p.screenshot({ path: join(shots, `inspector-vlm-${theme}.png`) });
    expect(await t.axe(axe)).toEqual([]);
    await p.keyboard.press('m');
    await t.until("document.querySelector('[data-colour=weight] .ds-flow') !== null");
    if (shots) await p.screenshot({ path: join(shots, `inspector-vlm-${theme}-weight.png`) });
    expect(await t.axe(axe)).toEqual([]);
    await p.keyboard.press('End');
    await on(t, 12);
    await t.until("[...document.querySelectorAll('.ds-shown img')].filter((i) => i.complete).length === 5");
    await p.evaluate("document.querySelector('.ds-shown').scrollIntoView({ block: 'end' })");
    if (shots) await p.screenshot({ path: join(shots, `inspector-vlm-${theme}-prompt.png`) });
    expect(await t.axe(axe)).toEqual([]);
  });

  it('says what was sampled, by whom and on which images; bounds and unknown numbers are told as such', async () => {
    const t = await remote(),
      p = await shown(t);
    const detail = async (): Promise<string> => p.locator('.ds-detail').innerText();
    // The tokens spell the thought: it is not said twice.
    expect(await p.locator('.ds-thought').count()).toBe(0);
    expect(await p.locator('.ds-flow').innerText()).toContain('The list shows six fruits');
    expect(await detail()).toMatch(/at least 0\.\d+/);
    expect(await detail()).toContain('policy v12');
    expect(
      await p
        .locator('.ds-detail')
        .getByText(/^[\d,]+ tokens, 1 image$/)
        .count(),
    ).toBe(1);
    await p.keyboard.press('End');
    await on(t, 12);
    await expect.poll(() => p.locator('.ds-shown li').count()).toBe(5);
    await expect.poll(() => p.locator('.ds-shown li.own img').getAttribute('alt')).toBe('Screenshot of this step');
    await p.getByRole('button', { name: 'Screenshot of step 9' }).click();
    await on(t, 9);
    for (let k = 0; k < 6; k++) await p.keyboard.press('ArrowLeft');
    await on(t, 3);
    expect(await detail()).toContain('did not return the log-probability of 1 of them');
    expect(await p.locator('.ds-flow .unknown').count()).toBe(1);
    expect(await p.locator('.ds-badges').innerText()).not.toContain('cut off');
    await p.keyboard.press('ArrowRight');
    await on(t, 4);
    expect(await p.locator('.ds-badges').innerText()).toContain('cut off');
    await p.keyboard.press('ArrowLeft');
    await on(t, 3);
    await p.getByRole('slider').focus();
    await expect
      .poll(() => p.getByRole('slider').getAttribute('aria-valuetext'))
      .toMatch(/^Step 3: entropy at least 0\.\d+/);
  });

  it('each token shows its alternatives on hover, and by arrow keys that do not leave the step', async () => {
    const t = await remote(),
      p = await shown(t);
    const label = (): Promise<string> => p.locator('.ds-pick .ds-token-label').innerText();
    const first = p.locator('.ds-flow [role=option]').first();
    await first.hover();
    await expect.poll(label).toBe('Thought');
    await expect.poll(() => first.getAttribute('aria-selected')).toBe('true');
    await p.locator('.ds-flow').focus();
    await p.keyboard.press('ArrowRight');
    await expect.poll(label).toBe(':');
    await p.keyboard.press('End');
    await expect.poll(label).toBe('<|im_end|>');
    await on(t, 1);
    await t.until(
      "document.getElementById(document.querySelector('.ds-flow').getAttribute('aria-activedescendant')).getAttribute('aria-label').startsWith('<|im_end|>, log p')",
    );
    const doubtful = p.locator('.ds-flow [role=option][aria-label*="%"]').first();
    await doubtful.hover();
    await expect.poll(() => p.locator('.ds-pick .ds-alternatives li').count()).toBeGreaterThan(1);
    await expect.poll(() => p.locator('.ds-pick').innerText()).toMatch(/H ≥ \d/);
  });

  it('colour by weight is kept over a reload, and a rejected answer has its reason', async () => {
    const t = await remote(),
      p = await shown(t);
    await p.locator('.ds-colouring').getByRole('button', { name: 'Weight' }).click();
    await expect.poll(() => t.saved).toMatchObject({ colour: 'weight' });
    await p.reload();
    await shown(t);
    await t.until("document.querySelector('[data-colour=weight] .ds-flow') !== null");
    await p.keyboard.press('ArrowRight');
    await on(t, 2);
    expect(await p.locator('.ds-rejected').getAttribute('open')).toBe(null);
    await p.locator('.ds-rejected > summary').click();
    const said = await p.locator('.ds-rejected').innerText();
    for (const w of ['1 rejected answer', 'zoom_in is none of the calls', 'zoom_in(start_box', 'policy v12'])
      expect(said).toContain(w);
  });

  it('a live step whose prompt is to come is asked for with the whole trajectory', async () => {
    const whole = remoteView(plans, dir),
      live = {
        ...whole,
        live: true,
        row: { ...whole.row, outcome: 'running' as const },
        steps: whole.steps.slice(0, 2),
      };
    const t = await show({ answer: served(() => live) });
    await shown(t);
    await t.post({
      type: 'events',
      run: '/runs/demo',
      live: true,
      nextSeq: 5001,
      events: [
        { seq: 5000, at: 0, type: 'step', rollout: 'r-000102', step: { ...whole.steps[2]!, prompt: 'pending' } },
      ],
    });
    await expect.poll(() => t.requests.filter((r) => r.method === 'trajectory/get').length).toBe(2);
  });
});
