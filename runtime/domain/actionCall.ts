import type { Action, Modifier, Point } from './action.js';

const quote = (s: string): string =>
  `'${s.replace(/\\/g, '\\\\').replace(/'/g, "\\'").replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}'`;
const held = (m: readonly Modifier[] | undefined): string => (m?.length ? `, modifiers='${m.join(' ')}'` : '');

/** An action as a call of UI-TARS's grammar; `box` writes a point, quoted, in the coordinates wanted. */
export function actionCall(a: Action, box: (p: Point) => string): string {
  switch (a.type) {
    case 'click':
    case 'left_double':
    case 'right_single':
      return `${a.type}(start_box=${box(a.at)}${held(a.modifiers)})`;
    case 'drag':
      return `drag(start_box=${box(a.from)}, end_box=${box(a.to)}${held(a.modifiers)})`;
    case 'scroll':
      return `scroll(start_box=${box(a.at)}, direction='${a.direction}'${a.amount === undefined ? '' : `, amount='${a.amount}'`})`;
    case 'hotkey':
      return `hotkey(key=${quote(a.keys.join(' '))})`;
    case 'type':
      return `type(content=${quote(a.text)})`;
    case 'wait':
      return a.ms === undefined ? 'wait()' : `wait(ms='${a.ms}')`;
    case 'finished':
      return a.answer === undefined ? 'finished()' : `finished(content=${quote(a.answer)})`;
    case 'fail':
      return a.reason === undefined ? 'call_user()' : `call_user(content=${quote(a.reason)})`;
  }
}
