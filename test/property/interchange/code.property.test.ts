import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalAction } from '../../../runtime/domain/index.js';
import { compactJson, sliceOf } from '../../../runtime/interchange/compactJson.js';
import { readSlice } from '../../../runtime/interchange/folder.js';
import { CodeReader } from '../../../runtime/interchange/pyautoguiRead.js';
import { actionsCode } from '../../../runtime/domain/pyautogui/write.js';
import { parseCalls, pyString } from '../../../runtime/domain/pyautogui/python.js';
import { trainTasks } from '../../../runtime/interchange/split.js';
import { Unusable } from '../../../runtime/interchange/types.js';
import { inFolder, put } from '../../helpers/interchange/make.js';
import { actionsIn, screens } from '../../helpers/interchange/arbitrary.js';

describe('code of actions', () => {
  test('any text survives being written as Python', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (s) => {
        expect(parseCalls(`f(${pyString(s)})`)[0]!.args).toEqual([s]);
      }),
    );
  });
  test.each(['absolute', 'relative'] as const)('actions written as %s code are read back the same', (space) => {
    fc.assert(
      fc.property(
        screens.chain((screen) => fc.tuple(fc.constant(screen), actionsIn(screen, 4))),
        ([screen, actions]) => {
          expect(new CodeReader(space).read(actionsCode(actions, space, screen), screen).map(canonicalAction)).toEqual(
            actions.map(canonicalAction),
          );
        },
      ),
      { numRuns: 500 },
    );
  });
  test('whatever the text, reading it gives actions or says why not', () => {
    const words = [
      'pyautogui',
      '.',
      'click',
      '(',
      ')',
      '1',
      '-2.5',
      ',',
      "'",
      '"',
      "'''",
      '=',
      'x',
      '\n',
      ' ',
      '[',
      ']',
      '\\',
      '#',
      'import time',
      ';',
      'keyDown',
      'ctrl',
      'None',
      'time.sleep',
      '\u{1F600}',
    ];
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 })), { maxLength: 30 }),
        (parts) => {
          try {
            new CodeReader('absolute').read(parts.join(''), { width: 100, height: 100 });
          } catch (e) {
            expect(e).toBeInstanceOf(Unusable);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe('JSON with its long texts left where they are', () => {
  test('equals JSON.parse, and every slice is the text at its bytes', async () => {
    const long = fc.integer({ min: 32_769, max: 40_000 }).map((n) => 'QUJD'.repeat(Math.ceil(n / 4)));
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(
          fc.string({ maxLength: 8 }),
          fc.oneof(
            long,
            fc.string({ unit: 'binary', maxLength: 50 }),
            fc.integer(),
            fc.array(fc.oneof(fc.string(), long), { maxLength: 3 }),
          ),
          { maxKeys: 5 },
        ),
        fc.boolean(),
        async (value, pretty) =>
          inFolder(async (dir) => {
            const file = join(dir, 'a.json'),
              text = JSON.stringify(value, null, pretty ? 2 : undefined);
            await put(file, text);
            const back = (await compactJson(file)).value;
            expect(await restored(file, back)).toEqual(JSON.parse(text));
          }),
      ),
      { numRuns: 60 },
    );
  });
  async function restored(file: string, v: unknown): Promise<unknown> {
    const s = sliceOf(v);
    if (s) return (await readSlice(file, s.offset, s.length)).toString('utf8');
    if (Array.isArray(v)) return Promise.all(v.map((x) => restored(file, x)));
    if (typeof v === 'object' && v !== null)
      return Object.fromEntries(
        await Promise.all(Object.entries(v).map(async ([k, x]) => [k, await restored(file, x)] as const)),
      );
    return v;
  }
});

test('a split puts every task on one side, neither side empty, near the share', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 40 }),
      fc.double({ min: 0.05, max: 0.95, noNaN: true }),
      fc.integer(),
      (counts, share, seed) => {
        const perTask = new Map(counts.map((n, i) => [`t${i}`, n])),
          total = counts.reduce((a, b) => a + b, 0);
        const train = trainTasks(perTask, share, seed),
          have = [...train].reduce((n, t) => n + perTask.get(t)!, 0);
        expect(trainTasks(perTask, share, seed)).toEqual(train);
        expect(train.size).toBeGreaterThan(0);
        expect(train.size).toBeLessThan(perTask.size);
        expect(Math.abs(have - share * total)).toBeLessThanOrEqual(Math.max(...counts));
      },
    ),
  );
});
