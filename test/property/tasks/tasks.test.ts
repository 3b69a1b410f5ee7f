import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { argv, fillPlaceholders } from '../../../runtime/tasks/command.js';
import { HOME, desktopPath } from '../../../runtime/tasks/context.js';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { fuzzRatio, sequenceRatio } from '../../../runtime/tasks/metrics/sequence.js';
import { pyRegex } from '../../../runtime/tasks/metrics/pyRegex.js';
import { withPython } from '../../../runtime/tasks/pyautogui.js';
import { shlex } from '../../../runtime/tasks/shlex.js';
import type { Value } from '../../../runtime/tasks/values.js';
import { FileValue, equal, splitLines } from '../../../runtime/tasks/values.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';

const engine = createTaskEngine({ metrics: localMetrics });
const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Value>;

describe('evaluate', () => {
  /** A metric with a wanted score: similarity of n lines of which k are alike. */
  const part = (
    k: number,
    n: number,
    i: number,
  ): { files: Record<string, string>; result: unknown; expected: unknown } => {
    const lines = Array.from({ length: n }, (_, j) => `line ${j}`);
    return {
      files: { [`/r${i}`]: lines.map((l, j) => (j < k ? l : `other ${j}`)).join('\n'), [`/e${i}`]: lines.join('\n') },
      result: { type: 'vm_file', path: `/r${i}`, dest: `r${i}` },
      expected: { type: 'vm_file', path: `/e${i}`, dest: `e${i}` },
    };
  };
  it('and: 0 when one is 0, else the mean; or: the best; success exactly at 1; always within [0, 1]', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 }),
        fc.constantFrom('and', 'or'),
        async (ks, conj) => {
          const parts = ks.map((k, i) => part(k, 4, i));
          const d = new FakeDesktop(
            undefined,
            Object.assign({}, ...parts.map((p) => p.files)) as Record<string, string>,
          );
          const o = await engine.verify(
            taskOf({
              func: ks.map(() => 'diff_text_file'),
              result: parts.map((p) => p.result),
              expected: parts.map((p) => p.expected),
              conj,
            }),
            d,
            { type: 'finished' },
            never,
          );
          const scores = ks.map((k) => k / 4);
          const want =
            conj === 'or'
              ? Math.max(...scores)
              : scores.includes(0)
                ? 0
                : scores.reduce((a, b) => a + b, 0) / scores.length;
          expect(o.reward).toBeCloseTo(want, 12);
          expect(o.kind).toBe(o.reward === 1 ? 'success' : 'failure');
          expect(o.report!.checks.length).toBeLessThanOrEqual(ks.length);
        },
      ),
      { numRuns: 100 },
    );
  });
  it('gives: the metric sees exactly the files at these places, in file order, missing ones as nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
        fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1 }),
        async (there, gives) => {
          const d = new FakeDesktop(
            undefined,
            Object.fromEntries(there.flatMap((t, i) => (t ? [[`/f${i}`, `text ${i}`]] : []))),
          );
          const seen = gives.filter((g) => g < there.length).sort((a, b) => a - b);
          // check_thunderbird_folder compares lists pairwise: the golds are the given files themselves, from plain
          // getters.
          fc.pre(seen.length > 0);
          const result = {
            type: 'vm_file',
            multi: true,
            path: there.map((_, i) => `/f${i}`),
            dest: there.map((_, i) => `f${i}`),
            gives,
          };
          const gold = {
            type: 'vm_file',
            multi: true,
            path: seen.map((i) => `/gold${i}`),
            dest: seen.map((i) => `gold${i}`),
            gives: seen.map((_, i) => i),
          };
          for (const i of seen) d.files.set(`/gold${i}`, Buffer.from(`text ${i}`));
          const o = await engine.verify(
            taskOf({ func: 'check_thunderbird_folder', result, expected: gold }),
            d,
            undefined,
            never,
          );
          expect(o.reward).toBe(seen.every((i) => there[i]) ? 1 : 0);
        },
      ),
      { numRuns: 200 },
    );
  });
  it("exact_match on any value is Python's ==", async () => {
    await fc.assert(
      fc.asyncProperty(json, json, async (a, b) => {
        const run = async (x: Value, y: Value): Promise<number> =>
          (
            await engine.verify(
              taskOf({
                func: 'exact_match',
                result: { type: 'rule', rules: x },
                expected: { type: 'rule', rules: { expected: y } },
              }),
              new FakeDesktop(),
              undefined,
              never,
            )
          ).reward;
        expect(await run(a, a)).toBe(1);
        expect(await run(a, b)).toBe(equal(a, b) ? 1 : 0);
      }),
      { numRuns: 100 },
    );
  });
  it('whatever bytes the agent leaves, every file metric gives a score or a fault of the rule, never crashes otherwise', async () => {
    const rules: Record<string, unknown> = {
      expected: [],
      include: [],
      exclude: [],
      expect: [],
      key: 'a',
      value: 'b',
      type: 'contain',
      font_name: 'a',
      minutes: 1,
      max_size: 3,
      recording_file_path: '/',
      expected_qt_max_volume: 1,
      title: { method: 'eq', ref: 'x' },
    };
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom(
          'check_include_exclude',
          'check_list',
          'check_csv',
          'check_json',
          'check_config_status',
          'find_default_font',
          'check_auto_saving_time',
          'check_image_size',
          'check_image_file_size',
          'check_qt_max_volume',
          'is_vlc_recordings_folder',
          'is_extension_installed',
          'file_contains',
        ),
        async (bytes, func) => {
          const o = await engine.verify(
            taskOf({
              func,
              result: { type: 'vm_file', path: '/f', dest: 'f' },
              expected: {
                type: 'rule',
                rules: func === 'check_json' || func === 'check_csv' || func === 'check_list' ? { expect: [] } : rules,
              },
            }),
            new FakeDesktop(undefined, { '/f': Buffer.from(bytes) }),
            undefined,
            never,
          );
          expect(o.reward).toBeGreaterThanOrEqual(0);
          expect(o.reward).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('the Python it stands for', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '"', "'", '\\', '\t', 'é'), maxLength: 6 });
  it('splitting quoted words gives the words', () => {
    fc.assert(
      fc.property(fc.array(word), (words) => {
        expect(shlex(words.map((w) => `'${w.replaceAll("'", `'"'"'`)}'`).join(' '))).toEqual(words);
      }),
    );
  });
  it('similarity is symmetric in range, 1 for equals, 0 for strangers', () => {
    const lines = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 });
    fc.assert(
      fc.property(lines, lines, (a, b) => {
        const r = sequenceRatio(a, b);
        expect(r).toBeGreaterThanOrEqual(0);
        expect(r).toBeLessThanOrEqual(1);
        expect(sequenceRatio(a, a)).toBe(1);
        if (a.length > 0 && b.length > 0)
          expect(
            sequenceRatio(
              a,
              b.map((x) => x.toUpperCase()),
            ),
          ).toBe(0);
        // A longest common subsequence is never shorter than matched blocks.
        expect(fuzzRatio(a.join(''), b.join(''))).toBeGreaterThanOrEqual(r - 1e-12);
      }),
      { numRuns: 100 },
    );
  });
  it('line splitting keeps every character but the separators', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 1 })), (ls) => {
        expect(splitLines(ls.join('\n'))).toEqual(ls);
        expect(splitLines(ls.map((l) => `${l}\r\n`).join(''))).toEqual(ls);
      }),
    );
  });
  it('an escaped text matches itself', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 20 }).filter((s) => !/[\n\r]/.test(s)),
        (s) => {
          const escaped = [...s].map((c) => (/[\p{L}\p{N}_]/u.test(c) ? c : `\\${c}`)).join('');
          expect(pyRegex(`^${escaped}$`).test(s)).toBe(true);
        },
      ),
    );
  });
});

describe('commands', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'python', ' ', '{', '}', 'SCREEN_WIDTH', '/', '~', '$'),
    maxLength: 12,
  });
  it('a list of words stays that list; shell text goes to one shell', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1 }), (ws) => {
        // A leading ~/ stands for the home directory.
        const words = ws.map((w) => w.replace(/^(~\/)+/, ''));
        expect(argv({ command: words })).toEqual(words);
        expect(argv({ command: words[0]!, shell: true })).toEqual(['/bin/sh', '-c', words[0]]);
      }),
    );
  });
  it('placeholders never change the number of words, and nothing but themselves', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1 }), (words) => {
        const filled = fillPlaceholders(words, 'pw', { width: 1281, height: 720 }) as string[];
        expect(filled).toHaveLength(words.length);
        filled.forEach((f, i) => {
          if (!/\{SCREEN_WIDTH\}/.test(words[i]!)) expect(f).toBe(words[i]);
        });
      }),
    );
  });
  it('the python stand-in keeps every argument', () => {
    fc.assert(
      fc.property(fc.array(text), (rest) => {
        expect(withPython(['python', ...rest]).slice(4)).toEqual(rest);
        expect(withPython(['/bin/sh', '-c', 'python x', ...rest]).slice(3)).toEqual(rest);
      }),
    );
  });
  it("paths are absolute, plain and inside the desktop's root", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '/', '.', '..', '~', 'b c'), minLength: 1, maxLength: 12 }),
        (p) => {
          const d = desktopPath(p);
          expect(d.startsWith('/')).toBe(true);
          expect(d.split('/').filter((x) => x === '..' || x === '.')).toEqual([]);
          expect(desktopPath(d)).toBe(d);
          if (!p.includes('..') && !p.startsWith('/')) expect(d.startsWith(HOME)).toBe(true);
        },
      ),
    );
  });
  it('file values are equal only to themselves', () => {
    const f = new FileValue('a', Buffer.from('x'));
    expect([equal(f, f), equal(f, new FileValue('a', Buffer.from('x')))]).toEqual([true, false]);
  });
});
