import type { Size } from '../../../../domain/index.js';
import type { Check, Scene, SetupPlan, Template } from '../kit.js';
import { COMPACT, judgedBy, pickSome, place, setup } from '../kit.js';
import type { Move } from '../moves.js';
import { click, enterText, finish, key } from '../moves.js';

/** The calculator, galculator. Results are read from the clipboard. */

const SIZE = { width: 326, height: 291 };
export const calculator = (r: Scene, screen: Size): SetupPlan['start'][number] => {
  const at = place(r, screen, SIZE.width, SIZE.height);
  return { command: 'exec galculator', then: [`wmctrl -x -r galculator.Galculator -e 0,${at.x},${at.y},-1,-1`] };
};
export const clipboardIs = (text: string): Check => ({
  command: 'timeout 5 xclip -o -selection clipboard 2>/dev/null',
  prints: text,
});

/** Two numbers of two digits, no digit twice: GTK drops a second press of one button within a quarter of a second. */
export const numbers = (r: Scene): [number, number] => {
  const [a, b, c, d] = pickSome(r, [1, 2, 3, 4, 5, 6, 7, 8, 9], 4);
  return [10 * a + b, 10 * c + d];
};

export const calculatorTemplates: readonly Template[] = [
  {
    name: 'calc-copy',
    apps: ['galculator'],
    steps: 2,
    build(r, screen) {
      const [a, b] = numbers(r),
        times = r.int(3) === 0;
      const sum = times ? `${a}*${b}` : `${a}+${b}`,
        result = times ? a * b : a + b;
      return {
        instruction: `Calculate "${sum}" and copy the result to the clipboard.`,
        config: setup(r, { look: COMPACT, start: [calculator(r, screen)] }),
        evaluator: judgedBy(clipboardIs(String(result))),
        solve: [enterText(sum), key('ctrl+c'), finish],
        miss: [enterText(sum), finish],
      };
    },
  },
  {
    name: 'calc-click',
    apps: ['galculator'],
    steps: 5,
    build(r, screen) {
      const [a, b] = pickSome(r, [2, 3, 4, 5, 6, 7, 8, 9], 2),
        op = r.pick(['+', '-', '*'] as const),
        result = op === '+' ? a + b : op === '-' ? a - b : a * b;
      const press = (name: string): Move => click({ role: 'toggle button', name });
      return {
        instruction: `Use the calculator's buttons to work out "${a}${op}${b}", then copy the result.`,
        config: setup(r, { look: COMPACT, start: [calculator(r, screen)] }),
        evaluator: judgedBy(clipboardIs(String(result))),
        solve: [press(String(a)), press(op), press(String(b)), press('='), key('ctrl+c'), finish],
        miss: [press(String(a)), press(op), press(String(b)), key('ctrl+c'), finish],
      };
    },
  },
  {
    name: 'calc-click-long',
    apps: ['galculator'],
    steps: 6,
    heldout: true,
    build(r, screen) {
      const [a, b, c] = pickSome(r, [1, 2, 3, 4, 5, 6, 7, 8, 9], 3),
        op = r.pick(['+', '-'] as const),
        first = 10 * a + b,
        result = op === '+' ? first + c : first - c;
      const keys = [String(a), String(b), op, String(c), '='],
        press = keys.map((name) => click({ role: 'toggle button', name }));
      return {
        instruction: `Click the buttons for "${first}${op}${c}" on the calculator and copy the result.`,
        config: setup(r, { look: COMPACT, start: [calculator(r, screen)] }),
        evaluator: judgedBy(clipboardIs(String(result))),
        solve: [...press, key('ctrl+c'), finish],
        miss: [...press.slice(0, 4), key('ctrl+c'), finish],
      };
    },
  },
];
