import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { annotatePages, goTo, input, on, read, ready, rollout, run, saved } from '../helpers/pages/annotatePages.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { themes, type TestPage } from '../helpers/pages/page.js';

const found = await openBrowser();
if ('why' in found) console.warn(`annotator tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('annotate mode', () => {
  const { axe } = found as RealBrowser;
  const pages = annotatePages(found as RealBrowser),
    { show, ops } = pages;

  describe('looks', () => {
    it.each(themes)('%s: nothing that axe finds, in every part of annotate mode', async (theme) => {
      pages.fake.edit(rollout, 0, [
        { op: 'outcome', value: 'success', reason: 'The verifier looked before the dialog had closed.' },
        { op: 'tags', tags: ['misread screen', 'popup'] },
        { op: 'note', text: 'Ask for a later check.' },
      ]);
      pages.fake.edit(rollout, 1, [
        { op: 'mark', step: 0, mark: 'key', on: true },
        { op: 'mark', step: 1, mark: 'redundant', on: true },
        { op: 'mark', step: 2, mark: 'wrong', on: true },
        { op: 'mark', step: 2, mark: 'redundant', on: true },
        { op: 'delete', steps: [3] },
        { op: 'thought', step: 4, text: 'The code, then the city.' },
        { op: 'action', step: 4, action: 0, value: { type: 'type', text: 'K7-204\tLisboa\n' } },
      ]);
      pages.fake.replay = (_r, revision) => ({
        revision,
        at: 0,
        rollout: 'r-000200',
        outcome: 'failure',
        reward: 0,
        report: {
          checks: [
            { what: 'field City', expected: 'Lisbon', found: 'Lisboa', score: 0 },
            { what: 'field Code', expected: 'K7-204', found: 'K7-204', score: 1 },
          ],
        },
        pooled: false,
        why: 'no success',
      });
      pages.fake.queue = {
        items: [{ row: pages.rich.row, priority: 3, why: 'desk/choose-fruit: 1 of 40 succeeded', reviewed: false }],
        total: 41,
        reviewed: 12,
      };
      const t = await show({ theme, input: { ...input, queue: true } }),
        p = await ready(t);
      await p.keyboard.press('v');
      await p.locator('.an-verdict .ds-outcome').waitFor();
      await goTo(t, 5);
      await t.until("[...document.querySelectorAll('.ds-thumb img')].every((i) => i.complete)");
      if (shots) await p.screenshot({ path: join(shots, `annotate-${theme}.png`) });
      expect(await t.axe(axe)).toEqual([]);
      await p.locator('.an-replays summary').click();
      await goTo(t, 8);
      await p.locator('.an-handle').first().focus();
      await p.keyboard.press('Shift+ArrowDown');
      if (shots) await p.screenshot({ path: join(shots, `annotate-${theme}-replays.png`) });
      expect(await t.axe(axe)).toEqual([]);
      await p.keyboard.press('Escape');
      await p.keyboard.press('Escape');
      await p.keyboard.press('g');
      await p.locator('.ds-options [role=option]').first().waitFor();
      expect(await t.axe(axe)).toEqual([]);
      await p.keyboard.press('Escape');
      await p.keyboard.press(']');
      await p.locator('.an-end').waitFor();
      expect(await t.axe(axe)).toEqual([]);
    });

    it.each([
      { width: 560, height: 900 },
      { width: 1280, height: 560 },
      { width: 820, height: 800 },
    ])('beside another editor and in a low panel nothing is cut off: $width x $height', async (size) => {
      pages.fake.edit(rollout, 0, [
        { op: 'outcome', value: 'success', reason: 'The verifier looked before the dialog had closed.' },
        { op: 'tags', tags: ['misread screen', 'popup'] },
        { op: 'mark', step: 0, mark: 'key', on: true },
      ]);
      const t = await show({ ...size }),
        p = await ready(t);
      await t.until("[...document.querySelectorAll('.ds-thumb img')].every((i) => i.complete)");
      if (shots) await p.screenshot({ path: join(shots, `annotate-${size.width}x${size.height}.png`) });
      await expect.poll(() => read(t, 'document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      await expect
        .poll(() => read(t, "document.querySelector('.ds-box').getBoundingClientRect().height"))
        .toBeGreaterThanOrEqual(120);
      expect(await t.axe(axe)).toEqual([]);
    });
  });

  describe('edits', () => {
    it('by keyboard: marks, delete and restore, trim, split, thought, text; each is one revision', async () => {
      const t = await show(),
        p = await ready(t),
        k = p.keyboard;
      await k.press('k');
      await saved(t, 1);
      await t.until("document.querySelector('.ds-shot.selected .ds-chip.key')?.textContent === 'key'");
      await k.press('ArrowRight');
      await on(t, 2);
      await k.press('r');
      await k.press('w');
      await saved(t, 3);
      await t.until(
        "[...document.querySelectorAll('.ds-shot.selected .ds-chip')].map((x) => x.textContent).join() === 'redundant,wrong'",
      );
      await t.until("document.querySelectorAll('.ds-time-bars .ds-time-notes path').length === 3");
      await expect
        .poll(() => p.getByRole('slider').getAttribute('aria-valuetext'))
        .toContain('marked redundant and wrong');
      await k.press('w');
      await saved(t, 4);
      await k.press('x');
      await saved(t, 5);
      await t.until(
        "document.querySelector('.ds-shot.selected').classList.contains('deleted') && document.querySelector('.ds-shot.selected').textContent.includes('deleted')",
      );
      await on(t, 2);
      await k.press('x');
      await saved(t, 6);
      await k.press('i');
      await k.press('Control+A');
      await k.insertText('Look again.');
      await k.press('Control+Enter');
      await saved(t, 7);
      await goTo(t, 5);
      await k.press('a');
      await k.press('Control+A');
      await k.insertText('K7');
      await k.press('Control+Enter');
      await saved(t, 8);
      await k.press('ArrowRight');
      await k.press('ArrowRight');
      await on(t, 7);
      await k.press('a');
      await k.press('Control+A');
      await k.insertText('ctrl + shift+End');
      await k.press('Enter');
      await saved(t, 9);
      await k.press('<');
      await saved(t, 10);
      await goTo(t, 10);
      await k.press('>');
      await saved(t, 11);
      await goTo(t, 9);
      await k.press('/');
      await saved(t, 12);
      await t.until("document.querySelector('.ds-shot').getAttribute('aria-setsize') === '8'");
      expect(ops()).toEqual([
        { op: 'mark', step: 0, mark: 'key', on: true },
        { op: 'mark', step: 1, mark: 'redundant', on: true },
        { op: 'mark', step: 1, mark: 'wrong', on: true },
        { op: 'mark', step: 1, mark: 'wrong', on: false },
        { op: 'delete', steps: [1] },
        { op: 'restore', steps: [1] },
        { op: 'thought', step: 1, text: 'Look again.' },
        { op: 'action', step: 4, action: 0, value: { type: 'type', text: 'K7' } },
        { op: 'action', step: 6, action: 0, value: { type: 'hotkey', keys: ['ctrl', 'shift', 'end'] } },
        { op: 'delete', steps: [0, 1, 2, 3, 4, 5] },
        { op: 'delete', steps: [10, 11] },
        { op: 'split', step: 8 },
      ]);
      await p.getByRole('button', { name: /r-000102\/b/ }).click();
      await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'openTrajectory', run, rollout: 'r-000102/b' });
    });

    it('by pointer: outcome with its reason beside the verdict, tags with completion, note, marks, delete, trim', async () => {
      const t = await show(),
        p = await ready(t);
      await p.getByRole('button', { name: 'Success', exact: true }).click();
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      const reason = p.getByRole('textbox', { name: 'Reason for the corrected outcome' });
      await reason.fill('It was done.');
      await p.locator('.ds-detail h2').click();
      await saved(t, 1);
      await expect
        .poll(() => p.locator('.ds-badge-slot').innerText())
        .toMatch(/Success[^]*by a person; verifier: failure/);
      await p.getByRole('combobox', { name: 'Add a tag' }).fill('screen');
      await p.getByRole('option', { name: 'misread screen' }).click();
      await saved(t, 2);
      await p.getByRole('combobox', { name: 'Add a tag' }).fill('new one');
      await p.keyboard.press('Enter');
      await saved(t, 3);
      await p.getByRole('button', { name: 'Remove tag misread screen' }).click();
      await saved(t, 4);
      await p.getByRole('textbox', { name: 'Note' }).fill('Worth a look.');
      await p.locator('.ds-detail h2').click();
      await saved(t, 5);
      await p.getByRole('button', { name: 'Wrong' }).click();
      await saved(t, 6);
      await p.getByRole('button', { name: 'All after' }).click();
      await saved(t, 7);
      await p.locator('.ds-shot').nth(2).click();
      await on(t, 3);
      await p.getByRole('button', { name: 'Restore' }).click();
      await saved(t, 8);
      await p.getByRole('button', { name: /^As verified/ }).click();
      await saved(t, 9);
      await expect.poll(() => p.locator('.ds-badge-slot').innerText()).toBe('Failure');
      expect(ops()).toEqual([
        { op: 'outcome', value: 'success', reason: 'It was done.' },
        { op: 'tags', tags: ['misread screen'] },
        { op: 'tags', tags: ['misread screen', 'new one'] },
        { op: 'tags', tags: ['new one'] },
        { op: 'note', text: 'Worth a look.' },
        { op: 'mark', step: 0, mark: 'wrong', on: true },
        { op: 'delete', steps: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] },
        { op: 'restore', steps: [2] },
        { op: 'outcome', value: null, reason: '' },
      ]);
    });

    it('a text that makes no action is refused with words, and is not lost; Escape puts the saved one back', async () => {
      const t = await show(),
        p = await ready(t);
      await goTo(t, 7);
      const keys = p.getByRole('textbox', { name: 'Keys' });
      await keys.fill('ctrl++');
      await p.keyboard.press('Enter');
      await t.until("document.querySelector('.an-action .ds-field-trouble').textContent.includes('joined by +')");
      await expect.poll(() => keys.inputValue()).toBe('ctrl++');
      expect(await t.axe(axe)).toEqual([]);
      await keys.focus();
      await p.keyboard.press('Escape');
      await expect.poll(() => keys.inputValue()).toBe('ctrl+a');
      expect(ops()).toEqual([]);
    });

    it('typing that rests is saved without leaving the field', async () => {
      const t = await show(),
        p = await ready(t);
      await p.getByRole('textbox', { name: 'Thought' }).fill('First the list.');
      await saved(t, 1);
      await expect.poll(() => read(t, 'document.activeElement.tagName')).toBe('TEXTAREA');
      expect(ops()).toEqual([{ op: 'thought', step: 0, text: 'First the list.' }]);
    });
  });

  describe('points', () => {
    /** Presses on a handle and moves by picture pixels at the zoom there is. */
    const drag = async (t: TestPage, handle: number, dx: number, dy: number): Promise<void> => {
      const b = (await t.page.locator('.an-handle').nth(handle).boundingBox())!,
        scale = await read<number>(
          t,
          "new DOMMatrix(getComputedStyle(document.querySelector('.ds-surface')).transform).a",
        ),
        m = t.page.mouse;
      const x = b.x + b.width / 2,
        y = b.y + b.height / 2;
      await m.move(x + 3, y - 2);
      await m.down();
      await m.move(x + 3 + (dx * scale) / 2, y - 2 + dy * scale, { steps: 3 });
      await m.move(x + 3 + dx * scale, y - 2 + dy * scale);
    };
    it('dragged at several zooms, the point lands on the true pixel', async () => {
      const t = await show(),
        p = await ready(t),
        k = p.keyboard;
      let at = { x: 194, y: 154 },
        n = 0;
      for (const [zoom, dx, dy] of [
        ['0', 37, -21],
        ['1', -11, 48],
        ['+', 13, 9],
        ['+', -5, -7],
      ] as const) {
        await p.locator('[role=listbox]').first().focus();
        const scale = await read<string>(t, "document.querySelector('.ds-scale').textContent");
        await k.press(zoom);
        if (zoom === '+') await t.until(`document.querySelector('.ds-scale').textContent !== ${JSON.stringify(scale)}`);
        if (zoom === '1') await t.until("document.querySelector('.ds-scale').textContent === '100 %'");
        await drag(t, 0, dx, dy);
        at = { x: at.x + dx, y: at.y + dy };
        await t.until(
          `document.querySelector('.an-handle').getAttribute('aria-label').startsWith('Click at ${at.x}, ${at.y}.')`,
        );
        expect(pages.fake.revision(rollout)).toBe(n);
        await p.mouse.up();
        await saved(t, ++n);
        expect(ops().at(-1)).toEqual({ op: 'action', step: 0, action: 0, value: { type: 'click', at } });
      }
    });
    it('by the keyboard; the edges hold; Escape cancels, also a drag', async () => {
      const t = await show(),
        p = await ready(t),
        k = p.keyboard;
      await goTo(t, 8);
      await k.press('a');
      await t.until("document.activeElement.getAttribute('aria-label')?.startsWith('Start of the drag at 158, 147')");
      for (let i = 0; i < 20; i++) await k.press('Shift+ArrowLeft');
      await k.press('ArrowDown');
      await t.until("document.activeElement.getAttribute('aria-label').startsWith('Start of the drag at 0, 148')");
      await k.press('Escape');
      await t.until("document.activeElement.getAttribute('aria-label').startsWith('Start of the drag at 158, 147')");
      await k.press('Tab');
      await k.press('ArrowUp');
      await k.press('Shift+ArrowRight');
      await k.press('Enter');
      await saved(t, 1);
      expect(ops()).toEqual([
        { op: 'action', step: 7, action: 0, value: { type: 'drag', from: { x: 158, y: 147 }, to: { x: 260, y: 148 } } },
      ]);
      await t.until("document.activeElement.getAttribute('role') === 'listbox'");
      await drag(t, 0, 40, 40);
      await k.press('Escape');
      await p.mouse.up();
      await t.until(
        "document.querySelector('.an-handle').getAttribute('aria-label').startsWith('Start of the drag at 158, 147')",
      );
      expect(pages.fake.revision(rollout)).toBe(1);
      await p.locator('[role=listbox]').first().focus();
      await k.press('b');
      await t.until("document.querySelectorAll('.an-handle').length === 0");
    });
  });
});
