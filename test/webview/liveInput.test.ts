import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ControlState } from '../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { themes } from '../helpers/pages/page.js';
import type { Desk } from '../helpers/pages/live/desk.js';
import { livePages, press, record, textOf } from '../helpers/pages/live/pages.js';
import { controlState, report } from '../helpers/pages/live/samples.js';

const found = await openBrowser();
if ('why' in found) console.warn(`live page tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('input on the live page', () => {
  const { axe } = found as RealBrowser;
  const { show } = livePages(found as RealBrowser);

  describe('looks and reads well', () => {
    const sights: readonly (readonly [
      name: string,
      state: ControlState | undefined,
      o?: { readonly capture?: boolean; readonly width?: number; readonly height?: number },
    ])[] = [
      ['watch', undefined],
      ['record', record({ doing: 'typing “K7-2”' }), { capture: true }],
      [
        'step',
        controlState({
          mode: 'step',
          left: 3,
          proposal: {
            id: 7,
            thought: 'Melon is chosen; now I confirm with OK.',
            actions: [{ type: 'click', at: { x: 398, y: 147 } }],
            probability: 0.78,
            labels: ['click', '400,144'],
          },
        }),
      ],
      [
        'success',
        record({
          mode: 'ended',
          verdict: { outcome: 'success', reward: 1, report: report(true) },
          kept: { rollout: 'd000001', pooled: true },
        }),
      ],
      ['failure', record({ mode: 'ended', verdict: { outcome: 'failure', reward: 0.5, report: report(false) } })],
      ['narrow', controlState(), { width: 460, height: 900 }],
    ];
    it.each(themes)('%s: nothing that axe finds in any state', async (theme) => {
      for (const [name, state, o] of sights) {
        const d = await show({
          theme,
          ...(state ? { state } : {}),
          ...(o?.width ? { width: o.width, height: o.height! } : {}),
        });
        if (o?.capture) await d.capture();
        await d.page.until(
          state
            ? "document.querySelector('.live-now h2').textContent !== ''"
            : "document.querySelector('.live-facts').textContent.includes('Melon')",
        );
        if (shots) await d.page.page.screenshot({ path: join(shots, `live-${name}-${theme}.png`) });
        expect(await d.page.axe(axe), name).toEqual([]);
        if (name === 'failure') {
          await press(d, 'Add to Pool Anyway…');
          await d.page.until("document.querySelector('dialog[open]')");
          if (shots) await d.page.page.screenshot({ path: join(shots, `live-ask-${theme}.png`) });
          expect(await d.page.axe(axe), 'question').toEqual([]);
        }
        expect(d.page.faults).toEqual([]);
        await d.page.close();
      }
    });
  });

  describe('the mouse', () => {
    it.each([
      [1, 1000],
      [1.5, 1000],
      [2, 640],
      [1, 480],
    ])(
      'at %s device pixels per pixel and %s wide, every zoom hits the pixel that was meant',
      async (deviceScaleFactor, w) => {
        const d = await show({ state: record(), deviceScaleFactor, width: w }),
          { page } = d.page,
          points = [
            [0, 0],
            [320, 200],
            [639, 399],
            [13, 377],
          ] as const;
        for (const zoom of ['0', '1', '+', '+', '-', '-', '-', '-', '-']) {
          await page.locator('.live-box').focus();
          await page.keyboard.press(zoom);
          const box = await page.evaluate<{ left: number; top: number; right: number; bottom: number }>(
            "(({ left, top, right, bottom }) => ({ left, top, right, bottom }))(document.querySelector('.live-box').getBoundingClientRect())",
          );
          for (const [x, y] of points) {
            const at = await d.at(x, y);
            if (at.x < box.left || at.x >= box.right || at.y < box.top || at.y >= box.bottom) continue;
            d.batches.length = 0;
            await page.mouse.move(at.x, at.y);
            await page.mouse.down();
            await page.mouse.up();
            await d.settled((all) => all.filter((e) => e.type === 'button').length === 2);
            expect(
              d.input.filter((e) => e.type === 'button'),
              `${zoom} ${x},${y}`,
            ).toMatchObject([
              { button: 'left', down: true, x, y },
              { button: 'left', down: false, x, y },
            ]);
          }
        }
      },
    );

    it('a drag out of the picture goes on at its edge, and ends there', async () => {
      const d = await show({ state: record() }),
        { mouse } = d.page.page,
        from = await d.at(600, 300);
      await mouse.move(from.x, from.y);
      await mouse.down();
      await mouse.move(990, 790, { steps: 12 });
      await d.settled((all) => all.some((e) => e.type === 'move' && e.x === 639 && e.y === 399));
      await mouse.up();
      await d.settled((all) => all.at(-1)?.type === 'button');
      const moves = d.input.filter((e) => e.type === 'move');
      expect(d.input.filter((e) => e.type === 'button')).toMatchObject([
        { down: true, x: 600, y: 300 },
        { down: false, x: 639, y: 399 },
      ]);
      expect(moves.map((m) => m.x)).toEqual([...moves.map((m) => m.x)].sort((a, b) => a - b));
      // What is pressed beside the picture is nobody's.
      d.batches.length = 0;
      const beside = await d.page.page.evaluate<{ x: number; y: number }>(
        "(({ left, top }) => ({ x: left + 3, y: top + 3 }))(document.querySelector('.live-box').getBoundingClientRect())",
      );
      await mouse.move(beside.x, beside.y);
      await mouse.down();
      await mouse.up();
      const p = await d.at(7, 9);
      await mouse.move(p.x, p.y);
      await mouse.down({ button: 'right' });
      await mouse.up({ button: 'right' });
      await d.settled((all) => all.filter((e) => e.type === 'button').length === 2);
      expect(d.input.filter((e) => e.type === 'button')).toMatchObject([
        { button: 'right', down: true, x: 7, y: 9 },
        { button: 'right', down: false, x: 7, y: 9 },
      ]);
    });

    it('wheel clicks and modifiers with the mouse arrive as what they are; both buttons of a chord too', async () => {
      const d = await show({ state: record() }),
        { mouse, keyboard } = d.page.page;
      await d.capture();
      await keyboard.down('Control');
      const p = await d.at(100, 50);
      await mouse.move(p.x, p.y);
      await mouse.wheel(0, 240);
      await keyboard.up('Control');
      await mouse.wheel(-100, 0);
      await mouse.down();
      await mouse.down({ button: 'right' });
      await mouse.up();
      await mouse.up({ button: 'right' });
      await d.settled((all) => all.filter((e) => e.type === 'button').length === 4);
      expect(d.input.filter((e) => e.type !== 'move').map(({ at: _at, ...e }) => e)).toEqual([
        { type: 'key', key: 'Control', down: true },
        { type: 'wheel', dx: 0, dy: 2, x: 100, y: 50 },
        { type: 'key', key: 'Control', down: false },
        { type: 'wheel', dx: -1, dy: 0, x: 100, y: 50 },
        { type: 'button', button: 'left', down: true, x: 100, y: 50 },
        { type: 'button', button: 'right', down: true, x: 100, y: 50 },
        { type: 'button', button: 'left', down: false, x: 100, y: 50 },
        { type: 'button', button: 'right', down: false, x: 100, y: 50 },
      ]);
    });

    it('the picture can be moved under the mouse instead, when it is larger than its place', async () => {
      const d = await show({ state: record() }),
        { page } = d.page;
      await page.locator('.live-box').focus();
      for (let i = 0; i < 3; i++) await page.keyboard.press('+');
      await page.getByRole('button', { name: 'Pan the picture' }).click();
      await d.page.until("document.querySelector('.live-box').classList.contains('hand')");
      const before = await d.rect();
      d.batches.length = 0;
      await page.mouse.move(300, 300);
      await page.mouse.down();
      await page.mouse.move(220, 260, { steps: 3 });
      await page.mouse.up();
      await expect.poll(async () => (await d.rect()).left).toBeLessThan(before.left - 60);
      await page.getByRole('button', { name: 'Pan the picture' }).click();
      await d.page.until("!document.querySelector('.live-box').classList.contains('hand')");
      await d.capture(320, 200);
      expect(d.asked('control/input').length).toBeGreaterThan(0);
    });
  });

  describe('the keyboard', () => {
    const keysOf = (d: Desk): string[] =>
      d.input.flatMap((e) =>
        e.type === 'key' ? [`${e.key}${e.down ? '+' : '-'}`] : e.type === 'text' ? [JSON.stringify(e.text)] : [],
      );
    it('goes to the desktop as a whole, Tab and shortcuts too, and comes back by Ctrl+Alt', async () => {
      const d = await show({ state: record() }),
        { keyboard } = d.page.page;
      await d.page.page.evaluate("window.seen = []; addEventListener('keydown', (e) => seen.push(e.key))");
      await d.capture();
      await keyboard.press('A');
      await keyboard.press('Tab');
      await keyboard.press('Control+s');
      await keyboard.press('F5');
      await keyboard.press('Control+Alt+t');
      await keyboard.press('?');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === '?' && !e.down));
      expect(keysOf(d)).toEqual([
        'A+',
        'A-',
        'Tab+',
        'Tab-',
        'Control+',
        's+',
        's-',
        'Control-',
        'F5+',
        'F5-',
        'Control+',
        'Alt+',
        't+',
        't-',
        'Alt-',
        'Control-',
        '?+',
        '?-',
      ]);
      await keyboard.press('Control+Alt');
      await d.page.until(
        "document.activeElement.classList.contains('live-box') && !document.querySelector('.live-box').classList.contains('captured')",
      );
      // Neither the page nor VS Code, which listens on the window, saw any of it.
      expect(await d.page.page.evaluate('seen')).toEqual([]);
      // By keyboard alone in again, and the key that did it is not typed.
      await keyboard.press('Enter');
      await d.page.until("document.querySelector('.live-box').classList.contains('captured')");
      await keyboard.press('Control+Alt');
      await d.page.until("!document.querySelector('.live-box').classList.contains('captured')");
      await keyboard.press('k');
      await d.page.until("document.querySelector('.live-box').classList.contains('captured')");
      await keyboard.press('z');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'z' && !e.down));
      expect(keysOf(d).slice(18)).toEqual(['z+', 'z-']);
      expect(await textOf(d, '.live-strip')).toContain('Ctrl + Alt to take it back');
    });

    it('a key that is held repeats; keys and buttons are let go when the focus goes', async () => {
      const d = await show({ state: record() }),
        { keyboard, mouse } = d.page.page;
      await d.capture();
      await keyboard.down('Shift');
      await keyboard.down('ArrowRight');
      await keyboard.down('ArrowRight');
      const p = await d.at(40, 40);
      await mouse.move(p.x, p.y);
      await mouse.down();
      await d.settled((all) => all.some((e) => e.type === 'button' && e.down));
      await d.page.page.evaluate("window.dispatchEvent(new Event('blur'))");
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'Shift' && !e.down));
      expect(
        d.input
          .filter((e) => e.type !== 'move')
          .map((e) =>
            e.type === 'key'
              ? `${e.key}${e.down ? '+' : '-'}`
              : e.type === 'button'
                ? `${e.button}${e.down ? '+' : '-'}`
                : e.type,
          ),
      ).toEqual(['Shift+', 'ArrowRight+', 'ArrowRight+', 'left+', 'left-', 'ArrowRight-', 'Shift-']);
      // The button that is still down here is not pressed again there.
      d.batches.length = 0;
      const q = await d.at(60, 60);
      await mouse.move(q.x, q.y);
      await mouse.up();
      await keyboard.up('ArrowRight');
      await keyboard.up('Shift');
      await keyboard.press('b');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'b' && !e.down));
      expect(d.input.filter((e) => e.type !== 'move').map((e) => e.type)).toEqual(['key', 'key']);
    });

    it('lets go when the page is hidden, without waiting for a frame', async () => {
      const d = await show({ state: record() }),
        { keyboard } = d.page.page;
      await d.capture();
      await keyboard.down('Control');
      await keyboard.down('a');
      await d.settled((all) => all.length >= 2);
      await d.page.page.evaluate(
        "{ Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }); window.requestAnimationFrame = () => 0; document.dispatchEvent(new Event('visibilitychange')); }",
      );
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'Control' && !e.down));
      expect(keysOf(d)).toEqual(['Control+', 'a+', 'a-', 'Control-']);
      await keyboard.up('a');
      await keyboard.up('Control');
    });

    it('input methods, dead keys and pasted text arrive as text, once', async () => {
      const d = await show({ state: record() }),
        { page } = d.page,
        cdp = await page.context().newCDPSession(page);
      await d.capture();
      await cdp.send('Input.imeSetComposition', { text: 'に', selectionStart: 1, selectionEnd: 1 });
      await d.page.until("document.querySelector('.live-sink.composing')");
      await cdp.send('Input.imeSetComposition', { text: '日本', selectionStart: 2, selectionEnd: 2 });
      await cdp.send('Input.insertText', { text: '日本' });
      await d.settled((all) => all.some((e) => e.type === 'text'));
      await d.page.until(
        "!document.querySelector('.live-sink.composing') && document.querySelector('.live-sink').value === ''",
      );
      await cdp.send('Input.insertText', { text: 'é 😀' });
      await page.keyboard.press('x');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'x' && !e.down));
      expect(keysOf(d)).toEqual(['"日本"', '"é 😀"', 'x+', 'x-']);
    });

    it('under slow answers nothing is lost or out of order, and one request is under way', async () => {
      const d = await show({ state: record() }),
        { keyboard, mouse } = d.page.page;
      await d.capture();
      d.slow();
      await keyboard.press('a');
      await d.settled((all) => all.length > 0);
      const first = d.batches.length;
      await keyboard.type('bcdef');
      for (const x of [100, 200, 300]) {
        const p = await d.at(x, 50);
        await mouse.move(p.x, p.y);
      }
      await mouse.down();
      await mouse.up();
      await keyboard.type('ghi');
      // Wait is asked for after all of it.
      await press(d, /^Wait/);
      await d.page.until("document.querySelector('.live-now').textContent.includes('Recording…')");
      expect([d.batches.length, d.asked('control/act')]).toEqual([first, []]);
      d.hold!.go();
      await expect.poll(() => d.asked('control/act')).toEqual([{ session: 'c1', action: { type: 'wait' } }]);
      expect(
        d.input
          .filter((e) => e.type === 'key' && e.down)
          .map((e) => (e.type === 'key' ? e.key : ''))
          .join(''),
      ).toBe('abcdefghi');
      expect(d.input.filter((e) => e.type === 'button')).toMatchObject([
        { down: true, x: 300, y: 50 },
        { down: false, x: 300, y: 50 },
      ]);
      const order = d.input
        .map((e) => (e.type === 'key' ? (e.down ? e.key : '') : e.type === 'button' ? (e.down ? '!' : '') : ''))
        .join('');
      expect(order).toBe('abcdef!ghi');
      expect(d.input.map((e) => e.at)).toEqual([...d.input.map((e) => e.at)].sort((a, b2) => a - b2));
      expect(d.page.requests.findIndex((r) => r.method === 'control/act')).toBe(d.page.requests.length - 1);
    });

    it('input that is refused is said, and nothing that was held stays down', async () => {
      const d = await show({ state: record() }),
        { keyboard } = d.page.page;
      await d.capture();
      d.on['control/input'] = () => {
        delete d.on['control/input'];
        throw { kind: 'connection.lost', message: 'The connection was lost.', remedy: 'It is tried again.' };
      };
      await d.page.page.evaluate(
        "for (const t of ['keydown', 'keyup']) document.activeElement.dispatchEvent(new KeyboardEvent(t, { key: 'q', code: 'KeyQ', bubbles: true, cancelable: true }))",
      );
      await d.page.until(
        "document.querySelector('.live-notice').textContent.includes('2 inputs did not reach the desktop. The connection was lost.')",
      );
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'q' && !e.down));
      await keyboard.press('y');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'y' && !e.down));
      expect(keysOf(d)).toEqual(['q-', 'y+', 'y-']);
    });
  });
});
