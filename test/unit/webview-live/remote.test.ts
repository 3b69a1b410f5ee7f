import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InputEvent } from '../../../runtime/protocol/types.js';
import { platformOf, RemoteKeys, type KeyOut, type KeyPress } from '../../../webview/ui/remoteKeys.js';
import { changedButtons, onScreen, WheelClicks } from '../../../webview/ui/remotePoint.js';
import { InputQueue } from '../../../webview/ui/remoteQueue.js';

const size = fc.record({ width: fc.integer({ min: 1, max: 3840 }), height: fc.integer({ min: 1, max: 2160 }) });

describe('the pointer on a remote screen', () => {
  it('every pixel is hit by its middle, at any scale and place', () => {
    fc.assert(
      fc.property(
        size,
        fc.double({ min: 0.1, max: 16, noNaN: true }),
        fc.double({ min: -9000, max: 9000, noNaN: true }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (screen, scale, left, fx, fy) => {
          const x = Math.floor(fx * screen.width),
            y = Math.floor(fy * screen.height),
            picture = { left, top: -left / 3, width: screen.width * scale, height: screen.height * scale };
          expect(
            onScreen({ x: picture.left + (x + 0.5) * scale, y: picture.top + (y + 0.5) * scale }, picture, screen),
          ).toEqual({ x, y, inside: true });
        },
      ),
    );
  });
  it('is always on the screen, and says when it was not on the picture', () => {
    fc.assert(
      fc.property(
        size,
        fc.integer({ min: -5000, max: 5000 }),
        fc.integer({ min: -5000, max: 5000 }),
        (screen, cx, cy) => {
          const p = onScreen({ x: cx, y: cy }, { left: 10, top: 20, width: 300, height: 200 }, screen);
          expect(p.x).toBeGreaterThanOrEqual(0);
          expect(p.x).toBeLessThan(screen.width);
          expect(p.y).toBeGreaterThanOrEqual(0);
          expect(p.y).toBeLessThan(screen.height);
          expect(p.inside).toBe(cx >= 10 && cx < 310 && cy >= 20 && cy < 220);
        },
      ),
    );
    expect(onScreen({ x: 5, y: 5 }, { left: 0, top: 0, width: 0, height: 0 }, { width: 10, height: 10 })).toEqual({
      x: 0,
      y: 0,
      inside: false,
    });
  });
  it('finds the buttons that changed, several at once', () => {
    expect(changedButtons(0, 1)).toEqual([{ button: 'left', down: true }]);
    expect(changedButtons(1, 6)).toEqual([
      { button: 'left', down: false },
      { button: 'right', down: true },
      { button: 'middle', down: true },
    ]);
    expect(changedButtons(8, 0)).toEqual([]);
  });
  it('counts wheel clicks: notches, lines and pages as they come, a touchpad added up', () => {
    const pixels = (deltaY: number, deltaX = 0): { deltaX: number; deltaY: number; deltaMode: number } => ({
        deltaX,
        deltaY,
        deltaMode: 0,
      }),
      w = new WheelClicks();
    expect(w.take(pixels(120))).toEqual({ dx: 0, dy: 1 });
    expect(w.take(pixels(-53))).toEqual({ dx: 0, dy: -1 });
    expect(w.take(pixels(300, -100))).toEqual({ dx: -1, dy: 3 });
    expect(w.take({ deltaX: 0, deltaY: 3, deltaMode: 1 })).toEqual({ dx: 0, dy: 1 });
    expect(w.take({ deltaX: 0, deltaY: -1, deltaMode: 2 })).toEqual({ dx: 0, dy: -3 });
    expect(w.take(pixels(1e6))).toEqual({ dx: 0, dy: 20 });
    let clicks = 0;
    for (let i = 0; i < 60; i++) clicks += w.take(pixels(10))?.dy ?? 0;
    expect(clicks).toBe(10);
    // 50 left over downwards count for nothing on the way up.
    for (let i = 0; i < 5; i++) expect(w.take(pixels(10))).toBeUndefined();
    for (let i = 0; i < 5; i++) expect(w.take(pixels(-10))).toBeUndefined();
    expect(w.take(pixels(-10))).toEqual({ dx: 0, dy: -1 });
  });
});

const press = (key: string, code = key, o: Partial<KeyPress> = {}): KeyPress => ({ key, code, composing: false, ...o });
const down = (key: string): KeyOut => ({ type: 'key', key, down: true }),
  up = (key: string): KeyOut => ({ type: 'key', key, down: false });

describe('the keyboard of a remote screen', () => {
  it('sends what a key makes, and lets go of that, whatever the modifiers are by then', () => {
    const k = new RemoteKeys('other');
    expect(k.down(press('Shift', 'ShiftLeft')).out).toEqual([]);
    expect(k.down(press('A', 'KeyA')).out).toEqual([down('Shift'), down('A')]);
    expect(k.up(press('Shift', 'ShiftLeft')).out).toEqual([up('Shift')]);
    expect(k.up(press('a', 'KeyA')).out).toEqual([up('A')]);
  });
  it('repeats a key that is held, and nothing that was pressed before it had the keyboard', () => {
    const k = new RemoteKeys('other');
    expect(k.down(press('k', 'KeyK', { repeat: true })).out).toEqual([]);
    expect(k.up(press('k', 'KeyK')).out).toEqual([]);
    k.down(press('a', 'KeyA'));
    expect(k.down(press('a', 'KeyA', { repeat: true })).out).toEqual([down('a')]);
  });
  it('Ctrl+Alt alone leaves without a trace, in any order; with a third key it is a shortcut of the desktop', () => {
    for (const order of [
      ['Control', 'Alt'],
      ['Alt', 'Control'],
    ] as const)
      for (const first of order) {
        const k = new RemoteKeys('other');
        for (const m of order) expect(k.down(press(m)).out).toEqual([]);
        expect(k.up(press(first))).toEqual({ out: [], leave: true });
        expect(k.release()).toEqual([]);
      }
    const k = new RemoteKeys('other');
    k.down(press('Control'));
    k.down(press('Alt'));
    expect(k.down(press('t', 'KeyT')).out).toEqual([down('Control'), down('Alt'), down('t')]);
    expect(k.up(press('t', 'KeyT'))).toEqual({ out: [up('t')], leave: false });
    expect(k.up(press('Alt'))).toEqual({ out: [up('Alt')], leave: false });
    expect(k.up(press('Control'))).toEqual({ out: [up('Control')], leave: false });
    k.down(press('Control'));
    k.down(press('Alt'));
    k.down(press('Shift'));
    expect(k.up(press('Alt')).leave).toBe(false);
  });
  it('a modifier that is pressed alone is pressed alone there', () => {
    const k = new RemoteKeys('other');
    k.down(press('Alt'));
    expect(k.up(press('Alt')).out).toEqual([down('Alt'), up('Alt')]);
  });
  it('sends held modifiers once, before the first click', () => {
    const k = new RemoteKeys('other');
    k.down(press('Control'));
    expect(k.used()).toEqual([down('Control')]);
    expect(k.used()).toEqual([]);
    expect(k.up(press('Control')).out).toEqual([up('Control')]);
  });
  it('leaves dead keys and input methods to the text they make, and AltGr and Caps Lock to the local layout', () => {
    const k = new RemoteKeys('windows');
    for (const p of [press('Dead', 'Backquote'), press('Process', 'KeyA'), press('a', 'KeyA', { composing: true })])
      expect(k.down(p)).toEqual({ out: [], handled: false });
    expect(k.down(press('CapsLock'))).toEqual({ out: [], handled: true });
    k.down(press('Control', 'ControlLeft'));
    k.down(press('AltGraph', 'AltRight'));
    expect(k.down(press('@', 'KeyQ')).out).toEqual([down('@')]);
    k.up(press('@', 'KeyQ'));
    expect(k.up(press('Control', 'ControlLeft'))).toEqual({ out: [], leave: false });
    // Elsewhere nobody made that Control up.
    const other = new RemoteKeys('other');
    other.down(press('Control'));
    other.down(press('AltGraph', 'AltRight'));
    expect(other.down(press('[', 'Digit8')).out).toEqual([down('Control'), down('[')]);
  });
  it('on a Mac: Option makes letters, and keys held under Command are let go with it', () => {
    const k = new RemoteKeys('mac');
    k.down(press('Alt'));
    expect(k.down(press('å', 'KeyA')).out).toEqual([down('å')]);
    k.up(press('å', 'KeyA'));
    expect(k.up(press('Alt')).out).toEqual([]);
    k.down(press('Meta'));
    k.down(press('c', 'KeyC'));
    expect(k.up(press('Meta')).out).toEqual([up('c'), up('Meta')]);
    expect([
      platformOf('Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15)'),
      platformOf('Mozilla/5.0 (Windows NT 10.0)'),
      platformOf('Mozilla/5.0 (X11; Linux x86_64)'),
    ]).toEqual(['mac', 'windows', 'other']);
  });
  it('nothing stays down: whatever was pressed is let go, and nothing else', () => {
    const codes = fc.constantFrom('KeyA', 'KeyB', 'Enter', 'Control', 'Alt', 'Shift', 'Meta', 'AltGraph', 'Dead');
    fc.assert(
      fc.property(
        fc.constantFrom('mac' as const, 'windows' as const, 'other' as const),
        fc.array(fc.tuple(codes, fc.boolean(), fc.boolean()), { maxLength: 60 }),
        (platform, events) => {
          const k = new RemoteKeys(platform),
            held = new Set<string>();
          const take = (out: readonly KeyOut[]): void => {
            for (const o of out) {
              if (o.down) held.add(o.key);
              else {
                expect(held.has(o.key)).toBe(true);
                held.delete(o.key);
              }
            }
          };
          for (const [code, isDown, upper] of events) {
            const key = code.startsWith('Key') ? (upper ? code[3]! : code[3]!.toLowerCase()) : code;
            if (isDown) take(k.down(press(key, code)).out);
            else take(k.up(press(key, code)).out);
          }
          take(k.release());
          expect([...held]).toEqual([]);
        },
      ),
    );
  });
});

/** Frames and answers by hand. */
class Rig {
  readonly sent: (readonly InputEvent[])[] = [];
  readonly lost: (readonly InputEvent[])[] = [];
  #frames: (() => void)[] = [];
  #answer: { ok: () => void; no: (e: Error) => void } | undefined;
  readonly queue = new InputQueue({
    send: (e) => {
      expect(this.#answer).toBeUndefined();
      this.sent.push(e);
      return new Promise<void>((ok, no) => {
        this.#answer = { ok, no };
      });
    },
    frame: (run) => void this.#frames.push(run),
    failed: (_e, lost) => void this.lost.push(lost),
  });
  frame(): void {
    for (const f of this.#frames.splice(0)) f();
  }
  async answer(error?: Error): Promise<void> {
    const a = this.#answer;
    this.#answer = undefined;
    if (error) a?.no(error);
    else a?.ok();
    await Promise.resolve();
    await Promise.resolve();
  }
  get flying(): boolean {
    return this.#answer !== undefined;
  }
}
const move = (x: number): InputEvent => ({ at: x, type: 'move', x, y: 0 }),
  button = (isDown: boolean, x = 0): InputEvent => ({ at: x, type: 'button', button: 'left', down: isDown, x, y: 0 }),
  key = (k: string): InputEvent => ({ at: 0, type: 'key', key: k, down: true });

describe('input on its way', () => {
  it('what is sent without waiting for a frame leaves behind what is under way, though no frame comes', async () => {
    const r = new Rig();
    r.queue.push(key('a'));
    r.frame();
    r.queue.push(button(false));
    r.queue.flush();
    expect(r.sent).toEqual([[key('a')]]);
    await r.answer();
    expect(r.sent).toEqual([[key('a')], [button(false)]]);
    // That was this once: what comes later goes by frames again.
    r.queue.push(key('b'));
    await r.answer();
    expect(r.sent).toHaveLength(2);
    r.frame();
    expect(r.sent).toHaveLength(3);
  });
  it('one batch per frame, one at a time; of moves the newest', async () => {
    const r = new Rig();
    r.queue.push(move(1));
    r.queue.push(move(2));
    r.queue.push(key('a'));
    r.queue.push(move(3));
    r.queue.push(move(4));
    expect(r.sent).toEqual([]);
    r.frame();
    expect(r.sent).toEqual([[move(2), key('a'), move(4)]]);
    r.queue.push(move(5));
    r.frame();
    r.queue.push(move(6));
    r.frame();
    expect(r.sent).toHaveLength(1);
    await r.answer();
    r.frame();
    expect(r.sent[1]).toEqual([move(6)]);
  });
  it('keeps the path of a drag, a point per frame', async () => {
    const r = new Rig();
    r.queue.push(button(true));
    r.frame();
    for (let i = 1; i <= 5; i++) {
      r.queue.push(move(10 * i - 1));
      r.queue.push(move(10 * i));
      r.frame();
    }
    r.queue.push(button(false, 50));
    await r.answer();
    r.frame();
    expect(r.sent[1]).toEqual([...[10, 20, 30, 40, 50].map(move), button(false, 50)]);
    await r.answer();
    expect(r.queue.idle).toBe(true);
  });
  it('thins a long path and keeps its ends', async () => {
    const r = new Rig();
    r.queue.push(button(true));
    r.frame();
    for (let i = 1; i <= 1000; i++) {
      r.queue.push(move(i));
      r.frame();
    }
    await r.answer();
    r.frame();
    const path = r.sent[1]!;
    expect(path.length).toBeLessThanOrEqual(64);
    expect([path[0], path.at(-1)]).toEqual([move(1), move(1000)]);
    expect(path.map((e) => e.at)).toEqual([...path.map((e) => e.at)].sort((a, b) => a - b));
  });
  it('waits until all has arrived, and says what was lost', async () => {
    const r = new Rig();
    let done = false;
    r.queue.push(key('a'));
    r.frame();
    r.queue.push(key('b'));
    void r.queue.drained().then(() => {
      done = true;
    });
    await r.answer();
    expect([done, r.sent.length]).toEqual([false, 2]);
    r.queue.push(key('c'));
    await r.answer(new Error('gone'));
    await Promise.resolve();
    expect(done).toBe(true);
    expect(r.lost).toEqual([[key('b'), key('c')]]);
    r.queue.push(key('d'));
    r.frame();
    expect(r.sent[2]).toEqual([key('d')]);
  });
  it('drops and reorders nothing but moves, however frames and answers fall', async () => {
    const event = fc.oneof(
      fc.constant('move'),
      fc.constant('key'),
      fc.constant('button'),
      fc.constant('frame'),
      fc.constant('answer'),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 120 }), async (steps) => {
        const r = new Rig(),
          wanted: InputEvent[] = [];
        let n = 0,
          isDown = false;
        for (const s of steps) {
          n++;
          if (s === 'frame') r.frame();
          else if (s === 'answer') await r.answer();
          else {
            const e = s === 'move' ? move(n) : s === 'key' ? { ...key(`k${n}`), at: n } : button((isDown = !isDown), n);
            r.queue.push(e);
            wanted.push(e);
          }
        }
        for (let i = 0; i < 200 && !r.queue.idle; i++) {
          r.frame();
          await r.answer();
        }
        const got = r.sent.flat(),
          still = (e: InputEvent): boolean => e.type !== 'move';
        expect(got.filter(still)).toEqual(wanted.filter(still));
        expect(got.map((e) => e.at)).toEqual([...got.map((e) => e.at)].sort((a, b) => a - b));
        // The last move before each thing done is where it was done.
        for (const [i, e] of wanted.entries())
          if (still(e) && wanted[i - 1]?.type === 'move') expect(got[got.indexOf(e) - 1]).toEqual(wanted[i - 1]);
      }),
    );
  });
});
