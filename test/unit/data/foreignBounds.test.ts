import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeRecord, encodeRecord } from '../../../runtime/data/store/record.js';
import { readMeta } from '../../../runtime/data/store/runStore.js';
import { parseTrajectory, trajectoryFileFormat } from '../../../runtime/domain/trajectoryFile.js';
import { listRunFolders } from '../../../runtime/run/runFolders.js';

/** What costs nothing to write and seconds to parse. */
const nested = (depth: number): unknown => {
  let v: unknown = 1;
  for (let i = 0; i < depth; i++) v = [v];
  return v;
};

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-bounds-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe('JSON in a run folder of somebody else is looked at before it is parsed', () => {
  it.each([
    ['nested too deep', JSON.stringify({ format: 1, id: 'x', config: nested(33) }), 'within one another'],
    ['of too many values', JSON.stringify({ format: 1, id: 'x', config: Array(20_001).fill(0) }), 'values'],
    ['too large', JSON.stringify({ format: 1, id: 'x', config: 'x'.repeat(1 << 20) }), 'bytes long'],
  ])('a run.json %s', async (_, text, why) => {
    const run = join(dir, 'run');
    await mkdir(run);
    await writeFile(join(run, 'run.json'), text);
    await expect(readMeta(run)).rejects.toMatchObject({
      kind: 'store.io',
      message: expect.stringMatching(new RegExp(`run\\.json .*(${why})`)) as string,
    });
    expect(await listRunFolders(dir)).toEqual([]);
  });

  it('a long record of a journal, and only a long one', () => {
    const long = { type: 'log', message: 'x'.repeat(70_000), details: nested(100) };
    expect(() => decodeRecord(encodeRecord(1, long))).toThrow(/cannot be understood/);
    const { details: _, ...flat } = long;
    expect(decodeRecord(encodeRecord(1, flat))).toEqual(flat);
    const short = { type: 'log', details: nested(100) };
    expect(decodeRecord(encodeRecord(1, short))).toEqual(short);
  });

  const head = {
    format: trajectoryFileFormat,
    formatVersion: 1,
    framesDir: 'frames',
    row: { rollout: 'r', instruction: 'i', task: 't', family: 'f', outcome: 'success' },
  };
  it('a line of a trajectory file', () => {
    const t = parseTrajectory([head, nested(1000)].map((l) => JSON.stringify(l)).join('\n'));
    expect(t).toMatchObject({ ok: true, skipped: [{ line: 2 }] });
    expect(parseTrajectory(JSON.stringify({ ...head, x: nested(1000) }))).toMatchObject({ ok: false, line: 1 });
  });

  it('a step whose actions or timings could not be drawn is left out of a trajectory file', () => {
    const frame = { hash: 'a'.repeat(64), width: 1, height: 1 },
      parsed = (action: object, timings: object = { observe: 1 }): string[] => {
        const t = parseTrajectory(
          [head, { index: 0, frame, timings, actions: [action] }].map((l) => JSON.stringify(l)).join('\n'),
        );
        return t.ok ? t.skipped.map((s) => s.why) : ['no file'];
      },
      at = { x: 1, y: 2.5 };
    for (const drawn of [
      { type: 'click', at, modifiers: ['ctrl'] },
      { type: 'drag', from: at, to: at },
      { type: 'scroll', at, direction: 'up', amount: 3 },
      { type: 'hotkey', keys: ['a'] },
      { type: 'type', text: '' },
      { type: 'wait' },
      { type: 'finished', answer: 'x' },
      { type: 'of tomorrow', at: null },
    ])
      expect(parsed(drawn), JSON.stringify(drawn)).toEqual([]);
    for (const bad of [
      { type: 'click' },
      { type: 'click', at: null },
      { type: 'click', at: { x: '1', y: 2 } },
      { type: 'click', at, modifiers: 'ctrl' },
      { type: 'drag', from: at },
      { type: 'scroll', at, direction: 'sideways' },
      { type: 'scroll', at, direction: 'up', amount: '3' },
      { type: 'hotkey', keys: 'a' },
      { type: 'hotkey', keys: [1] },
      { type: 'type', text: 5 },
      { type: 'wait', ms: null },
      { type: 'fail', reason: {} },
    ])
      expect(parsed(bad), JSON.stringify(bad)).toEqual(['actions is not a list of actions']);
    expect(parsed({ type: 'wait' }, { observe: null })).toEqual(['timings are not numbers']);
  });
});
