/** What flows through finished runs share: the window, and how a person gets from one place of it to another. */
import { join } from 'node:path';
import type { Cockpit } from '../../helpers/workbench/cockpit.js';
import type { Given } from '../../helpers/workbench/given.js';
import type { Frame, Locator } from '../../helpers/workbench/playwright.js';
import { when } from '../../helpers/workbench/ui.js';
import { came, until } from '../../helpers/workbench/workbench.js';

export type Flow = (name: string, f: () => Promise<void>) => void;

export class RunsWindow {
  readonly c: Cockpit;
  readonly given: Given;
  constructor(c: Cockpit, given: Given) {
    this.c = c;
    this.given = given;
  }
  run(name: string): string {
    return join(this.c.w.folder, 'runs', name);
  }
  /** Rows of the Runs view, in one line each. */
  async rows(): Promise<readonly string[]> {
    const all = await this.c.ui.section('Runs').locator('.monaco-list-row').allInnerTexts();
    return all.map((r) => r.replace(/\s+/g, ' ').trim());
  }
  /** Of the two runs of one name, by seed. */
  row(seed: number): Locator {
    return this.c.ui.row('Runs', new RegExp(`seed ${seed}`));
  }
  async listed(): Promise<void> {
    await this.given.runtime();
    await this.given.sideBar();
  }
  /** The dashboard of a run, with its curves. */
  async dashboard(name: string): Promise<Frame> {
    await this.c.w.host.command('dartStudio.openDashboard', this.run(name));
    let page!: Frame;
    // The page of the flow before may be the one that is found, and be on its way out.
    const drawn = async (): Promise<boolean> => {
      page = await this.c.ui.webview('dashboard', { timeoutMs: 60_000 });
      return when(page, "document.querySelector('#success .uplot canvas')").then(
        () => true,
        () => !page.isDetached() && Promise.reject(new Error(`the dashboard of ${name} has no curve`)),
      );
    };
    await until(drawn, `the dashboard of ${name} is drawn`, 60_000);
    return page;
  }
  async table(name: string): Promise<Frame> {
    await this.c.w.host.command('dartStudio.openTrajectoryTable', this.run(name));
    const page = await this.c.ui.webview('table', { timeoutMs: 60_000 });
    await page.locator('.tb-top').waitFor();
    return page;
  }
  menuItem(title: string): Locator {
    return this.c.w.page.locator('.monaco-menu [role=menuitem]', { hasText: title }).first();
  }
  /** From the context menu of a row. VS Code takes no press for one while the menu is opening. */
  async act(row: Locator, title: string): Promise<void> {
    const { page } = this.c.w,
      menu = page.locator('.monaco-menu').first();
    await until(async () => {
      if (!(await menu.isVisible())) await row.click({ button: 'right', timeout: 5000 }).catch(() => undefined);
      const item = this.menuItem(title),
        seen = await came(item.waitFor({ timeout: 5000 }));
      if (!seen) return false;
      await item.click({ timeout: 5000 }).catch(() => undefined);
      return came(menu.waitFor({ state: 'hidden', timeout: 1000 }));
    }, `${title} is chosen`);
  }
  /** A run file joins the queue, once for each seed. */
  async enqueue(file: string, seeds: string): Promise<void> {
    const { page } = this.c.w;
    await this.c.ui.palette('DART Studio: Add to Queue');
    const row = page.locator('.quick-input-list .monaco-list-row', { hasText: file }).first();
    await row.waitFor();
    await row.click();
    await page.locator('.quick-input-widget .quick-input-action a', { hasText: 'OK' }).first().click();
    await this.answer('Seeds, such as', seeds);
  }
  /** A picker that is just opening does not hear the first key. */
  async closePicker(): Promise<void> {
    const { page } = this.c.w;
    await until(async () => {
      await page.keyboard.press('Escape');
      return !(await page.locator('.quick-input-widget').isVisible());
    }, 'the picker is closed');
  }
  get input(): Locator {
    return this.c.w.page.locator('.quick-input-widget .quick-input-box input');
  }
  /** Answers a question that asks for a text. */
  async answer(title: string, text: string): Promise<void> {
    await this.c.w.page.locator('.quick-input-widget', { hasText: title }).waitFor();
    await until(async () => {
      await this.input.fill(text);
      return (await this.input.inputValue()) === text;
    }, `${title} has its answer`);
    await this.input.press('Enter');
  }
}

export const textOf = (f: Frame, selector: string): Promise<string> =>
  f.evaluate<string>(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`);
/** Brings a part of a page into view and waits until it is drawn. */
export const goTo = (f: Frame, id: string, sign: string): Promise<void> =>
  when(f, `(document.getElementById('${id}')?.scrollIntoView(), document.querySelector('#${id} ${sign}'))`);
/** How many the table lists. */
export const counted = (f: Frame, words: string): Promise<void> =>
  when(f, `document.querySelector('.tb-top [role=status]')?.textContent === ${JSON.stringify(words)}`);
