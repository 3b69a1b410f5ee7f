import { describe, expect, test } from 'vitest';
import type { Action } from '../../../runtime/domain/index.js';
import { CodeReader } from '../../../runtime/interchange/pyautoguiRead.js';
import { parseCalls } from '../../../runtime/domain/pyautogui/python.js';
import { Unusable } from '../../../runtime/interchange/types.js';

const screen = { width: 1920, height: 1080 };
const read = (code: string): Action[] => new CodeReader('absolute').read(code, screen);
const relative = (code: string): Action[] => new CodeReader('relative').read(code, screen);
const click = (x: number, y: number): Action => ({ type: 'click', at: { x, y } });

describe('recorded code is read as calls with plain values', () => {
  test('imports, comments, texts standing alone and semicolons are passed over', () => {
    expect(
      parseCalls(
        "import pyautogui\nimport time, pyperclip  # both\n'''\nObservation: a (b) 'c'\n'''\npyautogui.FAILSAFE = False; pyautogui.click(1, -2.5, button='left',); # end",
      ),
    ).toEqual([{ name: 'pyautogui.click', args: [1, -2.5], named: { button: 'left' } }]);
  });
  test('imports may be followed by actions on the same line, as OSWorld runs them, and name what they import', () => {
    const names = (code: string): string[] => parseCalls(code).map((c) => c.name);
    expect(read('import pyautogui; pyautogui.click(960, 540)')).toEqual([click(960, 540)]);
    expect(
      read('import pyautogui; import time; pyautogui.FAILSAFE = False; pyautogui.click(5, 6); time.sleep(1)'),
    ).toEqual([click(5, 6), { type: 'wait', ms: 1000 }]);
    expect(names('import pyautogui as p, time; p.click(1, 2); time.sleep(1)')).toEqual([
      'pyautogui.click',
      'time.sleep',
    ]);
    expect(names('from time import sleep as s # short\nfrom pyautogui import click, press\nclick(1, 2); s(1)')).toEqual(
      ['pyautogui.click', 'time.sleep'],
    );
  });
  test('Python texts: escapes, raw, joined, triple quoted', () => {
    const text = (s: string): unknown => parseCalls(`f(${s})`)[0]!.args[0];
    expect([
      text("'it\\'s'"),
      text('"a\\n\\t\\x41\\u00e9\\U0001F600"'),
      text("r'C:\\new'"),
      text("'a' \"b\"\n 'c'"),
      text("'''two\nlines'''"),
      text("'\\q'"),
      text("'\\101'"),
    ]).toEqual(["it's", 'a\n\tA\u00e9\u{1F600}', 'C:\\new', 'abc', 'two\nlines', '\\q', 'A']);
  });
  test.each([
    'x = 5',
    'for i in range(3):\n  pyautogui.click(1,2)',
    "f'{x}'",
    'pyautogui.click(x, y)',
    'import os',
    'import pyautogui; import os; os.system("id")',
    'import pyautogui as',
    'import pyautogui, os',
    'from pyautogui import *',
    'import os as pyautogui',
    'import',
    'from os import system',
    "__import__('os').system('id')",
    'pyautogui.click(1, 2',
    "pyautogui.write('open",
    'pyautogui.click(1)(2)',
    'pyautogui.click(1 + 1, 2)',
    'lambda: 0',
    'pyautogui.click(x=1, x=2)',
    `f(${'['.repeat(50)}${']'.repeat(50)})`,
    "pyautogui.write(b'x')",
    'pyautogui.click(1 2)',
    'with pyautogui.hold("shift"):\n  pass',
  ])('refuses %s', (code) => {
    expect(() => parseCalls(code)).toThrow(Unusable);
  });
});

describe('pyautogui as actions', () => {
  test.each<[string, Action[]]>([
    ['pyautogui.click(960.0, 540.4, button="left")', [click(960, 540)]],
    ['pyautogui.click((5, 6))', [click(5, 6)]],
    ['pyautogui.click(x=5, y=6, clicks=2, interval=0.1)', [{ type: 'left_double', at: { x: 5, y: 6 } }]],
    ['pyautogui.doubleClick(5, 6)', [{ type: 'left_double', at: { x: 5, y: 6 } }]],
    ["pyautogui.click(5, 6, button='right')", [{ type: 'right_single', at: { x: 5, y: 6 } }]],
    ['pyautogui.moveTo(1, 2)\npyautogui.click()', [click(1, 2)]],
    [
      'pyautogui.moveTo(1, 2)\n\npyautogui.dragTo(30, 40, duration=1.0)',
      [{ type: 'drag', from: { x: 1, y: 2 }, to: { x: 30, y: 40 } }],
    ],
    [
      'pyautogui.mouseDown(1, 2); pyautogui.moveTo(3, 4); pyautogui.mouseUp()',
      [{ type: 'drag', from: { x: 1, y: 2 }, to: { x: 3, y: 4 } }],
    ],
    ['pyautogui.mouseDown(1, 2); pyautogui.mouseUp()', [click(1, 2)]],
    ['pyautogui.scroll(-5, x=7, y=8)', [{ type: 'scroll', at: { x: 7, y: 8 }, direction: 'down', amount: 5 }]],
    ['pyautogui.hscroll(3, 7, 8)', [{ type: 'scroll', at: { x: 7, y: 8 }, direction: 'right', amount: 3 }]],
    [
      'pyautogui.scroll(45, 7, 8)',
      [20, 20, 5].map((amount) => ({ type: 'scroll', at: { x: 7, y: 8 }, direction: 'up', amount })),
    ],
    ["pyautogui.hotkey('ctrl', 'C')", [{ type: 'hotkey', keys: ['ctrl', 'c'] }]],
    ["pyautogui.hotkey(['ctrl', 'shift', 't'])", [{ type: 'hotkey', keys: ['ctrl', 'shift', 't'] }]],
    [
      "pyautogui.press('return', presses=2)",
      [
        { type: 'hotkey', keys: ['enter'] },
        { type: 'hotkey', keys: ['enter'] },
      ],
    ],
    [
      "pyautogui.press(['esc', 'winleft'])",
      [
        { type: 'hotkey', keys: ['escape'] },
        { type: 'hotkey', keys: ['super'] },
      ],
    ],
    ["pyautogui.press('A')", [{ type: 'hotkey', keys: ['shift', 'a'] }]],
    [
      "pyautogui.keyDown('ctrl')\npyautogui.click(1, 2)\npyautogui.click(3, 4)\npyautogui.keyUp('ctrl')",
      [
        { type: 'click', at: { x: 1, y: 2 }, modifiers: ['ctrl'] },
        { type: 'click', at: { x: 3, y: 4 }, modifiers: ['ctrl'] },
      ],
    ],
    [
      "pyautogui.keyDown('ctrl'); pyautogui.press('c'); pyautogui.keyUp('ctrl')",
      [{ type: 'hotkey', keys: ['ctrl', 'c'] }],
    ],
    [
      "pyautogui.keyDown('alt'); pyautogui.keyDown('f4'); pyautogui.keyUp('f4'); pyautogui.keyUp('alt')",
      [{ type: 'hotkey', keys: ['alt', 'f4'] }],
    ],
    ["pyautogui.keyDown('enter')\npyautogui.keyUp('enter')", [{ type: 'hotkey', keys: ['enter'] }]],
    [
      "pyautogui.typewrite('abc', interval=0.1)\ntime.sleep(0.5)\npyautogui.press('enter')",
      [
        { type: 'type', text: 'abc' },
        { type: 'wait', ms: 500 },
        { type: 'hotkey', keys: ['enter'] },
      ],
    ],
    ["import pyperclip\npyperclip.copy('h\u00e9')\npyautogui.hotkey('ctrl', 'v')", [{ type: 'type', text: 'h\u00e9' }]],
    ["pyautogui.hotkey('ctrl', 'v')", [{ type: 'hotkey', keys: ['ctrl', 'v'] }]],
    ['pyautogui.click(5000, -3)', [click(1919, 0)]],
    ['', []],
  ])('%s', (code, actions) => {
    expect(read(code)).toEqual(actions);
  });

  test('OpenCUA: shares of the screen, and its own calls', () => {
    expect(relative('pyautogui.click(x=0.5, y=0.25)')).toEqual([click(960, 270)]);
    expect(relative("computer.wait()\ncomputer.terminate(status='success', answer='42')")).toEqual([
      { type: 'wait' },
      { type: 'finished', answer: '42' },
    ]);
    expect(relative("computer.terminate(status='failure')")).toEqual([{ type: 'fail' }]);
    expect(relative("pyautogui.write(message='a, b')")).toEqual([{ type: 'type', text: 'a, b' }]);
    expect(() => relative('pyautogui.click(x=640, y=0.2)')).toThrow(/640 is not a share/);
  });
  test('a click or scroll without a place means where the pointer was left, also by an earlier step', () => {
    const r = new CodeReader('absolute');
    r.read('pyautogui.click(10, 20)', screen);
    expect(r.read('pyautogui.scroll(2)', screen)).toEqual([
      { type: 'scroll', at: { x: 10, y: 20 }, direction: 'up', amount: 2 },
    ]);
    expect(() => read('pyautogui.scroll(2)')).toThrow(/where the pointer is/);
  });
  test.each([
    ['pyautogui.moveTo(1, 2)', /hovering/],
    ['pyautogui.moveTo(1, 2); pyautogui.click(8, 9)', /hovering/],
    ['pyautogui.tripleClick(1, 2)', /tripleClick/],
    ['computer.triple_click(x=1, y=2)', /triple_click/],
    ["pyautogui.click(1, 2, button='middle')", /middle/],
    ['pyautogui.click(1, 2, 3)', /3 clicks/],
    ["pyautogui.keyDown('ctrl')", /stays down/],
    ["pyautogui.keyUp('ctrl')", /not pressed/],
    ['pyautogui.mouseDown(1, 2)', /stays down/],
    ['pyautogui.screenshot()', /screenshot/],
    ['pyautogui.mouseDown(1, 2); pyautogui.moveTo(3, 4); pyautogui.moveTo(9, 4); pyautogui.mouseUp()', /path/],
    ["pyautogui.keyDown('shift'); pyautogui.write('a'); pyautogui.keyUp('shift')", /key held/],
    ['time.sleep(600)', /at most 60/],
    ['pyautogui.press([], presses=1000)', /without keys/],
    ["pyautogui.press('a', presses=9007199254740991)", /pressed 9007199254740991 times; at most 200/],
    ["pyautogui.press(['a', 'b'], presses=101)", /pressed 202 times/],
    ["pyautogui.keyDown('a')\n".repeat(201), /more than 200 keys are held/],
    ['pyautogui.click(1, 2, 1, 0, "left", 0, 9)', /more arguments/],
    ['pyautogui.click(a=1)', /unknown argument/],
    ['os.system("x")', /no action here/],
    ['toString()', /no action here/],
    ["pyautogui.dragTo(1, 2, button='right')", /drag/],
  ])('says why it cannot use %s', (code, why) => {
    expect(() => read(code)).toThrow(why);
    expect(() => read(code)).toThrow(Unusable);
  });
});
