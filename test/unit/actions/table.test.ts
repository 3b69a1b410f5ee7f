import { describe, expect, it } from 'vitest';
import {
  ACTIONS,
  ACTION_TYPES,
  GLYPH_SPEC,
  actionCall,
  argumentValue,
  argumentsOf,
  isTerminal,
  type Action,
} from '../../../runtime/domain/index.js';
import { fieldOf, pointsOf } from '../../../webview/annotator/actionFields.js';
import { actionIcon, actionName, actionWords, actionsWords } from '../../../webview/ui/actions.js';
import { marksOf } from '../../../webview/ui/overlay.js';
import { samples } from '../../helpers/actions/samples.js';

describe('the table of actions', () => {
  it('has a name for one action only', () => {
    const names = ACTION_TYPES.flatMap((type) => [ACTIONS[type].call, ...ACTIONS[type].aliases]);
    expect(names.length).toBe(new Set(names).size);
  });
  it('has a name for one argument of an action only', () => {
    for (const type of ACTION_TYPES) {
      const names = argumentsOf(type).flatMap(([, a]) => [
        ...a.call,
        ...(a.kind === 'number' ? (a.coarser?.call ?? []) : []),
      ]);
      expect(names.length, type).toBe(new Set(names).size);
    }
  });
  it('has a phrase for every action, whatever it does not say', () => {
    for (const type of ACTION_TYPES) {
      const said = argumentsOf(type).flatMap(([name, a]) => (a.optional ? [] : [name]));
      expect(
        ACTIONS[type].words.some(([, ...of]) => of.every((name: string) => said.includes(name))),
        type,
      ).toBe(true);
    }
  });
  it('is covered by the samples: every action, every argument, and each optional one left out', () => {
    for (const type of ACTION_TYPES)
      for (const [name, a] of argumentsOf(type)) {
        const of = samples.filter((s) => s.type === type);
        expect(
          of.some((s) => argumentValue(s, name) !== undefined),
          `${type}.${name}`,
        ).toBe(true);
        if (a.optional)
          expect(
            of.some((s) => argumentValue(s, name) === undefined),
            `${type}.${name}`,
          ).toBe(true);
      }
  });
  it('leaves the embedded policy as its checkpoints know it', () => {
    expect([GLYPH_SPEC.id, GLYPH_SPEC.types.length]).toEqual(['glyph-2', 12]);
  });
});

describe('an action that a newer version wrote', () => {
  const a = { type: 'teleport', at: { x: 1, y: 2 } } as unknown as Action;
  it('is named, and nothing else is done with it', () => {
    expect(actionsWords([a, { type: 'wait' }])).toBe('teleport, then wait');
    expect([actionWords(a), actionName(a), actionIcon(a)]).toEqual(['teleport', 'teleport', 'question']);
    expect(actionCall(a, () => '')).toBe('teleport()');
    expect(marksOf([a])).toEqual({
      marks: [],
      notes: [{ order: 0, kind: 'flag', icon: 'question', tone: 'neutral', text: 'teleport' }],
    });
    expect([pointsOf([a]), fieldOf(a), isTerminal(a)]).toEqual([[], undefined, false]);
    expect(actionWords({ type: 'constructor' } as unknown as Action)).toBe('constructor');
  });
});
