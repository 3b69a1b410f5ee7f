import type { Cockpit } from '../../helpers/workbench/cockpit.js';
import type { Frame } from '../../helpers/workbench/playwright.js';
import { when } from '../../helpers/workbench/ui.js';
import { wide } from './wide.js';

export interface TableFigures {
  /** From when the page begins to load to the frame in which the first rows are drawn, ms. */
  readonly firstPaint: readonly number[];
  /** The same from the command: with what VS Code takes to make a panel. */
  readonly opened: readonly number[];
  /** From a change of the filter to the frame in which what it leaves is drawn, ms. */
  readonly filter: readonly number[];
  /** From frame to frame while it is scrolled from end to end, ms. */
  readonly frames: readonly number[];
}

/** The table of 100,000 trajectories in the workbench, opened, filtered and scrolled. */
export async function measureTable(c: Cockpit, run: string, quick: boolean): Promise<TableFigures> {
  const firstPaint: number[] = [],
    opened: number[] = [],
    filter: number[] = [],
    mark = "performance.getEntriesByName('dart-studio:rows-drawn').at(-1)";
  let f!: Frame;
  for (let i = 0; i < (quick ? 3 : 6); i++) {
    await c.closeEditors();
    const t0 = Date.now();
    await c.w.host.begin('dartStudio.openTrajectoryTable', run);
    f = await c.ui.webview('table');
    await when(f, `${mark} && document.querySelectorAll('.tb-body .tb-row').length > 5`);
    const [origin, drawn] = await f.evaluate<readonly [number, number]>(`[performance.timeOrigin, ${mark}.startTime]`);
    // The first opening reads the run into the daemon: it is another bar's.
    if (i === 0) continue;
    firstPaint.push(drawn);
    opened.push(origin + drawn - t0);
  }
  await when(
    f,
    `document.querySelector('.tb-top [role=status]')?.textContent === '${wide.rollouts.toLocaleString('en')} trajectories'`,
    60_000,
  );
  const searches = quick
    ? ['77', 'slider', 'r123', '']
    : ['77', 'slider', 'r123', 'close 12', 'button', 'x', 'number 9', ''];
  for (const words of searches)
    filter.push(
      await f.evaluate<number>(`(async () => {
        const field = document.querySelector('.tb-search'), frame = () => new Promise((r) => requestAnimationFrame(r));
        performance.clearMeasures();
        field.value = ${JSON.stringify(words)};
        const t0 = performance.now();
        field.dispatchEvent(new Event('input'));
        while (performance.getEntriesByName('dart-studio:filtered').length === 0) await frame();
        return performance.now() - t0;
      })()`),
    );
  for (const column of ['Entropy', 'Advantage', 'Task'])
    filter.push(
      await f.evaluate<number>(`(async () => {
        const frame = () => new Promise((r) => requestAnimationFrame(r)), t0 = performance.now();
        [...document.querySelectorAll('.tb-sort')].find((b) => b.textContent === '${column}').click();
        await frame();
        await frame();
        return performance.now() - t0;
      })()`),
    );
  const frames = await f.evaluate<number[]>(`(async () => {
    const grid = document.querySelector('.tb-grid'), out = [], frame = () => new Promise((r) => requestAnimationFrame(r));
    const by = (step, n) => (async () => {
      let last = await frame();
      for (let i = 0; i < n; i++) {
        grid.scrollTop += step;
        const now = await frame();
        out.push(now - last);
        last = now;
      }
    })();
    grid.scrollTop = 0;
    await frame();
    // As with a wheel, then as with the scroll bar: every frame shows other rows.
    await by(120, ${quick ? 90 : 300});
    await by(30000, ${quick ? 60 : 150});
    await by(-46, ${quick ? 60 : 150});
    return out;
  })()`);
  return { firstPaint, opened, filter, frames };
}
