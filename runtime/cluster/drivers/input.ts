import type { Action, Modifier, Point } from '../../domain/index.js';
import { charKeysym, keyKeysym, typedChars } from '../../domain/keysyms.js';
import { SCROLL_DEFAULT, StudioError, waitMsOf } from '../../domain/index.js';
import { Keyboard, type KeyPlace } from './keyboard.js';
import { LiveInput } from './liveInput.js';
import { between, ServerClock } from './serverClock.js';
import { ButtonPress, ButtonRelease, KeyPress, KeyRelease, Motion, request, type X11Client } from './x11Client.js';

/** Waits until the desktop is idle, at most `maxMs`. No timer horizon: only work in progress counts. */
export type IdleWait = (maxMs: number) => Promise<void>;

export interface InputOptions {
  readonly idle: IdleWait;
  /** Two presses closer than this (ms) count as a double click for the toolkits of the desktop. */
  readonly doubleClickMs: number;
  readonly now?: () => number;
}

/**
 * Longest time between press and release. A click sent in one batch is lost on applications that set a grab at the
 * press (runtime/cluster/README.md#input), and on a loaded machine one may do so late. Usually it takes 1 ms; a long
 * press starts at 500.
 */
const GAP_MS = 200;
/** Half a double click must stay well inside the toolkits' limit (400), whatever the load. */
const DOUBLE_GAP_MS = 100;
/** A machine or a link that stands still between the presses, or is slow, makes two clicks of them: they are pressed again. */
const DOUBLE_TRIES = 3;
/**
 * How often it is asked whether a release was passed on, before the button is pressed again all the same, and how long is
 * waited between the first two; twice as long each time. The server sends no event for it.
 */
const RELEASE_TRIES = 5,
  RELEASE_MS = 5;
/** Keys per batch: few enough that a long text cannot flood an application. */
const BATCH = 48;
/** How long applications may take to process all keys before a spare keycode gets a new meaning. */
const REMAP_MS = 1000;
const WHEEL = { up: 4, down: 5, left: 6, right: 7 } as const;

/** The error for an action that ends an episode. */
export const endsEpisode = (a: Action): StudioError =>
  new StudioError(
    'policy.invalid',
    `"${a.type}" ends an episode and cannot be performed on a desktop.`,
    'End the episode instead.',
  );

/** Turns actions into synthetic input on one X server. Methods must not overlap. */
export class Input {
  readonly #x: X11Client;
  readonly #o: InputOptions;
  readonly #keyboard: Keyboard;
  readonly #clock: ServerClock;
  #lastClick: { at: Point; when: number } | undefined;
  /** Input event by event, as a person makes it. */
  readonly live: LiveInput;

  private constructor(x: X11Client, keyboard: Keyboard, o: InputOptions) {
    this.#x = x;
    this.#keyboard = keyboard;
    this.#clock = new ServerClock(x);
    this.#o = o;
    this.live = new LiveInput({
      x,
      keyboard,
      inside: (p) => this.#inside(p),
      type: (text) => this.#type(text),
      now: () => this.#now(),
      place: async (keysym) => (await this.#placesOf([keysym]))[0]!,
    });
  }

  static async create(x: X11Client, o: InputOptions): Promise<Input> {
    stopRepeat(x);
    const m = await x.keyboardMapping();
    return new Input(x, new Keyboard(x.minKeycode, m.perCode, m.keysyms), o);
  }

  async perform(a: Action): Promise<void> {
    switch (a.type) {
      case 'click':
        return this.#held(a.modifiers, () => this.#click(a.at, 1));
      case 'right_single':
        return this.#held(a.modifiers, () => this.#click(a.at, 3));
      case 'left_double':
        return this.#held(a.modifiers, () => this.#double(a.at));
      case 'drag':
        return this.#held(a.modifiers, () => this.#drag(a.from, a.to));
      case 'scroll':
        return this.#scroll(a.at, WHEEL[a.direction], a.amount ?? SCROLL_DEFAULT);
      case 'hotkey':
        return this.#hotkey(a.keys);
      case 'type':
        return this.#type(a.text);
      case 'wait':
        return sleep(waitMsOf(a));
      case 'finished':
      case 'fail':
        throw endsEpisode(a);
    }
  }

  async #click(at: Point, button: number): Promise<void> {
    const p = this.#inside(at);
    await this.#apart(p);
    this.#move(p);
    await this.#pressRelease(button, GAP_MS);
    this.#lastClick = { at: p, when: this.#now() };
  }

  async #double(at: Point): Promise<void> {
    const p = this.#inside(at);
    for (let tries = 1; tries <= DOUBLE_TRIES; tries++) {
      await this.#apart(p);
      this.#move(p);
      const gapMs = await this.#pressTwice(tries === 1 ? 0 : DOUBLE_GAP_MS);
      this.#lastClick = { at: p, when: this.#now() };
      if ((gapMs ?? 0) < this.#o.doubleClickMs) return;
    }
  }

  /**
   * Presses twice. With `pauseMs` the server pauses before each release, and no answer is waited for: over a slow link
   * an answer takes longer than the presses may be apart. Without it each release waits until the desktop is idle.
   * Resolves with how far apart the presses came: stamped after the first and before the second, so never more than
   * toolkits see.
   */
  async #pressTwice(pauseMs: number): Promise<number | undefined> {
    const wait = async (): Promise<void> => {
      if (pauseMs === 0) await this.#idle(DOUBLE_GAP_MS);
    };
    this.#x.fakeInput(ButtonPress, 1);
    const first = this.#clock.stamp();
    await wait();
    this.#x.fakeInput(ButtonRelease, 1, 0, 0, pauseMs); // with a pause it goes out together with the second press
    if (pauseMs === 0) await this.#released(1);
    const second = this.#clock.stamp();
    this.#x.fakeInput(ButtonPress, 1);
    await wait();
    this.#x.fakeInput(ButtonRelease, 1, 0, 0, pauseMs);
    await this.#x.sync();
    return between(first, second);
  }

  /** Waits, so that two single clicks on one spot do not become a double click. */
  async #apart(p: Point): Promise<void> {
    const last = this.#lastClick;
    if (!last || Math.abs(last.at.x - p.x) > 8 || Math.abs(last.at.y - p.y) > 8) return;
    const left = this.#o.doubleClickMs + 10 - (this.#now() - last.when);
    if (left > 0) await sleep(left);
  }

  /**
   * Whether applications have been told of a button's release, which is waited for a few times. A window manager that
   * grabs presses holds back what follows until it has looked at them, and the server drops a release that it passes on
   * while the button is down again: that click and the next would be one.
   */
  async #released(button: number): Promise<boolean> {
    const bit = 1 << (button - 1);
    for (let i = 0; i < RELEASE_TRIES; i++) {
      if (((await this.#x.pointer()).buttons & bit) === 0) return true;
      await this.#o.idle(GAP_MS);
      await sleep(RELEASE_MS << i);
    }
    return false;
  }

  async #pressRelease(button: number, gapMs: number): Promise<void> {
    this.#x.fakeInput(ButtonPress, button);
    await this.#idle(gapMs);
    this.#x.fakeInput(ButtonRelease, button);
    await this.#x.sync();
  }

  /** Moves in steps and lets the application respond to each, because drag and drop negotiates on the way. */
  async #drag(from: Point, to: Point): Promise<void> {
    const a = this.#inside(from),
      b = this.#inside(to);
    await this.#apart(a);
    this.#move(a);
    this.#x.fakeInput(ButtonPress, 1);
    await this.#idle(GAP_MS);
    const far = Math.max(Math.abs(b.x - a.x), Math.abs(b.y - a.y));
    const start = far > 0 ? Math.min(1, 12 / far) : 1; // past the toolkits' drag threshold of 8 pixels
    for (const t of far > 12 ? [start, 0.4, 0.7, 0.95, 1] : [1]) {
      this.#move({ x: Math.round(a.x + (b.x - a.x) * t), y: Math.round(a.y + (b.y - a.y) * t) });
      await this.#idle(GAP_MS);
    }
    this.#x.fakeInput(ButtonRelease, 1);
    await this.#x.sync();
    this.#lastClick = undefined;
  }

  async #scroll(at: Point, button: number, amount: number): Promise<void> {
    this.#move(this.#inside(at));
    let told = true;
    for (let i = 0; i < Math.min(Math.max(Math.round(amount), 1), 20); i++) {
      if (i > 0 && told) told = await this.#released(button);
      this.#x.fakeInput(ButtonPress, button);
      this.#x.fakeInput(ButtonRelease, button);
    }
    await this.#x.sync();
  }

  async #hotkey(keys: readonly string[]): Promise<void> {
    if (keys.length === 0)
      throw new StudioError(
        'policy.invalid',
        'A hotkey needs at least one key.',
        "Name the keys, for example ['ctrl', 's'].",
      );
    const places = await this.#placesOf(keys.map(keyKeysym));
    const down: number[] = [];
    for (const p of places) {
      for (const code of p.shift ? [this.#keyboard.shiftCode, p.code] : [p.code]) {
        if (down.includes(code)) continue;
        this.#x.fakeInput(KeyPress, code);
        down.push(code);
      }
    }
    await this.#idle(GAP_MS);
    for (const code of down.reverse()) this.#x.fakeInput(KeyRelease, code);
    await this.#x.sync();
  }

  async #type(text: string): Promise<void> {
    const parts = this.#planned(typedChars(text).map(charKeysym));
    const shift = this.#keyboard.shiftCode;
    for (const part of parts) {
      await this.#remap(part.remap);
      let held = false,
        n = 0;
      for (const k of part.keys) {
        if (k.shift !== held) {
          this.#x.fakeInput(k.shift ? KeyPress : KeyRelease, shift);
          held = k.shift;
        }
        this.#x.fakeInput(KeyPress, k.code);
        this.#x.fakeInput(KeyRelease, k.code);
        if (++n % BATCH === 0) await this.#x.sync();
      }
      if (held) this.#x.fakeInput(KeyRelease, shift);
      await this.#x.sync();
    }
  }

  async #held(modifiers: readonly Modifier[] | undefined, body: () => Promise<void>): Promise<void> {
    const places = modifiers?.length ? await this.#placesOf(modifiers.map(keyKeysym)) : [];
    for (const p of places) this.#x.fakeInput(KeyPress, p.code);
    try {
      await body();
    } finally {
      for (const p of [...places].reverse()) this.#x.fakeInput(KeyRelease, p.code);
    }
    if (places.length > 0) await this.#x.sync();
  }

  async #placesOf(keysyms: readonly number[]): Promise<readonly KeyPlace[]> {
    const parts = this.#planned(keysyms);
    if (parts.length > 1)
      throw new StudioError('policy.invalid', 'The chord has too many keys.', 'Use at most a few keys at once.');
    for (const p of parts) await this.#remap(p.remap);
    return parts[0]?.keys ?? [];
  }

  #planned(keysyms: readonly number[]): ReturnType<Keyboard['plan']> {
    try {
      return this.#keyboard.plan(keysyms);
    } catch (e) {
      throw new StudioError(
        'desktop.start',
        'The X server has no spare keycodes for characters outside its keyboard.',
        'Start it with the standard evdev or pc105 keyboard.',
        { cause: e },
      );
    }
  }

  async #remap(r: { codes: readonly number[]; keysyms: readonly number[] }): Promise<void> {
    if (r.codes.length === 0) return;
    await this.#idle(REMAP_MS);
    // Each request makes every application fetch the map again, so neighbouring codes share one.
    for (let i = 0, n; i < r.codes.length; i += n) {
      for (n = 1; r.codes[i + n] === r.codes[i]! + n;) n++;
      this.#x.changeKeyboardMapping(r.codes[i]!, r.keysyms.slice(i, i + n));
    }
    await this.#x.sync();
  }

  async #idle(maxMs: number): Promise<void> {
    await this.#x.sync();
    await this.#o.idle(maxMs);
  }
  #move(p: Point): void {
    this.#x.fakeInput(Motion, 0, p.x, p.y);
  }
  #now(): number {
    return this.#o.now?.() ?? performance.now();
  }

  #inside(p: Point): Point {
    if (!Number.isFinite(p.x) || !Number.isFinite(p.y))
      throw new StudioError('policy.invalid', 'The coordinates are not numbers.', 'Give x and y in screen pixels.');
    return {
      x: Math.min(Math.max(Math.round(p.x), 0), this.#x.width - 1),
      y: Math.min(Math.max(Math.round(p.y), 0), this.#x.height - 1),
    };
  }
}

/**
 * Keys that are held do not repeat (X protocol, ChangeKeyboardControl): a machine or a link may stand still before the
 * release, and a paste must not become fifteen.
 */
function stopRepeat(x: X11Client): void {
  const b = request(102, 0, 12);
  b.writeUInt32LE(0x80, 4); // auto-repeat-mode: Off, which is 0
  x.post(b);
}

const sleep = (ms: number): Promise<void> =>
  new Promise((r) => {
    setTimeout(r, ms);
  });
