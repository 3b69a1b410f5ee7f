import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packAlternatives, unpackAlternatives } from '../../../runtime/data/alternatives.js';
import type { EventOf, StepExtra, StoredEvent } from '../../../runtime/data/events.js';
import {
  id,
  sequencesOf,
  type BatchId,
  type DesktopId,
  type FamilyId,
  type Frame,
  type FrameRef,
  type GroupId,
  type ReplicaId,
  type RolloutId,
  type Step,
  type TaskId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { remoteEpisode } from '../../helpers/policy/remoteEpisode.js';
import type { TrajectoryRow } from '../../../runtime/protocol/types.js';
import { bounds } from '../../../runtime/run/bounds.js';
import { SpanRecorder } from '../../../runtime/run/spanRecorder.js';
import { downsample, histogram } from '../../../runtime/queries/downsample.js';
import { mergeSpans, placesOf } from '../../../runtime/queries/lanes.js';
import { cellRect, stepView } from '../../../runtime/queries/steps.js';
import { redact } from '../../../runtime/service/machine.js';
import { choiceNames } from '../../../runtime/policy/embedded/choiceNames.js';
import { interpreter } from '../../../runtime/service/interpreter.js';
import { concerns, rowsNeeded, toRunEvent } from '../../../runtime/service/mapEvents.js';
import { parse, schemas } from '../../../runtime/service/params.js';
import { shrink } from '../../../runtime/service/thumbnailWorker.js';
import { changedRect } from '../../../runtime/service/watch.js';
import { trainedSteps } from '../../../runtime/run/trainLoop.js';

const rollout = (s: string): RolloutId => id<RolloutId>(s);

describe('downsampling', () => {
  it('keeps minimum, maximum, both ends and the order, within the bound', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 3000 }),
        fc.integer({ min: 4, max: 500 }),
        (xs, max) => {
          const at = downsample(xs, max),
            kept = at.map((i) => xs[i]!);
          expect(at.length).toBeLessThanOrEqual(max);
          expect(at).toEqual([...new Set(at)].sort((a, b) => a - b));
          if (xs.length === 0) return;
          expect([at[0], at.at(-1)]).toEqual([0, xs.length - 1]);
          const least = (v: readonly number[]) => v.reduce((a, b) => Math.min(a, b)),
            most = (v: readonly number[]) => v.reduce((a, b) => Math.max(a, b));
          expect([least(kept), most(kept)]).toEqual([least(xs), most(xs)]);
        },
      ),
    );
  });
  it('counts every value of a histogram once', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 5, noNaN: true })), (xs) => {
        expect(histogram(xs, 8).counts.reduce((a, b) => a + b, 0)).toBe(xs.length);
      }),
    );
    expect(histogram([0, 1, 1.9, 2], 2, 0, 2)).toEqual({ edges: [0, 1, 2], counts: [1, 3] });
  });
});

describe('lanes', () => {
  const span = (what: 'act' | 'decide', start: number, ms: number, of = 'r1') => ({
    what,
    start,
    ms,
    rollout: of,
    version: -1,
  });
  it('merges what is thinner than a pixel into what took most of it, and nothing else', () => {
    expect(
      mergeSpans(
        [span('act', 0, 1), span('decide', 1, 3), span('act', 4, 1), span('act', 30, 20), span('decide', 60, 2)],
        10,
      ),
    ).toEqual([span('decide', 0, 5), span('act', 30, 20), span('decide', 60, 2)]);
    // What was idle between them is not counted as busy.
    expect(mergeSpans([span('act', 0, 1, 'a'), span('act', 2, 1, 'b')], 10)).toEqual([span('act', 0, 2, '')]);
  });
  it('a replica that answers now and then is as busy at any width', () => {
    const spans = Array.from({ length: 2000 }, (_, i) => span('decide', i * 100, 16)),
      busy = (xs: readonly { readonly ms: number }[]): number => xs.reduce((a, x) => a + x.ms, 0);
    for (const pixel of [1, 20, 150, 999, 5000]) expect(busy(mergeSpans(spans, pixel))).toBeCloseTo(busy(spans), 6);
  });
  it('desktops that replace one another share a place', () => {
    const lives = Array.from({ length: 36 }, (_, i) => ({
      id: `local-${i}`,
      from: Math.floor(i / 6) * 1000 + (i % 6),
      to: Math.floor(i / 6) * 1000 + 990,
    }));
    const places = placesOf([...lives].reverse());
    expect(new Set(places.values())).toEqual(new Set([0, 1, 2, 3, 4, 5]));
    for (const [place] of new Set([...places.values()]).entries()) {
      const mine = lives.filter((l) => places.get(l.id) === place).sort((a, b) => a.from - b.from);
      for (let i = 1; i < mine.length; i++) expect(mine[i]!.from).toBeGreaterThanOrEqual(mine[i - 1]!.to);
    }
  });

  it('records what desktops do a few seconds at once, and decisions and syncs of a replica by version', () => {
    const out: EventOf<'spans'>[] = [],
      r = new SpanRecorder((e) => out.push(e)),
      desktop = id<DesktopId>('d1'),
      replica = id<ReplicaId>('replica-1');
    const lane = (phase: 'setup' | 'observe' | 'perform' | 'released', at: number) => {
      r.onScheduler({ type: 'lane', desktop, phase, ...(phase === 'released' ? {} : { rollout: rollout('r1') }), at });
    };
    r.onPool({ type: 'state', desktop, state: 'resetting', at: 900 });
    r.onPool({ type: 'state', desktop, state: 'ready', at: 950 });
    lane('setup', 1000);
    lane('observe', 1100);
    lane('perform', 1103);
    lane('released', 1110);
    r.onPool({ type: 'state', desktop, state: 'resetting', at: 1110 });
    r.onPool({ type: 'state', desktop, state: 'ready', at: 1200 });
    r.flush(1500);
    expect(out).toEqual([]);
    r.flush(4000);
    expect(out).toHaveLength(1);
    expect({
      ...out[0],
      what: [...out[0]!.what],
      start: [...out[0]!.start],
      ms: [...out[0]!.ms],
      of: [...out[0]!.of],
    }).toEqual({
      type: 'spans',
      lane: 'd1',
      kind: 'desktop',
      t0: 900,
      rollouts: ['r1'],
      what: [0, 1, 2, 4, 0],
      start: [0, 100, 200, 203, 210],
      ms: [50, 100, 3, 7, 90],
      of: [255, 0, 0, 0, 255],
    });
    r.onModels({ type: 'decided', replica, session: 'r1', version: 1, start: 2000, ms: 5 });
    r.onModels({ type: 'phase', replica, phase: 'draining', version: 1, at: 2010 });
    r.onModels({ type: 'phase', replica, phase: 'swapping', version: 1, at: 2015 });
    r.onModels({ type: 'phase', replica, phase: 'admitting', version: 2, at: 2030 });
    r.flush(2040);
    expect(out).toHaveLength(2);
    r.flush(9000);
    expect(out.slice(1).map((e) => [e.lane, e.version, [...e.what], [...e.ms]])).toEqual([
      ['replica-1', 1, [3], [5]],
      ['replica-1', 2, [9], [20]],
    ]);
    r.trainer('update', 3000, 3500, 3);
    expect(out.at(-1)).toMatchObject({ lane: 'trainer', kind: 'trainer', version: 3 });
  });
});

describe('the bound X*', () => {
  const m = {
    desktops: 6,
    rolloutSeconds: 3,
    steps: 4,
    replicas: 2,
    decisionsPerSecond: 50,
    trainedPerRollout: 2,
    trainer: { perUpdate: 24, seconds: 10, share: 0.6 },
  };
  it('is the least of desktops, replicas and trainer', () => {
    expect(bounds(m)).toEqual({
      by: 'desktops',
      rolloutsPerHour: 7200,
      stepsPerMinute: 480,
      trainedActionsPerMinute: 240,
    });
    expect(bounds({ ...m, decisionsPerSecond: 2 })).toMatchObject({ by: 'replicas', rolloutsPerHour: 3600 });
    expect(bounds({ ...m, trainer: { perUpdate: 6, seconds: 10, share: 0.6 } })).toMatchObject({
      by: 'trainer',
      rolloutsPerHour: 3600,
    });
  });
  it('is not told before anything was measured', () => {
    expect(bounds({ ...m, rolloutSeconds: 0 })).toBeUndefined();
  });
});

describe('steps', () => {
  const step: Step = {
    index: 0,
    frame: { hash: 'a', width: 640, height: 400 },
    actions: [],
    origin: 'policy',
    settled: true,
    timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
    tokens: { logprobs: Float32Array.of(-0.5), entropies: Float32Array.of(1), ids: Int32Array.of(0) },
  };
  it('names choices of old journals from their ids, and always has the chosen one among the alternatives', () => {
    const v = stepView(
      {
        step,
        at: 1,
        instruction: 'Press OK',
        extra: { alternatives: [[{ label: 'type', probability: 0.3 }]] },
      },
      { choiceNames },
    );
    expect(v.tokens).toEqual([
      {
        label: 'click',
        logprob: -0.5,
        entropy: 1,
        alternatives: [
          { label: 'type', probability: 0.3 },
          { label: 'click', probability: Math.exp(-0.5) },
        ],
      },
    ]);
  });
  it('alternatives come back from their columns, and from the lists of old journals', () => {
    const lists = [
      [
        { label: 'click', probability: 0.6065 },
        { label: 'type', probability: 0.3 },
      ],
      [],
      [{ label: ' "x"\n', probability: 0.012_34 }],
    ];
    expect(unpackAlternatives(packAlternatives(lists))).toEqual(lists);
    const shown = (extra: StepExtra): unknown =>
      stepView({ step, at: 1, instruction: '', extra: { ...extra, labels: ['click'] } }, { choiceNames }).tokens;
    expect(shown({ packed: packAlternatives(lists) })).toEqual(shown({ alternatives: lists }));
  });
  it('of a remote model say what was shown, rejected, unknown and only bounded; JSON keeps all of it', () => {
    const frame = (n: number): FrameRef => ({ hash: `${n}`, width: 1280, height: 720 }),
      { steps, extras } = remoteEpisode([
        { frame: frame(1), text: 'Thought: One.' },
        {
          frame: frame(2),
          text: 'Thought: Two.',
          unknown: [1],
          rejected: [
            { text: 'no', reason: 'no action' },
            { text: 'not', reason: 'none either' },
          ],
        },
      ]),
      [, , , own] = sequencesOf({ id: rollout('r'), steps }),
      facts = { step: steps[1]!, at: 1, instruction: '', extra: extras[1], tokenWeights: Float32Array.of(0.5, NaN) };
    const v = stepView({ ...facts, sequence: own }, { choiceNames });
    expect(JSON.stringify(v)).not.toContain('null');
    expect(v).toMatchObject({
      entropyBound: 'lower',
      prompt: { tokens: own!.symbols.length - 2 + 2 * 1196, images: [frame(1), frame(2)] },
      rejected: [
        { text: 'no', reason: 'no action', version: 12, tokens: [{ label: 'no' }, { label: '<|im_end|>' }] },
        { text: 'not', reason: 'none either' },
      ],
    });
    expect(v.tokens![0]).toMatchObject({ label: 'Thought', weight: 0.5, logprob: expect.any(Number) as number });
    expect([v.tokens![1]!.logprob, v.tokens![1]!.weight]).toEqual([undefined, undefined]);
    // By itself a step does not know its prompt; a damaged one says so.
    expect(stepView(facts, { choiceNames }).prompt).toBe('pending');
    expect(stepView({ ...facts, sequence: 'damaged' }, { choiceNames }).prompt).toBe('damaged');
    // Ids of a model's tokens are never taken for choices, nor are tokens without words shown for a rejected answer.
    const bare = stepView({ ...facts, extra: undefined }, { choiceNames });
    expect(bare.tokens!.every((x, i) => x.label === `token ${i + 1}`)).toBe(true);
    expect(bare.rejected!.map((x) => x.tokens)).toEqual([undefined, undefined]);
  });
  it('cuts cells off at the edges of the screen', () => {
    // A screen of 2:1 in an observation of 320x200: 20 rows of letterbox above.
    expect(cellRect([0, 20, 320, 160, 8, 40], 0, { width: 640, height: 320 })).toEqual({
      x: 0,
      y: 0,
      width: 16,
      height: 0,
    });
    expect(cellRect([0, 20, 320, 160, 8, 40], 2 * 40 + 1, { width: 640, height: 320 })).toEqual({
      x: 16,
      y: 0,
      width: 16,
      height: 8,
    });
  });
});

describe('weights of trained steps', () => {
  it('go back to their trajectories, in order', () => {
    const s = (of: string, step: number, advantage: number) => ({
      trajectory: { id: rollout(of) } as Trajectory,
      step,
      advantage,
      kind: 'policy' as const,
      weight: 1,
    });
    const t = trainedSteps([s('a', 0, 1), s('b', 2, -1), s('a', 3, 1)], {
      sampleWeights: Float32Array.of(0.5, 1, 0.25),
      tokenWeights: [Float32Array.of(0.5, 0.75), undefined, undefined],
    });
    expect(t.map((x) => [x.rollout, x.advantage, [...x.steps], [...x.weights]])).toEqual([
      ['a', 1, [0, 3], [0.5, 0.25]],
      ['b', -1, [2], [1]],
    ]);
    expect(t.map((x) => x.tokenWeights?.map((w) => [...w]))).toEqual([[[0.5, 0.75], []], undefined]);
  });
});

describe('events for subscribers', () => {
  const row = (of: string, o: Partial<TrajectoryRow> = {}): TrajectoryRow => ({
    rollout: of,
    task: 't',
    family: 'f',
    instruction: 'do',
    outcome: 'success',
    reward: 1,
    provenance: 'rollout',
    steps: 3,
    cap: 5,
    group: 'g',
    startedAt: 5,
    state: 'trained',
    kept: 2,
    ...o,
  });
  const rows = new Map([
    ['a', row('a')],
    ['b', row('b', { outcome: 'failure', reward: 0 })],
    ['c', row('c', { outcome: 'error' })],
    ['q', { ...row('q', { outcome: 'error' }), startedAt: undefined } as unknown as TrajectoryRow],
  ]);
  const stored = (e: object): StoredEvent => ({ seq: 7, at: 100, ...e }) as StoredEvent,
    options = interpreter({ baseline: 'trajectory', norm: 'std' });
  const map = (e: object) => toRunEvent(stored(e), rows, options);
  const formed = {
    type: 'group.formed',
    group: id<GroupId>('g'),
    family: id<FamilyId>('f'),
    task: id<TaskId>('t'),
    version: 1,
    threshold: 0.3,
    retired: [{ rollout: rollout('c'), reason: 'replaced' }],
    members: [
      { rollout: rollout('a'), injected: true, reward: 1, keep: [true, true, false] },
      { rollout: rollout('b'), injected: false, reward: 0, keep: [true] },
    ],
  };

  it('a started rollout runs, whatever became of it since', () => {
    expect(map({ type: 'rollout.started', rollout: 'a', version: 2, desktop: 'd', instruction: 'press' })).toEqual({
      seq: 7,
      at: 100,
      type: 'started',
      desktop: 'd',
      row: {
        rollout: 'a',
        task: 't',
        family: 'f',
        instruction: 'press',
        outcome: 'running',
        provenance: 'rollout',
        state: 'running',
        group: 'g',
        steps: 0,
        cap: 5,
        startedAt: 100,
      },
    });
  });
  it('a group tells members, advantages and who left', () => {
    const e = map(formed);
    expect(e).toMatchObject({ type: 'group', injected: 1, keptShare: 0.75, group: { id: 'g', threshold: 0.3 } });
    if (e?.type !== 'group') throw new Error('no group');
    expect(e.group.members.map((m) => [m.rollout, m.injected, m.retired, Math.sign(m.advantage ?? 0)])).toEqual([
      ['a', true, undefined, 1],
      ['b', false, undefined, -1],
      ['c', false, 'replaced', 0],
    ]);
  });
  it('a retired rollout has ended as an error; an order never begun, and one with a verdict, is told no more', () => {
    expect(map({ type: 'rollout.retired', rollout: 'c', group: 'g', reason: 'stopped' })).toMatchObject({
      type: 'ended',
      row: { outcome: 'error', errorKind: 'stopped', endedAt: 100 },
    });
    expect(map({ type: 'rollout.retired', rollout: 'q', group: 'g', reason: 'stopped' })).toBeUndefined();
    expect(map({ type: 'rollout.retired', rollout: 'a', group: 'g', reason: 'lost' })).toBeUndefined();
  });
  it('a trajectory that ended tells its outcome even when its row is not known', () => {
    const head = {
      id: 'z',
      task: 't',
      family: 'f',
      instruction: 'i',
      provenance: { kind: 'oracle' },
      steps: 2,
      outcome: { kind: 'success', reward: 1, truncated: false },
      cap: 3,
      startedAt: 1,
      endedAt: 2,
      resetMs: 0,
      verifyMs: 0,
    };
    expect(map({ type: 'trajectory.recorded', head })).toMatchObject({
      type: 'ended',
      row: { rollout: 'z', outcome: 'success', reward: 1, provenance: 'oracle', state: 'kept', steps: 2 },
    });
  });
  it.each<[string, object, object]>([
    [
      'metrics',
      { type: 'metrics', source: 'update', values: { loss: 1 }, lists: { h: [1] } },
      { source: 'update', values: { loss: 1 }, lists: { h: [1] } },
    ],
    [
      'eval',
      {
        type: 'eval',
        version: 3,
        episodes: 4,
        successes: 2,
        errors: 0,
        low: 0.1,
        high: 0.9,
        label: 'final',
        infeasible: { episodes: 2, successes: 1 },
      },
      { point: { label: 'final', at: 100, version: 3, infeasible: { episodes: 2, successes: 1 } } },
    ],
    ['checkpoint', { type: 'checkpoint', version: 3, dir: 'x' }, { version: 3, path: 'x' }],
    [
      'trained',
      { type: 'batch.trained', batch: id<BatchId>('b'), rollouts: ['a'], version: 4, checkpoint: 'checkpoints/v4' },
      { version: 4, rollouts: ['a'], path: 'checkpoints/v4' },
    ],
    ['note', { type: 'log', level: 'warn', message: 'careful' }, { level: 'warn', message: 'careful' }],
    ['closed', { type: 'run.closed', reason: 'stopped' }, { reason: 'stopped' }],
    [
      'spans',
      {
        type: 'spans',
        lane: 'replica-1',
        kind: 'replica',
        t0: 10,
        what: Uint8Array.of(9),
        start: Float32Array.of(2),
        ms: Float32Array.of(3),
        of: Uint8Array.of(255),
        rollouts: [],
        version: 4,
      },
      {
        lanes: [{ id: 'replica-1', what: ['sync'], start: [12], ms: [3], rollout: [''], version: [4] }],
        syncs: [{ lane: 'replica-1', start: 12, ms: 3, version: 4 }],
      },
    ],
  ])('%s', (type, e, want) => {
    expect(map(e)).toMatchObject({ seq: 7, at: 100, type, ...want });
  });
  it('records that are not for people give nothing', () => {
    for (const type of ['run.opened', 'rollout.queued', 'group.opened', 'batch.claimed', 'pool.added'])
      expect(map({ type })).toBeUndefined();
  });
  it('knows what concerns a trajectory, and whose rows it needs', () => {
    expect(['a', 'b', 'c', 'x'].map((r) => concerns(stored(formed), r))).toEqual([true, true, true, false]);
    expect(concerns(stored({ type: 'batch.trained', rollouts: ['b'], trajectories: [{ rollout: 'a' }] }), 'a')).toBe(
      true,
    );
    expect(concerns(stored({ type: 'metrics' }), 'a')).toBe(false);
    expect(rowsNeeded(stored(formed))).toEqual(['a', 'b', 'c']);
    expect(rowsNeeded(stored({ type: 'rollout.step', rollout: 'a', extra: { labels: [] } }))).toEqual([]);
  });
});

describe('the boundary', () => {
  it('refuses what is wrong and names where', () => {
    expect(() =>
      parse('trajectory/list', schemas.listTrajectories, {
        run: '/r',
        limit: 0,
        filter: { outcome: ['won'] },
        more: 1,
      }),
    ).toThrow(/limit: .*filter\.outcome\.0: /s);
    for (const bad of [{ run: 'relative' }, { run: '' }, {}, null, [], 'x', { run: '/a\0b' }])
      expect(() => parse('run/get', schemas.run, bad)).toThrow(
        expect.objectContaining({ kind: 'params.invalid' }) as Error,
      );
    expect(() =>
      parse('frame/thumbnails', schemas.thumbnails, { run: '/r', width: 100, hashes: ['../../etc/passwd'] }),
    ).toThrow(/hashes\.0/);
    expect(parse('run/get', schemas.run, { run: '/r' })).toEqual({ run: '/r' });
  });
  it('never throws anything else, whatever comes', () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.values(schemas)), fc.jsonValue(), (schema, value) => {
        try {
          parse<unknown>('m', schema, value);
        } catch (e) {
          expect(e).toMatchObject({ kind: 'params.invalid' });
        }
      }),
    );
  });
});

describe('diagnostics', () => {
  it('hide home and secrets', () => {
    const text = redact(
      '/home/ann/runs/x token: abc123 "apiKey": "k-9" Authorization: Bearer a.b-c sk-abcdefgh12 password=hunter2, fine',
      '/home/ann',
    );
    expect(text).toBe(
      '~/runs/x token: [redacted] "apiKey": "[redacted]" Authorization: Bearer [redacted] [redacted] password=[redacted], fine',
    );
  });
});

describe('pixels', () => {
  const frame = (w: number, h: number, set: readonly [number, number][] = []): Frame => {
    const data = Buffer.alloc(w * h * 4);
    for (const [x, y] of set) data.writeUInt32LE(0xffffff, (y * w + x) * 4);
    return { width: w, height: h, data, capturedAt: 0 };
  };
  it('find the smallest rectangle of what changed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 19 }), fc.integer({ min: 0, max: 11 })), {
          minLength: 1,
          maxLength: 6,
        }),
        (set) => {
          const xs = set.map((p) => p[0]),
            ys = set.map((p) => p[1]),
            x = Math.min(...xs),
            y = Math.min(...ys);
          expect(changedRect(frame(20, 12), frame(20, 12, set))).toEqual({
            x,
            y,
            width: Math.max(...xs) - x + 1,
            height: Math.max(...ys) - y + 1,
          });
        },
      ),
    );
    expect(changedRect(frame(5, 5, [[1, 1]]), frame(5, 5, [[1, 1]]))).toBeUndefined();
  });
  it('shrink by averaging every pixel', () => {
    const s = shrink(Buffer.from([0, 0, 0, 90, 90, 90, 30, 30, 30, 60, 60, 60]), 2, 2, 1);
    expect([s.width, s.height, ...s.scanlines]).toEqual([1, 1, 0, 45, 45, 45]);
    expect(shrink(Buffer.alloc(7 * 5 * 3, 200), 7, 5, 3)).toMatchObject({ width: 3, height: 2 });
    expect([...shrink(Buffer.alloc(7 * 5 * 3, 200), 7, 5, 3).scanlines].filter((v) => v !== 0)).toEqual(
      new Array(18).fill(200),
    );
  });
});
