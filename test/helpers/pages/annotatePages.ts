import { beforeEach } from 'vitest';
import type { AnnotationOp, TrajectoryView } from '../../../runtime/protocol/types.js';
import type { PageInput } from '../../../webview/protocol.js';
import type { Page } from '../workbench/playwright.js';
import { FakeAnnotations } from './annotations.js';
import type { RealBrowser } from './browser.js';
import type { Answer, TestPage } from './page.js';
import { PageSession } from './session.js';
import { richPlans, view, type Plan } from './trajectories.js';

export const run = '/runs/demo',
  rollout = 'r-000102',
  input = { kind: 'inspector', run, rollout, annotate: true } as const satisfies PageInput;

export const ready = async (t: TestPage): Promise<Page> => {
  await t.page.locator('.ds-shot.selected').waitFor();
  await t.page.locator('.an-tools').waitFor();
  await t.until(
    "((i) => i?.src && i.complete)(document.querySelector('.ds-surface img')) && document.querySelector('.an-state')?.textContent.length > 0",
  );
  return t.page;
};
export const read = <R>(t: TestPage, code: string): Promise<R> => t.page.evaluate<R>(code);
export const on = (t: TestPage, n: number): Promise<void> =>
  t.until(
    `document.querySelector('.ds-detail h2')?.textContent.startsWith('Step ${n} ') && document.querySelector('.ds-shot.selected .ds-shot-number')?.textContent === '${n}'`,
  );
export const saved = (t: TestPage, n: number): Promise<void> =>
  t.until(`document.querySelector('.an-state')?.textContent === 'Saved, revision ${n}'`);
export const says = (t: TestPage, words: string): Promise<void> =>
  t.until(
    `[...document.querySelectorAll('[role=status].sr-only')].some((x) => x.textContent.includes(${JSON.stringify(words)}))`,
  );
export const goTo = async (t: TestPage, n: number): Promise<void> => {
  await t.page.locator('[role=listbox]').first().focus();
  await t.page.keyboard.press('Home');
  for (let i = 1; i < n; i++) await t.page.keyboard.press('ArrowRight');
  await on(t, n);
};
/** A gate that answers wait at. */
export const gate = (): { readonly wait: Promise<void>; open(): void } => {
  let open = (): void => undefined;
  const wait = new Promise<void>((r) => {
    open = r;
  });
  return { wait, open: () => open() };
};

export interface AnnotatePages {
  readonly show: PageSession['show'];
  readonly session: PageSession;
  /** The daemon's annotations, new for each test. */
  fake: FakeAnnotations;
  readonly pictures: Answer;
  readonly rich: TrajectoryView;
  readonly plans: Plan[];
  ops(): AnnotationOp[];
}
/** Within `describe`: the inspector in annotate mode, on a trajectory that has everything. */
export function annotatePages(browser: RealBrowser): AnnotatePages {
  let plans: Plan[], rich: TrajectoryView, fake: FakeAnnotations;
  const pictures: Answer = (method, p) => {
    if (method === 'frame/thumbnails') return session.frames.answer(p);
    throw { kind: 'not.found', message: `No ${method}.`, remedy: '' };
  };
  const session = new PageSession(
    browser,
    'inspector',
    () => ({ input, answer: fake.answer(pictures) }),
    async (s) => {
      plans = await richPlans(s.frames);
      rich = view(plans, s.dir, { outcome: 'failure' });
    },
  );
  beforeEach(() => {
    fake = new FakeAnnotations().add(rich);
    fake.known = ['loops', 'misread screen', 'popup'];
  });
  return {
    show: session.show.bind(session),
    session,
    pictures,
    ops: () => fake.ops(rollout),
    get fake() {
      return fake;
    },
    set fake(f) {
      fake = f;
    },
    get rich() {
      return rich;
    },
    get plans() {
      return plans;
    },
  };
}
