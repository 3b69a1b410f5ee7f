import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { DesktopRow, StepView, TrajectoryRow } from '../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { bundle, TestPage, themes, type Bundle, type OpenOptions } from '../helpers/pages/page.js';
import { FrameFolder, height, width } from '../helpers/pages/screens.js';

const found = await openBrowser();
if ('why' in found) console.warn(`live page tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('live desktop page', () => {
  const { browser, axe } = found as RealBrowser,
    run = '/runs/demo';
  const row = (o: Partial<DesktopRow> = {}): DesktopRow => ({
    desktop: 'desktop-1',
    run,
    provider: 'docker',
    state: 'settle',
    since: 0,
    resets: 3,
    replaced: 0,
    rollout: 'r000102',
    task: 'desk/list-confirm#63',
    instruction: 'Choose "Melon" in the list and press OK.',
    step: 1,
    cap: 6,
    version: 24,
    ...o,
  });
  const step = (index: number, x: number, y: number): StepView => ({
    index,
    at: 1,
    frame: { hash: 'aa', width, height },
    actions: [{ type: 'click', at: { x, y } }],
    origin: 'policy',
    settled: true,
    timings: { observe: 5, queue: 0, decide: 30, perform: 20, settle: 90 },
  });
  const trajectory: TrajectoryRow = {
    rollout: 'r000102',
    task: 'desk/list-confirm#63',
    family: 'desk/list-confirm',
    instruction: '',
    outcome: 'running',
    provenance: 'rollout',
    steps: 1,
    cap: 6,
  };
  let b: Bundle, dir: string, list: string, form: string, open: TestPage | undefined, desktops: DesktopRow[];
  const show = async (o: Partial<OpenOptions> = {}): Promise<TestPage> =>
    (open = await TestPage.open(browser, b, {
      input: { kind: 'live', desktop: 'desktop-1' },
      folders: [],
      width: 1000,
      height: 800,
      ...o,
      answer: (method) => {
        if (method === 'desktop/list') return { desktops };
        if (method === 'trajectory/get')
          return { row: trajectory, steps: [step(0, 194, 154)], framesDir: '', live: true, seq: 77 };
        throw { kind: 'not.found', message: method, remedy: '' };
      },
    }));
  /** A patch as the host posts it: messages of this process are JSON, so the typed array is made in the page. */
  const patch = async (t: TestPage, png: string, x = 0, y = 0): Promise<void> => {
    await t.page.evaluate<void>(
      "{ const f = __fromHost; if (!f.bytes) { window.__fromHost = (m) => f(typeof m.png === 'string' ? { ...m, png: Uint8Array.from(atob(m.png), (c) => c.charCodeAt(0)) } : m); __fromHost.bytes = true; } }",
    );
    await t.post({
      type: 'screen',
      x,
      y,
      width,
      height,
      at: Date.now(),
      screen: { width, height },
      png: png as unknown as Uint8Array,
    });
  };
  const pixel = (x: number, y: number): string =>
    `[...document.querySelector('.live-canvas').getContext('2d').getImageData(${x}, ${y}, 1, 1).data].join()`;
  const facts = (t: TestPage): Promise<string> => t.page.locator('.live-facts').innerText();

  beforeAll(async () => {
    b = await bundle('live');
    dir = await mkdtemp(join(tmpdir(), 'live-'));
    const frames = new FrameFolder(dir),
      png = async (h: string): Promise<string> =>
        (await readFile(join(dir, h.slice(0, 2), `${h}.png`))).toString('base64');
    list = await png((await frames.add('list')).hash);
    form = await png(
      (await frames.add('form', [{ x: 0, y: 0, width: 40, height: 40, colour: [200, 30, 90], alpha: 1 }])).hash,
    );
  });
  afterEach(async () => {
    const faults = open?.faults ?? [];
    await open?.close();
    open = undefined;
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('the bundle is small', () => {
    expect(b.js.length + b.css.length + b.ui.length).toBeLessThan(400_000);
  });

  it.each(themes)('%s: the picture, what it works on, and nothing that axe finds', async (theme) => {
    desktops = [row()];
    const t = await show({ theme });
    await t.until("document.querySelector('.live-empty').textContent.includes('first picture')");
    expect(await t.axe(axe)).toEqual([]);
    await patch(t, list);
    await t.until(
      `document.querySelector('.live-canvas').width === ${width} && document.querySelectorAll('.ds-overlay .mark').length === 1`,
    );
    const words = await facts(t);
    for (const w of [
      'desk/list-confirm#63',
      'Choose "Melon" in the list and press OK.',
      'v24',
      'click at 194,154',
      'Running',
    ])
      expect(words).toContain(w);
    if (shots) await t.page.screenshot({ path: join(shots, `live-${theme}.png`) });
    expect(await t.axe(axe)).toEqual([]);
  });

  it('patches are drawn in the order they came', async () => {
    desktops = [row()];
    const t = await show();
    for (const p of [list, form, list, form, list, form]) await patch(t, p);
    await t.until(`document.querySelector('.live-canvas').width === ${width} && ${pixel(10, 10)} === '200,30,90,255'`);
    await patch(t, form, 100, 50);
    await t.until(`${pixel(110, 60)} === '200,30,90,255'`);
  });

  it('follows the rollout: its steps as they happen, its end, the next one', async () => {
    desktops = [row()];
    const t = await show();
    await patch(t, list);
    await expect
      .poll(() => t.subscriptions)
      .toMatchObject([{ run, sinceSeq: 77, rollout: 'r000102', types: ['step', 'ended'] }]);
    await t.post({
      type: 'events',
      run,
      live: true,
      nextSeq: 80,
      events: [{ seq: 79, at: 2, type: 'step', rollout: 'r000102', step: step(1, 320, 200) }],
    });
    await t.until("document.querySelector('.live-facts').textContent.includes('click at 320,200')");
    await t.page.getByRole('button', { name: 'Open Trajectory' }).click();
    await expect.poll(() => t.actions).toEqual([{ action: 'openTrajectory', run, rollout: 'r000102', beside: true }]);
    await t.post({
      type: 'events',
      run,
      live: true,
      nextSeq: 81,
      events: [{ seq: 80, at: 3, type: 'ended', row: { ...trajectory, outcome: 'success' } }],
    });
    await t.until("document.querySelector('.live-facts').textContent.includes('Succeeded')");
    await t.post({
      type: 'desktop',
      desktop: 'desktop-1',
      row: row({ state: 'idle', rollout: undefined, task: undefined, instruction: undefined, step: undefined }),
    });
    await t.until("document.querySelector('.live-state').textContent === 'Idle'");
    await expect.poll(() => facts(t)).toContain('no rollout is planned');
    await t.post({ type: 'desktop', desktop: 'desktop-2', row: row({ desktop: 'desktop-2' }) });
    await t.post({ type: 'desktop', desktop: 'desktop-1' });
    await t.until(
      "document.querySelector('.live-state').textContent === 'Ended' && document.querySelector('.live-box').classList.contains('still')",
    );
  });

  it('zooms: fit, pixel for pixel, by key; the choice is kept', async () => {
    desktops = [row()];
    const t = await show();
    await patch(t, list);
    // What stands beside the picture makes it smaller: measured once it stands.
    await t.until(
      "document.querySelectorAll('.ds-overlay .mark').length === 1 && document.querySelector('.ds-scale').textContent !== ''",
    );
    const fitted = await t.page.locator('.ds-scale').innerText();
    await t.page.locator('.live-box').focus();
    await t.page.keyboard.press('1');
    await t.until(
      "document.querySelector('.ds-scale').textContent === '100 %' && document.querySelector('.live-canvas').getBoundingClientRect().width === 640",
    );
    await expect.poll(() => t.saved).toMatchObject({ input: { kind: 'live', desktop: 'desktop-1' }, zoom: 1 });
    await t.page.keyboard.press('+');
    await t.until("document.querySelector('.ds-scale').textContent === '125 %'");
    await t.page.keyboard.press('0');
    await t.until(`document.querySelector('.ds-scale').textContent === '${fitted}'`);
  });

  it('says when it is lost, when the runtime is gone, and when it is back', async () => {
    desktops = [row({ state: 'broken' })];
    const t = await show();
    await t.until("document.querySelector('.live-state').textContent === 'Lost'");
    await t.post({ type: 'daemon', state: 'reconnecting' });
    await t.until("document.querySelector('.live-state').textContent === 'Connection lost'");
    desktops = [row({ state: 'act' })];
    await t.post({ type: 'daemon', state: 'ready' });
    await t.until("document.querySelector('.live-state').textContent === 'Act'");
    await t.close();
    desktops = [];
    const off = await show({ daemon: 'stopped' });
    await off.until("document.querySelector('.live-state').textContent === 'Runtime stopped'");
    expect(await off.axe(axe)).toEqual([]);
  });
});
