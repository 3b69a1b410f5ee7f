/** States of control sessions as a runtime sends them. */
import type { ControlState, ControlStep } from '../../../../runtime/protocol/types.js';

const frame = { hash: 'aa', width: 640, height: 400 };
export const steps: readonly ControlStep[] = [
  {
    index: 0,
    origin: 'policy',
    thought: 'Melon is the fourth in the list.',
    actions: [{ type: 'click', at: { x: 194, y: 154 } }],
    frame,
  },
  {
    index: 1,
    origin: 'human',
    actions: [{ type: 'scroll', at: { x: 280, y: 160 }, direction: 'down', amount: 3 }],
    frame,
  },
  { index: 2, origin: 'human', actions: [{ type: 'type', text: 'K7-204\tLisbon' }], frame },
];
export function controlState(o: Partial<ControlState> = {}): ControlState {
  return {
    session: 'c1',
    purpose: 'takeOver',
    mode: 'human',
    desktop: 'desktop-1',
    screen: { width: 640, height: 400 },
    run: '/runs/demo',
    ...(o.purpose === 'record' ? {} : { rollout: 'r000102' }),
    family: 'desk/list-confirm',
    task: 'desk/list-confirm#63',
    seed: 63,
    instruction: 'Choose “Melon” in the list and press OK.',
    steps:
      o.purpose === 'record' ? steps.filter((s) => s.origin === 'human').map((s, index) => ({ ...s, index })) : steps,
    ...o,
  };
}
export const report = (ok: boolean): NonNullable<NonNullable<ControlState['verdict']>['report']> => ({
  checks: [
    { what: 'chosen row of the list', expected: 'Melon', found: ok ? 'Melon' : 'Plum', score: ok ? 1 : 0 },
    { what: 'the dialog is closed', expected: 'true', found: 'true', score: 1 },
  ],
});
