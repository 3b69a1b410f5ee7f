import { describe, expect, it } from 'vitest';
import { QUICKSTART_FAMILIES } from '../../../runtime/config/index.js';
import { GLYPH_SPEC, type FamilyId } from '../../../runtime/domain/index.js';
import { tokenizeInstruction } from '../../../runtime/policy/embedded/instruction.js';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { mayHold } from '../../../runtime/tasks/mayHold.js';
import { deskSuite, HOLDOUTS, probeSeed, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import { contentsOf } from '../../../runtime/tasks/suites/desk/splits.js';
import { otherChoices, otherPairs, others } from '../../../runtime/tasks/suites/desk/siblings.js';
import { templates } from '../../../runtime/tasks/suites/desk/templates/index.js';
import { scene } from '../../../runtime/tasks/suites/desk/scene.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { desk } from '../../helpers/tasks/images.js';

const suite = deskSuite(),
  engine = createTaskEngine({ image: desk }),
  siblings = (t: Task): readonly Task[] => suite.siblings!(t),
  screen = { width: 640, height: 400 };
const SEEDS = Array.from({ length: 24 }, (_, n) => trainSeed(n));
const named = templates.filter((t) => t.build(scene(t.name), screen).siblings),
  families = named.map((t) => `desk/${t.name}` as FamilyId);
/** What looks and is compared, without the values that differ. */
const shape = ({ evaluator: e }: Task): unknown => [
  e.func,
  e.conj,
  [e.result].flat().map((r) => (r as { title: string }).title),
];
/** Without what it is about. */
function form(instruction: string): string {
  const { words, numbers } = contentsOf(instruction);
  return instruction
    .replace(/"[^"]*"/g, '"_"')
    .split(/\b/)
    .map((w) => (words.includes(w) || numbers.includes(w) ? '_' : w))
    .join('');
}

describe('siblings of a task', () => {
  it('44 templates have them, fourteen of the quick start, and none that is held out or cannot be done', () => {
    expect(named.length).toBe(44);
    expect(families.filter((f) => QUICKSTART_FAMILIES.includes(f)).length).toBe(14);
    expect(named.filter((t) => t.heldout || t.infeasible)).toEqual([]);
  });

  it.each(families)('%s: begin alike, ask for something else, and are judged by the same look at it', (family) => {
    let some = 0;
    for (const seed of SEEDS) {
      const own = suite.task(family, seed),
        mine = siblings(own);
      some += mine.length;
      expect(new Set([own, ...mine].map((t) => t.instruction)).size).toBe(mine.length + 1);
      expect(new Set([own, ...mine].map((t) => JSON.stringify(t.evaluator.expected))).size).toBe(mine.length + 1);
      for (const t of mine) {
        expect(t).toEqual({ ...own, id: t.id, instruction: t.instruction, evaluator: t.evaluator });
        expect(t.id.startsWith(`${own.id}+`)).toBe(true);
        // Which file is looked at may be what differs.
        if (family !== 'desk/file-edit') expect(shape(t)).toEqual(shape(own));
        expect(engine.check(t)).toEqual([]);
        expect(suite.byId(t.id)).toEqual(t);
        expect(siblings(t)).toEqual([]);
        expect(() => suite.oracle(t)).toThrow(/not a task/);
        expect(tokenizeInstruction(GLYPH_SPEC, t.instruction).length).toBeLessThanOrEqual(24);
      }
    }
    expect(some).toBeGreaterThan(0);
  });

  it.each(families)('%s: says it in words of the tasks themselves', (family) => {
    const said = new Set(Array.from({ length: 150 }, (_, n) => form(suite.task(family, trainSeed(n)).instruction)));
    for (const seed of SEEDS)
      for (const t of siblings(suite.task(family, seed))) expect(said, t.instruction).toContain(form(t.instruction));
  });

  it('only training seeds have them, and byId knows no others', () => {
    for (const family of ['desk/press-button', 'desk/calendar-day'] as FamilyId[]) {
      for (const seed of [0, 5, 1_000_000]) expect(siblings(suite.task(family, seed))).toEqual([]);
      for (const set of ['dev', 'test'] as const)
        for (const h of HOLDOUTS.filter((x) => suite.holdouts(family).includes(x)))
          expect(siblings(suite.task(family, probeSeed(set, h, 1)))).toEqual([]);
    }
    const own = suite.task('desk/press-button' as FamilyId, trainSeed(0));
    expect(() => suite.byId(`${own.id}+9` as never)).toThrow(/not a task/);
  });

  it('of what was found at most one is left: what was done says which', () => {
    const family = 'desk/press-grid' as FamilyId,
      own = suite.task(family, trainSeed(3)),
      mine = siblings(own),
      wants = (t: Task): string => (t.evaluator.expected as { rules: { expected: string } }).rules.expected,
      report = (found: string) => ({ checks: [{ what: '', expected: '', found, score: 0 }] });
    for (const t of mine)
      expect(mine.filter((s) => mayHold(own, report(wants(t).replace('\n', ' ⏎ ')), s))).toEqual([t]);
    expect(mine.filter((s) => mayHold(own, report(''), s))).toEqual([]);
  });
});

describe('choices beside one', () => {
  it('lists every other choice than the one given', () => {
    expect(others(4, 2)).toEqual([0, 1, 3]);
    expect(otherPairs(3, [2, 0])).toEqual([
      [0, 1],
      [1, 2],
    ]);
    expect(
      otherChoices(
        [
          ['a', 'b'],
          ['c', 'd'],
        ],
        ['a', 'd'],
      ),
    ).toEqual([
      ['a', 'c'],
      ['b', 'c'],
      ['b', 'd'],
    ]);
  });
});
