import type { Action, Modifier, Point } from '../domain/index.js';
import { liveKeyName } from '../domain/keysyms.js';
import { MODIFIER_KEYS, type TidyEvent } from './tidy.js';

/** Limits of the policy's actions, and where one action ends and the next begins; ms and pixels. */
export interface SegmentOptions {
  /** A press and release farther apart are a drag. Default 8, the toolkits' own threshold. */
  readonly dragPx?: number;
  /** Two clicks on one spot within this are a double click. Default 400. */
  readonly doubleMs?: number;
  /** Typing that rests for so long is complete. Default 1500. */
  readonly textMs?: number;
  /** The same for a burst of the wheel. Default 400. */
  readonly wheelMs?: number;
  /**
   * Enter within text: `end` when a typed text may only end with it (the embedded policy), else `inside`. Default
   * inside.
   */
  readonly enter?: 'end' | 'inside';
  /** Tab within text, or a key of its own. Default inside. */
  readonly tab?: 'own' | 'inside';
}
/** An action that is complete; `began` and `ended` on the clock of the events. */
export interface Cut {
  readonly action: Action;
  readonly began: number;
  readonly ended: number;
}

/** Typed alone, these are keys: they press a button, open a line, go on to the next field. */
const ALONE: ReadonlyMap<string, string> = new Map(Object.entries({ ' ': 'space', '\n': 'enter', '\t': 'tab' }));
/** Clicks that make one scroll action (domain/action.ts). */
const MOST_CLICKS = 20;
/** Pointer tremor between two clicks of one double click, or two wheel clicks of one burst. */
const SAME_SPOT_PX = 8;

type Making =
  | {
      readonly is: 'click';
      readonly at: Point;
      readonly modifiers: readonly Modifier[];
      readonly began: number;
      readonly ended: number;
    }
  | {
      readonly is: 'scroll';
      readonly at: Point;
      readonly axis: 'dx' | 'dy';
      readonly sign: 1 | -1;
      clicks: number;
      readonly began: number;
      ended: number;
    }
  | { readonly is: 'text'; text: string; readonly began: number; ended: number };
interface Pressed {
  readonly button: 'left' | 'right';
  readonly at: Point;
  readonly began: number;
  readonly modifiers: readonly Modifier[];
  /** The first click of what may be a double click. */
  readonly first: boolean;
  far: boolean;
}

/**
 * A person's events as the policy's own actions. Pure: fed events in order and asked from time to time; no clock of its
 * own.
 *
 * Approximations, where the policy has no word for what was done: a drag with the right button is a right click where
 * it began; a third click in a row is a click of its own; Backspace while typing takes back what was typed, as the text
 * that results is what counts.
 */
export class Segmenter {
  readonly #o: Required<SegmentOptions>;
  #making: Making | undefined;
  #pressed: Pressed | undefined;
  #pointer: Point | undefined;
  /** Modifiers held, in the order in which they went down; whether something was done with them. */
  readonly #held = new Map<Modifier, { readonly since: number; used: boolean }>();

  constructor(o: SegmentOptions = {}) {
    this.#o = { dragPx: 8, doubleMs: 400, textMs: 1500, wheelMs: 400, enter: 'inside', tab: 'inside', ...o };
  }

  /** Something is begun and not complete. */
  get busy(): boolean {
    return this.#making !== undefined || this.#pressed !== undefined;
  }

  /** The action that is being made, for people. */
  get doing(): string | undefined {
    const m = this.#making;
    if (this.#pressed)
      return this.#pressed.far && this.#pressed.button === 'left'
        ? 'drag'
        : `${this.#pressed.button === 'left' ? 'click' : 'right click'}`;
    if (!m) return undefined;
    return m.is === 'text'
      ? `typing ${JSON.stringify(m.text)}`
      : m.is === 'scroll'
        ? `scroll ${direction(m)} ${m.clicks}`
        : 'click';
  }

  /** When `due` should be asked again, if nothing comes before; on the clock of the events. */
  get deadline(): number | undefined {
    const m = this.#making;
    return m && !this.#pressed ? m.ended + this.#patience(m) : undefined;
  }

  /** Actions that are complete because no more input came. */
  due(now: number): Cut[] {
    const d = this.deadline;
    return d !== undefined && now >= d ? this.#finish() : [];
  }

  push(e: TidyEvent): Cut[] {
    const before = this.due(e.at);
    return [...before, ...this.#push(e)];
  }

  /** Everything begun is complete now; what is held counts as let go. */
  flush(now: number): Cut[] {
    const p = this.#pressed,
      up = p ? this.#up({ at: now, ...(p.far && this.#pointer ? this.#pointer : p.at) }) : [];
    this.#held.clear();
    return [...up, ...this.#finish()];
  }
  #push(e: TidyEvent): Cut[] {
    switch (e.type) {
      case 'move':
        this.#moved(e);
        return [];
      case 'button':
        this.#moved(e);
        return e.down ? this.#down(e) : this.#pressed?.button === e.button ? this.#up(e) : [];
      case 'wheel':
        return this.#wheel(e);
      case 'key':
        return this.#key(e);
      case 'text':
        return this.#text(e.text, e.at);
    }
  }

  #moved(p: Point): void {
    this.#pointer = { x: p.x, y: p.y };
    if (this.#pressed && distance(this.#pressed.at, p) > this.#o.dragPx) this.#pressed.far = true;
  }

  #down(e: { readonly at: number; readonly button: 'left' | 'right' } & Point): Cut[] {
    // A second button while one is down belongs to no action of ours: the first one's goes on.
    if (this.#pressed) return [];
    const at = { x: e.x, y: e.y },
      modifiers = this.#use(),
      m = this.#making;
    const again =
      e.button === 'left' && m?.is === 'click' && distance(m.at, at) <= SAME_SPOT_PX && same(m.modifiers, modifiers);
    const cuts = again ? [] : this.#finish();
    this.#pressed = { button: e.button, at, began: e.at, modifiers, first: !again, far: false };
    return cuts;
  }

  #up(e: { readonly at: number } & Point): Cut[] {
    const p = this.#pressed!,
      held = p.modifiers.length > 0 ? { modifiers: p.modifiers } : {},
      to = { x: e.x, y: e.y };
    this.#pressed = undefined;
    if (p.button === 'right')
      return [...this.#finish(), { action: { type: 'right_single', at: p.at, ...held }, began: p.began, ended: e.at }];
    if (p.far)
      return [...this.#finish(), { action: { type: 'drag', from: p.at, to, ...held }, began: p.began, ended: e.at }];
    const m = this.#making;
    if (!p.first && m?.is === 'click') {
      this.#making = undefined;
      return [{ action: { type: 'left_double', at: m.at, ...held }, began: m.began, ended: e.at }];
    }
    const cuts = this.#finish();
    this.#making = { is: 'click', at: p.at, modifiers: p.modifiers, began: p.began, ended: e.at };
    return cuts;
  }

  #wheel(e: { readonly at: number; readonly dx: number; readonly dy: number } & Point): Cut[] {
    this.#moved(e);
    this.#use();
    const axis = e.dy !== 0 ? ('dy' as const) : ('dx' as const),
      n = e[axis],
      sign = n < 0 ? (-1 as const) : (1 as const),
      m = this.#making;
    const cuts: Cut[] = [];
    if (!(m?.is === 'scroll' && m.axis === axis && m.sign === sign && distance(m.at, e) <= SAME_SPOT_PX))
      cuts.push(...this.#finish());
    for (let left = Math.abs(n); left > 0;) {
      const s = this.#making as Extract<Making, { is: 'scroll' }> | undefined;
      if (!s) {
        const take = Math.min(left, MOST_CLICKS);
        this.#making = { is: 'scroll', at: { x: e.x, y: e.y }, axis, sign, clicks: take, began: e.at, ended: e.at };
        left -= take;
        continue;
      }
      const take = Math.min(left, MOST_CLICKS - s.clicks);
      s.clicks += take;
      s.ended = e.at;
      left -= take;
      if (left > 0) cuts.push(...this.#finish());
    }
    return cuts;
  }

  #key(e: { readonly at: number; readonly key: string; readonly down: boolean }): Cut[] {
    const modifier = Object.hasOwn(MODIFIER_KEYS, e.key) ? MODIFIER_KEYS[e.key] : undefined;
    if (modifier) {
      if (e.down) {
        if (!this.#held.has(modifier)) this.#held.set(modifier, { since: e.at, used: false });
        return [];
      }
      const h = this.#held.get(modifier);
      this.#held.delete(modifier);
      // Tapped alone, these two do something: a menu opens.
      return h && !h.used && (modifier === 'alt' || modifier === 'super') && !this.#pressed
        ? [...this.#finish(), { action: { type: 'hotkey', keys: [modifier] }, began: h.since, ended: e.at }]
        : [];
    }
    if (!e.down) return [];
    const chord = [...this.#held.keys()].some((k) => k !== 'shift'),
      printable = [...e.key].length === 1;
    if (!chord && printable) {
      this.#use();
      return this.#text(e.key, e.at);
    }
    const m = this.#making,
      typing = m?.is === 'text' ? m : undefined,
      held = this.#use();
    if (typing && held.length === 0) {
      if (e.key === 'Enter') {
        if (this.#o.enter === 'inside') return this.#text('\n', e.at);
        typing.text += '\n';
        typing.ended = e.at;
        return this.#finish();
      }
      if (e.key === 'Tab' && this.#o.tab === 'inside') return this.#text('\t', e.at);
      if (e.key === 'Backspace' && !/[\n\t]$/.test(typing.text)) {
        typing.text = [...typing.text].slice(0, -1).join('');
        typing.ended = e.at;
        if (typing.text === '') this.#making = undefined;
        return [];
      }
    }
    const name = printable
      ? e.key === ' '
        ? 'space'
        : e.key.toLowerCase().length === e.key.length
          ? e.key.toLowerCase()
          : e.key
      : liveKeyName(e.key);
    if (name === undefined) return [];
    return [...this.#finish(), { action: { type: 'hotkey', keys: [...held, name] }, began: e.at, ended: e.at }];
  }

  #text(text: string, at: number): Cut[] {
    const cuts = this.#making?.is === 'text' ? [] : this.#finish();
    if (this.#o.enter === 'end' && text.includes('\n')) {
      // Each line is an action; an Enter with nothing before it is a key.
      const [line, ...rest] = text.split('\n');
      if (line !== '') this.#append(line!, at);
      const m = this.#making as Extract<Making, { is: 'text' }> | undefined;
      if (m) {
        m.text += '\n';
        m.ended = at;
        cuts.push(...this.#finish());
      } else cuts.push({ action: { type: 'hotkey', keys: ['enter'] }, began: at, ended: at });
      return rest.join('\n') === '' ? cuts : [...cuts, ...this.#text(rest.join('\n'), at)];
    }
    if (this.#o.tab === 'own' && text.includes('\t')) {
      const [part, ...rest] = text.split('\t');
      if (part !== '') this.#append(part!, at);
      cuts.push(...this.#finish(), { action: { type: 'hotkey', keys: ['tab'] }, began: at, ended: at });
      return rest.join('\t') === '' ? cuts : [...cuts, ...this.#text(rest.join('\t'), at)];
    }
    if (text !== '') this.#append(text, at);
    return cuts;
  }
  #append(text: string, at: number): void {
    const m = this.#making;
    if (m?.is === 'text') {
      m.text += text;
      m.ended = at;
    } else this.#making = { is: 'text', text, began: at, ended: at };
  }

  /** The modifiers held, now part of something. */
  #use(): Modifier[] {
    for (const h of this.#held.values()) h.used = true;
    return [...this.#held.keys()];
  }

  #patience(m: Making): number {
    return m.is === 'click' ? this.#o.doubleMs : m.is === 'scroll' ? this.#o.wheelMs : this.#o.textMs;
  }

  #finish(): Cut[] {
    const m = this.#making;
    this.#making = undefined;
    if (!m) return [];
    const at = { began: m.began, ended: m.ended };
    if (m.is === 'click')
      return [
        { action: { type: 'click', at: m.at, ...(m.modifiers.length > 0 ? { modifiers: m.modifiers } : {}) }, ...at },
      ];
    if (m.is === 'scroll')
      return [{ action: { type: 'scroll', at: m.at, direction: direction(m), amount: m.clicks }, ...at }];
    const key = ALONE.get(m.text);
    return [{ action: key ? { type: 'hotkey', keys: [key] } : { type: 'type', text: m.text }, ...at }];
  }
}

const direction = (m: { readonly axis: 'dx' | 'dy'; readonly sign: 1 | -1 }): 'up' | 'down' | 'left' | 'right' =>
  m.axis === 'dy' ? (m.sign < 0 ? 'up' : 'down') : m.sign < 0 ? 'left' : 'right';
const distance = (a: Point, b: Point): number => Math.max(Math.abs(a.x - b.x), Math.abs(a.y - b.y));
const same = (a: readonly Modifier[], b: readonly Modifier[]): boolean =>
  a.length === b.length && a.every((m) => b.includes(m));
