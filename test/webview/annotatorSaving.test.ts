import { describe, expect, it } from 'vitest';
import type { AnnotationOp } from '../../runtime/protocol/types.js';
import { annotatePages, gate, on, ready, rollout, run, saved, says } from '../helpers/pages/annotatePages.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import type { TestPage } from '../helpers/pages/page.js';
import type { Page } from '../helpers/workbench/playwright.js';

const found = await openBrowser();
if ('why' in found) console.warn(`annotator tests skipped: ${found.why}`);

describe.skipIf('why' in found)('annotate mode saves', () => {
  const { axe } = found as RealBrowser;
  const pages = annotatePages(found as RealBrowser),
    { show, ops } = pages;

  describe('autosave', () => {
    it('under slow answers edits show at once, go out one by one and in order, and undo takes the unsent one first', async () => {
      const g = gate();
      pages.fake.before = (m) => (m === 'annotation/edit' ? g.wait : undefined);
      const t = await show(),
        p = await ready(t),
        k = p.keyboard;
      await k.press('k');
      await k.press('ArrowRight');
      await on(t, 2);
      await k.press('w');
      await k.press('ArrowRight');
      await on(t, 3);
      await k.press('r');
      await t.until(
        "document.querySelectorAll('.ds-chip').length === 3 && document.querySelector('.an-state').textContent === 'Saving…'",
      );
      expect(t.requests.filter((r) => r.method === 'annotation/edit').length).toBe(1);
      await k.press('Control+z');
      await t.until("document.querySelectorAll('.ds-chip').length === 2");
      g.open();
      await saved(t, 2);
      expect(
        t.requests
          .filter((r) => r.method === 'annotation/edit')
          .map((r) => [r.params['base'], (r.params['ops'] as AnnotationOp[])[0]]),
      ).toEqual([
        [0, { op: 'mark', step: 0, mark: 'key', on: true }],
        [1, { op: 'mark', step: 1, mark: 'wrong', on: true }],
      ]);
      expect(t.requests.some((r) => r.method === 'annotation/undo')).toBe(false);
      await k.press('Control+Shift+Z');
      await saved(t, 3);
      expect(ops().at(-1)).toEqual({ op: 'mark', step: 2, mark: 'redundant', on: true });
    });

    describe('keys that come before the annotations', () => {
      const early = async (): Promise<{ t: TestPage; k: Page['keyboard']; open: () => void }> => {
        const g = gate();
        pages.fake.before = (m) => (m === 'annotation/get' ? g.wait : undefined);
        const t = await show(),
          k = t.page.keyboard;
        await t.page.locator('.ds-shot.selected').waitFor();
        await t.until("document.querySelector('.an-state')?.textContent.startsWith('Loading')");
        await k.press('w');
        return { t, k, open: g.open };
      };
      it('are applied once the annotations have loaded', async () => {
        const { t, k, open } = await early();
        await k.press('k');
        open();
        await saved(t, 2);
        expect(ops()).toEqual([
          { op: 'mark', step: 0, mark: 'wrong', on: true },
          { op: 'mark', step: 0, mark: 'key', on: true },
        ]);
      });
      it('change no step that is selected meanwhile', async () => {
        const { t, k, open } = await early();
        await k.press('ArrowRight');
        await on(t, 2);
        open();
        await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
        await k.press('r');
        await saved(t, 1);
        expect(ops()).toEqual([{ op: 'mark', step: 1, mark: 'redundant', on: true }]);
      });
    });

    it('undo and redo over revisions, also after a reload', async () => {
      const t = await show(),
        p = await ready(t),
        k = p.keyboard;
      await k.press('k');
      await saved(t, 1);
      await k.press('x');
      await saved(t, 2);
      await k.press('Control+z');
      await saved(t, 1);
      await t.until("!document.querySelector('.ds-shot.selected').classList.contains('deleted')");
      await p.reload();
      await ready(t);
      await saved(t, 1);
      await p.keyboard.press('Control+y');
      await saved(t, 2);
      await p.keyboard.press('Control+z');
      await p.keyboard.press('Control+z');
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      await p.keyboard.press('Control+z');
      await says(t, 'Nothing to undo');
      expect(ops()).toEqual([]);
    });

    it('a save that fails loses nothing: it is said, kept over a reload, and sent again when the runtime is back', async () => {
      let down = true;
      pages.fake.before = (m) => {
        if (down && m.startsWith('annotation/edit'))
          throw { kind: 'daemon.lost', message: 'The runtime does not answer.', remedy: 'It is being started again.' };
      };
      const t = await show(),
        p = await ready(t);
      await p.getByRole('textbox', { name: 'Note' }).fill('Do not lose this.');
      await p.locator('.ds-detail h2').click();
      await t.until("document.querySelector('.an-state').textContent === 'Not saved'");
      await expect
        .poll(() => p.locator('.an-banners').innerText())
        .toContain('It is being started again. What you did is kept here');
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Wrong' }).click();
      await t.until("document.querySelectorAll('.ds-chip.wrong').length === 1");
      await p.reload();
      await ready(t);
      await t.until(
        "document.querySelector('.an-state').textContent === 'Not saved' && document.querySelectorAll('.ds-chip.wrong').length === 1",
      );
      await expect.poll(() => p.getByRole('textbox', { name: 'Note' }).inputValue()).toBe('Do not lose this.');
      expect(ops()).toEqual([]);
      down = false;
      await t.post({ type: 'daemon', state: 'reconnecting' });
      await t.post({ type: 'daemon', state: 'ready' });
      await saved(t, 2);
      expect(ops()).toEqual([
        { op: 'note', text: 'Do not lose this.' },
        { op: 'mark', step: 0, mark: 'wrong', on: true },
      ]);
      await expect.poll(() => JSON.stringify(t.saved)).not.toContain('Do not lose this.');
    });

    it('an answer that was lost is not an edit made twice', async () => {
      let lost = true;
      const t = await show({
          answer: async (m, p) => {
            const a = await pages.fake.answer(pages.pictures)(m, p);
            if (lost && m === 'annotation/edit') {
              lost = false;
              throw { kind: 'daemon.lost', message: 'The connection was lost.', remedy: '' };
            }
            return a;
          },
        }),
        p = await ready(t);
      await p.keyboard.press('k');
      await p.getByRole('button', { name: 'Try again' }).click();
      await saved(t, 1);
      expect(ops()).toEqual([{ op: 'mark', step: 0, mark: 'key', on: true }]);
    });

    it('typed and not yet saved when the page goes: it is there again', async () => {
      const t = await show(),
        p = await ready(t);
      await p.getByRole('textbox', { name: 'Note' }).fill('Half a sent');
      await p.reload();
      await ready(t);
      await saved(t, 1);
      expect(ops()).toEqual([{ op: 'note', text: 'Half a sent' }]);
    });

    it('a page that goes keeps what was typed in every state it leaves behind: any may be its last', async () => {
      const t = await show(),
        p = await ready(t);
      await p.getByRole('textbox', { name: 'Note' }).fill('Half a sent');
      // What it saved before there was a text is no part of this: a timer of the page's beginning may still do so.
      const before = t.kept.length;
      await t.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))");
      await saved(t, 1);
      const kept = t.kept.slice(before).map((x) => JSON.stringify(x)),
        last = kept.findLastIndex((x) => x.includes('Half a sent'));
      expect(last).toBeGreaterThanOrEqual(0);
      expect(kept.slice(0, last).filter((x) => !x.includes('Half a sent'))).toEqual([]);
    });

    it('another window was faster: its revision is shown, mine waits on it until it is put on top or discarded', async () => {
      const t = await show(),
        p = await ready(t);
      pages.fake.before = (m) => {
        if (m === 'annotation/edit' && pages.fake.revision(rollout) === 0)
          pages.fake.edit(rollout, 0, [{ op: 'tags', tags: ['theirs'] }]);
      };
      await p.keyboard.press('k');
      await t.until("document.querySelector('.an-state').textContent === 'Your edit is pending'");
      await expect.poll(() => p.locator('.an-banners').innerText()).toContain('Another window made revision 1');
      await t.until(
        "document.querySelector('.ds-tag span')?.textContent === 'theirs' && document.querySelectorAll('.ds-chip.key').length === 1",
      );
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Apply my edit on top' }).click();
      await saved(t, 2);
      expect(ops()).toEqual([
        { op: 'tags', tags: ['theirs'] },
        { op: 'mark', step: 0, mark: 'key', on: true },
      ]);
      pages.fake.before = (m) => {
        if (m === 'annotation/edit' && pages.fake.revision(rollout) === 2)
          pages.fake.edit(rollout, 2, [{ op: 'note', text: 'theirs' }]);
      };
      await p.keyboard.press('w');
      await p.getByRole('button', { name: 'Discard my edit' }).click();
      await saved(t, 3);
      await t.until("document.querySelectorAll('.ds-chip.wrong').length === 0");
    });

    it('another window’s edit appears; our own, told of again, asks nothing', async () => {
      const t = await show(),
        p = await ready(t);
      await p.keyboard.press('k');
      await saved(t, 1);
      const asked = t.requests.filter((r) => r.method === 'annotation/get').length;
      await t.post({ type: 'annotation', run, rollout, revision: 1 });
      pages.fake.edit(rollout, 1, [{ op: 'note', text: 'From the other window.' }]);
      await t.post({ type: 'annotation', run, rollout, revision: 2 });
      await saved(t, 2);
      await expect.poll(() => p.getByRole('textbox', { name: 'Note' }).inputValue()).toBe('From the other window.');
      expect(t.requests.filter((r) => r.method === 'annotation/get').length).toBe(asked + 1);
      pages.fake.verdict(rollout, { revision: 2, at: 0, outcome: 'failure', reward: 0 });
      await t.post({ type: 'annotation', run, rollout, revision: 2 });
      await t.until("document.querySelector('.an-verdict')?.textContent.includes('reward 0')");
    });
  });
});
