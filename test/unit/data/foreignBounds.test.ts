import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventOf, JournalEvent } from '../../../runtime/data/events.js';
import { sqlJs } from '../../../runtime/data/store/indexEngine.js';
import { decodeRecord, encodeRecord } from '../../../runtime/data/store/record.js';
import { checkRecord } from '../../../runtime/data/store/recordChecks.js';
import { readMeta, RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import { packSteps, unpackSteps } from '../../../runtime/data/store/stepPack.js';
import { id, type PolicyVersion, type RolloutId, type RunId } from '../../../runtime/domain/index.js';
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

const DAY_MS = 86_400_000,
  t0 = Date.UTC(2026, 0, 1);
const spans = (o: Partial<EventOf<'spans'>> = {}): EventOf<'spans'> => ({
  type: 'spans',
  lane: 'd1',
  kind: 'desktop',
  t0,
  what: Uint8Array.of(1),
  start: Float32Array.of(0),
  ms: Float32Array.of(90_000),
  of: Uint8Array.of(255),
  rollouts: [],
  ...o,
});
const floats = (n: number, value: number): Float32Array => new Float32Array(n).fill(value);

describe('records of a journal of somebody else', () => {
  it.each<[string, Partial<EventOf<'spans'>>]>([
    ['at a time far away, without end', { t0: 1e25, ms: Float32Array.of(1e30) }],
    ['before all time', { t0: -1 }],
    ['at no time', { t0: NaN }],
    ['at a time that is a text', { t0: '5' as unknown as number }],
    ['longer than a year and a month', { ms: Float32Array.of(401 * DAY_MS) }],
    ['without end', { ms: Float32Array.of(Infinity) }],
    ['that begin long after the record', { start: Float32Array.of(401 * DAY_MS) }],
    ['that begin at no time', { start: Float32Array.of(NaN) }],
    ['of columns of several lengths', { ms: floats(2, 1) }],
    ['of lists that say they are long', { what: { length: 1e9 } as unknown as Uint8Array }],
    ['of lists in place of columns', { start: [0] as unknown as Float32Array }],
    [
      'in any number',
      { what: new Uint8Array(5000), of: new Uint8Array(5000), start: floats(5000, 0), ms: floats(5000, 1) },
    ],
    [
      'of years of minutes',
      { what: new Uint8Array(64), of: new Uint8Array(64), start: floats(64, 0), ms: floats(64, 300 * DAY_MS) },
    ],
    ['of no rollouts', { rollouts: 'r1' as unknown as string[] }],
  ])('spans %s are refused, before anything is counted', (_, o) => {
    expect(() => checkRecord(spans(o))).toThrow(expect.objectContaining({ kind: 'store.damaged' }) as Error);
  });

  it.each<[string, Partial<EventOf<'spans'>>]>([
    [
      'of a machine that slept for a week with its calls under way',
      { what: new Uint8Array(64), of: new Uint8Array(64), start: floats(64, 0), ms: floats(64, 7 * DAY_MS) },
    ],
    ['of a clock that was set back', { ms: Float32Array.of(-3_600_000) }],
    ['of an hour in 1970', { t0: 0 }],
  ])('spans %s are taken', (_, o) => {
    checkRecord(spans(o));
  });

  it.each([
    ['of an index without end', { index: Infinity }],
    ['of a version without end', { version: Infinity }],
    ['whose tokens say that they are many', { tokens: { logprobs: { length: 1e9 }, entropies: floats(1, 0) } }],
    ['without actions', { actions: undefined }],
  ])('a step %s is refused', (_, o) => {
    const step = { index: 0, actions: [], version: 0, ...o };
    expect(() => checkRecord({ type: 'rollout.step', rollout: 'r', step } as unknown as JournalEvent)).toThrow(
      expect.objectContaining({ kind: 'store.damaged' }) as Error,
    );
  });

  it('training of lists that say they are long is refused', () => {
    const trained = (o: object): JournalEvent =>
      ({
        type: 'batch.trained',
        batch: 'b',
        rollouts: [],
        version: 1,
        trajectories: [{ rollout: 'r', advantage: 1, steps: Int32Array.of(0), weights: floats(1, 1), ...o }],
      }) as unknown as JournalEvent;
    checkRecord(trained({}));
    for (const o of [{ steps: { length: 1e9 } }, { weights: 'x' }, { advantages: { length: 1e9 } }])
      expect(() => checkRecord(trained(o)), JSON.stringify(o)).toThrow('tells of training that cannot be');
  });

  it('a packed step with an infinite end is read as one step', () => {
    expect(unpackSteps(packSteps([[Infinity, 16, null, -Infinity]]))).toHaveLength(1);
  });

  it('a run that holds such spans says that it is damaged, to whoever reads it', async () => {
    await sqlJs();
    const run = join(dir, 'run'),
      store = await RunStore.open(run, { index: 'local', create: { id: id<RunId>('r'), createdAt: 0 } });
    await store.append(spans());
    await store.append(spans({ t0: 1e25, ms: Float32Array.of(1e30) }));
    await store.close();
    await expect(
      RunReader.open(run, { index: 'local' }).then(async (r) => {
        try {
          await r.index.query('SELECT COUNT(*) FROM lanes');
        } finally {
          await r.close();
        }
      }),
    ).rejects.toMatchObject({ kind: 'store.damaged' });
  });

  it('time of a lane is counted by the minute, also across minutes', async () => {
    await sqlJs();
    const store = await RunStore.open(join(dir, 'run'), {
      index: 'local',
      create: { id: id<RunId>('r'), createdAt: 0 },
    });
    try {
      await store.append(spans({ start: Float32Array.of(30_000), version: 1 as PolicyVersion }));
      expect(await store.index.query('SELECT minute, what, ms FROM span_minutes ORDER BY minute')).toEqual([
        { minute: t0 / 60_000, what: 1, ms: 30_000 },
        { minute: t0 / 60_000 + 1, what: 1, ms: 60_000 },
      ]);
      expect(await store.readSteps(id<RolloutId>('r'))).toEqual([]);
    } finally {
      await store.close();
    }
  });
});
