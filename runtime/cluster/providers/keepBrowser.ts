import type { Desktop, DesktopProvider, DesktopSpec, ProviderStatus } from '../types.js';
import { SandboxDesktop } from '../drivers/desktop.js';
import { browse, startBrowser } from '../drivers/browser.js';

/** Hides what a page showed, and takes the focus away; the page stays loaded for an episode of the same page. */
const BLANK = `document.documentElement.style.display='none',document.activeElement?.blur?.(),[devicePixelRatio,innerWidth,innerHeight].join()`;

/**
 * Desktops of an image that keeps its browser open. Between two leases the browser stays: it costs 0.5 to 2 s to start.
 * Instead its other pages and all other programs are closed, its storage is cleared and what it shows is hidden; where it
 * does not answer as it should, or its window has changed, the desktop is reset as any other and a new one is started.
 */
export class BrowserProvider implements DesktopProvider {
  readonly #inner: DesktopProvider;
  /** The window each browser began with. */
  readonly #windows = new WeakMap<Desktop, unknown>();

  constructor(inner: DesktopProvider) {
    this.#inner = inner;
  }

  get name(): DesktopProvider['name'] {
    return this.#inner.name;
  }
  get startsAtOnce(): number | undefined {
    return this.#inner.startsAtOnce;
  }
  status(): Promise<ProviderStatus> {
    return this.#inner.status();
  }

  async create(spec: DesktopSpec, signal?: AbortSignal): Promise<Desktop> {
    const d = await this.#inner.create(spec, signal);
    try {
      if (d instanceof SandboxDesktop) d.browse = (commands, o) => browse(d, commands, o);
      await this.#begin(d, signal);
      return d;
    } catch (e) {
      await this.#inner.destroy(d);
      throw e;
    }
  }

  async reset(d: Desktop): Promise<Desktop> {
    if (await this.#tidied(d)) return d;
    const fresh = await this.#inner.reset(d);
    await this.#begin(fresh);
    return fresh;
  }

  destroy(d: Desktop): Promise<void> {
    return this.#inner.destroy(d);
  }
  reap(): Promise<number> {
    return this.#inner.reap();
  }
  dispose(): Promise<void> {
    return this.#inner.dispose();
  }

  async #begin(d: Desktop, signal?: AbortSignal): Promise<void> {
    await startBrowser(d, signal);
    const shown = await browse(d, [{ run: BLANK }, { drawn: true }]);
    if ('ok' in shown) this.#windows.set(d, shown.ok[0]?.value);
    await d.settle();
  }

  async #tidied(d: Desktop): Promise<boolean> {
    if (!d.input || !this.#windows.has(d)) return false;
    await d.input([
      { type: 'release' },
      { type: 'move', x: Math.floor(d.screen.width / 2), y: Math.floor(d.screen.height / 2) },
    ]);
    const said = await browse(d, [{ tidy: true }, { run: BLANK }, { drawn: true }]);
    if (!('ok' in said) || said.ok[0]?.whole !== true || said.ok[1]?.value !== this.#windows.get(d)) return false;
    return (await d.settle()).settled;
  }
}
