import { describe, expect, it } from 'vitest';
import type { ControlState } from '../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { height, width } from '../helpers/pages/screens.js';
import type { Desk } from '../helpers/pages/live/desk.js';
import { livePages, press, record, textOf } from '../helpers/pages/live/pages.js';
import { controlState, report } from '../helpers/pages/live/samples.js';

const found = await openBrowser();
if ('why' in found) console.warn(`live page tests skipped: ${found.why}`);

describe.skipIf('why' in found)('the end of a session on the live page', () => {
  const { axe } = found as RealBrowser;
  const pages = livePages(found as RealBrowser),
    { show } = pages;

  describe('the end', () => {
    const ended = (o: Partial<ControlState>): Partial<ControlState> => ({ mode: 'ended', ...o });
    const word = (d: Desk, w: string): Promise<void> =>
      d.page.until(`document.querySelector('.live-now h2').textContent === ${JSON.stringify(w)}`);
    it('a success is kept and in the pool; a note goes with it; it may be discarded all the same', async () => {
      const d = await show({ state: record() });
      await d.page.page.keyboard.press('f');
      await expect.poll(() => d.asked('control/finish')).toEqual([{ session: 'c1' }]);
      await d.push({ mode: 'verifying' });
      await word(d, 'Verifying');
      await d.push(
        ended({
          verdict: { outcome: 'success', reward: 1, report: report(true) },
          kept: { rollout: 'd000001', pooled: true },
        }),
      );
      await word(d, 'Success');
      const said = await textOf(d, '.live-panel');
      for (const w of ['in the experience pool', '2 of 2 checks passed', 'chosen row of the list', 'Expected', 'Melon'])
        expect(said).toContain(w);
      await d.page.page.getByRole('textbox', { name: 'Note' }).fill('by the menu');
      await d.page.page.getByRole('textbox', { name: 'Tags' }).fill('short, menu,short');
      await press(d, 'Save Note');
      await expect
        .poll(() => d.asked('control/keep'))
        .toEqual([{ session: 'c1', pool: 'auto', note: 'by the menu', tags: ['short', 'menu'] }]);
      await press(d, 'Open Trajectory');
      await press(d, 'Annotate');
      await expect
        .poll(() => d.page.actions)
        .toEqual([
          { action: 'openTrajectory', run: '/runs/demo', rollout: 'd000001', beside: true },
          { action: 'annotate', run: '/runs/demo', rollout: 'd000001' },
        ]);
      await press(d, 'Discard…');
      await d.page.page.locator('dialog[open] vscode-button', { hasText: 'Cancel' }).click();
      await press(d, 'Discard…');
      await d.page.page.locator('dialog[open] vscode-button', { hasText: 'Discard' }).click();
      await expect.poll(() => d.asked('control/discard')).toEqual([{ session: 'c1' }]);
      await word(d, 'Discarded');
      await press(d, 'Record Another…');
      await expect
        .poll(() => d.page.actions.at(-1))
        .toEqual({ action: 'command', command: 'recordDemonstration', argument: '/runs/demo' });
    });

    it('a failure is kept out of the pool, or added with a reason that must be given', async () => {
      const d = await show({
        state: record(ended({ verdict: { outcome: 'failure', reward: 0.5, report: report(false) } })),
      });
      await word(d, 'Not solved');
      const missed = await textOf(d, '.live-report .missed');
      expect(missed).toContain('Plum');
      await press(d, 'Add to Pool Anyway…');
      await d.page.page.keyboard.press('Enter');
      await d.page.until("document.querySelector('dialog[open] .live-missing').textContent === 'Enter a reason.'");
      await d.page.page.keyboard.type('the check is wrong');
      await d.page.page.keyboard.press('Enter');
      await expect
        .poll(() => d.asked('control/keep'))
        .toEqual([{ session: 'c1', pool: 'override', reason: 'the check is wrong' }]);
      await d.push({ kept: { rollout: 'd000002', pooled: true, why: 'the check is wrong' } });
      await d.page.until(
        "document.querySelector('.live-now').textContent.includes('in the experience pool: the check is wrong.')",
      );
      await d.push({ kept: undefined });
      await press(d, /^Keep$/);
      await expect.poll(() => d.asked('control/keep').at(-1)).toEqual({ session: 'c1', pool: 'never' });
      await d.push({ kept: { rollout: 'd000002', pooled: false } });
      await d.page.until("document.querySelector('.live-now').textContent.includes('not in the experience pool')");
    });

    it('an answer, a task that cannot be done, and a recording thrown away are asked for first', async () => {
      const d = await show({ state: record() }),
        { keyboard } = d.page.page;
      await keyboard.press('a');
      await d.page.until("document.querySelector('dialog[open]')");
      await keyboard.type('96');
      await keyboard.press('Enter');
      await expect
        .poll(() => d.page.requests.map((r) => r.method).filter((m) => m === 'control/act' || m === 'control/finish'))
        .toEqual(['control/act', 'control/finish']);
      expect(d.asked('control/act')).toEqual([{ session: 'c1', action: { type: 'finished', answer: '96' } }]);
      d.on['control/act'] = () => {
        d.state = { ...d.state!, mode: 'verifying' };
        return d.state;
      };
      await press(d, 'Cannot Be Done…');
      await d.page.page.locator('dialog[open] vscode-button', { hasText: 'Cannot Be Done' }).click();
      await word(d, 'Verifying');
      expect(d.asked('control/act').at(-1)).toEqual({ session: 'c1', action: { type: 'fail' } });
      expect(d.asked('control/finish')).toHaveLength(1);
      await d.push({ mode: 'human' });
      await word(d, 'You are in control');
      await keyboard.press('x');
      await expect.poll(() => d.asked('control/dropStep')).toEqual([{ session: 'c1' }]);
      await press(d, 'Discard…');
      await d.page.until(
        "document.querySelector('dialog[open]').textContent.includes('2 recorded steps are discarded')",
      );
      await keyboard.press('Escape');
      await d.page.until("!document.querySelector('dialog[open]')");
      expect(d.asked('control/discard')).toEqual([]);
    });

    it('a lost desktop, a session given up, a runtime that is gone or does not know it: words for each, and nothing is sent', async () => {
      const d = await show({ state: record() });
      await d.capture();
      await d.page.post({ type: 'daemon', state: 'reconnecting' });
      await word(d, 'Connection lost');
      await d.page.until(
        "!document.querySelector('.live-box').classList.contains('captured') && document.querySelector('.live-box').classList.contains('still')",
      );
      await d.page.page.keyboard.press('z');
      expect(await d.page.axe(axe)).toEqual([]);
      await d.page.post({ type: 'daemon', state: 'ready' });
      await word(d, 'You are in control');
      expect(d.asked('control/attach')).toHaveLength(2);
      expect(d.input).toEqual([]);
      await d.page.post({ type: 'daemon', state: 'stopped' });
      await word(d, 'Runtime stopped');
      d.on['control/attach'] = () => {
        throw { kind: 'not.found', message: 'No such session.', remedy: '' };
      };
      await d.page.post({ type: 'daemon', state: 'ready' });
      await word(d, 'Ended');
      await d.push(
        ended({
          error: { kind: 'desktop.lost', message: 'The desktop stopped answering.', remedy: 'Its log says more.' },
        }),
      );
      await word(d, 'Desktop lost');
      await d.page.until("document.querySelector('.live-now').textContent.includes('Nothing was kept')");
      await d.push(ended({ error: undefined, abandonedAt: 1 }));
      await word(d, 'Given up');
      await d.push(
        ended({
          abandonedAt: undefined,
          verdict: {
            outcome: 'error',
            error: { kind: 'task.verify', message: 'The file cannot be read.', remedy: '' },
          },
        }),
      );
      await word(d, 'Could not be judged');
      expect(await d.page.axe(axe)).toEqual([]);
    });

    it('a desktop that somebody has already is shown as such, and a session that is over is left alone', async () => {
      const d = await show();
      await d.push({ session: 'c7', mode: 'policy' });
      await word(d, 'The policy acts');
      await expect.poll(() => d.asked('control/attach')).toEqual([{ session: 'c7' }]);
      await d.push({ mode: 'ended', verdict: { outcome: 'failure', reward: 0, report: report(false) } });
      await word(d, 'Not solved');
      d.on['control/attach'] = () => {
        throw { kind: 'not.found', message: 'This session is over.', remedy: '' };
      };
      await d.page.post({ type: 'daemon', state: 'reconnecting' });
      await d.page.post({ type: 'daemon', state: 'ready' });
      await expect.poll(() => d.asked('control/attach')).toHaveLength(2);
      await press(d, 'Keep Watching');
      await d.page.until("document.querySelector('.live-panel').hidden");
      await d.push({ mode: 'ended' });
      await d.page.until(
        "document.querySelector('.live-panel').hidden && document.querySelector('.live-notice').hidden",
      );
    });

    it('a page that is back, whose session is gone from a desktop that works, watches that and can take it over', async () => {
      const lost = (desktops: Desk['desktops'] | undefined) =>
        show({
          input: { kind: 'live', desktop: 'desktop-1', session: 'c9' },
          prepare: (d) => {
            d.desktops = desktops ?? d.desktops;
            d.on['control/attach'] = () => {
              throw { kind: 'not.found', message: 'No such session.', remedy: '' };
            };
          },
        });
      const d = await lost(undefined),
        take = d.page.page.getByRole('button', { name: /^Take Over/ });
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
      await take.waitFor();
      expect(await textOf(d, '.live-state')).toBe('Settle');
      await expect.poll(() => d.page.saved).toMatchObject({ input: { kind: 'live', desktop: 'desktop-1' } });
      expect(JSON.stringify(d.page.saved)).not.toContain('c9');
      // Whoever takes it over next is shown.
      delete d.on['control/attach'];
      await d.push({ session: 'c7', mode: 'policy' });
      await word(d, 'The policy acts');
      await d.page.close();
      const none = await lost([]);
      await none.page.until("document.querySelector('.live-state').textContent === 'Ended'");
    });

    it('a desktop that the runtime no longer has, or never had, is said to be gone; its last picture alone stays', async () => {
      const d = await show();
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
      // A runtime that was started anew has other desktops.
      d.desktops = [];
      await d.page.post({ type: 'daemon', state: 'reconnecting' });
      await d.page.post({ type: 'daemon', state: 'ready' });
      await d.page.until(
        "document.querySelector('.live-state').textContent === 'Ended' && document.querySelector('.live-box').classList.contains('still')",
      );
      expect(await textOf(d, '.live-says')).toContain('This is its last picture.');
      await d.page.close();
      const never = await show({ input: { kind: 'live', desktop: 'desktop-9' } }, false);
      await never.page.until("document.querySelector('.live-state').textContent === 'Ended'");
      expect(await textOf(never, '.live-empty')).toBe('The desktop is gone: its run ended, or it was replaced.');
      expect(await never.page.page.locator('.codicon-modifier-spin').count()).toBe(0);
    });

    it('a page that watched goes on with its picture when the desktop is taken over elsewhere', async () => {
      const d = await show();
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
      d.state = controlState();
      await d.page.post({ type: 'show', input: { kind: 'live', desktop: 'desktop-1', session: 'c1' }, roots: [] });
      await word(d, 'You are in control');
      await d.page.until("!document.querySelector('.live-box').hidden && document.querySelector('.live-empty').hidden");
      await d.capture();
    });

    it('a page that is built again, or shown another session, attaches to what it shows', async () => {
      const d = await show({ state: record({ mode: 'starting' }) }, false);
      await d.page.until(
        "document.querySelector('.live-empty').textContent.includes('A fresh desktop is being set up for the task')",
      );
      expect(d.asked('control/attach')).toEqual([{ session: 'c1' }]);
      d.state = record({ session: 'c2', desktop: 'desktop-9', instruction: 'Another.' });
      await d.page.post({ type: 'show', input: { kind: 'live', desktop: 'desktop-9', session: 'c2' }, roots: [] });
      await expect.poll(() => d.asked('control/attach')).toEqual([{ session: 'c1' }, { session: 'c2' }]);
      expect(d.asked('control/detach')).toEqual([{ session: 'c1' }]);
      await d.page.until("document.querySelector('.live-panel .live-instruction').textContent === 'Another.'");
      // What is said of another session is not ours.
      await d.page.post({ type: 'control', state: record({ mode: 'ended' }) });
      await d.push({ doing: 'click' });
      await word(d, 'You are in control');
    });
  });

  it('the focus stays in reach when a button takes itself away; the steps can be scrolled by keyboard', async () => {
    const d = await show({ state: controlState() });
    await d.page.page.getByRole('button', { name: /^Hand Back/ }).focus();
    await d.page.page.keyboard.press('Enter');
    await d.page.until(
      "document.querySelector('.live-now h2').textContent === 'The policy acts' && document.activeElement.textContent.startsWith('Pause')",
    );
    await d.page.page.locator('.live-recorded').focus();
    await d.page.until("document.activeElement.classList.contains('live-recorded')");
    await d.page.page.keyboard.press('?');
    await d.page.until("document.querySelector('dialog[open]').textContent.includes('Give the desktop the keyboard')");
  });

  it('a hidden page draws nothing, and everything when it is seen again, in order', async () => {
    const d = await show({ state: record() }),
      dark = (on: boolean): Promise<void> =>
        d.page.page.evaluate(
          `{ Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${on} }); document.dispatchEvent(new Event('visibilitychange')); }`,
        );
    await d.page.page.evaluate(
      '{ window.draws = 0; const f = CanvasRenderingContext2D.prototype.drawImage; CanvasRenderingContext2D.prototype.drawImage = function (...a) { draws++; return f.apply(this, a); }; }',
    );
    await dark(true);
    for (let i = 0; i < 5; i++) await d.picture(pages.list, width, height, 0, 0);
    await d.picture(pages.list, width, height, 40, 40, { width, height });
    expect(await d.page.page.evaluate('draws')).toBe(0);
    await dark(false);
    // Four of the five lay under the fifth.
    await d.page.until('draws === 2');
  });
});
