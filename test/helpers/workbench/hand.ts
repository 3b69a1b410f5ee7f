import { deskSuite } from '../../../runtime/tasks/suites/desk/index.js';
import { id, type FamilyId } from '../../../runtime/domain/index.js';
import type { Frame, Page } from './playwright.js';
import { until } from './workbench.js';

/**
 * A person's hand on the live page: places of the desktop's screen as places of the browser's page, by real pointer and
 * key events.
 */
export class Hand {
  readonly #page: Page;
  readonly #frame: Frame;
  readonly #screen: { readonly width: number; readonly height: number };
  constructor(page: Page, frame: Frame, screen = { width: 640, height: 400 }) {
    this.#page = page;
    this.#frame = frame;
    this.#screen = screen;
  }

  async #at(x: number, y: number): Promise<{ readonly x: number; readonly y: number }> {
    const picture = this.#frame.locator('.live-canvas');
    // The session may be there before its first picture.
    await picture.waitFor();
    const box = await picture.boundingBox();
    if (!box) throw new Error('the picture is not shown');
    return {
      x: box.x + ((x + 0.5) * box.width) / this.#screen.width,
      y: box.y + ((y + 0.5) * box.height) / this.#screen.height,
    };
  }
  async click(x: number, y: number): Promise<void> {
    const at = await this.#at(x, y);
    await this.#page.mouse.move(at.x, at.y, { steps: 4 });
    await this.#page.mouse.down();
    await this.#page.mouse.up();
  }
  async type(text: string): Promise<void> {
    await this.#page.keyboard.type(text);
  }
  async press(key: string): Promise<void> {
    await this.#page.keyboard.press(key);
  }

  /** What the page says of the session, e.g. "You are in control". */
  word(): Promise<string> {
    return this.#frame.evaluate<string>("document.querySelector('.live-now h2')?.textContent ?? ''");
  }
  async waits(word: RegExp, timeoutMs = 60_000): Promise<void> {
    await until(async () => word.test(await this.word()), `the session is ${String(word)}`, timeoutMs);
  }
  steps(): Promise<readonly string[]> {
    return this.#frame.evaluate<readonly string[]>(
      "[...document.querySelectorAll('.live-steps li .words')].map((x) => x.textContent)",
    );
  }
  /** The seed of the task shown. */
  async seed(): Promise<number> {
    return Number(/seed (\d+)/.exec(await this.#frame.locator('.live-task').innerText())?.[1]);
  }
}

export interface Terminal {
  readonly title: string;
  readonly x: number;
  readonly y: number;
}
/**
 * The task "run a line in the one of two terminals that is titled so": what to click and what to type, from the task
 * itself.
 */
export function whichTerminal(seed: number): { readonly click: Terminal; readonly line: string } {
  const task = deskSuite().task(id<FamilyId>('desk/term-which'), seed),
    m = /Run "(.+)" in the one titled "(.+)"\./.exec(task.instruction)!;
  const windows = [...JSON.stringify(task.config).matchAll(/xterm -T (\w+) .*? -geometry \d+x\d+\+(\d+)\+(\d+)/g)].map(
    (w): Terminal => ({ title: w[1]!, x: Number(w[2]), y: Number(w[3]) }),
  );
  return { click: windows.find((w) => w.title === m[2])!, line: m[1]! };
}
