import { describe, expect, it } from 'vitest';
import type { Lanes } from '../../runtime/protocol/types.js';
import { niceTicks } from '../../webview/ui/chartMath.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { answersOf, goTo } from '../helpers/pages/dashboard/open.js';
import { dashboardPages, drawn, slider } from '../helpers/pages/dashboard/pages.js';
import { drawnWords, rememberWords, tickWords, type DrawnWord } from '../helpers/pages/drawnWords.js';

const found = await openBrowser();
if ('why' in found) console.warn(`tests of what the dashboard draws skipped: ${found.why}`);

/** What stands on the canvases of the dashboard, word by word. */
describe.skipIf('why' in found)('words on the charts of the dashboard', () => {
  const { run, show } = dashboardPages(found as RealBrowser);
  const chartOf = (name: string): string => `[role=slider][aria-label="${name}: cursor"] canvas`;

  it('name the phases of the run, and no tick stands twice, whole and zoomed to seconds', async () => {
    const t = await show({ before: rememberWords }),
      p = await drawn(t),
      words = async (): Promise<readonly DrawnWord[]> => (await drawnWords(t.page, chartOf('All tasks')))[0] ?? [];
    await expect
      .poll(async () => (await words()).map((w) => w.text))
      .toEqual(expect.arrayContaining(['reading', 'demonstrations', 'warm start', 'RL']));
    const ticks = async (): Promise<ReturnType<typeof tickWords>> => tickWords(await words());
    const eachOnce = async (): Promise<void> => {
      const { x, y } = await ticks();
      for (const of of [x, y]) {
        expect(of.length).toBeGreaterThan(2);
        expect(new Set(of).size, of.join(' ')).toBe(of.length);
      }
    };
    await eachOnce();
    expect((await ticks()).x).toContain('4 min');
    await slider(t, 'All tasks').focus();
    await p.keyboard.press('End');
    // 13:36 halved so often is less than half a minute.
    for (let i = 0; i < 5; i++) await p.keyboard.press('+');
    await expect.poll(async () => (await ticks()).x).toContain('13:20');
    await eachOnce();
  });

  it('no tick of any chart stands twice', async () => {
    const t = await show({ before: rememberWords });
    await drawn(t);
    for (const part of ['success', 'throughput', 'trainer', 'curation']) {
      await goTo(t, part, '.uplot canvas');
      const all = (): Promise<readonly (readonly DrawnWord[])[]> =>
        drawnWords(t.page, `#${part} .chart:not(.chart-compact) .uplot canvas`);
      await expect.poll(async () => (await all()).some((c) => c.length > 0)).toBe(true);
      for (const { x, y } of (await all()).filter((c) => c.length > 0).map(tickWords))
        for (const of of [x, y]) expect(new Set(of).size, `${part}: ${of.join(' ')}`).toBe(of.length);
    }
  });

  it.each([
    ['Step entropy', 1.8],
    ['Importance weight histogram', 1],
  ])('%s has round values at its bins, each once', async (name, to) => {
    const t = await show({ before: rememberWords });
    await drawn(t);
    await goTo(t, 'curation', '.uplot canvas');
    await slider(t, name).focus();
    const labels = async (): Promise<readonly string[]> =>
      tickWords((await drawnWords(t.page, chartOf(name)))[0] ?? []).x;
    await expect.poll(async () => (await labels()).length).toBeGreaterThan(2);
    const values = (await labels()).map(Number),
      round = Array.from({ length: 12 }, (_, i) => niceTicks(0, to, i + 2));
    expect(round).toContainEqual(values);
  });

  it('lanes of 40 desktops open on the trainer and the replicas', async () => {
    const many = (l: Lanes): Lanes => ({
        ...l,
        lanes: [
          ...Array.from({ length: 40 }, (_, i) => ({
            ...l.lanes.filter((x) => x.kind === 'desktop')[i % 6]!,
            id: `desktop-${i + 1}`,
          })),
          ...l.lanes.filter((x) => x.kind !== 'desktop'),
        ],
      }),
      answer = answersOf(run),
      t = await show({
        before: rememberWords,
        answer: (method, params) =>
          method === 'run/lanes' ? many(answer(method, params) as Lanes) : answer(method, params),
      });
    await drawn(t);
    await goTo(t, 'lanes', 'canvas.lanes-canvas');
    const words = async (): Promise<readonly string[]> =>
      [...((await drawnWords(t.page, 'canvas.lanes-canvas'))[0] ?? [])]
        // Names stand at the left edge; versions of the policy are written on the lanes.
        .filter((w) => w.x === 0)
        .sort((a, b) => a.y - b.y)
        .map((w) => w.text);
    await expect.poll(words).toContain('Desktops (40)');
    expect((await words()).slice(0, 5)).toEqual([
      'Trainer (1)',
      'trainer',
      'Policy replicas (2)',
      'replica-0',
      'replica-1',
    ]);
    const [top, inside, whole] = await t.page.evaluate<readonly number[]>(
      "(({ scrollTop, clientHeight, scrollHeight }) => [scrollTop, clientHeight, scrollHeight])(document.querySelector('.lanes-body'))",
    );
    // There is more than fits, and what is seen is its top.
    expect([top, whole! > inside!]).toEqual([0, true]);
  });
});
