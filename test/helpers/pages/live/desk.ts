/** A live page whose host keeps a control session: it answers what is asked and remembers the input. */
import type { ControlState, DesktopRow, InputEvent } from '../../../../runtime/protocol/types.js';
import type { Browser } from '../../workbench/playwright.js';
import { PATIENCE_MS } from '../../workbench/workbench.js';
import { TestPage, type Bundle, type OpenOptions } from '../page.js';
import { controlState } from './samples.js';

export class Desk {
  page!: TestPage;
  state: ControlState | undefined;
  desktops: DesktopRow[] = [
    {
      desktop: 'desktop-1',
      run: '/runs/demo',
      provider: 'docker',
      state: 'settle',
      since: 0,
      resets: 3,
      replaced: 0,
      rollout: 'r000102',
      task: 'desk/list-confirm#63',
      instruction: 'Choose “Melon” in the list and press OK.',
      step: 1,
      cap: 6,
      version: 24,
    },
  ];
  /** Batches of input as they came. */
  readonly batches: (readonly InputEvent[])[] = [];
  /** What a request does to the state; throw a HostError to refuse it. */
  readonly on: Record<string, (p: Readonly<Record<string, unknown>>) => unknown> = {};
  /** Set: input waits for an answer until it is called. */
  hold: { readonly answer: Promise<void>; go(): void } | undefined;

  static async open(
    browser: Browser,
    b: Bundle,
    o: Partial<OpenOptions> & { readonly state?: ControlState; readonly prepare?: (d: Desk) => void } = {},
  ): Promise<Desk> {
    const d = new Desk(),
      { state, prepare, ...rest } = o;
    d.state = state;
    prepare?.(d);
    d.page = await TestPage.open(browser, b, {
      input: { kind: 'live', desktop: 'desktop-1', ...(state ? { session: state.session } : {}) },
      folders: [],
      width: 1000,
      height: 800,
      answer: (m, p) => d.#answer(m, p),
      ...rest,
    });
    return d;
  }
  get input(): InputEvent[] {
    return this.batches.flat();
  }
  asked(method: string): Readonly<Record<string, unknown>>[] {
    return this.page.requests.filter((r) => r.method === method).map((r) => r.params);
  }
  /** The runtime says that it changed. */
  async push(o: Partial<ControlState>): Promise<void> {
    this.state = { ...(this.state ?? controlState()), ...o };
    await this.page.post({ type: 'control', state: this.state });
  }
  slow(): void {
    let go = (): void => undefined;
    const answer = new Promise<void>((r) => {
      go = r;
    });
    this.hold = {
      answer,
      go: () => {
        this.hold = undefined;
        go();
      },
    };
  }
  /** The whole picture, by one patch. JSON is what goes to the page: the typed array is made there. */
  async picture(png: string, width: number, height: number, x = 0, y = 0, screen = { width, height }): Promise<void> {
    await this.page.page.evaluate<void>(
      "{ const f = __fromHost; if (!f.bytes) { window.__fromHost = (m) => { window.boot = m.boot; f(typeof m.png === 'string' ? { ...m, png: Uint8Array.from(atob(m.png), (c) => c.charCodeAt(0)) } : m); }; __fromHost.bytes = true; } }",
    );
    await this.page.post({ type: 'screen', x, y, width, height, at: 1, screen, png: png as unknown as Uint8Array });
    await this.page.until(`document.querySelector('.live-canvas').width === ${screen.width}`);
  }
  /** Where the picture lies in the window, once what changed it is drawn: a zoom takes effect in the next frame. */
  rect(): Promise<{ readonly left: number; readonly top: number; readonly width: number; readonly height: number }> {
    return this.page.page.evaluate(
      "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))).then(() => (({ left, top, width, height }) => ({ left, top, width, height }))(document.querySelector('.live-canvas').getBoundingClientRect()))",
    );
  }
  /** The middle of a pixel of the screen, in the window. */
  async at(x: number, y: number): Promise<{ readonly x: number; readonly y: number }> {
    const r = await this.rect(),
      screen = this.state?.screen ?? { width: 640, height: 400 };
    return { x: r.left + ((x + 0.5) * r.width) / screen.width, y: r.top + ((y + 0.5) * r.height) / screen.height };
  }
  /** Clicks into the picture, so that the desktop has the keyboard, and forgets that input. */
  async capture(x = 5, y = 5): Promise<void> {
    const p = await this.at(x, y),
      { mouse } = this.page.page;
    await mouse.move(p.x, p.y);
    await mouse.down();
    await mouse.up();
    await this.page.until(
      "document.activeElement.classList.contains('live-sink') && document.querySelector('.live-box').classList.contains('captured')",
    );
    await this.settled((all) => all.some((e) => e.type === 'button' && !e.down));
    this.batches.length = 0;
  }
  /** The runtime says that it changed, and in the same moment a key is pressed on what has the focus. */
  async pushAndPress(o: Partial<ControlState>, key: string): Promise<void> {
    this.state = { ...this.state!, ...o };
    await this.page.page.evaluate<void>(
      `{ __fromHost({ type: 'control', boot, state: ${JSON.stringify(this.state)} }); document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: ${JSON.stringify(key)}, code: ${JSON.stringify(key)}, bubbles: true, cancelable: true })); }`,
    );
  }
  async settled(done: (all: readonly InputEvent[]) => boolean): Promise<void> {
    const end = Date.now() + PATIENCE_MS;
    while (!done(this.input)) {
      if (Date.now() > end) throw new Error(`that input never came: ${JSON.stringify(this.input)}`);
      await new Promise((r) => setTimeout(r, 10));
    }
  }

  async #answer(method: string, p: Readonly<Record<string, unknown>>): Promise<unknown> {
    const own = this.on[method];
    if (own) return own(p);
    switch (method) {
      case 'desktop/list':
        return { desktops: this.desktops };
      case 'control/input': {
        this.batches.push(p['events'] as InputEvent[]);
        await this.hold?.answer;
        return {};
      }
      case 'control/detach':
      case 'control/discard':
        return {};
      case 'control/takeOver':
        this.state = controlState({ mode: p['mode'] as 'human' | 'step' });
        return this.state;
      case 'control/mode':
        this.state = { ...this.state!, mode: p['mode'] as 'human' | 'policy' | 'step' };
        return this.state;
      case 'control/attach':
      case 'control/act':
      case 'control/dropStep':
      case 'control/accept':
      case 'control/finish':
      case 'control/keep':
        if (this.state) return this.state;
        break;
      default:
    }
    throw { kind: 'not.found', message: `Nothing is known of ${method}.`, remedy: '' };
  }
}
