/** Opens the dashboard on a made-up run: this process answers for the daemon. */
import type { Browser } from '../../workbench/playwright.js';
import { TestPage, type Answer, type Bundle, type OpenOptions } from '../page.js';
import type { MadeRun } from './run.js';

export const answersOf =
  (r: MadeRun): Answer =>
  (method, params) => {
    switch (method) {
      case 'run/get':
        return r.detail;
      case 'run/curves':
        return { curves: r.curves, evals: r.detail.evals };
      case 'run/series':
        return { series: r.series.filter((s) => (params['names'] as string[]).includes(s.name)) };
      case 'run/footprint':
        return {
          bytes: 812_345_678,
          freeBytes: 58_300_000_000,
          parameters: 274_516,
          machine: { processor: 'AMD EPYC 7B13', cores: 2, memoryBytes: 8_340_000_000 },
        };
      case 'run/curation':
        return r.curation;
      case 'task/list':
        return { tasks: r.tasks };
      case 'run/lanes':
        return r.lanes(params['from'] as number, params['to'] as number, params['width'] as number);
      case 'trajectory/list':
        return { rows: r.failures(params['limit'] as number), total: 1290 };
      default:
        throw { kind: 'not.found', message: `No answer for ${method}.`, remedy: '' };
    }
  };
export const openDashboard = (
  browser: Browser,
  b: Bundle,
  r: MadeRun,
  o: Partial<OpenOptions> = {},
): Promise<TestPage> =>
  TestPage.open(browser, b, { input: { kind: 'dashboard', run: r.run }, folders: [], answer: answersOf(r), ...o });

/**
 * Scrolls a part of the page to the top and waits until it is drawn: what is off screen is drawn when it is seen. A part
 * above it that fills only now moves it away again, so it is scrolled to until it is there.
 */
export async function goTo(t: TestPage, id: string, sign: string): Promise<void> {
  await t.until(`(document.getElementById('${id}').scrollIntoView(), document.querySelector('#${id} ${sign}'))`);
}
