import type { Random, Size } from '../../../../domain/index.js';
import type { Check, SetupPlan, Template } from '../kit.js';
import { COMPACT, judgedBy, pickSome, place, setup } from '../kit.js';
import { enterText, finish, key } from '../moves.js';

/** The calculator, galculator. Results are read from the clipboard. */

const SIZE = { width: 326, height: 291 };
export const calculator = (r: Random, screen: Size): SetupPlan['start'][number] => {
  const at = place(r, screen, SIZE.width, SIZE.height);
  return { command: 'exec galculator', then: [`wmctrl -x -r galculator.Galculator -e 0,${at.x},${at.y},-1,-1`] };
};
export const clipboardIs = (text: string): Check => ({ command: 'timeout 5 xclip -o -selection clipboard 2>/dev/null', prints: text });

/** Two numbers of two digits, no digit twice: GTK drops a second press of one button within a quarter of a second. */
const numbers = (r: Random): [number, number] => { const [a, b, c, d] = pickSome(r, [1, 2, 3, 4, 5, 6, 7, 8, 9], 4) as [number, number, number, number]; return [10 * a + b, 10 * c + d]; };

export const calculatorTemplates: readonly Template[] = [
  {
    name: 'calc-copy', apps: ['galculator'], steps: 2,
    build(r, screen) {
      const [a, b] = numbers(r), times = r.int(3) === 0;
      const sum = times ? `${a}*${b}` : `${a}+${b}`, result = times ? a * b : a + b;
      return { instruction: `Calculate "${sum}" and copy the result to the clipboard.`, config: setup({ look: COMPACT, start: [calculator(r, screen)] }),
        evaluator: judgedBy(clipboardIs(String(result))), solve: [enterText(sum), key('ctrl+c'), finish], miss: [enterText(sum), finish] };
    },
  },
];
