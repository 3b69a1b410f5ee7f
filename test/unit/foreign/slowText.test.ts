import { expect, it } from 'vitest';
import { redact as redactExtension } from '../../../extension/model/redact.js';
import { parseRunText } from '../../../runtime/config/index.js';
import { parseTrajectory, trajectoryFileFormat } from '../../../runtime/domain/index.js';
import { withoutSlashes } from '../../../runtime/foreign/address.js';
import { redact as redactLog } from '../../../runtime/server/log.js';
import { redact as redactDiagnostics } from '../../../runtime/service/machine.js';
import { Endpoints } from '../../../runtime/policy/remote/endpoints.js';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import { TrainingHttp } from '../../../runtime/trainer/remote/http.js';
import { threadMs } from '../../helpers/machine/loopWatch.js';

/** Text of others that a regular expression of ours took the square of its length for. */

const n = 60_000;
/** Processor time of this thread, the best of three: on a busy machine one may be late for reasons of others. */
const ms = (f: () => void): number =>
  Math.min(
    ...[1, 2, 3].map(() => {
      const began = threadMs();
      f();
      return threadMs() - began;
    }),
  );

it('addresses lose the slashes at their end, however many there are anywhere', () => {
  expect(['http://a/', 'http://a//', 'http://a', '/', ''].map(withoutSlashes)).toEqual([
    'http://a',
    'http://a',
    'http://a',
    '',
    '',
  ]);
  const url = `http://a${'/'.repeat(n)}x`;
  expect(ms(() => new Endpoints({ baseUrls: [url] }))).toBeLessThan(250);
  expect(ms(() => new ModelServer({ url }))).toBeLessThan(250);
  expect(ms(() => new TrainingHttp({ url }))).toBeLessThan(250);
});

it('secrets are taken out of text in time that grows with its length', () => {
  const o = { home: '/home/me', user: 'me' };
  for (const text of ['a'.repeat(n), 'a-'.repeat(n / 2), 'token '.repeat(n / 6), `${'_'.repeat(n)}token=abcdefgh`]) {
    expect(
      ms(() => redactLog(text)),
      `log ${text.slice(0, 8)}`,
    ).toBeLessThan(500);
    expect(
      ms(() => redactDiagnostics(text)),
      `diagnostics ${text.slice(0, 8)}`,
    ).toBeLessThan(500);
    expect(
      ms(() => redactExtension(text, o)),
      `extension ${text.slice(0, 8)}`,
    ).toBeLessThan(500);
  }
  for (const redact of [redactLog, redactDiagnostics, (t: string) => redactExtension(t, o)])
    expect(redact(`MY_${'X'.repeat(60)}_API_KEY=abcdefgh1 token: zyxwvuts`)).not.toMatch(/abcdefgh1|zyxwvuts/);
});

it('a run file with keys without number and without end is refused in words, and at once', () => {
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 4_500 }, (_, i) => [`key${i}`, i]))),
    long = JSON.stringify({ ['k'.repeat(200_000)]: 1 }),
    places = JSON.stringify({
      policy: { ['a'.repeat(30)]: 1 },
      trainer: { b: 1 },
      desktops: { c: 1 },
      curation: { d: 1 },
    });
  for (const text of [many, long, places, '['.repeat(500_000), ' '.repeat(2_000_000)]) {
    const refuse = (): void => {
      expect(() => parseRunText(text, 'run.json')).toThrow(/run file|unknown key|run\.json/);
    };
    refuse();
    expect(ms(refuse), text.slice(0, 20)).toBeLessThan(150);
  }
});

it('a preset that is no name is refused in words', () => {
  for (const preset of [{ toString: 7 }, 7, [], null])
    expect(() => parseRunText(JSON.stringify({ preset }), 'run.json')).toThrow(/preset/);
});

it('a trajectory file whose version is no number is refused in words', () => {
  const head = { format: trajectoryFileFormat, formatVersion: { toString: 7 } };
  expect(parseTrajectory(JSON.stringify(head))).toMatchObject({ ok: false });
});
