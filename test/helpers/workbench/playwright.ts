/**
 * The part of playwright-core's types that is used here: the package lives in the rig's folder, not among this
 * project's dependencies.
 */
export interface ClickOptions {
  readonly button?: 'left' | 'right';
  readonly modifiers?: readonly ('Control' | 'Shift' | 'Alt')[];
  readonly timeout?: number;
  readonly position?: { readonly x: number; readonly y: number };
  readonly force?: boolean;
}
interface Queries {
  locator(selector: string, o?: { readonly hasText?: string | RegExp; readonly has?: Locator }): Locator;
  getByRole(
    role: string,
    o?: { readonly name?: string | RegExp; readonly exact?: boolean; readonly includeHidden?: boolean },
  ): Locator;
  getByText(text: string | RegExp, o?: { readonly exact?: boolean }): Locator;
  getByLabel(text: string | RegExp): Locator;
}
export interface Locator extends Queries {
  first(): Locator;
  last(): Locator;
  nth(i: number): Locator;
  filter(o: { readonly hasText?: string | RegExp; readonly has?: Locator; readonly visible?: boolean }): Locator;
  click(o?: ClickOptions): Promise<void>;
  dblclick(o?: ClickOptions): Promise<void>;
  hover(o?: { readonly timeout?: number }): Promise<void>;
  focus(): Promise<void>;
  fill(text: string, o?: { readonly timeout?: number }): Promise<void>;
  press(key: string, o?: { readonly timeout?: number }): Promise<void>;
  selectOption(o: string | { readonly label: string }): Promise<readonly string[]>;
  waitFor(o?: {
    readonly state?: 'attached' | 'detached' | 'visible' | 'hidden';
    readonly timeout?: number;
  }): Promise<void>;
  innerText(): Promise<string>;
  textContent(): Promise<string | null>;
  allInnerTexts(): Promise<readonly string[]>;
  getAttribute(name: string): Promise<string | null>;
  inputValue(): Promise<string>;
  /** Of all that match, in one moment; the function runs in the page and sees nothing of here. */
  evaluateAll<R>(of: (all: readonly { getAttribute(name: string): string | null }[]) => R): Promise<R>;
  count(): Promise<number>;
  isVisible(): Promise<boolean>;
  all(): Promise<readonly Locator[]>;
  /** In pixels of the page, whatever frames it lies in. */
  boundingBox(): Promise<{
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  } | null>;
  screenshot(o: { readonly path: string }): Promise<Buffer>;
}
export interface FrameLocator extends Queries {
  frameLocator(selector: string): FrameLocator;
}
export interface Frame extends Queries {
  url(): string;
  name(): string;
  isDetached(): boolean;
  parentFrame(): Frame | null;
  childFrames(): readonly Frame[];
  /** Code as text: it runs in the page, where this project's types do not hold. */
  evaluate<R>(code: string): Promise<R>;
}
export interface Page extends Frame {
  readonly keyboard: {
    press(key: string): Promise<void>;
    type(text: string): Promise<void>;
    /** At once, as one input: a field that saves after a rest finds none within it. */
    insertText(text: string): Promise<void>;
    down(key: string): Promise<void>;
    up(key: string): Promise<void>;
  };
  readonly mouse: {
    move(x: number, y: number, o?: { readonly steps?: number }): Promise<void>;
    down(o?: { readonly button?: 'left' | 'middle' | 'right' }): Promise<void>;
    up(o?: { readonly button?: 'left' | 'middle' | 'right' }): Promise<void>;
    wheel(dx: number, dy: number): Promise<void>;
  };
  goto(url: string, o?: { readonly waitUntil?: 'load' | 'domcontentloaded' }): Promise<unknown>;
  reload(): Promise<unknown>;
  close(): Promise<void>;
  frames(): readonly Frame[];
  frameLocator(selector: string): FrameLocator;
  screenshot(o: { readonly path: string }): Promise<Buffer>;
  setDefaultTimeout(ms: number): void;
  exposeFunction(name: string, f: (m: unknown) => void): Promise<void>;
  on(event: 'console', listener: (m: { type(): string; text(): string }) => void): void;
  on(event: 'pageerror', listener: (e: Error) => void): void;
  on(event: 'request', listener: (r: { url(): string }) => void): void;
  mainFrame(): Frame;
  waitForEvent(event: 'request', o: AwaitedEvent<Request>): Promise<Request>;
  waitForEvent(event: 'framenavigated', o: AwaitedEvent<Frame>): Promise<Frame>;
  context(): BrowserContext;
}
export interface Request {
  url(): string;
  isNavigationRequest(): boolean;
  frame(): Frame;
}
interface AwaitedEvent<E> {
  readonly predicate: (e: E) => boolean;
  readonly timeout: number;
}
export interface CdpSession {
  send(method: string, params?: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
  detach(): Promise<void>;
}
export interface BrowserContext {
  grantPermissions(names: readonly string[]): Promise<void>;
  browser(): Browser | null;
  newPage(): Promise<Page>;
  /** Runs in each page before its own scripts. */
  addInitScript(script: string): Promise<void>;
  close(): Promise<void>;
  newCDPSession(page: Page | Frame): Promise<CdpSession>;
}
export interface Browser {
  newContext(o: {
    readonly viewport: { readonly width: number; readonly height: number };
    readonly reducedMotion?: 'reduce';
    readonly deviceScaleFactor?: number;
    /** Without a network. */
    readonly offline?: boolean;
  }): Promise<BrowserContext>;
  close(): Promise<void>;
}
export interface Chromium {
  launch(o: {
    readonly executablePath: string;
    readonly headless: boolean;
    readonly args: readonly string[];
    /** In place of this process's own. */
    readonly env?: NodeJS.ProcessEnv;
  }): Promise<Browser>;
}
