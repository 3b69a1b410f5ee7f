import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ControlState } from '../../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../../webview/lib/browser.js';
import { bundle, themes, type Bundle } from '../../webview/lib/page.js';
import { FrameFolder, height, width } from '../../webview/lib/screens.js';
import { Desk } from '../../webview/live/desk.js';
import { controlState, report } from '../../webview/live/samples.js';

const found = await openBrowser();
if ('why' in found) console.warn(`live page tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('recording and taking over in the live page', () => {
  const { browser, axe } = found as RealBrowser;
  const record = (o: Partial<ControlState> = {}): ControlState => controlState({ purpose: 'record', ...o });
  let b: Bundle, dir: string, list: string, open: Desk | undefined;
  const show = async (o: Parameters<typeof Desk.open>[2] = {}, picture = true): Promise<Desk> => {
    open = await Desk.open(browser, b, o);
    if (picture) { await open.picture(list, width, height); if (o?.state) await open.page.until("!document.querySelector('.live-panel').hidden"); }
    return open;
  };
  const textOf = (d: Desk, selector: string): Promise<string> => d.page.page.evaluate<string>(`document.querySelector('${selector}')?.textContent ?? ''`);
  const press = (d: Desk, name: string | RegExp): Promise<void> => d.page.page.getByRole('button', { name }).click();

  beforeAll(async () => {
    b = await bundle('live');
    dir = await mkdtemp(join(tmpdir(), 'live-'));
    const { hash } = await new FrameFolder(dir).add('list');
    list = (await readFile(join(dir, hash.slice(0, 2), `${hash}.png`))).toString('base64');
  });
  afterEach(async () => { const faults = open?.page.faults ?? []; open?.hold?.go(); await open?.page.close(); open = undefined; expect(faults).toEqual([]); });
  afterAll(async () => { await browser.close(); await rm(dir, { recursive: true, force: true }); });

  describe('looks and reads well', () => {
    const sights: readonly (readonly [name: string, state: ControlState | undefined, o?: { readonly capture?: boolean; readonly width?: number; readonly height?: number }])[] = [
      ['watch', undefined], ['record', record({ doing: 'typing “K7-2”' }), { capture: true }], ['step', controlState({ mode: 'step', left: 3, proposal: { id: 7, thought: 'Melon is chosen; now I confirm with OK.', actions: [{ type: 'click', at: { x: 398, y: 147 } }], probability: 0.78, labels: ['click', '400,144'] } })],
      ['success', record({ mode: 'ended', verdict: { outcome: 'success', reward: 1, report: report(true) }, kept: { rollout: 'd000001', pooled: true } })], ['failure', record({ mode: 'ended', verdict: { outcome: 'failure', reward: 0.5, report: report(false) } })],
      ['narrow', controlState(), { width: 460, height: 900 }],
    ];
    it.each(themes)('%s: nothing that axe finds in any state', async (theme) => {
      for (const [name, state, o] of sights) {
        const d = await show({ theme, ...(state ? { state } : {}), ...(o?.width ? { width: o.width, height: o.height! } : {}) });
        if (o?.capture) await d.capture();
        await d.page.until(state ? "document.querySelector('.live-now h2').textContent !== ''" : "document.querySelector('.live-facts').textContent.includes('Melon')");
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
    it.each([[1, 1000], [1.5, 1000], [2, 640], [1, 480]])('at %s device pixels per pixel and %s wide, every zoom hits the pixel that was meant', async (deviceScaleFactor, w) => {
      const d = await show({ state: record(), deviceScaleFactor, width: w }), { page } = d.page, points = [[0, 0], [320, 200], [639, 399], [13, 377]] as const;
      for (const zoom of ['0', '1', '+', '+', '-', '-', '-', '-', '-']) {
        await page.locator('.live-box').focus();
        await page.keyboard.press(zoom);
        const box = await page.evaluate<{ left: number; top: number; right: number; bottom: number }>("(({ left, top, right, bottom }) => ({ left, top, right, bottom }))(document.querySelector('.live-box').getBoundingClientRect())");
        for (const [x, y] of points) {
          const at = await d.at(x, y);
          if (at.x < box.left || at.x >= box.right || at.y < box.top || at.y >= box.bottom) continue;
          d.batches.length = 0;
          await page.mouse.move(at.x, at.y); await page.mouse.down(); await page.mouse.up();
          await d.settled((all) => all.filter((e) => e.type === 'button').length === 2);
          expect(d.input.filter((e) => e.type === 'button'), `${zoom} ${x},${y}`).toMatchObject([{ button: 'left', down: true, x, y }, { button: 'left', down: false, x, y }]);
        }
      }
    });

    it('a drag out of the picture goes on at its edge, and ends there', async () => {
      const d = await show({ state: record() }), { mouse } = d.page.page, from = await d.at(600, 300);
      await mouse.move(from.x, from.y); await mouse.down();
      await mouse.move(990, 790, { steps: 12 });
      await d.settled((all) => all.some((e) => e.type === 'move' && e.x === 639 && e.y === 399));
      await mouse.up();
      await d.settled((all) => all.at(-1)?.type === 'button');
      const moves = d.input.filter((e) => e.type === 'move');
      expect(d.input.filter((e) => e.type === 'button')).toMatchObject([{ down: true, x: 600, y: 300 }, { down: false, x: 639, y: 399 }]);
      expect(moves.map((m) => m.x)).toEqual([...moves.map((m) => m.x)].sort((a, b) => a - b));
      // What is pressed beside the picture is nobody's.
      d.batches.length = 0;
      const beside = await d.page.page.evaluate<{ x: number; y: number }>("(({ left, top }) => ({ x: left + 3, y: top + 3 }))(document.querySelector('.live-box').getBoundingClientRect())");
      await mouse.move(beside.x, beside.y); await mouse.down(); await mouse.up();
      const p = await d.at(7, 9);
      await mouse.move(p.x, p.y); await mouse.down({ button: 'right' }); await mouse.up({ button: 'right' });
      await d.settled((all) => all.filter((e) => e.type === 'button').length === 2);
      expect(d.input.filter((e) => e.type === 'button')).toMatchObject([{ button: 'right', down: true, x: 7, y: 9 }, { button: 'right', down: false, x: 7, y: 9 }]);
    });

    it('wheel clicks and modifiers with the mouse arrive as what they are; both buttons of a chord too', async () => {
      const d = await show({ state: record() }), { mouse, keyboard } = d.page.page;
      await d.capture();
      await keyboard.down('Control');
      const p = await d.at(100, 50);
      await mouse.move(p.x, p.y);
      await mouse.wheel(0, 240);
      await keyboard.up('Control');
      await mouse.wheel(-100, 0);
      await mouse.down(); await mouse.down({ button: 'right' }); await mouse.up(); await mouse.up({ button: 'right' });
      await d.settled((all) => all.filter((e) => e.type === 'button').length === 4);
      expect(d.input.filter((e) => e.type !== 'move').map(({ at: _at, ...e }) => e)).toEqual([
        { type: 'key', key: 'Control', down: true }, { type: 'wheel', dx: 0, dy: 2, x: 100, y: 50 }, { type: 'key', key: 'Control', down: false }, { type: 'wheel', dx: -1, dy: 0, x: 100, y: 50 },
        { type: 'button', button: 'left', down: true, x: 100, y: 50 }, { type: 'button', button: 'right', down: true, x: 100, y: 50 }, { type: 'button', button: 'left', down: false, x: 100, y: 50 }, { type: 'button', button: 'right', down: false, x: 100, y: 50 },
      ]);
    });

    it('the picture can be moved under the mouse instead, when it is larger than its place', async () => {
      const d = await show({ state: record() }), { page } = d.page;
      await page.locator('.live-box').focus();
      for (let i = 0; i < 3; i++) await page.keyboard.press('+');
      await page.getByRole('button', { name: 'Move the picture' }).click();
      await d.page.until("document.querySelector('.live-box').classList.contains('hand')");
      const before = await d.rect();
      d.batches.length = 0;
      await page.mouse.move(300, 300); await page.mouse.down(); await page.mouse.move(220, 260, { steps: 3 }); await page.mouse.up();
      await expect.poll(async () => (await d.rect()).left).toBeLessThan(before.left - 60);
      await page.getByRole('button', { name: 'Move the picture' }).click();
      await d.page.until("!document.querySelector('.live-box').classList.contains('hand')");
      await d.capture(320, 200);
      expect(d.asked('control/input').length).toBeGreaterThan(0);
    });
  });

  describe('the keyboard', () => {
    const keysOf = (d: Desk): string[] => d.input.flatMap((e) => (e.type === 'key' ? [`${e.key}${e.down ? '+' : '-'}`] : e.type === 'text' ? [JSON.stringify(e.text)] : []));
    it('goes to the desktop as a whole, Tab and shortcuts too, and comes back by Ctrl+Alt', async () => {
      const d = await show({ state: record() }), { keyboard } = d.page.page;
      await d.page.page.evaluate("window.seen = []; addEventListener('keydown', (e) => seen.push(e.key))");
      await d.capture();
      await keyboard.press('A'); await keyboard.press('Tab'); await keyboard.press('Control+s'); await keyboard.press('F5'); await keyboard.press('Control+Alt+t'); await keyboard.press('?');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === '?' && !e.down));
      expect(keysOf(d)).toEqual(['A+', 'A-', 'Tab+', 'Tab-', 'Control+', 's+', 's-', 'Control-', 'F5+', 'F5-', 'Control+', 'Alt+', 't+', 't-', 'Alt-', 'Control-', '?+', '?-']);
      await keyboard.press('Control+Alt');
      await d.page.until("document.activeElement.classList.contains('live-box') && !document.querySelector('.live-box').classList.contains('captured')");
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
      expect(await textOf(d, '.live-strip')).toContain('Ctrl + Alt gives it back');
    });

    it('a key that is held repeats; keys and buttons are let go when the focus goes', async () => {
      const d = await show({ state: record() }), { keyboard, mouse } = d.page.page;
      await d.capture();
      await keyboard.down('Shift'); await keyboard.down('ArrowRight'); await keyboard.down('ArrowRight');
      const p = await d.at(40, 40);
      await mouse.move(p.x, p.y); await mouse.down();
      await d.settled((all) => all.some((e) => e.type === 'button' && e.down));
      await d.page.page.evaluate("window.dispatchEvent(new Event('blur'))");
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'Shift' && !e.down));
      expect(d.input.filter((e) => e.type !== 'move').map((e) => (e.type === 'key' ? `${e.key}${e.down ? '+' : '-'}` : e.type === 'button' ? `${e.button}${e.down ? '+' : '-'}` : e.type))).toEqual(['Shift+', 'ArrowRight+', 'ArrowRight+', 'left+', 'left-', 'ArrowRight-', 'Shift-']);
      // The button that is still down here is not pressed again there.
      d.batches.length = 0;
      const q = await d.at(60, 60);
      await mouse.move(q.x, q.y); await mouse.up(); await keyboard.up('ArrowRight'); await keyboard.up('Shift');
      await keyboard.press('b');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'b' && !e.down));
      expect(d.input.filter((e) => e.type !== 'move').map((e) => e.type)).toEqual(['key', 'key']);
    });

    it('lets go when the page is hidden, without waiting for a frame', async () => {
      const d = await show({ state: record() }), { keyboard } = d.page.page;
      await d.capture();
      await keyboard.down('Control'); await keyboard.down('a');
      await d.settled((all) => all.length >= 2);
      await d.page.page.evaluate("{ Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }); window.requestAnimationFrame = () => 0; document.dispatchEvent(new Event('visibilitychange')); }");
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'Control' && !e.down));
      expect(keysOf(d)).toEqual(['Control+', 'a+', 'a-', 'Control-']);
      await keyboard.up('a'); await keyboard.up('Control');
    });

    it('input methods, dead keys and pasted text arrive as text, once', async () => {
      const d = await show({ state: record() }), { page } = d.page, cdp = await page.context().newCDPSession(page);
      await d.capture();
      await cdp.send('Input.imeSetComposition', { text: 'に', selectionStart: 1, selectionEnd: 1 });
      await d.page.until("document.querySelector('.live-sink.composing')");
      await cdp.send('Input.imeSetComposition', { text: '日本', selectionStart: 2, selectionEnd: 2 });
      await cdp.send('Input.insertText', { text: '日本' });
      await d.settled((all) => all.some((e) => e.type === 'text'));
      await d.page.until("!document.querySelector('.live-sink.composing') && document.querySelector('.live-sink').value === ''");
      await cdp.send('Input.insertText', { text: 'é 😀' });
      await page.keyboard.press('x');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'x' && !e.down));
      expect(keysOf(d)).toEqual(['"日本"', '"é 😀"', 'x+', 'x-']);
    });

    it('under slow answers nothing is lost or out of order, and one request is under way', async () => {
      const d = await show({ state: record() }), { keyboard, mouse } = d.page.page;
      await d.capture();
      d.slow();
      await keyboard.press('a');
      await d.settled((all) => all.length > 0);
      const first = d.batches.length;
      await keyboard.type('bcdef');
      for (const x of [100, 200, 300]) { const p = await d.at(x, 50); await mouse.move(p.x, p.y); }
      await mouse.down(); await mouse.up();
      await keyboard.type('ghi');
      // Wait is asked for after all of it.
      await press(d, /^Wait/);
      await d.page.until("document.querySelector('.live-now').textContent.includes('Recording…')");
      expect([d.batches.length, d.asked('control/act')]).toEqual([first, []]);
      d.hold!.go();
      await expect.poll(() => d.asked('control/act')).toEqual([{ session: 'c1', action: { type: 'wait' } }]);
      expect(d.input.filter((e) => e.type === 'key' && e.down).map((e) => (e.type === 'key' ? e.key : '')).join('')).toBe('abcdefghi');
      expect(d.input.filter((e) => e.type === 'button')).toMatchObject([{ down: true, x: 300, y: 50 }, { down: false, x: 300, y: 50 }]);
      const order = d.input.map((e) => (e.type === 'key' ? (e.down ? e.key : '') : e.type === 'button' ? (e.down ? '!' : '') : '')).join('');
      expect(order).toBe('abcdef!ghi');
      expect(d.input.map((e) => e.at)).toEqual([...d.input.map((e) => e.at)].sort((a, b2) => a - b2));
      expect(d.page.requests.findIndex((r) => r.method === 'control/act')).toBe(d.page.requests.length - 1);
    });

    it('input that is refused is said, and nothing that was held stays down', async () => {
      const d = await show({ state: record() }), { keyboard } = d.page.page;
      await d.capture();
      d.on['control/input'] = () => { delete d.on['control/input']; throw { kind: 'connection.lost', message: 'The connection was lost.', remedy: 'It is tried again.' }; };
      await d.page.page.evaluate("for (const t of ['keydown', 'keyup']) document.activeElement.dispatchEvent(new KeyboardEvent(t, { key: 'q', code: 'KeyQ', bubbles: true, cancelable: true }))");
      await d.page.until("document.querySelector('.live-notice').textContent.includes('2 inputs did not reach the desktop. The connection was lost.')");
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'q' && !e.down));
      await keyboard.press('y');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'y' && !e.down));
      expect(keysOf(d)).toEqual(['q-', 'y+', 'y-']);
    });
  });

  describe('watching and taking over', () => {
    it('takes over by key, follows what the runtime says, hands back', async () => {
      const d = await show(), { keyboard } = d.page.page;
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
      await keyboard.press('t');
      await expect.poll(() => d.asked('control/takeOver')).toEqual([{ desktop: 'desktop-1', mode: 'human' }]);
      await d.page.until("document.querySelector('.live-now h2')?.textContent === 'You are in control'");
      await expect.poll(() => d.asked('control/attach')).toEqual([{ session: 'c1' }]);
      await expect.poll(() => d.page.saved).toMatchObject({ input: { kind: 'live', desktop: 'desktop-1', session: 'c1' } });
      await d.push({ doing: 'typing "hel"' });
      await d.page.until("document.querySelector('.live-doing').textContent === 'typing \"hel\"'");
      await d.push({ doing: undefined, steps: [...d.state!.steps, { index: 3, origin: 'human', actions: [{ type: 'type', text: 'hello' }], frame: { hash: 'a', width, height } }] });
      await d.page.until("document.querySelector('.live-steps .newest').textContent.includes('hello') && document.querySelectorAll('.live-steps li').length === 4 && document.querySelector('.live-doing').hidden");
      await expect.poll(() => textOf(d, '[role=status][aria-live]')).toContain('Step 4, human: type “hello”');
      await keyboard.press('h');
      await expect.poll(() => d.asked('control/mode')).toEqual([{ session: 'c1', mode: 'policy' }]);
      await d.page.until("document.querySelector('.live-now h2').textContent === 'The policy acts'");
      await keyboard.press('t');
      await d.page.until("document.querySelector('.live-now h2').textContent === 'You are in control'");
      await d.push({ mode: 'ended', verdict: { outcome: 'success', reward: 1, report: report(true) } });
      await d.page.until("document.querySelector('.live-now h2').textContent === 'Success'");
      await press(d, 'Watch On');
      await expect.poll(() => d.asked('control/detach')).toEqual([{ session: 'c1' }]);
      await d.page.until("document.querySelector('.live-panel').hidden && !document.querySelector('.live-facts').hidden");
      await expect.poll(() => d.page.saved).not.toHaveProperty('input.session');
    });

    it('what has not come about yet is called off by asking again', async () => {
      let told: (e: unknown) => void = () => undefined;
      const d = await show({ prepare: (x) => { x.on['control/takeOver'] = () => new Promise((_r, refuse) => { told = refuse; }); } }), { keyboard } = d.page.page;
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
      await keyboard.press('t');
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Press again to call it off')");
      await keyboard.press('t');
      await expect.poll(() => d.page.cancelled.length).toBe(1);
      told({ kind: 'cancelled', message: 'Taking over was cancelled.', remedy: '' });
      await d.page.until("!document.querySelector('.live-facts').textContent.includes('call it off') && document.querySelector('.live-notice').hidden");
      expect(d.asked('control/takeOver')).toHaveLength(1);
      delete d.on['control/takeOver'];
      await keyboard.press('t');
      await d.page.until("document.querySelector('.live-now h2')?.textContent === 'You are in control'");
    });

    it('says why it cannot be taken over, and what the runtime answers when it refuses', async () => {
      const d = await show({ prepare: (x) => { x.desktops = [{ ...x.desktops[0]!, state: 'stopped' }]; x.on['control/takeOver'] = () => { throw { kind: 'busy', message: 'Another window is in control.', remedy: 'Look for it.' }; }; } });
      const why = "document.querySelector('vscode-button[title^=\"The policy waits before\"]')";
      await d.page.until(`${why}.getAttribute('aria-disabled') === 'true' && ${why}.title.includes('The desktop has stopped')`);
      await d.page.page.keyboard.press('t');
      await d.page.until("document.querySelector('.live-notice').textContent.includes('The desktop has stopped')");
      expect(d.asked('control/takeOver')).toEqual([]);
      await d.page.post({ type: 'desktop', desktop: 'desktop-1', row: { ...d.desktops[0]!, state: 'act' } });
      await d.page.until(`!${why}.hasAttribute('aria-disabled')`);
      await press(d, /^Step Through/);
      await expect.poll(() => d.asked('control/takeOver')).toEqual([{ desktop: 'desktop-1', mode: 'step' }]);
      await d.page.until("document.querySelector('.live-notice').textContent.includes('Another window is in control. Look for it.')");
      await press(d, 'Dismiss');
      await d.page.until("document.querySelector('.live-notice').hidden");
    });
  });

  it('takes over as soon as a rollout can be, and asks one that refuses only once', async () => {
    const d = await show({ prepare: (x) => { x.desktops = [{ ...x.desktops[0]!, state: 'idle', rollout: undefined }]; } }), row = d.desktops[0]!, say = (o: Partial<typeof row>): Promise<void> => d.page.post({ type: 'desktop', desktop: 'desktop-1', row: { ...row, ...o } });
    await d.page.until("document.querySelector('.live-state').textContent === 'Idle'");
    for (const times of [1, 2, 3]) {
      await d.page.page.keyboard.press('t');
      await d.page.until(times === 2 ? "document.querySelector('.live-notice').hidden" : "document.querySelector('.live-notice').textContent.includes('as soon as a rollout can be taken over')");
    }
    expect(d.asked('control/takeOver')).toEqual([]);
    d.on['control/takeOver'] = () => { throw { kind: 'params.invalid', message: 'An evaluation is on this desktop.', remedy: 'Take over a training rollout.' }; };
    await say({ state: 'setup', rollout: 'e1' }); await say({ state: 'act', rollout: 'e1' });
    await d.page.until("document.querySelector('.live-notice').textContent.includes('An evaluation is on this desktop.')");
    delete d.on['control/takeOver'];
    await say({ state: 'settle', rollout: 'e1' }); await say({ state: 'idle', rollout: undefined }); await say({ state: 'setup', rollout: 'r2' });
    await d.page.until("document.querySelector('.live-now h2')?.textContent === 'You are in control'");
    expect(d.asked('control/takeOver')).toEqual([{ desktop: 'desktop-1', mode: 'human' }, { desktop: 'desktop-1', mode: 'human' }]);
  });

  describe('step mode', () => {
    const proposal = (id: number, x: number): NonNullable<ControlState['proposal']> => ({ id, actions: [{ type: 'click', at: { x, y: 147 } }], probability: 0.78, labels: ['click', `${x},147`] });
    const stepping = (): ControlState => controlState({ mode: 'step', proposal: proposal(7, 398) });
    /** Enter until it is heard: one that comes before the proposal could be seen accepts nothing. */
    const enter = async (d: Desk, accepted: readonly number[]): Promise<void> => { await expect.poll(async () => { await d.page.page.keyboard.press('Enter'); return d.asked('control/accept').map((p) => p['proposal']); }, { interval: 100 }).toEqual(accepted); };

    it('draws the proposal and its probability; Enter accepts it once, and an Enter too late accepts no other', async () => {
      const d = await show({ state: stepping() });
      await d.page.until("document.querySelectorAll('.ds-overlay.proposal .mark').length === 1");
      for (const sel of ['.live-proposed', '.live-proposal']) expect(await textOf(d, sel)).toMatch(/click at 398,147.*78 %/);
      await enter(d, [7]);
      await d.page.until("document.querySelector('.live-proposal').textContent.includes('Accepted')");
      // The next one comes, and an Enter pressed in the same moment is still that of the last.
      await d.pushAndPress({ proposal: proposal(8, 120) }, 'Enter');
      await d.page.until("document.querySelector('.live-proposal').textContent.includes('click at 120,147') && document.querySelector('.live-proposal').dataset.state === 'open'");
      expect(d.asked('control/accept')).toHaveLength(1);
      await enter(d, [7, 8]);
      expect(d.input).toEqual([]);
    });

    it('accepts by Enter while the desktop has the keyboard, and by the button', async () => {
      const d = await show({ state: controlState({ mode: 'step' }) });
      await d.page.page.locator('.live-box').focus();
      await d.page.page.keyboard.press('k');
      await d.page.until("document.querySelector('.live-box').classList.contains('captured')");
      await d.push({ proposal: proposal(1, 300) });
      await d.page.until("document.querySelectorAll('.ds-overlay.proposal .mark').length === 1");
      await d.pushAndPress({ proposal: proposal(2, 310) }, 'Enter');
      await d.page.until("document.querySelector('.live-proposal').textContent.includes('click at 310,147')");
      await enter(d, [2]);
      expect(d.input).toEqual([]);
      await d.push({ proposal: proposal(3, 320) });
      await expect.poll(async () => { await press(d, /^Accept/); return d.asked('control/accept').map((p) => p['proposal']); }, { interval: 100 }).toEqual([2, 3]);
    });

    it('anything done on the picture overrides; then Enter is the desktop’s, until the next proposal', async () => {
      const d = await show({ state: stepping() }), { keyboard, mouse } = d.page.page, hover = await d.at(200, 300);
      await d.page.until("document.querySelectorAll('.ds-overlay.proposal .mark').length === 1");
      // To look is not to act.
      await mouse.move(hover.x, hover.y);
      const p = await d.at(210, 310);
      await mouse.move(p.x, p.y); await mouse.down(); await mouse.up();
      await d.page.until("document.querySelector('.live-proposal').dataset.state === 'overridden' && document.querySelectorAll('.ds-overlay .mark').length === 0");
      await keyboard.press('a'); await keyboard.press('Enter');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'Enter' && !e.down));
      expect(d.input.map((e) => (e.type === 'key' ? `${e.key}${e.down ? '+' : '-'}` : e.type === 'button' ? `${e.x},${e.y}${e.down ? '+' : '-'}` : e.type))).toEqual(['210,310+', '210,310-', 'a+', 'a-', 'Enter+', 'Enter-']);
      expect(d.asked('control/accept')).toEqual([]);
      await d.push({ proposal: undefined, doing: 'typing "a"' });
      await d.page.until("document.querySelector('.live-now h2').textContent === 'You act instead'");
      d.batches.length = 0;
      await d.pushAndPress({ proposal: proposal(9, 300), doing: undefined }, 'Enter');
      await d.page.until("document.querySelector('.live-proposal').dataset.state === 'open'");
      await enter(d, [9]);
      expect(d.input).toEqual([]);
    });

    it('says when the runtime takes an acceptance for too late, and lets it be tried again', async () => {
      const d = await show({ state: stepping(), prepare: (x) => { x.on['control/accept'] = () => { throw { kind: 'params.invalid', message: 'The policy has gone on.', remedy: '' }; }; } });
      await enter(d, [7]);
      await d.page.until("document.querySelector('.live-notice').textContent.includes('The policy has gone on.') && document.querySelector('.live-proposal').dataset.state === 'open'");
    });
  });

  describe('the end', () => {
    const ended = (o: Partial<ControlState>): Partial<ControlState> => ({ mode: 'ended', ...o });
    const word = (d: Desk, w: string): Promise<void> => d.page.until(`document.querySelector('.live-now h2').textContent === ${JSON.stringify(w)}`);
    it('a success is kept and in the pool; a note goes with it; it may be discarded all the same', async () => {
      const d = await show({ state: record() });
      await d.page.page.keyboard.press('f');
      await expect.poll(() => d.asked('control/finish')).toEqual([{ session: 'c1' }]);
      await d.push({ mode: 'verifying' });
      await word(d, 'Verifying');
      await d.push(ended({ verdict: { outcome: 'success', reward: 1, report: report(true) }, kept: { rollout: 'd000001', pooled: true } }));
      await word(d, 'Success');
      const said = await textOf(d, '.live-panel');
      for (const w of ['in the experience pool', '2 of 2 checks passed', 'chosen row of the list', 'Expected', 'Melon']) expect(said).toContain(w);
      await d.page.page.getByRole('textbox', { name: 'Note' }).fill('by the menu');
      await d.page.page.getByRole('textbox', { name: 'Tags' }).fill('short, menu,short');
      await press(d, 'Save Note');
      await expect.poll(() => d.asked('control/keep')).toEqual([{ session: 'c1', pool: 'auto', note: 'by the menu', tags: ['short', 'menu'] }]);
      await press(d, 'Open Trajectory');
      await press(d, 'Annotate');
      await expect.poll(() => d.page.actions).toEqual([{ action: 'openTrajectory', run: '/runs/demo', rollout: 'd000001', beside: true }, { action: 'annotate', run: '/runs/demo', rollout: 'd000001' }]);
      await press(d, 'Discard…');
      await d.page.page.locator('dialog[open] vscode-button', { hasText: 'Cancel' }).click();
      await press(d, 'Discard…');
      await d.page.page.locator('dialog[open] vscode-button', { hasText: 'Discard' }).click();
      await expect.poll(() => d.asked('control/discard')).toEqual([{ session: 'c1' }]);
      await word(d, 'Discarded');
      await press(d, 'Record Another…');
      await expect.poll(() => d.page.actions.at(-1)).toEqual({ action: 'command', command: 'recordDemonstration', argument: '/runs/demo' });
    });

    it('a failure is kept out of the pool, or added with a reason that must be given', async () => {
      const d = await show({ state: record(ended({ verdict: { outcome: 'failure', reward: 0.5, report: report(false) } })) });
      await word(d, 'Not solved');
      const missed = await textOf(d, '.live-report .missed');
      expect(missed).toContain('Plum');
      await press(d, 'Add to Pool Anyway…');
      await d.page.page.keyboard.press('Enter');
      await d.page.until("document.querySelector('dialog[open] .live-missing').textContent === 'A reason is needed.'");
      await d.page.page.keyboard.type('the check is wrong');
      await d.page.page.keyboard.press('Enter');
      await expect.poll(() => d.asked('control/keep')).toEqual([{ session: 'c1', pool: 'override', reason: 'the check is wrong' }]);
      await d.push({ kept: { rollout: 'd000002', pooled: true, why: 'the check is wrong' } });
      await d.page.until("document.querySelector('.live-now').textContent.includes('in the experience pool: the check is wrong.')");
      await d.push({ kept: undefined });
      await press(d, /^Keep$/);
      await expect.poll(() => d.asked('control/keep').at(-1)).toEqual({ session: 'c1', pool: 'never' });
      await d.push({ kept: { rollout: 'd000002', pooled: false } });
      await d.page.until("document.querySelector('.live-now').textContent.includes('not in the experience pool')");
    });

    it('an answer, a task that cannot be done, and a recording thrown away are asked for first', async () => {
      const d = await show({ state: record() }), { keyboard } = d.page.page;
      await keyboard.press('a');
      await d.page.until("document.querySelector('dialog[open]')");
      await keyboard.type('96');
      await keyboard.press('Enter');
      await expect.poll(() => d.page.requests.map((r) => r.method).filter((m) => m === 'control/act' || m === 'control/finish')).toEqual(['control/act', 'control/finish']);
      expect(d.asked('control/act')).toEqual([{ session: 'c1', action: { type: 'finished', answer: '96' } }]);
      d.on['control/act'] = () => { d.state = { ...d.state!, mode: 'verifying' }; return d.state; };
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
      await d.page.until("document.querySelector('dialog[open]').textContent.includes('2 recorded steps are thrown away')");
      await keyboard.press('Escape');
      await d.page.until("!document.querySelector('dialog[open]')");
      expect(d.asked('control/discard')).toEqual([]);
    });

    it('a lost desktop, a session given up, a runtime that is gone or does not know it: words for each, and nothing is sent', async () => {
      const d = await show({ state: record() });
      await d.capture();
      await d.page.post({ type: 'daemon', state: 'reconnecting' });
      await word(d, 'Connection lost');
      await d.page.until("!document.querySelector('.live-box').classList.contains('captured') && document.querySelector('.live-box').classList.contains('still')");
      await d.page.page.keyboard.press('z');
      expect(await d.page.axe(axe)).toEqual([]);
      await d.page.post({ type: 'daemon', state: 'ready' });
      await word(d, 'You are in control');
      expect(d.asked('control/attach')).toHaveLength(2);
      expect(d.input).toEqual([]);
      await d.page.post({ type: 'daemon', state: 'stopped' });
      await word(d, 'Runtime stopped');
      d.on['control/attach'] = () => { throw { kind: 'not.found', message: 'No such session.', remedy: '' }; };
      await d.page.post({ type: 'daemon', state: 'ready' });
      await word(d, 'Over');
      await d.push(ended({ error: { kind: 'desktop.lost', message: 'The desktop stopped answering.', remedy: 'Its log says more.' } }));
      await word(d, 'Desktop lost');
      await d.page.until("document.querySelector('.live-now').textContent.includes('Nothing of it was kept')");
      await d.push(ended({ error: undefined, abandonedAt: 1 }));
      await word(d, 'Given up');
      await d.push(ended({ abandonedAt: undefined, verdict: { outcome: 'error', error: { kind: 'task.verify', message: 'The file cannot be read.', remedy: '' } } }));
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
      d.on['control/attach'] = () => { throw { kind: 'not.found', message: 'This session is over.', remedy: '' }; };
      await d.page.post({ type: 'daemon', state: 'reconnecting' });
      await d.page.post({ type: 'daemon', state: 'ready' });
      await expect.poll(() => d.asked('control/attach')).toHaveLength(2);
      await press(d, 'Watch On');
      await d.page.until("document.querySelector('.live-panel').hidden");
      await d.push({ mode: 'ended' });
      await d.page.until("document.querySelector('.live-panel').hidden && document.querySelector('.live-notice').hidden");
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
      await d.page.until("document.querySelector('.live-empty').textContent.includes('A fresh desktop is set up for the task')");
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
    await d.page.until("document.querySelector('.live-now h2').textContent === 'The policy acts' && document.activeElement.textContent.startsWith('Pause')");
    await d.page.page.locator('.live-recorded').focus();
    await d.page.until("document.activeElement.classList.contains('live-recorded')");
    await d.page.page.keyboard.press('?');
    await d.page.until("document.querySelector('dialog[open]').textContent.includes('Give the desktop the keyboard')");
  });

  it('a hidden page draws nothing, and everything when it is seen again, in order', async () => {
    const d = await show({ state: record() }), dark = (on: boolean): Promise<void> => d.page.page.evaluate(`{ Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${on} }); document.dispatchEvent(new Event('visibilitychange')); }`);
    await d.page.page.evaluate("{ window.draws = 0; const f = CanvasRenderingContext2D.prototype.drawImage; CanvasRenderingContext2D.prototype.drawImage = function (...a) { draws++; return f.apply(this, a); }; }");
    await dark(true);
    for (let i = 0; i < 5; i++) await d.picture(list, width, height, 0, 0);
    await d.picture(list, width, height, 40, 40, { width, height });
    expect(await d.page.page.evaluate('draws')).toBe(0);
    await dark(false);
    // Four of the five lay under the fifth.
    await d.page.until('draws === 2');
  });
});
