import type { TrajectoryView } from '../../../runtime/protocol/types.js';
import type { PageInput } from '../../../webview/protocol.js';
import type { Page } from '../workbench/playwright.js';
import type { RealBrowser } from './browser.js';
import type { Answer, TestPage } from './page.js';
import { PageSession } from './session.js';
import { richPlans, view, type Plan } from './trajectories.js';

export const input: PageInput = { kind: 'inspector', run: '/runs/demo', rollout: 'r-000102' };

export interface InspectorPages {
  readonly session: PageSession;
  readonly show: PageSession['show'];
  /** Answers with a trajectory, and with thumbnails of its screens. */
  served(v: () => TrajectoryView): Answer;
  /** Folder of the screens. */
  readonly dir: string;
  readonly plans: Plan[];
  /** A trajectory that has everything: what is shown where a test shows no other. */
  readonly rich: TrajectoryView;
}
/** Within `describe`: the inspector on made-up trajectories. */
export function inspectorPages(browser: RealBrowser): InspectorPages {
  let plans: Plan[], rich: TrajectoryView;
  const served =
    (v: () => TrajectoryView): Answer =>
    (method, p) => {
      if (method === 'trajectory/get') return v();
      if (method === 'frame/thumbnails') return session.frames.answer(p);
      throw { kind: 'not.found', message: `No ${method}.`, remedy: '' };
    };
  const session = new PageSession(
    browser,
    'inspector',
    () => ({ input, answer: served(() => rich) }),
    async (s) => {
      plans = await richPlans(s.frames);
      rich = view(plans, s.dir);
    },
  );
  return {
    session,
    show: session.show.bind(session),
    served,
    get dir() {
      return session.dir;
    },
    get plans() {
      return plans;
    },
    get rich() {
      return rich;
    },
  };
}

export const shown = async (t: TestPage): Promise<Page> => {
  await t.page.locator('.ds-shot.selected').waitFor();
  await t.until("((i) => i?.src && i.complete)(document.querySelector('.ds-surface img'))");
  return t.page;
};
/** Number of the step on show, wherever the page says it. */
export const on = (t: TestPage, n: number): Promise<void> =>
  t.until(
    `document.querySelector('.ds-detail h2')?.textContent.startsWith('Step ${n} ') && document.querySelector('.ds-shot.selected .ds-shot-number')?.textContent === '${n}' && document.querySelector('[role=slider]').getAttribute('aria-valuenow') === '${n}'`,
  );
export const read = <R>(t: TestPage, code: string): Promise<R> => t.page.evaluate<R>(code);
export const alt = (t: TestPage): Promise<string> => read(t, "document.querySelector('.ds-surface img')?.alt ?? ''");
