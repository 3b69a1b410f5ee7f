import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable, printableJson, printableLine } from '../../../runtime/foreign/terminalText.js';
import { jsonReporter, terminalReporter, type RunProgress } from '../../../runtime/run/reporter.js';

/** Whatever a terminal obeys: C0, DEL, C1, and what reorders or hides letters. */
const obeyed = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u;
const hostile = '\x1b]52;c;aGk=\x07\x1b[1A\x1b[2K\x9b2J\x90q\x7f\b\rok \u202etxt.exe\u2066';

describe('words of others on a terminal', () => {
  it('lose every control sequence', () => {
    expect(printable(hostile)).not.toMatch(obeyed);
    expect(printable('a\x1b[31mb')).toBe('a\ufffd[31mb');
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (s) => !obeyed.test(printable(s)) && !obeyed.test(printableLine(s))),
    );
  });
  it('are as they were where they are only words', () => {
    for (const words of ['', 'Größe 5 °C', 'a\n\tb', '日本語 ✓', '👩‍👩‍👧', 'می‌خواهم', '\u2028'])
      expect(printable(words)).toBe(words);
    expect(printable('a\r\nb')).toBe('a\nb');
  });
  it('make no rows of their own in a table', () => {
    expect(printableLine('a\r\nb\tc\nd\re')).toBe('a b c d e');
  });
  it('are the same words in JSON, and steer nothing there either', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (s) => {
        for (const indent of [0, 2]) {
          const json = printableJson(JSON.stringify({ [s]: [s] }, null, indent));
          expect(json).not.toMatch(obeyed);
          expect(JSON.parse(json)).toEqual({ [s]: [s] });
        }
      }),
    );
    expect(printableJson(JSON.stringify('\u{e0041}\x9b'))).toBe('"\\udb40\\udc41\\u009b"');
  });
});

it('the progress of a run steers nothing with what a server said', () => {
  const s = {
    phase: 'training',
    detail: hostile,
    elapsedMs: 0,
    curve: [],
    replicaVersions: [],
    errors: 1,
    newestError: hostile,
  } as unknown as RunProgress;
  for (const isTTY of [true, false]) {
    const written: string[] = [],
      out = { isTTY, columns: 1000, write: (text: string) => written.push(text) },
      r = terminalReporter(out as never, { now: () => 1e6 });
    r.status(s);
    r.note(hostile);
    r.end();
    const text = written.join('');
    expect(text.replaceAll('\r\x1b[2K', '')).not.toMatch(obeyed);
    expect(text).toContain('52;c;');
  }
  const written: string[] = [],
    json = jsonReporter({ write: (text: string) => written.push(text) } as never);
  json.note(hostile);
  json.status(s);
  expect(written.join('')).not.toMatch(obeyed);
  expect((JSON.parse(written[0]!) as { text: string }).text).toBe(hostile);
});
