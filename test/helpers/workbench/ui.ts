import type { Frame, Locator, Page } from './playwright.js';
import { PATIENCE_MS, came, until } from './workbench.js';

const isTitle = (row: string, title: string): boolean =>
  row.startsWith(title) && /^…?(,|$)/.test(row.slice(title.length));

/** All in one moment: a list that changes has other rows in the next. */
const labels = (rows: Locator): Promise<readonly string[]> =>
  rows.evaluateAll((all) => all.map((r) => r.getAttribute('aria-label') ?? ''));

/** Parts of the workbench as a person sees them; the selectors hold in VS Code 1.99 and 1.139. */
export class Ui {
  readonly page: Page;
  constructor(page: Page) {
    this.page = page;
  }

  /**
   * Runs a command from the palette by its title, with or without its dots. Enter runs what stands first, so it is
   * looked at: where a command is not known yet, the palette offers others whose titles are like it.
   */
  async palette(title: string): Promise<void> {
    const first = this.page.locator('.quick-input-list .monaco-list-row').first();
    let stands = 'nothing';
    const isFirst = async (): Promise<boolean> =>
      isTitle(
        (stands = ((await first.isVisible()) ? await first.getAttribute('aria-label') : null) ?? 'nothing'),
        title,
      );
    await until(async () => {
      await this.openPalette(title);
      if (!(await came(until(isFirst, 'it stands first', 2000)))) {
        // An open palette goes on showing the commands there were when its text was entered.
        await this.page.keyboard.press('Escape');
        return false;
      }
      // On a busy machine the key arrives long before its promise: given up early, the command would run twice.
      return came(this.#input.press('Enter', { timeout: 30_000 }));
    }, `the palette runs ${title}`).catch((e: unknown) => {
      throw new Error(`${String(e)}, first stood ${stands}`);
    });
  }
  get #input(): Locator {
    return this.page.locator('.quick-input-widget .quick-input-box input');
  }
  /** The titles the palette offers for a text, best first. */
  async offered(text: string): Promise<readonly string[]> {
    await this.openPalette(text);
    const titles = await this.picks();
    await this.page.keyboard.press('Escape');
    return titles;
  }
  /**
   * What still comes of the command before, a view that takes the focus, closes it again: then it is opened once more.
   */
  async openPalette(text: string): Promise<void> {
    await until(async () => {
      // With the focus in a page the key would go to the page.
      await this.page.locator('.part.titlebar').click({ position: { x: 5, y: 5 } });
      await this.page.keyboard.press('F1');
      try {
        await this.#input.fill(`>${text}`, { timeout: 5000 });
        await this.page.locator('.quick-input-list .monaco-list-row').first().waitFor({ timeout: 5000 });
        return true;
      } catch {
        return false;
      }
    }, `the palette is open for ${text}`);
  }
  async picks(): Promise<readonly string[]> {
    await this.page.locator('.quick-input-list .monaco-list-row').first().waitFor();
    return labels(this.page.locator('.quick-input-list .monaco-list-row'));
  }
  /** Chooses in a quick pick that is open, or will be; one with that title, where the one before may still stand. */
  async pick(label: string | RegExp, o: { readonly title?: string } = {}): Promise<void> {
    const all = this.page.locator('.quick-input-widget'),
      asks =
        o.title === undefined
          ? all
          : all.filter({ has: this.page.locator('.quick-input-title', { hasText: o.title }) });
    await asks.locator('.quick-input-list .monaco-list-row', { hasText: label }).first().click();
  }
  /** Closes a context menu; VS Code takes no key while it is opening. */
  async closeMenu(): Promise<void> {
    await until(async () => {
      await this.page.keyboard.press('Escape');
      return came(this.page.locator('.monaco-menu').first().waitFor({ state: 'hidden', timeout: 1000 }));
    }, 'the menu is closed');
  }
  /** Takes a question, found by its words, as it stands; the first key may come before the question listens. */
  async enter(words: string): Promise<void> {
    const asks = this.page.locator('.quick-input-widget', { hasText: words });
    await asks.waitFor();
    await until(async () => {
      await came(asks.locator('.quick-input-box input').press('Enter', { timeout: 5000 }));
      return came(asks.waitFor({ state: 'hidden', timeout: 2000 }));
    }, `${words} is answered`);
  }
  /** Presses a button of what is told. A toast leaves the screen after ten seconds, wherever one is by then. */
  async press(text: string | RegExp, button: string): Promise<void> {
    await until(
      async () => {
        const said = await this.told(text, 10_000);
        return came(
          (async () => {
            await said.hover({ timeout: 2000 });
            await said.getByRole('button', { name: button }).click({ timeout: 2000 });
          })(),
        );
      },
      `${button} is pressed of: ${String(text)}`,
    );
  }
  /** Shows the extension's container in the side bar. */
  async openContainer(): Promise<void> {
    const pane = this.page.locator('.part.sidebar .composite.title', { hasText: /DART Studio/i });
    await until(async () => {
      if (await pane.isVisible()) return true;
      // A badge lies over it while a run goes on, and takes the click as well. A window that comes back may have shown
      // the container meanwhile: then the click hides it.
      await came(
        this.page.locator('.activitybar [aria-label^="DART Studio"]').first().click({ force: true, timeout: 5000 }),
      );
      return came(pane.waitFor({ timeout: 5000 }));
    }, 'the side bar shows the container');
  }
  /** A section of the side bar by its heading. */
  section(title: string): Locator {
    return this.page.locator('.part.sidebar .pane', { has: this.page.locator(`.pane-header[aria-label^="${title}"]`) });
  }
  async expand(title: string): Promise<Locator> {
    const section = this.section(title),
      header = section.locator('.pane-header');
    await header.waitFor();
    if ((await header.getAttribute('aria-expanded')) === 'false') await header.click();
    return section;
  }
  async collapse(title: string): Promise<void> {
    const header = this.section(title).locator('.pane-header');
    await header.waitFor();
    if ((await header.getAttribute('aria-expanded')) === 'true') await header.click();
  }
  rows(title: string): Promise<readonly string[]> {
    return labels(this.section(title).locator('.monaco-list-row'));
  }
  /** Collects the labels of a section's rows from now on, those of a moment too; what it returns reads them. */
  async collectRows(title: string): Promise<() => Promise<readonly string[]>> {
    await this.page.evaluate(`(() => {
      const header = document.querySelector('.part.sidebar .pane-header[aria-label^=${JSON.stringify(title)}]'),
        pane = header.closest('.pane'),
        all = ((globalThis.collectedRows ??= {})[${JSON.stringify(title)}] = new Set()),
        look = () => {
          for (const row of pane.querySelectorAll('.monaco-list-row')) all.add(row.getAttribute('aria-label') ?? '');
        };
      look();
      new MutationObserver(look).observe(pane, { subtree: true, childList: true, attributeFilter: ['aria-label'] });
    })()`);
    return () => this.page.evaluate(`[...globalThis.collectedRows[${JSON.stringify(title)}]]`);
  }
  row(title: string, text: string | RegExp): Locator {
    return this.section(title).locator('.monaco-list-row', { hasText: text }).first();
  }

  get status(): Locator {
    return this.page.locator('.part.statusbar .statusbar-item[id^="dart-studio.dart-studio"]').first();
  }
  notification(text: string | RegExp): Locator {
    return this.page.locator('.notifications-toasts .notification-list-item', { hasText: text }).first();
  }
  /**
   * What is said, wherever it stands: VS Code shows no toast for the fourth notification within 0.8 s, and a test is
   * quicker than a person.
   */
  async told(text: string | RegExp, timeoutMs = 60_000): Promise<Locator> {
    const toast = this.notification(text),
      kept = this.page.locator('.notifications-center .notification-list-item', { hasText: text }).first(),
      bell = this.page.locator('.statusbar-item[id="status.notifications"] a');
    await until(
      async () => {
        if ((await toast.isVisible()) || (await kept.isVisible())) return true;
        const unread =
          (await this.page.locator('.statusbar-item[id="status.notifications"] .codicon-bell-dot').count()) > 0;
        if (unread && (await this.page.locator('.notifications-toasts.visible').count()) === 0)
          await bell.click({ timeout: 2000 }).catch(() => undefined);
        return false;
      },
      `it is said: ${String(text)}`,
      timeoutMs,
    );
    return (await toast.isVisible()) ? toast : kept;
  }
  async notificationTexts(): Promise<readonly string[]> {
    return this.page.locator('.notifications-toasts .notification-list-item-message').allInnerTexts();
  }
  dialog(): Locator {
    return this.page.locator('.monaco-dialog-box');
  }

  /**
   * The frame of the page of a kind (`body[data-page]`) that is shown; several of a kind: the one whose text matches.
   */
  async webview(kind: string, o: { readonly timeoutMs?: number; readonly text?: RegExp } = {}): Promise<Frame> {
    let found: Frame | undefined;
    await until(
      async () => {
        for (const f of this.page.frames()) {
          try {
            if (
              f.isDetached() ||
              // One whose script has not come is built anew, and its frame goes away.
              !(await f.evaluate<boolean>(
                `document.body?.dataset.page === ${JSON.stringify(kind)} && innerWidth > 0 && 'started' in document.documentElement.dataset`,
              ))
            )
              continue;
            if (o.text && !o.text.test(await f.evaluate<string>('document.body.innerText'))) continue;
            found = f;
            return true;
          } catch {
            /* the frame went away while we asked */
          }
        }
        return false;
      },
      `the ${kind} page is shown${o.text ? ` with ${String(o.text)}` : ''}`,
      o.timeoutMs,
    );
    return found!;
  }
}

/**
 * Waits in the page, frame by frame, until an expression of it holds. Playwright's own waiting needs `unsafe-eval`,
 * which our pages do not allow.
 */
export const when = (frame: Frame, condition: string, timeoutMs = PATIENCE_MS): Promise<void> =>
  frame.evaluate<void>(`(async () => {
  const end = performance.now() + ${timeoutMs};
  while (!(${condition})) { if (performance.now() > end) throw new Error('waited in vain: ' + ${JSON.stringify(condition)}); await new Promise((r) => requestAnimationFrame(r)); }
})()`);

/** Every picture of a page has come, or is known not to. */
export async function pictures(frame: Frame): Promise<void> {
  await until(
    () =>
      frame.evaluate<boolean>(
        "[...document.images].every((i) => i.complete) && !document.querySelector('[aria-busy=true]')",
      ),
    'the pictures have come',
  );
}

export interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly string[];
}
/** What axe finds wrong in a page of ours; `axe` is its source. */
export async function violations(frame: Frame, axe: string): Promise<readonly Violation[]> {
  await frame.evaluate(`${axe}; undefined`);
  return frame.evaluate<readonly Violation[]>(
    "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => ({ id: v.id, impact: v.impact, nodes: v.nodes.map((n) => n.target.join(' ') + ': ' + n.failureSummary) })))",
  );
}
