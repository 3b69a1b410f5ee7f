import { describe, expect, it } from 'vitest';
import { QUICKSTART_FAMILIES } from '../../../runtime/config/index.js';
import type { Action, FamilyId, Size } from '../../../runtime/domain/index.js';
import { GLYPH_SPEC, id, random } from '../../../runtime/domain/index.js';
import { tokenizeInstruction } from '../../../runtime/policy/embedded/instruction.js';
import { createTaskEngine, parseTask } from '../../../runtime/tasks/index.js';
import { deskSuite, probeSeed, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import type { Move } from '../../../runtime/tasks/suites/desk/moves.js';
import { pointIn } from '../../../runtime/tasks/suites/desk/moves.js';
import { place } from '../../../runtime/tasks/suites/desk/kit.js';
import { scene } from '../../../runtime/tasks/suites/desk/scene.js';
import { desk } from '../../helpers/tasks/images.js';
import { copyTemplates } from '../../../runtime/tasks/suites/desk/templates/copies.js';
import { templates } from '../../../runtime/tasks/suites/desk/templates/index.js';

const SIZES: readonly Size[] = [
  { width: 640, height: 400 },
  { width: 1280, height: 720 },
];
const suite = deskSuite(),
  engine = createTaskEngine({ image: desk });
const heldoutSeed = (n: number): number => probeSeed('test', 'arrangements', n);
const SEEDS = [...[0, 1, 2, 3, 4, 5, 6, 7].map(trainSeed), heldoutSeed(0), heldoutSeed(1), heldoutSeed(2)];
const content = (t: { instruction: string; config: unknown }): string => JSON.stringify([t.instruction, t.config]);

/** What a move does without looking at a desktop; undefined when it must look. */
const blind = async (m: Move): Promise<Action | undefined> => {
  try {
    const a = await m({} as never);
    return 'again' in a ? undefined : a;
  } catch {
    return undefined;
  }
};

/** Whose texts stand on the screen alone. */
const copied = new Set(copyTemplates.map((t) => t.name));
describe('the suite desk', () => {
  it('has at least 32 templates over at least 6 applications, of 1 to 10 and more steps, some held out, 2 to 4 infeasible', () => {
    expect(suite.families.length).toBeGreaterThanOrEqual(32);
    expect(new Set(suite.families.flatMap((f) => f.apps)).size).toBeGreaterThanOrEqual(6);
    const steps = suite.families.filter((f) => !f.infeasible).map((f) => f.steps);
    expect(Math.min(...steps)).toBe(1);
    expect(Math.max(...steps)).toBeGreaterThanOrEqual(10);
    expect(suite.families.filter((f) => f.split === 'heldout').length).toBeGreaterThanOrEqual(4);
    const infeasible = suite.families.filter((f) => f.infeasible).length;
    expect(infeasible).toBeGreaterThanOrEqual(2);
    expect(infeasible).toBeLessThanOrEqual(4);
    expect(new Set(suite.families.map((f) => f.id)).size).toBe(suite.families.length);
  });

  it('offers a quick start of twenty families and more over six applications, six of them having three steps or more', () => {
    const chosen = suite.families.filter((f) => QUICKSTART_FAMILIES.includes(f.id));
    expect(chosen.length).toBe(QUICKSTART_FAMILIES.length);
    expect(chosen.length).toBeGreaterThanOrEqual(20);
    expect(new Set(chosen.flatMap((f) => f.apps)).size).toBeGreaterThanOrEqual(6);
    expect(chosen.filter((f) => f.steps >= 3).length).toBeGreaterThanOrEqual(6);
    expect(chosen.every((f) => f.split === 'train' && !f.infeasible)).toBe(true);
  });

  it('makes the same task of a seed every time, also by its id, and different ones of different seeds', () => {
    for (const f of suite.families) {
      const made = SEEDS.map((s) => suite.task(f.id, s));
      for (const [i, s] of SEEDS.entries()) {
        expect(deskSuite().task(f.id, s)).toEqual(made[i]);
        expect(suite.byId(made[i]!.id)).toEqual(made[i]);
      }
      expect(new Set(made.map(content)).size, f.id).toBe(SEEDS.length);
    }
  });

  it('keeps held-out contents apart from those of training', () => {
    for (const f of suite.families) {
      const train = new Set(Array.from({ length: 60 }, (_, n) => content(suite.task(f.id, trainSeed(n)))));
      for (let n = 0; n < 20; n++)
        expect(train.has(content(suite.task(f.id, heldoutSeed(n)))), `${f.id} ${n}`).toBe(false);
    }
  });

  it('says everything in 24 tokens, and every text its solution types is one of them or stands on the screen to be copied', async () => {
    const unlimited = { ...GLYPH_SPEC, instruction: { ...GLYPH_SPEC.instruction, maxTokens: 100 } };
    for (const t of templates)
      for (const seed of [1, 2, 3, 4, 5, 6]) {
        const made = t.build(scene(`${t.name}/${seed}`), SIZES[0]!);
        const tokens = tokenizeInstruction(unlimited, made.instruction).map((x) => x.text);
        expect(tokens.length, made.instruction).toBeLessThanOrEqual(24);
        for (const m of made.solve) {
          const a = await blind(m);
          if (a?.type === 'type') {
            const text = a.text.replace(/\n$/, '');
            if (copied.has(t.name))
              expect(JSON.stringify(made.config).split(/[\s"'\\]+/), made.instruction).toContain(text);
            else expect([...tokens, ...GLYPH_SPEC.phrases], made.instruction).toContain(text);
          }
          if (a?.type === 'hotkey') expect(GLYPH_SPEC.keys).toContain(a.keys.join('+'));
        }
      }
  });

  it('has solutions of the length it states, ending in finished, or in fail when infeasible', async () => {
    for (const t of templates) {
      const made = t.build(scene(t.name), SIZES[0]!);
      expect((await blind(made.solve.at(-1)!))?.type, t.name).toBe(t.infeasible ? 'fail' : 'finished');
      expect((await blind(made.miss.at(-1)!))?.type, t.name).toBe('finished');
      // A scroll is one move that acts several times.
      const acts = made.solve.length - 1 + (t.name === 'list-scroll' ? 1 : 0);
      expect(acts, t.name).toBe(t.steps);
      expect(made.evaluator.func === 'infeasible', t.name).toBe(t.infeasible === true);
    }
  });

  it('is all runnable by the task engine, at both screen sizes', () => {
    for (const screen of SIZES) {
      const s = deskSuite({ screen });
      for (const f of s.families)
        for (const seed of [1, heldoutSeed(1)]) expect(engine.check(s.task(f.id, seed)), f.id).toEqual([]);
    }
  });

  it("is OSWorld's task JSON: written to a file and read back it is the same task", () => {
    for (const f of suite.families) {
      const t = suite.task(f.id, 3);
      const read = parseTask(
        JSON.parse(
          JSON.stringify({
            id: t.id,
            instruction: t.instruction,
            config: t.config,
            evaluator: t.evaluator,
            related_apps: t.relatedApps,
            max_steps: t.maxSteps,
          }),
        ),
        'task.json',
      );
      expect({ ...read, family: t.family }).toMatchObject({
        id: t.id,
        instruction: t.instruction,
        config: t.config,
        evaluator: t.evaluator,
        relatedApps: t.relatedApps,
        infeasible: t.infeasible,
        maxSteps: t.maxSteps,
      });
    }
  });

  it('names what it does not know', () => {
    expect(() => suite.task(id<FamilyId>('desk/nothing'), 1)).toThrow(/no template/);
    expect(() => suite.byId('desk/press-button' as never)).toThrow(/not a task of the suite/);
    expect(() => suite.task(id<FamilyId>('desk/press-button'), -1)).toThrow(/not a seed/);
  });
});

describe('places', () => {
  it('keeps a window and its frame on the screen, above the taskbar', () => {
    for (let n = 0; n < 300; n++) {
      const r = scene(String(n)),
        screen = SIZES[n % 2]!,
        w = 100 + r.int(500),
        h = 50 + r.int(270),
        b = place(r, screen, w, h);
      expect(b.x).toBeGreaterThanOrEqual(0);
      expect(b.y).toBeGreaterThanOrEqual(0);
      expect(b.x + w + 6).toBeLessThanOrEqual(screen.width);
      expect(b.y + h + 25).toBeLessThanOrEqual(screen.height - 26);
    }
  });

  it('clicks cell centres inside the target wherever it is at least 20 px wide and high', () => {
    for (let n = 0; n < 500; n++) {
      const r = random(n),
        b = { x: r.int(600), y: r.int(370), width: 20 + r.int(100), height: 20 + r.int(60) },
        p = pointIn(b, r);
      expect(p.x % 16).toBe(8);
      expect(p.y % 16).toBe(8);
      expect(p.x > b.x && p.x < b.x + b.width && p.y > b.y && p.y < b.y + b.height).toBe(true);
    }
  });

  it('clicks the middle of a target that holds no cell centre', () => {
    expect(pointIn({ x: 10, y: 10, width: 10, height: 10 }, random(1))).toEqual({ x: 15, y: 15 });
  });
});
