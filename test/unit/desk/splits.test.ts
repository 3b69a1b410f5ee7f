import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { QUICKSTART_FAMILIES, parseRunFile, type RunFile } from '../../../runtime/config/index.js';
import { imageAsset } from '../../../runtime/cluster/images.js';
import { GLYPH_SPEC, id, READER_SPEC, type FamilyId } from '../../../runtime/domain/index.js';
import { tokenizeInstruction } from '../../../runtime/policy/embedded/instruction.js';
import { lessonTexts } from '../../../runtime/run/backends/lessonTexts.js';
import { vocabulary } from '../../../runtime/run/backends/reading.js';
import { measuredTasks } from '../../../runtime/run/collect/chosen.js';
import { EVALUATION_SPLITS, openTasks, type Tasks } from '../../../runtime/tasks/open.js';
import type { Task } from '../../../runtime/tasks/types.js';
import {
  deskSuite,
  HOLDOUTS,
  probeSeed,
  trainSeed,
  variedSeed,
  type Holdout,
  type ProbeSet,
} from '../../../runtime/tasks/suites/desk/index.js';
import { HELD_OUT, TRAINED, wordsOf } from '../../../runtime/tasks/suites/desk/lexicon.js';
import { deskFirst } from '../../bench/miniwob/plan.js';
import { desk } from '../../helpers/tasks/images.js';

/**
 * What is held out occurs nowhere in training. Nothing here asks the code that splits: sets are made from the tasks as
 * they are generated, and compared.
 */
const suite = deskSuite(),
  TRAIN = 60,
  PROBES = 12,
  SETS: readonly ProbeSet[] = ['dev', 'test'];
const textOf = (t: Task): string => JSON.stringify([t.instruction, t.config, t.evaluator]);
const tokens = (text: string): Set<string> => new Set(text.toLowerCase().match(/[a-z]+|\d+/g));
/** Numbers of an instruction, and what follows what among its quoted texts' words and numbers. */
const numbersIn = (t: Task): string[] => t.instruction.match(/(?<![A-Za-z\d])\d{2,}/g) ?? [];
const names = new Set([TRAINED, HELD_OUT.dev, HELD_OUT.test].flatMap(wordsOf));
const pairsIn = (t: Task): string[] => pairsOf(t.instruction);
function pairsOf(text: string): string[] {
  const about = (text.match(/[A-Za-z]+\d*|\d+/g) ?? []).filter((x) => names.has(x) || /^\d+$/.test(x));
  return about.slice(1).map((b, i) => [about[i]!, b].sort().join(' '));
}
const looksIn = (t: Task): string[] =>
  [...textOf(t).matchAll(/gtk-theme-name=[^']*?(?=\\n')|font-family: [^;]*|xterm (-bg \S+ -fg \S+)/g)].map((m) => m[0]);
/** Letters to insert, delete or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, x] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, y] of [...b].entries())
      next.push(Math.min(row[j]! + (x === y ? 0 : 1), row[j + 1]! + 1, next[j]! + 1));
    row = next;
  }
  return row[b.length]!;
}
const corners = (t: Task): string[] =>
  [...textOf(t).matchAll(/--geometry=\d+x\d+\+(\d+)\+(\d+)/g)].map((m) => `${m[1]} ${m[2]}`);

/** More training tasks of a family than the sample has. */
const FURTHER = 3000;

/** As many plain ones as varied ones, in this order. */
const train = new Map<FamilyId, Task[]>(),
  heldOut = new Map<string, Task[]>();
const of = (set: ProbeSet, h: Holdout): Task[] => heldOut.get(`${set}/${h}`)!;

beforeAll(() => {
  for (const { id, split } of suite.families) {
    if (split === 'heldout') continue;
    train.set(
      id,
      [trainSeed, variedSeed].flatMap((seed) => Array.from({ length: TRAIN }, (_, n) => suite.task(id, seed(n)))),
    );
    for (const h of suite.holdouts(id))
      for (const set of SETS)
        heldOut.set(`${set}/${h}`, [
          ...(heldOut.get(`${set}/${h}`) ?? []),
          ...Array.from({ length: PROBES }, (_, n) => suite.task(id, probeSeed(set, h, n))),
        ]);
  }
});

describe('splits by content', () => {
  const trained = (): Task[] => [...train.values()].flat();
  let made: Task[] | undefined;
  /** What failures of training tasks are relabelled to. */
  const siblings = (): Task[] => (made ??= trained().flatMap((t) => suite.siblings!(t)));
  /** Whether a training task beyond the sample has this pair, in a family that has it in a held-out task. */
  const trainedLater = (pair: string): boolean =>
    [...new Set(SETS.flatMap((set) => of(set, 'pairs')).filter((t) => pairsIn(t).includes(pair)))].some(({ family }) =>
      Array.from({ length: FURTHER }, (_, n) => suite.task(family, trainSeed(TRAIN + n))).some((t) =>
        pairsIn(t).includes(pair),
      ),
    );

  it('words: none of a held-out task, in whatever case, is in any training task, as text, title, file or answer', () => {
    const seen = tokens(trained().map(textOf).join(' '));
    for (const set of SETS) {
      const words = new Set(of(set, 'words').flatMap((t) => [...tokens(t.instruction)])),
        fresh = wordsOf(HELD_OUT[set]).filter((w) => words.has(w.toLowerCase()));
      expect(fresh.length).toBeGreaterThan(25);
      for (const w of wordsOf(HELD_OUT[set])) expect(seen.has(w.toLowerCase()), w).toBe(false);
      // Every task of the split has one, or numbers of which none was trained.
      const numbers = new Set(trained().flatMap(numbersIn));
      for (const t of of(set, 'words'))
        expect(
          wordsOf(HELD_OUT[set]).some((w) => tokens(t.instruction).has(w.toLowerCase())) ||
            (numbersIn(t).length > 0 && numbersIn(t).every((n) => !numbers.has(n))),
          t.instruction,
        ).toBe(true);
    }
  });

  it('numbers: what training asks for and what the held-out tasks without words ask for have none in common', () => {
    const seen = new Set(trained().flatMap(numbersIn)),
      fresh = SETS.map(
        (set) =>
          new Set(of(set, 'words').flatMap((t) => (pairsIn(t).some((p) => /[A-Za-z]/.test(p)) ? [] : numbersIn(t)))),
      );
    expect(seen.size).toBeGreaterThan(20);
    for (const f of fresh) {
      expect(f.size).toBeGreaterThan(5);
      for (const n of f) expect(seen.has(n), n).toBe(false);
    }
    expect([...fresh[0]!].filter((n) => fresh[1]!.has(n))).toEqual([]);
  });

  it('pairs: every task of the split has one that no training task has, of words that training has', () => {
    const seen = new Set(trained().flatMap(pairsIn)),
      known = tokens(
        trained()
          .map((t) => t.instruction)
          .join(' '),
      ),
      fresh = SETS.map((set) => {
        const tasks = of(set, 'pairs');
        expect(tasks.length).toBeGreaterThan(100);
        for (const t of tasks) {
          expect(
            pairsIn(t).some((p) => !seen.has(p)),
            t.instruction,
          ).toBe(true);
          for (const w of tokens(t.instruction)) if (names.has(w)) expect(known.has(w), w).toBe(true);
        }
        return new Set(tasks.flatMap(pairsIn).filter((p) => !seen.has(p)));
      });
    // One that both have is of training: no task of the sample has it, but a further one does.
    const both = [...fresh[0]!].filter((p) => fresh[1]!.has(p));
    expect(both.length).toBeLessThan(5);
    for (const pair of both) expect(trainedLater(pair), pair).toBe(true);
  });

  it('looks: no theme, letters, colours or place of a window of a held-out look is in training', () => {
    const looks = new Set(trained().flatMap(looksIn)),
      places = new Set(trained().flatMap(corners)),
      plain = [...train.values()].flatMap((tasks) => tasks.slice(0, TRAIN));
    expect(plain.flatMap(looksIn)).toEqual([]);
    for (const set of SETS) {
      const tasks = of(set, 'looks');
      expect(new Set(tasks.flatMap(looksIn)).size).toBeGreaterThanOrEqual(2);
      for (const t of tasks) {
        expect(looksIn(t).length, t.id).toBeGreaterThan(0);
        for (const look of looksIn(t)) expect(looks.has(look), look).toBe(false);
      }
      const own = tasks.flatMap(corners),
        shared = own.filter((c) => places.has(c));
      expect(own.length).toBeGreaterThan(100);
      expect(shared).toEqual([]);
    }
    const [a, b] = SETS.map((set) => new Set(of(set, 'looks').flatMap((t) => [looksIn(t).join('|')])));
    expect([...a!].filter((l) => b!.has(l))).toEqual([]);
  });

  it('varied looks: colours and letters differ from task to task, one in four is plain, none is a held-out look', () => {
    const family = id<FamilyId>('desk/list-cancel'),
      sheetOf = (n: number): string => textOf(suite.task(family, variedSeed(n))),
      sheets = Array.from({ length: 400 }, (_, n) => sheetOf(n)),
      backgrounds = (text: string): string[] =>
        [...text.matchAll(/background-color: (#[\da-f]{6})/g)].map((m) => m[1]!),
      plain = sheets.filter((s) => backgrounds(s).length === 0);
    expect(plain.length / sheets.length).toBeGreaterThan(0.15);
    expect(plain.length / sheets.length).toBeLessThan(0.35);
    expect(new Set(sheets.flatMap(backgrounds)).size).toBeGreaterThan(900);
    for (const s of sheets) expect(s).not.toMatch(/Serif|gtk-theme|dark-theme/);
    expect(sheetOf(7)).toBe(sheetOf(7));
  });

  it('near-duplicates: one word of the instruction is no word of training, and the others on the screen nearly are it', () => {
    const seen = tokens(trained().map(textOf).join(' '));
    for (const set of SETS) {
      const tasks = of(set, 'near');
      expect(tasks.length).toBeGreaterThan(100);
      let among = 0;
      for (const t of tasks) {
        const shown = [...tokens(JSON.stringify(t.config))],
          asked = [...tokens(t.instruction)].filter((w) => !seen.has(w));
        expect(asked.length, t.instruction).toBeGreaterThan(0);
        if (asked.some((w) => shown.some((x) => x !== w && x[0] === w[0] && distance(x, w) <= 4))) among++;
      }
      // A template that shows the asked word alone has no other to take it for.
      expect(among / tasks.length).toBeGreaterThan(0.6);
    }
  });

  it('arrangements, and every other split: no task is one of training, and none of tuning one of reporting', () => {
    const seen = new Set(trained().map((t) => JSON.stringify([t.instruction, t.config]))),
      all = SETS.map((set) =>
        HOLDOUTS.flatMap((h) => of(set, h)).map((t) => JSON.stringify([t.instruction, t.config])),
      );
    for (const c of all.flat()) expect(seen.has(c)).toBe(false);
    const dev = new Set(all[0]);
    expect(all[1]!.filter((c) => dev.has(c))).toEqual([]);
  });

  it('siblings: what failures are relabelled to has nothing that is held out either', () => {
    const both = [...trained(), ...siblings()],
      seen = tokens(siblings().map(textOf).join(' ')),
      pairs = new Set(both.flatMap(pairsIn)),
      numbers = new Set(siblings().flatMap(numbersIn)),
      said = new Set(siblings().map((t) => t.instruction)),
      content = new Set(siblings().map((t) => JSON.stringify([t.instruction, t.config])));
    expect(siblings().length).toBeGreaterThan(10_000);
    expect(numbers.size).toBeGreaterThan(5);
    for (const set of SETS) {
      for (const w of wordsOf(HELD_OUT[set])) expect(seen.has(w.toLowerCase()), w).toBe(false);
      for (const t of of(set, 'words'))
        if (!pairsIn(t).some((p) => /[A-Za-z]/.test(p)))
          for (const n of numbersIn(t)) expect(numbers.has(n), n).toBe(false);
      for (const t of of(set, 'pairs'))
        expect(
          pairsIn(t).some((p) => !pairs.has(p)),
          t.instruction,
        ).toBe(true);
      for (const h of ['words', 'pairs'] as const)
        for (const t of of(set, h)) expect(said.has(t.instruction), t.instruction).toBe(false);
      for (const h of HOLDOUTS)
        for (const t of of(set, h)) expect(content.has(JSON.stringify([t.instruction, t.config])), t.id).toBe(false);
    }
  });

  it('held-out and fresh templates: no training task, nor what failures are relabelled to, says or shows the same', () => {
    const both = [...trained(), ...siblings()],
      said = new Set(both.map((t) => t.instruction)),
      content = new Set(both.map((t) => JSON.stringify([t.config, t.evaluator]))),
      unseen = suite.families.filter((f) => f.split === 'heldout');
    expect(unseen).toHaveLength(17);
    for (const { id } of unseen)
      for (const set of SETS)
        for (const t of Array.from({ length: PROBES }, (_, n) => suite.task(id, probeSeed(set, 'arrangements', n)))) {
          expect(said.has(t.instruction), t.instruction).toBe(false);
          expect(content.has(JSON.stringify([t.config, t.evaluator])), t.id).toBe(false);
        }
  });

  it('no instruction of unseen words, numbers or pairs occurs in training', () => {
    const said = new Set(trained().map((t) => t.instruction));
    for (const set of SETS)
      for (const h of ['words', 'pairs'] as const)
        for (const t of of(set, h)) expect(said.has(t.instruction)).toBe(false);
  });
});

describe.each<[string, RunFile]>([
  ['quickstart', { preset: 'quickstart' }],
  ['desk', { preset: 'desk' }],
  ['bench:miniwob', deskFirst({ dir: '', pages: [], seed: 1, minutes: 60, quick: false }).file],
])('what a run learns from and is measured by: %s', (_, file) => {
  let tasks: Tasks;
  const config = parseRunFile(file);
  beforeAll(async () => {
    tasks = await openTasks(config, desk);
  });

  it('measures a model without a run on as many unseen tasks of each family', () => {
    const chosen = measuredTasks('words', 2)(tasks),
      per = new Map<string, number>();
    for (const c of chosen) per.set(c.family, (per.get(c.family) ?? 0) + 1);
    expect(per.size).toBeGreaterThan(5);
    expect(new Set(per.values())).toEqual(new Set([2]));
    const reported = new Set(tasks.probesOf('words', chosen.length).map((p) => `${p.family}#${p.seed}`));
    expect(new Set(chosen.map((c) => c.task as string))).toEqual(reported);
    expect(chosen.every((c) => c.domain === 'desk')).toBe(true);
  });

  it('measures on other tasks where it is tuned than where it reports', () => {
    for (const split of EVALUATION_SPLITS.filter((s) => s !== 'train')) {
      const of = (set: ProbeSet): string[] => tasks.probesOf(split, 60, set).map((p) => `${p.family}#${p.seed}`),
        reported = new Set(of('test'));
      expect(of('dev')).toHaveLength(60);
      expect(of('dev').filter((p) => reported.has(p))).toEqual([]);
      expect(measuredTasks(split, 1, 'dev')(tasks).map((c) => c.seed)).not.toEqual(
        measuredTasks(split, 1)(tasks).map((c) => c.seed),
      );
    }
  });

  it('asks other tasks of each split where the first of each family are left out', () => {
    for (const split of EVALUATION_SPLITS) {
      const of = (n: number, skip?: number): string[] =>
          tasks.probesOf(split, n, 'test', skip).map((p) => `${p.family}#${p.seed}`),
        each = new Set(of(500).map((p) => p.split('#')[0])).size;
      expect(of(3 * each, 2)).toEqual(of(5 * each).slice(2 * each));
    }
    expect(measuredTasks('words', 1, 'test', 3)(tasks)[0]!.seed).toBe(tasks.probesOf('words', 1, 'test', 3)[0]!.seed);
  });

  it('reading lessons and the words of instructions have nothing that is held out', () => {
    const lessons = new Set(vocabulary(GLYPH_SPEC, tasks).map((w) => w.text.toLowerCase())),
      told = new Set<string>();
    expect(lessons.size).toBeGreaterThan(30);
    for (const f of tasks.families)
      for (const seed of tasks.demoSeeds)
        for (const t of tokenizeInstruction(GLYPH_SPEC, tasks.source.task(f.id, seed).instruction))
          for (const w of tokens(t.text)) told.add(w);
    for (const set of SETS)
      for (const w of wordsOf(HELD_OUT[set])) {
        expect(lessons.has(w.toLowerCase()), w).toBe(false);
        expect(told.has(w.toLowerCase()), w).toBe(false);
      }
  });

  it('what lessons draw has no held-out word, number, pair or look, not as part of another text either', async () => {
    const words = vocabulary(READER_SPEC, tasks),
      texts = Array.from({ length: 15 }, (_, k) =>
        lessonTexts(READER_SPEC, { seed: 1, words, withheld: tasks.withheld }, 24 * k),
      ).flatMap((all) => all.map((t) => t.text)),
      random = texts.filter((t) => !words.some((w) => w.text === t));
    expect(texts.length).toBeGreaterThan(7000);
    expect(new Set(random).size).toBeGreaterThan(3000);
    const all = texts.join('\n').toLowerCase();
    for (const set of SETS)
      for (const w of wordsOf(HELD_OUT[set])) expect(all.includes(w.toLowerCase()), w).toBe(false);
    // Numbers that only held-out tasks ask for.
    const trainedNumbers = new Set([...train.values()].flat().flatMap(numbersIn)),
      drawn = new Set(texts.flatMap((t) => t.match(/\d{2,}/g) ?? [])),
      wordless = (t: Task): boolean => !pairsIn(t).some((p) => /[A-Za-z]/.test(p)),
      reserved = SETS.flatMap((set) => of(set, 'words').filter(wordless).flatMap(numbersIn));
    for (const n of reserved) expect(trainedNumbers.has(n), n).toBe(false);
    expect(drawn.size).toBeGreaterThan(300);
    expect(reserved.length).toBeGreaterThan(10);
    for (const n of reserved) expect(drawn.has(n), n).toBe(false);
    // Pairs that only held-out tasks have.
    const trainedPairs = new Set([...train.values()].flat().flatMap(pairsIn)),
      drawnPairs = new Set(texts.flatMap(pairsOf)),
      unseenPairs = SETS.flatMap((set) => of(set, 'pairs').flatMap(pairsIn)).filter((p) => !trainedPairs.has(p));
    expect(drawnPairs.size).toBeGreaterThan(10);
    expect(unseenPairs.length).toBeGreaterThan(100);
    for (const p of unseenPairs) expect(drawnPairs.has(p), p).toBe(false);
    // Letters and colours of held-out looks are not in the program that draws.
    const program = await readFile(await imageAsset('desk', 'overlay/opt/dart/words.py'), 'utf8');
    for (const look of SETS.flatMap((set) => of(set, 'looks').flatMap(looksIn)))
      for (const [, hex] of look.matchAll(/#([0-9a-f]{6})/g))
        expect(program).not.toContain([0, 2, 4].map((i) => parseInt(hex!.slice(i, i + 2), 16)).join(', '));
    expect(program.match(/DejaVu [A-Z]\w+(?: Mono)?/g)!.every((f) => f.startsWith('DejaVu Sans'))).toBe(true);
  });

  it("a run's own evaluations use no task that is reported, and neither is trained on", () => {
    const training = new Set(
      tasks.families.flatMap((f) =>
        ('count' in f.seeds
          ? Array.from({ length: f.seeds.count }, (_, i) => (f.seeds as { from: number }).from + i)
          : f.seeds
        ).map((s) => `${f.id}#${s}`),
      ),
    );
    const own = tasks.probes(200).map((p) => `${p.family}#${p.seed}`);
    const reported = EVALUATION_SPLITS.filter((s) => s !== 'train').map((s) => tasks.probesOf(s, 200));
    for (const probes of reported) {
      expect(probes).toHaveLength(200);
      for (const p of probes) expect(own).not.toContain(`${p.family}#${p.seed}`);
    }
    for (const p of [...own, ...reported.flat().map((x) => `${x.family}#${x.seed}`)])
      expect(training.has(p)).toBe(false);
    for (const s of tasks.demoSeeds) expect(training.has(`${QUICKSTART_FAMILIES[0]!}#${s}`)).toBe(true);
  });

  it('every family of the quick start has unseen words or numbers; held-out templates are as they were', () => {
    for (const f of QUICKSTART_FAMILIES)
      expect(suite.holdouts(id<FamilyId>(f)), f).toEqual(expect.arrayContaining(['arrangements', 'words', 'looks']));
    expect(suite.holdouts('desk/note-clear' as FamilyId)).not.toContain('words');
    expect(() => suite.task('desk/note-clear' as FamilyId, probeSeed('test', 'words', 0))).toThrow(
      /no task of this split/,
    );
    const held = (fresh: boolean): string[] =>
      suite.families.filter((f) => f.split === 'heldout' && f.fresh === fresh).map((f) => f.id.slice(5));
    expect(held(false)).toEqual(HELD_OUT_TEMPLATES);
    expect(held(true)).toEqual(FRESH);
  });
});

describe('tasks of version 0.1', () => {
  it('are what they were, under the seeds they had', () => {
    const h = createHash('sha256');
    // The verifier of `note-discard` used to be passed by an editor that was quit untouched.
    for (const f of suite.families.filter((x) => ![...ADDED, 'note-discard'].includes(x.id.slice(5))))
      for (const seed of [0, 1, 7, 255, 1_000_000, 1_000_003]) {
        const t = suite.task(f.id, seed);
        // How often a set-up that failed is tried is no part of the task.
        const text = JSON.stringify([t.id, t.instruction, t.config, t.evaluator, t.maxSteps]);
        h.update(text.replaceAll(',"attempts":1', ''));
      }
    expect(h.digest('hex').slice(0, 16)).toBe('bdfb6ba62f17c897');
  });
  it('have seeds that no split of today has', () => {
    expect(trainSeed(0)).toBeGreaterThanOrEqual(2_000_000);
    const firsts = [trainSeed(0), ...SETS.flatMap((set) => HOLDOUTS.map((h) => probeSeed(set, h, 0)))];
    expect(new Set(firsts.map((s) => Math.floor(s / 1_000_000))).size).toBe(firsts.length);
  });
});

/** Not considered when the templates of training were chosen. */
const FRESH = [
  'form-fill-then-tick',
  'note-line-on-top',
  'folder-open-then-new',
  'term-titled-touch-exit',
  'cell-empty-then-fill',
  'window-minimize-one-close-one',
];
/** Templates that version 0.1 did not have; all but the fresh ones are trained on. */
const ADDED = [
  ...FRESH,
  'form-copy-number',
  'form-copy-name',
  'press-four',
  'press-unsaved',
  'form-register',
  'note-quit',
  'file-cut',
  'file-name',
  'cell-replace',
  'term-four',
  'term-note',
  'term-list',
  'note-clear-quit',
  'file-paste',
  'folder-delete',
  'form-leave',
  'form-secret',
  'cell-erase',
];
/** The split of templates of version 0.1. */
const HELD_OUT_TEMPLATES = [
  'press-three',
  'list-open',
  'form-login',
  'note-discard',
  'calc-click-long',
  'file-move',
  'folder-rename',
  'cell-clear',
  'term-clean',
  'window-maximize',
  'note-to-term',
];
