import { readFile, rm, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TrajectoryView } from '../../runtime/domain/index.js';
import { writeShared } from '../../runtime/share/write.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { FrameFolder } from '../helpers/pages/screens.js';
import { richPlans, view } from '../helpers/pages/trajectories.js';
import type { CdpSession, Page } from '../helpers/workbench/playwright.js';

const found = await openBrowser();
if ('why' in found) console.warn(`pages for others: tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];
const EVIL = '"><img src=http://127.0.0.1:9/x onerror="globalThis.owned=1"><script>globalThis.owned=2</script>';

describe.skipIf('why' in found)('a trajectory as one file, opened from file://', () => {
  const { browser, axe } = found as RealBrowser;
  let dir: string, file: string, plain: TrajectoryView;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-share-'));
    const plans = await richPlans(new FrameFolder(join(dir, 'frames')));
    plain = view(plans, join(dir, 'frames'));
    const [first, ...rest] = plain.steps,
      trajectory = {
        ...plain,
        row: { ...plain.row, instruction: `Choose Melon ${EVIL}` },
        steps: [{ ...first!, thought: EVIL }, ...rest],
      };
    file = join(dir, 'one.html');
    await writeShared({ to: file, framesDir: join(dir, 'frames'), trajectory, runName: EVIL });
    // It stands alone: what it was made from is gone.
    await rm(join(dir, 'frames'), { recursive: true });
  });
  afterAll(async () => {
    await (found as RealBrowser).browser.close();
    await rm(dir, { recursive: true, force: true });
  });

  interface Opened {
    readonly page: Page;
    /** Addresses that the browser asked for. */
    readonly asked: string[];
    readonly said: string[];
  }
  async function open(scheme: 'dark' | 'light'): Promise<Opened> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } }),
      page = await context.newPage(),
      asked: string[] = [],
      said: string[] = [];
    page.on('console', (m) => said.push(m.text()));
    page.on('pageerror', (e) => said.push(e.message));
    const cdp = (await context.newCDPSession(page)) as CdpSession & {
      on(event: string, listener: (p: { readonly request: { readonly url: string } }) => void): void;
    };
    cdp.on('Network.requestWillBeSent', (p) => asked.push(p.request.url));
    await cdp.send('Network.enable');
    await cdp.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    await page.goto(pathToFileURL(file).href);
    return { page, asked, said };
  }
  const where = (page: Page): Promise<string | null> => page.locator('#where').textContent();

  it.each(['dark', 'light'] as const)(
    '%s: no request, no script but its own, nothing that axe finds',
    async (scheme) => {
      const { page, asked, said } = await open(scheme);
      expect(await page.evaluate('globalThis.owned')).toBeUndefined();
      expect(await page.locator('img').count()).toBe(0);
      expect(await page.locator('h1').innerText()).toBe(`Choose Melon ${EVIL}`);
      expect(asked.filter((u) => !u.startsWith('data:'))).toEqual([pathToFileURL(file).href]);
      expect(said).toEqual([]);
      // What slipped through all the same could do nothing: the file's own policy holds.
      await page.evaluate(
        `(() => { const s = document.createElement('script'); s.textContent = 'globalThis.owned = 3'; document.body.append(s);
        document.body.insertAdjacentHTML('beforeend', '<img src="http://127.0.0.1:9/y" onerror="globalThis.owned = 4">'); })()`,
      );
      await expect.poll(() => said.join(' ')).toMatch(/Content Security Policy.*script-src/s);
      expect(await page.evaluate('globalThis.owned')).toBeUndefined();
      expect(said.join(' ')).toMatch(/img-src data:/);
      await page.evaluate(
        "document.querySelectorAll('body > script:last-of-type, body > img').forEach((e) => e.remove())",
      );
      if (shots) await page.screenshot({ path: join(shots, `shared-${scheme}.png`) });
      await page.evaluate(`${axe};undefined`);
      expect(
        await page.evaluate(
          "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ')).join(', ')))",
        ),
      ).toEqual([]);
      await page.context().close();
    },
  );

  it('goes from step to step by keyboard, one shown at a time, and opens at the step an address names', async () => {
    const { page } = await open('dark'),
      shown = (): Promise<number> => page.locator('section.step').filter({ visible: true }).count();
    expect(await where(page)).toMatch(/^Step 1 of \d+: /);
    expect(await shown()).toBe(1);
    await page.keyboard.press('ArrowRight');
    expect(await where(page)).toMatch(/^Step 2 of/);
    await page.keyboard.press('End');
    expect(await where(page)).toMatch(new RegExp(`^Step ${plain.steps.length} of`));
    await page.keyboard.press('p');
    expect(await page.locator('section.step').filter({ visible: true }).getAttribute('data-high')).toBe('1');
    await page.keyboard.press('Home');
    await page.keyboard.press('m');
    expect(await page.locator('#marks').getAttribute('aria-pressed')).toBe('false');
    await page.evaluate("location.hash = '#s3'");
    await expect.poll(() => where(page)).toMatch(/^Step 3 of/);
    expect(await page.locator('.viewer nav a[aria-current]').innerText()).toMatch(/^3\. /);
    await page.context().close();
  });

  it('shows the recorded pixels, put together from what changed', async () => {
    const { page } = await open('light'),
      html = await readFile(file, 'utf8');
    expect(html.length).toBeLessThan(1_000_000);
    // Drawn whole at its own size; one step before the last, over several others.
    const step = plain.steps.at(-2)!,
      drawn = await page.evaluate<string>(
        `(async () => {
          const id = document.querySelectorAll('section.step svg use')[${plain.steps.length - 2}].getAttribute('href').slice(1);
          const parts = [], walk = (g) => { for (const e of g.children) e.tagName === 'use' ? walk(document.getElementById(e.getAttribute('href').slice(1))) : parts.push(e); };
          walk(document.getElementById(id));
          const c = document.createElement('canvas'); c.width = ${step.frame.width}; c.height = ${step.frame.height};
          const x = c.getContext('2d');
          for (const p of parts) { const i = new Image(); i.src = p.getAttribute('href'); await i.decode(); x.drawImage(i, +p.getAttribute('x'), +p.getAttribute('y')); }
          const d = x.getImageData(0, 0, c.width, c.height).data, rgb = new Uint8Array(c.width * c.height * 3);
          for (let i = 0, o = 0; i < d.length; i += 4) { rgb[o++] = d[i]; rgb[o++] = d[i + 1]; rgb[o++] = d[i + 2]; }
          const h = await crypto.subtle.digest('SHA-256', rgb);
          return [...new Uint8Array(h)].map((b) => b.toString(16).padStart(2, '0')).join('');
        })()`,
      );
    // The test's frames are named by the hash of their RGB.
    expect(drawn).toBe(step.frame.hash);
    await page.context().close();
  });
});
