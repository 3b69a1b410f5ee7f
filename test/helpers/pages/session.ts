import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PageKind } from '../../../webview/protocol.js';
import type { RealBrowser } from './browser.js';
import { bundle, TestPage, type Bundle, type OpenOptions } from './page.js';
import { FrameFolder } from './screens.js';

/**
 * What the tests of one kind of page share: its bundle, a folder of frames, and the page that is open, which must end
 * without a fault.
 */
export class PageSession {
  readonly #browser: RealBrowser['browser'];
  readonly #defaults: () => Omit<OpenOptions, 'folders'>;
  bundle!: Bundle;
  dir = '';
  frames!: FrameFolder;
  #open: TestPage | undefined;

  /** Within `describe`; `ready`, if it is given, runs once the folder is there. */
  constructor(
    { browser }: RealBrowser,
    kind: PageKind,
    defaults: () => Omit<OpenOptions, 'folders'>,
    ready?: (s: PageSession) => Promise<void>,
  ) {
    this.#browser = browser;
    this.#defaults = defaults;
    beforeAll(async () => {
      this.bundle = await bundle(kind);
      this.dir = await mkdtemp(join(tmpdir(), `${kind}-`));
      this.frames = new FrameFolder(this.dir);
      await ready?.(this);
    });
    afterEach(async () => {
      const faults = this.#open?.faults ?? [];
      await this.#open?.close();
      this.#open = undefined;
      expect(faults).toEqual([]);
    });
    afterAll(async () => {
      await browser.close();
      await rm(this.dir, { recursive: true, force: true });
    });
  }
  /** The page under test; one at a time is looked after. */
  async show(o: Partial<OpenOptions> = {}): Promise<TestPage> {
    return (this.#open = await TestPage.open(this.#browser, this.bundle, {
      ...this.#defaults(),
      folders: [this.dir],
      ...o,
    }));
  }
}
