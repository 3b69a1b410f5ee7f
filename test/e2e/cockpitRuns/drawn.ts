/** Flows through what stands on the canvases of a dashboard, as it is drawn. */
import { expect } from 'vitest';
import { niceTicks } from '../../../webview/ui/chartMath.js';
import { drawnWords, rememberWords, tickWords } from '../../helpers/pages/drawnWords.js';
import type { Frame } from '../../helpers/workbench/playwright.js';
import { until } from '../../helpers/workbench/workbench.js';
import { goTo, textOf, type Flow, type RunsWindow } from './window.js';

export function flowsOfDrawings(flow: Flow, w: () => RunsWindow): void {
  flow('charts name the phases, are interrupted where nobody worked on the run, and write no tick twice', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    const page = await on.dashboard('trained-3');
    await page.evaluate(rememberWords);
    // Everything is drawn anew.
    await c.setTheme('Light Modern');
    await drawnRight(page).finally(() => c.setTheme('Dark Modern'));
    await c.picture('drawn');
  });

  flow('imitation is no error: it is blue in the legend of the lanes', async () => {
    const on = w();
    await on.listed();
    const page = await on.dashboard('trained-3');
    await goTo(page, 'lanes', 'canvas.lanes-canvas');
    const sample = `[...document.querySelectorAll('.lanes-legend li')].find((x) => x.textContent === 'imitate')?.firstElementChild`;
    await until(() => page.evaluate<boolean>(`${sample}?.width > 0`), 'the legend is drawn');
    const [red, blue] = await page.evaluate<readonly [number, number]>(`(() => {
      const c = ${sample}, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
      let red = 0, blue = 0;
      for (let i = 0; i < d.length; i += 4) {
        if (d[i] > d[i + 2] + 40) red++;
        if (d[i + 2] > d[i] + 40) blue++;
      }
      return [red, blue];
    })()`);
    expect(red).toBe(0);
    expect(blue).toBeGreaterThan(10);
  });
}

async function drawnRight(page: Frame): Promise<void> {
  const chart = '#success .chart:not(.chart-compact) .uplot canvas',
    words = async (): Promise<readonly string[]> => ((await drawnWords(page, chart))[0] ?? []).map((x) => x.text);
  await until(async () => (await words()).includes('RL'), 'the phases stand on the chart');
  expect(await words()).toEqual(expect.arrayContaining(['reading', 'demonstrations', 'warm start', 'RL']));
  expect(await textOf(page, '#success')).toMatch(/The run was not active from \d+:\d\d to \d+:\d\d\./);
  // Ten of its 25 minutes.
  expect(await coloured(page, chart, 0.05, 0.35)).toBeGreaterThan(20);
  expect(await coloured(page, chart, 0.5, 0.65)).toBe(0);
  for (const part of ['success', 'throughput', 'trainer', 'curation']) {
    await goTo(page, part, '.uplot canvas');
    const all = `#${part} .chart:not(.chart-compact) .uplot canvas`;
    await until(async () => (await drawnWords(page, all)).some((x) => x.length > 0), `${part} is drawn`);
    for (const { x, y } of (await drawnWords(page, all)).filter((x) => x.length > 0).map(tickWords))
      for (const of of [x, y]) expect(new Set(of).size, `${part}: ${of.join(' ')}`).toBe(of.length);
  }
  const histogram = '[role=slider][aria-label="Step entropy: cursor"] canvas',
    bins = async (): Promise<readonly number[]> =>
      tickWords((await drawnWords(page, histogram))[0] ?? []).x.map(Number);
  await page.locator('[role=slider][aria-label="Step entropy: cursor"]').focus();
  await until(async () => (await bins()).length > 2, 'the histogram has ticks');
  const values = await bins(),
    step = values[1]! - values[0]!;
  // Round numbers, evenly spaced.
  expect(Array.from({ length: 12 }, (_, i) => niceTicks(values[0]!, values.at(-1)!, i + 2))).toContainEqual(values);
  values.forEach((x, i) => expect(x).toBeCloseTo(values[0]! + i * step, 6));
}

/** Strongly coloured pixels of a canvas between two parts of its width: lines, and neither text nor grid. */
const coloured = (page: Frame, canvas: string, from: number, to: number): Promise<number> =>
  page.evaluate<number>(`(() => {
    const c = document.querySelector(${JSON.stringify(canvas)}), x = (s) => Math.round(c.width * s),
      d = c.getContext('2d').getImageData(x(${from}), 0, x(${to}) - x(${from}), c.height).data;
    let n = 0;
    for (let i = 0; i < d.length; i += 4)
      if (d[i + 3] > 200 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 120) n++;
    return n;
  })()`);
