import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DesktopInput } from '../../../runtime/cluster/types.js';
import type { Point } from '../../../runtime/domain/index.js';
import { heldAfter, modifiersOf, programOf, type Op, type Program } from '../../../runtime/tasks/program.js';

const screen = { width: 1280, height: 720 },
  /** As OSWorld's controller sends it. */
  sent = (code: string): string => `import pyautogui; import time; pyautogui.FAILSAFE = False; ${code}`,
  plain = (code: string, at: Point | undefined): Program | undefined => {
    const p = programOf(sent(code), screen, at);
    return p === 'pointer' ? undefined : p;
  },
  ops = (code: string, at = { x: 10, y: 20 }): readonly Op[] | undefined => plain(code, at)?.ops,
  /** Events in a line, to be read. */
  brief = (code: string, at?: { x: number; y: number }): string =>
    (ops(code, at) ?? [])
      .flatMap((o): readonly (string | DesktopInput)[] => (o.kind === 'sleep' ? [`sleep ${o.ms}`] : o.events))
      .map((e) => {
        if (typeof e === 'string') return e;
        switch (e.type) {
          case 'move':
            return `move ${e.x},${e.y}`;
          case 'button':
            return `${e.button} ${e.down ? 'down' : 'up'} ${e.x},${e.y}`;
          case 'wheel':
            return `wheel ${e.dx},${e.dy} ${e.x},${e.y}`;
          case 'key':
            return `${e.key} ${e.down ? 'down' : 'up'}`;
          case 'text':
            return `text ${JSON.stringify(e.text)}`;
          case 'release':
            return 'release';
        }
      })
      .join(' | ');

describe('pyautogui code as input events', () => {
  it.each([
    ['pyautogui.moveTo(5, 6)', 'move 5,6'],
    ['pyautogui.moveTo(5, 6, 0.5, pyautogui.easeInQuad)', 'move 5,6'],
    ['pyautogui.click(5, 6)', 'move 5,6 | left down 5,6 | left up 5,6'],
    ['pyautogui.click()', 'move 10,20 | left down 10,20 | left up 10,20'],
    [
      "pyautogui.click(5, 6, clicks=2, button='right')",
      'move 5,6 | right down 5,6 | right up 5,6 | right down 5,6 | right up 5,6',
    ],
    ['pyautogui.rightClick(5, 6)', 'move 5,6 | right down 5,6 | right up 5,6'],
    ['pyautogui.middleClick(x=5, y=6)', 'move 5,6 | middle down 5,6 | middle up 5,6'],
    ['pyautogui.scroll(-3)', 'wheel 0,3 10,20'],
    ['pyautogui.scroll(5, x=1, y=2)', 'wheel 0,-5 1,2'],
    ['pyautogui.hscroll(2)', 'wheel 2,0 10,20'],
    ['pyautogui.scroll(-50)', 'wheel 0,40 10,20 | wheel 0,10 10,20'],
    ["pyautogui.typewrite('don\\'t\\n', interval=0.02)", 'text "don\'t\\n"'],
    ["pyautogui.press('enter')", 'Enter down | Enter up'],
    ["pyautogui.press('<')", '< down | < up'],
    ["pyautogui.press(['left', 'pgdn'], presses=1)", 'ArrowLeft down | ArrowLeft up | PageDown down | PageDown up'],
    // How agents type what a keyboard has no key for.
    ["import pyperclip; pyperclip.copy('ünï'); pyautogui.hotkey('ctrl', 'v')", 'text "ünï"'],
    // OSWorld's controller sends this for `<` (issue 257).
    ["pyautogui.hotkey('shift', ',')", 'Shift down | < down | < up | Shift up'],
    [
      "pyautogui.keyDown('shift'); pyautogui.press('a'); pyautogui.keyUp('shift'); pyautogui.press('1')",
      'Shift down | A down | A up | Shift up | 1 down | 1 up',
    ],
    ["pyautogui.hotkey('ctrl', 'shift', 't')", 'Control down | Shift down | t down | t up | Shift up | Control up'],
    [
      "pyautogui.keyDown('shift'); pyautogui.click(1, 1); pyautogui.keyUp('shift')",
      'Shift down | move 1,1 | left down 1,1 | left up 1,1 | Shift up',
    ],
    ["pyautogui.keyDown('a'); pyautogui.keyUp('a')", 'a down | a up'],
    // Keys of a text are pressed with whatever is held.
    [
      "pyautogui.keyDown('shift'); pyautogui.typewrite('a1 \\n'); pyautogui.keyUp('shift'); pyautogui.write('a1')",
      'Shift down | A down | A up | ! down | ! up |   down |   up | Enter down | Enter up | Shift up | text "a1"',
    ],
    [
      "pyautogui.keyDown('ctrl'); pyautogui.write('ac'); pyautogui.keyUp('ctrl')",
      'Control down | a down | a up | c down | c up | Control up',
    ],
    ["pyautogui.keyDown('shift'); pyautogui.write(''); pyautogui.keyUp('shift')", 'Shift down | Shift up'],
    [
      "pyautogui.press('f5'); time.sleep(0.5); pyautogui.press('esc')",
      'F5 down | F5 up | sleep 500 | Escape down | Escape up',
    ],
    [
      'pyautogui.mouseDown(); pyautogui.moveTo(30, 40); pyautogui.mouseUp()',
      'left down 10,20 | move 30,40 | left up 30,40',
    ],
    ['pyautogui.moveTo(99999, -5)', 'move 1279,0'],
  ])('%s', (code, expected) => {
    expect(brief(code)).toBe(expected);
  });

  it('drags through the way between, and leaves the pointer at the end', () => {
    const p = plain("pyautogui.dragTo(90, 100, duration=1.0, button='left')", { x: 10, y: 20 })!,
      events = p.ops.flatMap((o) => (o.kind === 'input' ? o.events : []));
    expect(events[0]).toEqual({ type: 'button', button: 'left', down: true, x: 10, y: 20 });
    expect(events.at(-1)).toEqual({ type: 'button', button: 'left', down: false, x: 90, y: 100 });
    expect(events.length).toBeGreaterThan(5);
    expect(p.pointer).toEqual({ x: 90, y: 100 });
  });

  it.each([
    ['print(pyautogui.position())'],
    ['pyautogui.screenshot()'],
    ['pyautogui.locateOnScreen("a.png")'],
    ['x = 5\npyautogui.click(x, 5)'],
    ['for i in range(3): pyautogui.press("a")'],
    ["pyautogui.keyDown('a'); time.sleep(1); pyautogui.keyUp('a')"],
    ["pyautogui.keyDown('a')"],
    ["pyautogui.press('no such key')"],
    ['time.sleep(500)'],
    ["pyautogui.click(1, 2, button='seventh')"],
    ['pyautogui.click(1, 2, 10**9)'],
    ["pyautogui.press('a', presses=100000)"],
    ['import os; os.system("true")'],
    ["pyautogui.keyDown('ctrl'); pyautogui.scroll(5); pyautogui.keyUp('ctrl')"],
    ["pyautogui.keyDown('shift'); pyautogui.hscroll(5); pyautogui.keyUp('shift')"],
    ["pyautogui.keyDown('shift'); pyautogui.typewrite('aB'); pyautogui.keyUp('shift')"],
    ["pyautogui.keyDown('alt'); pyautogui.typewrite('é'); pyautogui.keyUp('alt')"],
    ["import pyperclip; pyautogui.keyDown('alt'); pyperclip.copy('a'); pyautogui.hotkey('ctrl', 'v')"],
    // Pressed by a Python before, as far as is known here.
    ["pyautogui.keyUp('ctrl')"],
    ["pyautogui.keyUp('a')"],
  ])('leaves %s to a real Python', (code) => {
    expect(ops(code)).toBeUndefined();
  });
  it('goes on with the modifiers that programs before it left down', () => {
    const held = (code: string, ...keys: string[]): ReturnType<typeof programOf> =>
        programOf(sent(code), screen, { x: 1, y: 1 }, { held: new Set(keys) }),
      events = (code: string, ...keys: string[]): DesktopInput[] | undefined => {
        const p = held(code, ...keys);
        return p === 'pointer' ? undefined : p?.ops.flatMap((o) => (o.kind === 'input' ? o.events : []));
      };
    expect(events("pyautogui.press('a')", 'Shift')?.[0]).toEqual({ type: 'key', key: 'A', down: true });
    expect(events("pyautogui.press('a')", 'Shift', 'Control')?.[0]).toMatchObject({ key: 'a' });
    expect(events("pyautogui.keyUp('shift')", 'Shift')).toEqual([{ type: 'key', key: 'Shift', down: false }]);
    expect(events("pyautogui.keyUp('shift'); pyautogui.scroll(1)", 'Shift')).toHaveLength(2);
    expect(events('pyautogui.scroll(1)', 'Shift')).toBeUndefined();
  });
  it('knows which modifiers are down after events, and after a Python has run calls', () => {
    const after = (code: string, ...keys: string[]): string[] => [...heldAfter(new Set(keys), modifiersOf(sent(code)))];
    expect(after("pyautogui.keyDown('ctrl'); pyautogui.scroll(5)")).toEqual(['Control']);
    expect(after("pyautogui.write('aB'); pyautogui.keyUp(key='shiftleft')", 'Shift', 'Alt')).toEqual(['Alt']);
    expect(after("pyautogui.keyDown('x'); pyautogui.keyDown(5); pyautogui.keyDown()", 'Alt')).toEqual(['Alt']);
    expect(after("for k in ['ctrl']: pyautogui.keyDown(k)", 'Alt')).toEqual(['Alt']);
  });
  it('leaves code without pyautogui, and a place that it cannot know, to others', () => {
    expect(programOf('print(1)', screen, undefined)).toBeUndefined();
    expect(programOf(sent('pyautogui.click()'), screen, undefined)).toBe('pointer');
    expect(plain('pyautogui.click(1, 2); pyautogui.click()', undefined)).toBeDefined();
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('has no key and no button named %s', (name) => {
    expect(plain(`pyautogui.press("${name}")`, { x: 0, y: 0 })).toBeUndefined();
    expect(plain(`pyautogui.click(1, 1, button="${name}")`, { x: 0, y: 0 })).toBeUndefined();
  });
  it('never throws, stays on the screen, and lets go of no button it does not hold', () => {
    const call = fc.oneof(
      fc
        .tuple(
          fc.constantFrom('click', 'moveTo', 'dragTo', 'mouseDown', 'mouseUp', 'scroll'),
          fc.integer(),
          fc.integer(),
        )
        .map(([f, x, y]) => `pyautogui.${f}(${x}, ${y})`),
      fc.string().map((s) => `pyautogui.write(${JSON.stringify(s)})`),
      fc.string().map((s) => `pyautogui.press(${JSON.stringify(s)})`),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(call, { maxLength: 6 }), (calls) => {
        const p = plain(calls.join('; '), { x: 0, y: 0 });
        for (const op of p?.ops ?? [])
          for (const e of op.kind === 'input' ? op.events : [])
            if ('x' in e) {
              expect(e.x >= 0 && e.x < screen.width && e.y >= 0 && e.y < screen.height).toBe(true);
              expect(Number.isInteger(e.x) && Number.isInteger(e.y)).toBe(true);
            }
      }),
      { numRuns: 500 },
    );
  });
});
