import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Ledger } from '../../../../runtime/protocol/types.js';
import type { Page } from '../../workbench/playwright.js';
import type { RealBrowser } from '../browser.js';
import { bundle, type Bundle, type OpenOptions, type TestPage } from '../page.js';
import { openDashboard } from './open.js';
import { makeRun, type MadeRun } from './run.js';

export interface DashboardPages {
  /** What is shown where a test shows no other. */
  readonly run: MadeRun;
  readonly bundle: Bundle;
  /** One at a time; it must end without a fault. */
  show(o?: Partial<OpenOptions>, r?: MadeRun): Promise<TestPage>;
  /** The runtime tells of another status of the run. */
  status(t: TestPage, s: Partial<MadeRun['status']>, ledger?: Ledger): Promise<void>;
}
/** Within `describe`: the dashboard of a made-up run. */
export function dashboardPages({ browser }: RealBrowser): DashboardPages {
  const run = makeRun();
  let b: Bundle, open: TestPage | undefined;
  beforeAll(async () => {
    b = await bundle('dashboard');
  });
  afterEach(async () => {
    const faults = open?.faults ?? [];
    await open?.close();
    open = undefined;
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser.close();
  });
  return {
    run,
    get bundle() {
      return b;
    },
    show: async (o = {}, r = run) => (open = await openDashboard(browser, b, r, o)),
    status: (t, s, ledger = run.ledger) =>
      t.post({ type: 'status', run: run.run, status: { ...run.status, ...s }, ledger }),
  };
}

/** Once its first chart is there. */
export const drawn = async (t: TestPage): Promise<Page> => {
  await t.until("document.querySelector('#success .uplot canvas')");
  return t.page;
};
export const textOf = (t: TestPage, selector: string): Promise<string> =>
  t.page.evaluate<string>(`document.querySelector('${selector}')?.textContent ?? ''`);
/** The cursor of a chart. */
export const slider = (t: TestPage, name: string): ReturnType<Page['locator']> =>
  t.page.locator(`[role=slider][aria-label="${name}: cursor"]`);
