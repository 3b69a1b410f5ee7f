import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { themes } from '../helpers/pages/page.js';
import { alt, inspectorPages, on, read, shown } from '../helpers/pages/inspectorPages.js';

const found = await openBrowser();
if ('why' in found) console.warn(`inspector page tests skipped: ${found.why}`);
/** Screenshots for people to look at, when a folder is named. */
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('inspector page', () => {
  const { axe } = found as RealBrowser,
    pages = inspectorPages(found as RealBrowser),
    { session, show, served } = pages;

  it('the bundle is small', () => {
    const b = session.bundle;
    expect(b.js.length + b.css.length + b.ui.length).toBeLessThan(400_000);
    expect(gzipSync(b.js).length).toBeLessThan(130_000);
  });

  it.each(themes)('%s: nothing that axe finds, in every part of the page', async (theme) => {
    const t = await show({ theme }),
      p = await shown(t);
    if (shots) {
      await t.until("[...document.querySelectorAll('.ds-thumb img')].every((i) => i.complete)");
      await p.screenshot({ path: join(shots, `inspector-${theme}.png`) });
    }
    expect(await t.axe(axe)).toEqual([]);
    await p.keyboard.press('h');
    await p.locator('.ds-legend').waitFor();
    await p.locator('.ds-report > summary').click();
    await p.locator('.ds-report table').waitFor();
    if (shots) await p.screenshot({ path: join(shots, `inspector-${theme}-heat.png`) });
    expect(await t.axe(axe)).toEqual([]);
    await p.keyboard.press('?');
    await p.locator('dialog[open]').waitFor();
    if (shots) await p.screenshot({ path: join(shots, `inspector-${theme}-keys.png`) });
    expect(await t.axe(axe)).toEqual([]);
  });

  it.each(['dark', 'light'] as const)(
    '%s: says where a branch begins, and what a relabelled one was asked for',
    async (theme) => {
      const { rich } = pages,
        headOf = async (row: Partial<typeof rich.row>, name: string): Promise<string> => {
          const t = await show({ theme, answer: served(() => ({ ...rich, row: { ...rich.row, ...row } })) }),
            p = await shown(t);
          if (shots) await p.screenshot({ path: join(shots, `inspector-${theme}-${name}.png`) });
          expect(await t.axe(axe)).toEqual([]);
          return (await p.locator('.ds-head').innerText()).replace(/\s+/g, ' ');
        };
      expect(await headOf({ branch: 'r-000099@2' }, 'branch')).toMatch(/Branch of r-000099, from step 3/i);
      const relabelled = await headOf(
        { rollout: 'hindsight/r-000102', provenance: 'hindsight', relabelledFrom: 'Choose Lemon' },
        'relabelled',
      );
      expect(relabelled).toMatch(/Relabelled from Choose Lemon/i);
    },
  );

  it('says what the trajectory is and shows its first step', async () => {
    const t = await show(),
      p = await shown(t);
    await expect
      .poll(() => t.requests.filter((r) => r.method === 'trajectory/get'))
      .toEqual([{ method: 'trajectory/get', params: { run: '/runs/demo', rollout: 'r-000102' } }]);
    const head = await p.locator('.ds-head').innerText();
    for (const w of [
      'Success',
      'Choose Melon',
      'desk/choose-fruit',
      'v12 to v13',
      '16.4 s',
      '1.2 s',
      '38 ms',
      'training rollout',
      '3 of 3 checks passed',
      '2 of 5 succeeded',
    ])
      expect(head).toContain(w);
    // The script of a check is one click away.
    const script = p.locator('.ds-script');
    if (!(await script.locator('summary').isVisible())) await p.locator('.ds-report > summary').click();
    await script.locator('summary').click();
    await expect.poll(() => script.locator('pre').innerText()).toContain('grep -qx Lisbon');
    await expect.poll(() => alt(t)).toBe('Step 1 screenshot: click at 194,154');
    const detail = await p.locator('.ds-detail').innerText();
    for (const w of [
      'Step 1',
      'of 12',
      'Melon',
      "click(start_box='(194,154)')",
      '42 %',
      'policy v12',
      '+0.866',
      '0.91',
      '33 % of its checks hold',
      'replica-0',
      'desk-2',
      'Settle',
      'kept',
      'high entropy',
    ])
      expect(detail).toContain(w);
    await expect.poll(() => t.titles.at(-1)).toMatch(/^Choose Melon/);
    await expect.poll(() => read(t, 'document.title')).toBe(t.titles.at(-1));
    const thumbs = t.requests
      .filter((r) => r.method === 'frame/thumbnails' && r.params['width'] !== 0)
      .flatMap((r) => r.params['hashes'] as string[]);
    expect(new Set(thumbs).size).toBe(thumbs.length);
  });

  it('everything by keyboard: steps, hesitations, before and after, zoom, pan', async () => {
    const t = await show(),
      p = await shown(t),
      k = p.keyboard;
    await k.press('ArrowRight');
    await on(t, 2);
    await expect.poll(() => alt(t)).toBe('Step 2 screenshot: double click at 190,183');
    await k.press('n');
    await on(t, 3);
    await k.press('n');
    await on(t, 6);
    await k.press('p');
    await k.press('p');
    await on(t, 1);
    await k.press('End');
    await on(t, 12);
    await k.press('Home');
    await on(t, 1);
    await k.press(' ');
    await t.until(
      "document.querySelector('.ds-surface img')?.alt === 'Step 1 screenshot after the action: click at 194,154'",
    );
    await k.press('b');
    await t.until("document.querySelector('.ds-surface img')?.alt === 'Step 1 screenshot: click at 194,154'");
    await p.locator('.ds-box').focus();
    const scale = (): Promise<number> =>
        read(t, "Number(document.querySelector('.ds-scale').textContent.replace(' %', ''))"),
      fitted = await scale();
    for (let i = 0; i < 4; i++) await k.press('+');
    await t.until(`Number(document.querySelector('.ds-scale').textContent.replace(' %', '')) > 200`);
    await expect
      .poll(() => read(t, "getComputedStyle(document.querySelector('.ds-surface img')).imageRendering"))
      .toBe('pixelated');
    const transform = await read<string>(t, "document.querySelector('.ds-surface').style.transform");
    await k.press('Alt+ArrowRight');
    await t.until(`document.querySelector('.ds-surface').style.transform !== ${JSON.stringify(transform)}`);
    await k.press('1');
    await t.until("document.querySelector('.ds-scale').textContent === '100 %'");
    await k.press('0');
    await t.until(`document.querySelector('.ds-scale').textContent === '${fitted} %'`);
    await t.until("document.querySelector('[role=status].sr-only').textContent === 'Screen before the action'");
  });

  it('lists and slider are what they say to a screen reader', async () => {
    const t = await show(),
      p = await shown(t);
    await expect.poll(() => read(t, "document.activeElement?.getAttribute('role')")).toBe('listbox');
    await p.keyboard.press('PageDown');
    await t.until(
      "document.getElementById(document.querySelector('[role=listbox]').getAttribute('aria-activedescendant') ?? '-')?.getAttribute('aria-posinset') > 4",
    );
    const list = await read<{ active: string; set: string; pos: string; name: string }>(
      t,
      "(() => { const l = document.querySelector('[role=listbox]'), o = document.getElementById(l.getAttribute('aria-activedescendant')); return { active: o.getAttribute('aria-selected'), set: o.getAttribute('aria-setsize'), pos: o.getAttribute('aria-posinset'), name: o.textContent }; })()",
    );
    expect(list).toMatchObject({ active: 'true', set: '12' });
    expect(Number(list.pos)).toBeGreaterThan(4);
    expect(list.name).toMatch(/^Step \d+ /);
    await p.getByRole('slider').focus();
    await p.keyboard.press('Home');
    await on(t, 1);
    await p.keyboard.press('ArrowUp');
    await on(t, 2);
    await expect
      .poll(() => p.getByRole('slider').getAttribute('aria-valuetext'))
      .toMatch(/^Step 2: entropy 0\.\d+; threshold 0\.42; dropped by the mask$/);
    await expect.poll(() => p.locator('#ds-time-tip').innerText()).toContain('Step 2');
    await p.keyboard.press('Escape');
    await p.locator('#ds-time-tip').waitFor({ state: 'hidden' });
  });

  it('the mouse: thumbnail, timeline, wheel with Ctrl, hover over a choice', async () => {
    const t = await show(),
      p = await shown(t);
    await p.locator('.ds-shot', { hasText: 'scroll down' }).click();
    await on(t, 3);
    await p.locator('.ds-time-bars .bar rect').nth(0).click({ force: true });
    await on(t, 1);
    await p.locator('.ds-alternatives li', { hasText: '210,154' }).hover();
    await p.locator('.ds-overlay .highlight').waitFor({ state: 'attached' });
    await p.locator('.ds-detail h2').hover();
    await p.locator('.ds-overlay .highlight').waitFor({ state: 'detached' });
    await p.getByRole('button', { name: 'Click heat map' }).click();
    await t.until("document.querySelectorAll('.ds-overlay .heat rect').length === 6");
    await expect.poll(() => p.locator('.ds-legend').innerText()).toContain('42 %');
  });

  it('every kind of action is drawn on its screen', async () => {
    const t = await show(),
      p = await shown(t),
      drawn: string[] = [];
    for (let i = 1; i <= 12; i++) {
      await on(t, i);
      await t.until(
        "document.querySelectorAll('.ds-overlay .mark').length + document.querySelectorAll('.ds-notes .note').length > 0",
      );
      drawn.push(
        await read(
          t,
          "[...document.querySelectorAll('.ds-overlay .mark .words'), ...document.querySelectorAll('.ds-notes .note')].map((x) => x.textContent).join('|')",
        ),
      );
      if (shots) {
        await t.until("((i) => i?.src && i.complete)(document.querySelector('.ds-surface img'))");
        await p.screenshot({ path: join(shots, `inspector-action-${i}.png`) });
      }
      await p.keyboard.press('ArrowRight');
    }
    expect(drawn).toEqual([
      '',
      '×2',
      'down ×3',
      '',
      'K7-204⇥Lisbon⏎',
      'right',
      'Ctrl+A',
      'drag',
      'Ctrl+Shift+S',
      '',
      'Waits 500 ms',
      'Says it is finished: 96',
    ]);
  });

  it('what the editor does for the page: copy, save, text, open, compare; also from its menus', async () => {
    const t = await show(),
      p = await shown(t),
      k = p.keyboard;
    await k.press('c');
    await k.press('s');
    await k.press('t');
    await k.press('d');
    await p
      .getByRole('button', { name: /000104/ })
      .first()
      .click();
    expect(JSON.parse((await p.locator('.ds-shot').nth(2).getAttribute('data-vscode-context')) ?? '')).toEqual({
      webviewSection: 'step',
      step: 2,
      preventDefaultContextMenuItems: true,
    });
    await t.post({ type: 'do', what: 'copyStep', context: { webviewSection: 'step', step: 2 } });
    await t.post({ type: 'do', what: 'nextEntropy' });
    await on(t, 3);
    await k.press('b');
    await t.until("document.querySelector('.ds-surface img')?.alt.includes('after')");
    await k.press('s');
    const seen = (): readonly unknown[] =>
      t.actions.map((a) => (a.action === 'copy' ? { ...a, text: (JSON.parse(a.text) as { index: number }).index } : a));
    await expect.poll(seen).toEqual([
      { action: 'copy', text: 0 },
      {
        action: 'saveImage',
        path: `${pages.dir}/${pages.rich.steps[0]!.frame.hash.slice(0, 2)}/${pages.rich.steps[0]!.frame.hash}.png`,
        name: 'r-000102-step-1.png',
      },
      { action: 'openText', rollout: 'r-000102', run: '/runs/demo' },
      { action: 'compare', run: '/runs/demo', left: 'r-000102', right: 'r-000101' },
      { action: 'openTrajectory', run: '/runs/demo', rollout: 'r-000104' },
      { action: 'copy', text: 2 },
      {
        action: 'saveImage',
        path: `${pages.dir}/${pages.rich.steps[3]!.frame.hash.slice(0, 2)}/${pages.rich.steps[3]!.frame.hash}.png`,
        name: 'r-000102-step-3-after.png',
      },
    ]);
  });

  it('a demonstration has no tokens, a trajectory may have no steps: both are fine', async () => {
    const human = {
      ...pages.rich,
      steps: pages.rich.steps.map(({ tokens: _t, entropy: _e, kept: _k, version: _v, weight: _w, ...x }) => ({
        ...x,
        origin: 'human' as const,
      })),
      row: { ...pages.rich.row, provenance: 'human' as const },
    };
    const t = await show({ answer: served(() => human) }),
      p = await shown(t);
    await expect.poll(() => p.locator('.ds-detail').innerText()).toContain('A person decided: nothing was sampled');
    await expect.poll(() => p.locator('.ds-head').innerText()).toContain('no policy');
    await p.keyboard.press('h');
    await p.keyboard.press('n');
    await expect.poll(() => p.locator('.ds-legend').innerText()).toContain('no click heat map');
    expect(await t.axe(axe)).toEqual([]);
    await t.close();
    const none = await show({
      answer: served(() => ({
        ...pages.rich,
        steps: [],
        row: { ...pages.rich.row, outcome: 'error' as const, steps: 0 },
        error: { kind: 'desktop.start' as const, message: 'The desktop did not come up.', remedy: 'See the log.' },
      })),
    });
    await none.until("document.querySelector('.ds-placeholder')?.textContent.includes('before its first step')");
    await expect.poll(() => none.page.locator('.ds-head').innerText()).toContain('The desktop did not come up.');
    expect(await none.axe(axe)).toEqual([]);
  });

  it('a language model’s answer: the text on its heat, the most hesitant tokens first, all of them on demand', async () => {
    const words = Array.from({ length: 60 }, (_, i) => ({
      label: `word${i} `,
      logprob: -0.1 * (i % 7),
      entropy: i === 31 ? 2.5 : (i % 5) / 10,
      ...(i === 31
        ? {
            alternatives: [
              { label: 'word31 ', probability: 0.4 },
              { label: 'other ', probability: 0.35 },
            ],
          }
        : {}),
    }));
    const t = await show({
        answer: served(() => ({
          ...pages.rich,
          steps: pages.rich.steps.map((x, i) => (i ? x : { ...x, tokens: words })),
        })),
      }),
      p = await shown(t);
    await expect.poll(() => p.locator('.ds-flow span').count()).toBe(60);
    await expect.poll(() => p.locator('.ds-detail tbody tr').count()).toBe(40);
    await expect.poll(() => p.locator('.ds-detail tbody tr').first().innerText()).toContain('word31');
    await p.getByRole('button', { name: 'Show all 60' }).click();
    await expect.poll(() => p.locator('.ds-detail tbody tr').count()).toBe(60);
    if (shots) await p.screenshot({ path: join(shots, 'inspector-tokens.png') });
    expect(await t.axe(axe)).toEqual([]);
  });

  it('the dialog of shortcuts gives the focus back, and keys mean nothing to the page meanwhile', async () => {
    const t = await show(),
      p = await shown(t);
    await p.keyboard.press('?');
    await p.locator('dialog[open]').waitFor();
    await expect.poll(() => p.locator('dialog').innerText()).toContain('Next high-entropy step');
    await p.keyboard.press('ArrowRight');
    await p.keyboard.press('Escape');
    await p.locator('dialog').waitFor({ state: 'hidden' });
    await expect.poll(() => read(t, "document.activeElement?.getAttribute('role')")).toBe('listbox');
    await on(t, 1);
  });

  it.each([
    { width: 560, height: 900 },
    { width: 1280, height: 560 },
  ])('beside another editor and in a low panel nothing is cut off or lost: $width x $height', async (size) => {
    const t = await show(size),
      p = await shown(t);
    if (shots) await p.screenshot({ path: join(shots, `inspector-${size.width}x${size.height}.png`) });
    await expect.poll(() => read(t, 'document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await expect
      .poll(() => read(t, "document.querySelector('.ds-box').getBoundingClientRect().height"))
      .toBeGreaterThanOrEqual(120);
    expect(await t.axe(axe)).toEqual([]);
  });
});
