import fc from 'fast-check';
import type { Action, Modifier, Outcome, Size } from '../../../runtime/domain/index.js';
import type { Plan } from './make.js';

/** Actions and trajectories as any policy or person may have made them. */
export const screens: fc.Arbitrary<Size> = fc.record({
  width: fc.integer({ min: 40, max: 4000 }),
  height: fc.integer({ min: 40, max: 4000 }),
});
const keys = fc.oneof(
  fc.constantFrom(
    'ctrl',
    'shift',
    'alt',
    'super',
    'enter',
    'escape',
    'tab',
    'f4',
    'pagedown',
    'left',
    'space',
    'backspace',
    'menu',
    '<',
    "'",
    '\\',
    '+',
  ),
  fc.constantFrom(...'abcxyz0159'),
);
/** Characters that can be typed; the first plane and beyond. */
const typed = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'abc XYZ019\'"\\,()#=\n\t'),
    fc.integer({ min: 0xa1, max: 0xd7ff }).map((c) => String.fromCodePoint(c)),
    fc.integer({ min: 0x1f300, max: 0x1f600 }).map((c) => String.fromCodePoint(c)),
  ),
  minLength: 1,
  maxLength: 24,
});

export function actionsIn(s: Size, max: number, terminal = true): fc.Arbitrary<Action[]> {
  const at = fc.record({ x: fc.integer({ min: 0, max: s.width - 1 }), y: fc.integer({ min: 0, max: s.height - 1 }) });
  const held = fc
    .option(fc.subarray<Modifier>(['ctrl', 'shift', 'alt', 'super']), { nil: undefined })
    .map((modifiers) => (modifiers ? { modifiers } : {}));
  const one: fc.Arbitrary<Action> = fc.oneof(
    fc
      .tuple(fc.constantFrom('click', 'left_double', 'right_single'), at, held)
      .map(([type, p, h]) => ({ type, at: p, ...h }) as Action),
    fc.tuple(at, at, held).map(([from, to, h]): Action => ({ type: 'drag', from, to, ...h })),
    fc
      .tuple(
        at,
        fc.constantFrom('up', 'down', 'left', 'right'),
        fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined }),
      )
      .map(
        ([p, direction, amount]) =>
          ({ type: 'scroll', at: p, direction, ...(amount === undefined ? {} : { amount }) }) as Action,
      ),
    // UI-TARS's grammar can name '+' only as the last key.
    fc
      .uniqueArray(keys, { minLength: 1, maxLength: 3 })
      .map((k): Action => ({ type: 'hotkey', keys: k.sort((a, b) => Number(a === '+') - Number(b === '+')) })),
    typed.map((text): Action => ({ type: 'type', text })),
    fc
      .option(fc.integer({ min: 0, max: 60_000 }), { nil: undefined })
      .map((ms): Action => ({ type: 'wait', ...(ms === undefined ? {} : { ms }) })),
  );
  const end: fc.Arbitrary<Action> = fc.oneof(
    fc
      .option(
        typed.map((t) => t.trim()).filter((t) => t !== ''),
        { nil: undefined },
      )
      .map((answer): Action => ({ type: 'finished', ...(answer ? { answer } : {}) })),
    fc.constant<Action>({ type: 'fail' }),
  );
  return fc
    .tuple(fc.array(one, { maxLength: max }), fc.option(end, { nil: undefined }))
    .map(([list, e]) => (terminal && e ? [...list, e] : list));
}

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant<Outcome>({ kind: 'success', reward: 1, truncated: false }),
  fc.constantFrom(0, 0.25, 0.5, 0.999).map((reward): Outcome => ({ kind: 'failure', reward, truncated: reward === 0 })),
);

/** Trajectories over a few screens of one size; names with every kind of character. */
export function plansOf(size: Size): fc.Arbitrary<Plan[]> {
  const name = fc.constantFrom(
      'desk/calc-sum#17',
      'desk/notes#3',
      'bb5e4c0d-f964-439c-97b6-bdb9747de3f4',
      'a b/c%d?#\u00e9',
      '..',
      "it's (1)!",
    ),
    screen = fc.integer({ min: 1, max: 6 });
  const step = fc.record({
    screen,
    actions: actionsIn(size, 3, false),
    thought: fc.option(fc.constantFrom('Click it.', "It's 'here', (maybe)", 'two\nlines \u2192 \u{1F600}'), {
      nil: undefined,
    }),
    origin: fc.constantFrom('policy', 'human', 'oracle'),
  });
  const end = fc.option(
    fc.record({
      screen,
      actions: fc.constantFrom<readonly Action[]>(
        [{ type: 'finished' }],
        [{ type: 'finished', answer: "42, it's" }],
        [{ type: 'fail' }],
        [{ type: 'fail', reason: 'no way' }],
      ),
      origin: fc.constant('policy' as const),
    }),
    { nil: undefined },
  );
  const plan = fc
    .tuple(
      name,
      fc.array(step, { minLength: 1, maxLength: 4 }),
      end,
      outcome,
      fc.option(screen, { nil: undefined }),
      fc.integer({ min: 5, max: 50 }),
    )
    .map(([task, steps, e, o, last, cap]): Plan => ({
      task,
      family: task.split('#')[0]!,
      instruction: `Do ${task}, "now"\nplease`,
      outcome: o,
      cap,
      steps: [...steps.map(({ thought, ...s }) => ({ ...s, ...(thought ? { thought } : {}) })), ...(e ? [e] : [])],
      ...(e || last === undefined ? {} : { last }),
    }));
  return fc.array(plan, { minLength: 1, maxLength: 4 });
}
