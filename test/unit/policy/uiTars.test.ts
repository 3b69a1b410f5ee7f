import { describe, expect, it } from 'vitest';
import type { Action } from '../../../runtime/domain/index.js';
import { fromScreen, smartResize, toScreen } from '../../../runtime/policy/actions/coordinates.js';
import { GrammarError, parseAnswer } from '../../../runtime/policy/actions/parse.js';
import { boxCentre, formatAnswer, parseActions } from '../../../runtime/policy/actions/uiTars.js';

const c = { mode: 'relative1000' as const, screen: { width: 1000, height: 1000 } };
const one = (call: string): Action => {
  const r = parseActions(`Action: ${call}`, c).actions;
  expect(r.length).toBe(1);
  return r[0]!;
};
const text = (call: string): string => {
  const a = one(call);
  return a.type === 'type' ? a.text : expect.unreachable();
};

describe('UI-TARS answers', () => {
  it('splits thought and action', () => {
    expect(parseActions("Thought: I click Save.\nIt is there.\nAction: click(start_box='(10,20)')", c)).toEqual({
      thought: 'I click Save.\nIt is there.',
      actions: [{ type: 'click', at: { x: 10, y: 20 } }],
    });
    expect(parseActions('Action\uff1await()', c)).toEqual({ actions: [{ type: 'wait' }] });
    expect(parseActions('wait()', c)).toEqual({ actions: [{ type: 'wait' }] });
    expect(parseActions('Reflection: wrong button\nAction_Summary: try again\nAction: wait()', c)).toEqual({
      reflection: 'wrong button',
      thought: 'try again',
      actions: [{ type: 'wait' }],
    });
    expect(parseActions('Action_Summary: look\nAction: wait()', c)).toMatchObject({ thought: 'look' });
    expect(parseActions('I just say so.\nAction: wait()<|im_end|>\n', c)).toEqual({
      thought: 'I just say so.',
      actions: [{ type: 'wait' }],
    });
  });
  it('finds the action when the thought or a text speaks of actions', () => {
    expect(parseActions("Thought: The last Action: click(start_box='(1,1)') failed.\nAction: wait()", c)).toEqual({
      thought: "The last Action: click(start_box='(1,1)') failed.",
      actions: [{ type: 'wait' }],
    });
    expect(parseActions("Thought: x\nAction: finished(content='Action: none')", c).actions).toEqual([
      { type: 'finished', answer: 'Action: none' },
    ]);
  });
  it('reads several actions', () => {
    const r = parseActions(
      "Action: click(start_box='(1,2)')\n\ntype(content='a\n\nb')\nhotkey(key='enter'); wait()",
      c,
    );
    expect(r.actions).toEqual([
      { type: 'click', at: { x: 1, y: 2 } },
      { type: 'type', text: 'a\n\nb' },
      { type: 'hotkey', keys: ['enter'] },
      { type: 'wait' },
    ]);
  });

  it.each([
    "'(100,200)'",
    "'<|box_start|>(100,200)<|box_end|>'",
    '"[100, 200]"',
    "'[50, 100, 150, 300]'",
    "'(50,100,150,300)'",
    "'<point>100 200</point>'",
    "'<bbox>50 100 150 300</bbox>'",
    "'100 200'",
    '(100, 200)',
    '[50, 100, 150, 300]',
    '<|box_start|>(100,200)<|box_end|>',
    "'(100.0, 200.0)'",
    '<point>100 200</point>',
  ])('reads the box %s', (box) => {
    expect(one(`click(start_box=${box})`)).toEqual({ type: 'click', at: { x: 100, y: 200 } });
    expect(one(`click(point=${box})`)).toEqual({ type: 'click', at: { x: 100, y: 200 } });
  });
  it.each(
    ['(abc,200)', '(1,2,3)', '100', '', '(1,2', '1,2,3,4,5', '<point>1</point>']
      .slice(0, 4)
      .concat(['1,2,3,4,5', '<point>1</point>']),
  )('refuses the box "%s"', (box) => {
    expect(boxCentre(box)).toBeUndefined();
    expect(() => one(`click(start_box='${box}')`)).toThrow(GrammarError);
  });

  it('decodes escapes and keeps what only looks like an end', () => {
    expect(text(String.raw`type(content='it\'s, ok')`)).toBe("it's, ok");
    expect(text(String.raw`type(content="don't, stop")`)).toBe("don't, stop");
    expect(text(String.raw`type(content='it's ok')`)).toBe("it's ok");
    expect(text(String.raw`type(content='say 'hi' (now), please')`)).toBe("say 'hi' (now), please");
    expect(text(String.raw`type(content='f('x')')`)).toBe("f('x')");
    expect(text(String.raw`type(content='a\nb\tc\\n\q\x41\u00e9')`)).toBe('a\nb\tc\\n\\qA\u00e9');
    expect(text(String.raw`type(content='hello\n')`)).toBe('hello\n');
    expect(text("type(content='')")).toBe('');
    expect(text("type(content='real\nline')")).toBe('real\nline');
    expect(text("type(content='\u4f60\u597d \ud83d\ude00')")).toBe('\u4f60\u597d \ud83d\ude00');
  });

  it('knows every action and its dialects', () => {
    const p = { x: 1, y: 2 },
      q = { x: 3, y: 4 };
    expect(one("left_single(start_box='(1,2)')")).toEqual({ type: 'click', at: p });
    expect(one("left_double(point='<point>1 2</point>')")).toEqual({ type: 'left_double', at: p });
    expect(one("right_single(start_box='(1,2)', modifiers='ctrl shift')")).toEqual({
      type: 'right_single',
      at: p,
      modifiers: ['ctrl', 'shift'],
    });
    expect(one("drag(start_point='<point>1 2</point>', end_point='<point>3 4</point>')")).toEqual({
      type: 'drag',
      from: p,
      to: q,
    });
    expect(one("select(start_box='(1,2)', end_box='(3,4)')")).toEqual({ type: 'drag', from: p, to: q });
    expect(one("scroll(start_box='(1,2)', direction='Left')")).toEqual({ type: 'scroll', at: p, direction: 'left' });
    expect(one("scroll(direction='down', amount='3')")).toEqual({
      type: 'scroll',
      at: { x: 500, y: 500 },
      direction: 'down',
      amount: 3,
    });
    expect(one("hotkey(key='ctrl c')")).toEqual({ type: 'hotkey', keys: ['ctrl', 'c'] });
    expect(one("hotkey(hotkey='Ctrl+Shift+ArrowLeft')")).toEqual({ type: 'hotkey', keys: ['ctrl', 'shift', 'left'] });
    expect(one("hotkey(key='ctrl + +')")).toEqual({ type: 'hotkey', keys: ['ctrl', '+'] });
    // refused where it is pressed, in words
    expect(one("hotkey(key='constructor')")).toEqual({ type: 'hotkey', keys: ['constructor'] });
    expect(one("press(key=' ')")).toEqual({ type: 'hotkey', keys: ['space'] });
    expect(one('finished()')).toEqual({ type: 'finished' });
    expect(one("finished(content='42')")).toEqual({ type: 'finished', answer: '42' });
    expect(one('call_user()')).toEqual({ type: 'fail' });
    expect(one('error_env()')).toEqual({ type: 'fail' });
    expect(one("wait(seconds='2')")).toEqual({ type: 'wait', ms: 2000 });
  });

  it.each([
    ['', 0],
    ['hello', 5],
    ['Thought: no action here', 23],
    ['Action: ', 7],
    ['Action: click', 13],
    ["Action: click(start_box='(1,2)'", 31],
    ["Action: click(start_box='(1,2)", 24],
    ["Action: click(start_box '(1,2)')", 24],
    ['Action: click()', 8],
    ["Action: fly(start_box='(1,2)')", 8],
    ['Action: click(start_box=)', 24],
    ["Action: click(start_box='x')", 24],
    ["Action: scroll(start_box='(1,2)', direction='in')", 44],
    ["Action: hover(start_box='(1,2)')", 8],
    ['Action: toString()', 8],
    ["Action: drag(start_box='(1,2)')", 8],
    ["Action: hotkey(key='')", 19],
    ["Action: click(start_box='(1,2)', modifiers='hyper')", 43],
    ['Action: wait() and then', 15 + 4],
    ['Action: 1()', 8],
  ])('says where %j does not fit', (s, position) => {
    try {
      parseActions(s, c);
      expect.unreachable();
    } catch (e) {
      expect(e).toBeInstanceOf(GrammarError);
      expect((e as GrammarError).kind).toBe('policy.invalid');
      expect((e as GrammarError).position).toBe(position);
      expect((e as GrammarError).error.details).toMatchObject({ position, text: s });
    }
  });
  it('keeps argument positions', () => {
    expect(parseAnswer("Action: type(content='x')").calls).toEqual([
      { name: 'type', at: 8, args: [{ name: 'content', value: 'x', at: 21 }] },
    ]);
  });
  it('formats in canonical form', () => {
    expect(
      formatAnswer(
        {
          thought: 'Go.',
          actions: [
            { type: 'click', at: { x: 1, y: 2 } },
            { type: 'type', text: "it's\n" },
          ],
        },
        { ...c, boxTokens: true },
      ),
    ).toBe("Thought: Go.\nAction: click(start_box='<|box_start|>(1,2)<|box_end|>')\n\ntype(content='it\\'s\\n')");
  });
});

describe('coordinates', () => {
  it('resizes as Qwen2.5-VL does', () => {
    const cases: [number, number, number, number][] = [
      [1920, 1080, 1932, 1092],
      [1280, 720, 1288, 728],
      [1280, 800, 1288, 812],
      [1366, 768, 1372, 756],
      [1024, 768, 1036, 756],
      [798, 602, 784, 616],
      [640, 400, 644, 392],
    ];
    for (const [w, h, rw, rh] of cases)
      expect(smartResize({ width: w, height: h }), `${w}x${h}`).toEqual({ width: rw, height: rh });
    expect(() => smartResize({ width: 20_001, height: 100 })).toThrow(RangeError);
  });
  it('keeps the pixels of a resized picture within the limits', () => {
    const small = smartResize({ width: 100, height: 80 }),
      large = smartResize({ width: 8000, height: 4000 });
    expect(small.width * small.height).toBeGreaterThanOrEqual(78_400);
    expect(large.width * large.height).toBeLessThanOrEqual(12_845_056);
    expect([small.width % 28, small.height % 28, large.width % 28, large.height % 28]).toEqual([0, 0, 0, 0]);
  });
  it('converts each mode to screen pixels', () => {
    const screen = { width: 1920, height: 1080 };
    expect(toScreen('relative1000', { x: 500, y: 500 }, screen)).toEqual({ x: 960, y: 540 });
    expect(toScreen('qwen25', { x: 966, y: 546 }, screen)).toEqual({ x: 960, y: 540 });
    expect(toScreen('relative999', { x: 999, y: 0 }, screen)).toEqual({ x: 1919, y: 0 });
    expect(toScreen('relative1', { x: 0.25, y: 0.5 }, screen)).toEqual({ x: 480, y: 540 });
    expect(toScreen('absolute', { x: 7, y: 8 }, screen)).toEqual({ x: 7, y: 8 });
    expect(toScreen('absolute', { x: -7, y: 8000 }, screen)).toEqual({ x: 0, y: 1079 });
    expect(fromScreen('qwen25', { x: 960, y: 540 }, screen)).toEqual({ x: 966, y: 546 });
  });
});
