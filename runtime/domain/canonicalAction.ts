import { SCROLL_DEFAULT, WAIT_DEFAULT_MS, type Action, type Modifier } from './action.js';
import { canonicalKey } from './keys.js';

const order: readonly Modifier[] = ['ctrl', 'shift', 'alt', 'super'];

/**
 * One spelling per action: defaults written out, keys by their common names, empty parts left out. What two formats
 * write differently is equal here.
 */
export function canonicalAction(a: Action): Action {
  switch (a.type) {
    case 'click':
    case 'left_double':
    case 'right_single':
      return { type: a.type, at: { x: a.at.x, y: a.at.y }, ...held(a.modifiers) };
    case 'drag':
      return { type: 'drag', from: { x: a.from.x, y: a.from.y }, to: { x: a.to.x, y: a.to.y }, ...held(a.modifiers) };
    case 'scroll':
      return {
        type: 'scroll',
        at: { x: a.at.x, y: a.at.y },
        direction: a.direction,
        amount: a.amount ?? SCROLL_DEFAULT,
      };
    case 'hotkey':
      return { type: 'hotkey', keys: a.keys.map(canonicalKey) };
    case 'type':
      return { type: 'type', text: a.text };
    case 'wait':
      return { type: 'wait', ms: a.ms ?? WAIT_DEFAULT_MS };
    case 'finished':
      return { type: 'finished', ...(a.answer ? { answer: a.answer } : {}) };
    case 'fail':
      return { type: 'fail', ...(a.reason ? { reason: a.reason } : {}) };
  }
}
const held = (m: readonly Modifier[] | undefined): { modifiers?: Modifier[] } =>
  m?.length ? { modifiers: order.filter((k) => m.includes(k)) } : {};
