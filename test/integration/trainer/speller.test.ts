import { describe, expect, it, onTestFinished } from 'vitest';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BANDS,
  gridOf,
  headOffsets,
  id,
  random,
  seenText,
  type BatchId,
  type EmbeddedSample,
} from '../../../runtime/domain/index.js';
import * as ort from 'onnxruntime-node';
import { openGraph } from '../../../runtime/policy/embedded/graphSession.js';
import { ScreenReader, WINDOW } from '../../../runtime/policy/embedded/screenReader.js';
import { CLASSES } from '../../../runtime/domain/alphabet.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { gradGraph, LOSS_PARAMS, TOKENS } from '../../../runtime/trainer/native/model/lossGraph.js';
import { placedParams } from '../../../runtime/trainer/native/model/params.js';
import {
  foundShapes,
  policyGraph,
  towerGraph,
  writePolicyGraph,
} from '../../../runtime/trainer/native/model/policyGraph.js';
import { bandsGraph, rowsGraph } from '../../../runtime/trainer/native/model/rowReader.js';
import { spellGraph } from '../../../runtime/trainer/native/model/spellGraph.js';
import { TOWER_SIZE, towerGrid } from '../../../runtime/trainer/native/model/tower.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import {
  demonstration,
  glyphTask,
  hits,
  readingScreen,
  SMALL_READER,
  type GlyphTask,
} from '../../helpers/trainer/glyphScreens.js';
import {
  f32,
  f64,
  ints,
  randomStates,
  relative,
  roughTheta,
  sessionOf,
  slope,
  TINY_READER,
  tinyReaderModel,
} from '../../helpers/trainer/tinyModel.js';

const model = tinyReaderModel(),
  P = model.layout.total,
  READER = model.reader!.parameters,
  B = 2;
const normal = (n: number, rng: ReturnType<typeof random>): Float64Array =>
  Float64Array.from({ length: n }, () => rng.normal());

describe('the gradients of a policy that spells', () => {
  it("are those of its reader's lesson", async () => {
    const rng = random('spelling'),
      { rows, cols } = towerGrid(TINY_READER),
      n = B * rows * cols,
      session = await sessionOf(spellGraph(model, B, 'f64'));
    const feeds = {
      obs: randomStates(TINY_READER, B, rng).obs,
      targets: ints(
        Array.from({ length: n }, () => rng.int(CLASSES)),
        [n],
      ),
      weight: f64(
        Array.from({ length: n }, (_, i) => (i % 4 === 3 ? 0 : rng.next())),
        [n],
      ),
      accumulated: f64(new Float64Array(P), [P]),
    };
    const at = async (theta: Float64Array): Promise<{ loss: number; gradient: Float64Array }> => {
      const out = await session.run({ ...feeds, theta: f64(theta, [P]) });
      return { loss: (out.loss!.data as Float64Array)[0]!, gradient: out.gradient!.data as Float64Array };
    };
    const theta = roughTheta(model, 3),
      { gradient } = await at(theta);
    expect(gradient.subarray(READER).every((x) => x === 0)).toBe(true);
    for (let k = 0; k < 4; k++) {
      const direction = normal(P, rng),
        along = gradient.reduce((s, g, i) => s + g * direction[i]!, 0);
      expect(relative(along, await slope(async (x) => (await at(x)).loss, theta, direction, 1e-6))).toBeLessThan(1e-4);
    }
    await session.release();
  });

  it('are those of its decisions; none reaches the reader', async () => {
    const rng = random('deciding'),
      K = 3,
      session = await sessionOf(
        gradGraph(model, B, K, { algorithm: 'ppo', tis: true, fresh: false, reference: true }, 'f64'),
      );
    const shapes = foundShapes(model, B),
      perToken = (f: () => number): ReturnType<typeof f64> =>
        f64(Array.from({ length: B * K * TOKENS }, f), [B, K, TOKENS]);
    const off = headOffsets(TINY_READER),
      typed = TINY_READER.types.indexOf('type'),
      // A click, a typed text that is read from a cell, a key.
      choices = [
        [0, off.cell + 3, 0],
        [typed, off.text + seenText(TINY_READER), off.cell2 + 5],
        [2, off.key + 1, 0],
      ];
    const feeds = {
      ...randomStates(TINY_READER, B, rng),
      ...Object.fromEntries(
        Object.entries(shapes).map(([k, s]) => [
          k,
          f64(
            Array.from({ length: s.reduce((a, b) => a * b, 1) }, () => (k === 'features' ? rng.normal() : rng.next())),
            s,
          ),
        ]),
      ),
      choices: ints([...choices, ...choices].flat(), [B, K * TOKENS]),
      mask: f64(Array.from({ length: B * K }, (_, i) => (i % K === 1 ? [1, 1, 1] : [1, 1, 0])).flat(), [B, K, TOKENS]),
      policyWeight: perToken(() => 0.2 + rng.next()),
      imitationWeight: perToken(() => rng.next()),
      rollout: perToken(() => -1.5 - rng.next()),
      corrected: perToken(() => 1),
      old: perToken(() => -1.6 - rng.next()),
      ref: perToken(() => -1.2 - rng.next()),
      advantage: f64(normal(B * K, rng), [B, K]),
      entropyWeight: f64([0.05, 0.1], [B]),
      lossParams: f64(
        LOSS_PARAMS.map(
          (k) => ({ epsLow: 0.2, epsHigh: 0.28, dualClip: 9, tisCap: 0.9, klBeta: 0.3, temperature: 1.25 })[k],
        ),
        [LOSS_PARAMS.length],
      ),
      accumulated: f64(new Float64Array(P), [P]),
    };
    const at = async (theta: Float64Array): Promise<{ loss: number; gradient: Float64Array }> => {
      const out = await session.run({ ...feeds, theta: f64(theta, [P]) });
      return { loss: (out.parts!.data as Float64Array)[0]!, gradient: out.gradient!.data as Float64Array };
    };
    const theta = roughTheta(model, 5),
      { gradient } = await at(theta);
    expect(gradient.subarray(0, READER).every((x) => x === 0)).toBe(true);
    expect(gradient.subarray(READER).filter((x) => x !== 0).length).toBeGreaterThan((P - READER) / 3);
    for (let k = 0; k < 4; k++) {
      const direction = normal(P, rng),
        along = gradient.reduce((s, g, i) => s + g * direction[i]!, 0);
      expect(relative(along, await slope(async (x) => (await at(x)).loss, theta, direction, 1e-6))).toBeLessThan(1e-4);
    }
    await session.release();
  });
});

describe('places beside a word', () => {
  const { rows, cols } = gridOf(TINY_READER),
    [row, left] = [0, 0];
  /** Logits of the first place with these weights, where one word of the instruction stands in two cells of a row. */
  async function placer(): Promise<(theta: Float32Array) => Promise<Float32Array>> {
    const rng = random('beside'),
      session = await sessionOf(policyGraph(model, 1)),
      shapes = foundShapes(model, 1),
      found = new Float32Array(shapes.found.reduce((a, b) => a * b, 1));
    onTestFinished(() => session.release());
    for (const col of [left, left + 1]) found[row * cols + col] = 1;
    const feeds = {
      ...randomStates(TINY_READER, 1, rng),
      features: f32(
        normal(
          shapes.features.reduce((a, b) => a * b, 1),
          rng,
        ),
        shapes.features,
      ),
      found: f32(found, shapes.found),
      facts: f32(new Float32Array(shapes.facts.reduce((a, b) => a * b, 1)), shapes.facts),
    };
    return async (theta) => (await session.run({ ...feeds, theta: f32(theta, [P]) })).cell!.data as Float32Array;
  }
  /** The weights with some of them changed. */
  function changed(theta: Float32Array, change: (name: string, values: Float32Array) => void): Float32Array {
    const out = theta.slice();
    for (const { name, from, to } of placedParams(model.layout)) change(name, out.subarray(from, to));
    return out;
  }
  const one = (v: Float32Array, ...at: number[]): void => {
    v.fill(0);
    for (const i of at) v[i] = 50;
  };
  const minus = (a: Float32Array, b: Float32Array): number[] => Array.from(a, (x, i) => x - b[i]!);

  it('are those of its row and of its columns, and as much in each of them', async () => {
    const cells = await placer(),
      theta = Float32Array.from(roughTheta(model, 9)),
      without = changed(theta, (name, v) => name.startsWith('line.') && v.fill(0)),
      by = minus(await cells(theta), await cells(without)),
      ofRow = by[row * cols + left + 2]!,
      ofCol = by[(row + 1) * cols + left]!;
    expect(Math.abs(ofRow)).toBeGreaterThan(0.01);
    expect(Math.abs(ofCol)).toBeGreaterThan(0.01);
    by.forEach((x, i) => {
      const c = i % cols,
        want = (Math.floor(i / cols) === row ? ofRow : 0) + (c === left || c === left + 1 ? ofCol : 0);
      expect(x).toBeCloseTo(want, 3);
    });
  });

  it('are as many cells from it as the decision says', async () => {
    const cells = await placer(),
      sure = changed(Float32Array.from(roughTheta(model, 9)), (name, v) => {
        if (name === 'apart.rows.w' || name === 'apart.cols.w') v.fill(0);
        // One down and two to the right of the word itself, of both words that are sought.
        if (name === 'apart.rows.b') one(v, 3 + 1, 7 + 3 + 1);
        if (name === 'apart.cols.b') one(v, 6 + 2, 19 + 6 + 2);
      }),
      by = minus(await cells(sure), await cells(changed(sure, (name, v) => name === 'seek.gain' && v.fill(0)))),
      there = [(row + 1) * cols + left + 2, (row + 1) * cols + left + 3];
    by.forEach((x, i) => {
      if (there.includes(i)) expect(Math.abs(x)).toBeGreaterThan(0.1);
      else expect(x).toBeCloseTo(0, 3);
    });
    expect(by).toHaveLength(rows * cols);
    expect(Math.max(...there)).toBeLessThan(rows * cols);
  });
});

describe('the rows that a replica reads by themselves', () => {
  it('are what they are on their screen, the first and the last among them', async () => {
    const rng = random('rows'),
      theta = Float32Array.from(roughTheta(model, 4)),
      f32 = (data: Float32Array, dims: readonly number[]): ort.Tensor => new ort.Tensor('float32', data, dims),
      { rows, cols } = towerGrid(TINY_READER),
      [bandsAtOnce, rowsAtOnce] = [3, 2];
    const screen = await sessionOf(towerGraph(model)),
      ofBands = await sessionOf(bandsGraph(TINY_READER, bandsAtOnce)),
      ofRows = await sessionOf(rowsGraph(TINY_READER, rowsAtOnce)),
      its = f32(theta.slice(0, READER), [READER]),
      empty = (...dims: number[]): ort.Tensor => f32(new Float32Array(dims.reduce((n, x) => n * x, 1)), dims),
      patches = empty(WINDOW, bandsAtOnce * cols),
      bands = empty(rowsAtOnce, BANDS, cols, TOWER_SIZE.stem);
    let logits: number[] = [];
    const reader = new ScreenReader(TINY_READER, {
      bands: [
        {
          atOnce: bandsAtOnce,
          input: patches.data as Float32Array,
          run: async () => {
            const out = await ofBands.run({ theta: its, patches });
            return { strokes: out.strokes!.data as Float32Array };
          },
        },
      ],
      rows: [
        {
          atOnce: rowsAtOnce,
          input: bands.data as Float32Array,
          run: async () => {
            const out = await ofRows.run({ theta: its, bands });
            logits.push(...(out.logits!.data as Float32Array));
            return { features: out.features!.data as Float32Array, logits: out.logits!.data as Float32Array };
          },
        },
      ],
    });
    for (let n = 0; n < 3; n++) {
      const { obs } = randomStates(TINY_READER, 1, rng),
        whole = await screen.run({ theta: f32(theta, [P]), obs }),
        features = new Float32Array(rows * cols * TOWER_SIZE.width);
      logits = [];
      await reader.look(obs.data as Uint8Array, features);
      const apart = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
        Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
      expect(apart(whole.features!.data as Float32Array, features)).toBeLessThan(1e-4);
      expect(apart(whole.logits!.data as Float32Array, logits)).toBeLessThan(1e-4);
    }
    await Promise.all([screen, ofBands, ofRows].map((s) => s.release()));
  });
});

const SMALL = SMALL_READER,
  LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const DEMONSTRATED = ['SAVE', 'OPEN', 'COPY', 'HELP'],
  UNSEEN = ['EXIT', 'FIND', 'ZOOM', 'BOLD', 'VIEW', 'UNDO'];

type Logits = Awaited<ReturnType<Awaited<ReturnType<typeof openGraph>>['run']>>;
const best = (a: Float32Array): number => a.reduce((b, x, i) => (x > a[b]! ? i : b), 0);

const most = (a: Float32Array): number => Math.max(...a);

/** Uses the weights as a replica does: the graphs on disk, the reader first. */
async function asReplica<T>(l: Learner, use: (g: Awaited<ReturnType<typeof openGraph>>) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'speller-')),
    graph = join(dir, 'policy.onnx'),
    path = join(dir, 'weights.f32'),
    bytes = new Uint8Array(l.theta.buffer, l.theta.byteOffset, l.theta.byteLength);
  await writePolicyGraph(l.model.spec, graph);
  await writeFile(path, bytes);
  const g = await openGraph(l.model.spec, graph, { path, sha256: createHash('sha256').update(bytes).digest('hex') });
  try {
    return await use(g);
  } finally {
    await g.release();
    await rm(dir, { recursive: true });
  }
}

describe('a policy that spells', () => {
  it('clicks and reads words that neither lessons nor demonstrations had; what it does leaves its reader as it was', async () => {
    const rng = random('speller'),
      l = await Learner.create(SMALL, { ...baseTrainerOptions, imitateStates: 8 }, 1),
      string = (): string => Array.from({ length: 3 + rng.int(3) }, () => LETTERS[rng.int(LETTERS.length)]!).join(''),
      lessons = Array.from({ length: 120 }, () => {
        const strings = [string(), string(), string(), string()].filter((w) => !UNSEEN.includes(w));
        return readingScreen(glyphTask(SMALL, rng, 4, strings));
      });
    const before = l.theta.slice();
    await l.read(lessons, { steps: 350, lr: 6e-3, shift: 4 });
    const reader = l.model.reader!.parameters,
      read = l.theta.slice();
    expect(read.subarray(reader)).toEqual(before.subarray(reader));
    expect(read.subarray(0, reader)).not.toEqual(before.subarray(0, reader));

    const tasks = (n: number, words: readonly string[]): GlyphTask[] =>
        Array.from({ length: n }, () => glyphTask(SMALL, rng, 3, words)),
      demos = tasks(100, DEMONSTRATED).map((t, i) => demonstration(SMALL, t, `d${i}`));
    await l.imitate({ id: id<BatchId>('demos'), samples: demos, epochs: 1 }, { steps: 120, lr: 3e-3, shift: 4 });
    expect(l.theta.subarray(0, reader)).toEqual(read.subarray(0, reader));
    expect(l.theta.subarray(reader)).not.toEqual(read.subarray(reader));

    await asReplica(l, async (g) => {
      const probe = tasks(60, UNSEEN);
      let hit = 0,
        same = 0;
      for (const t of probe) {
        const logits: Logits = await g.run(t.state),
          cell = best(logits.cell);
        hit += hits(SMALL, t.target, cell) ? 1 : 0;
        const middle =
          Math.floor((t.target.y + t.target.h / 2) / 8) * 12 + Math.floor((t.target.x + t.target.w / 2) / 8);
        same += g.textAt(middle) === t.target.word ? 1 : 0;
      }
      console.log(`unseen words: ${hit} of 60 clicked, ${same} of 60 read`);
      expect(hit).toBeGreaterThanOrEqual(48);
      expect(same).toBeGreaterThanOrEqual(18);
    });

    // A text that a demonstration read has its place looked for, and the trainer scores what the replica sampled.
    const t = tasks(1, UNSEEN)[0]!,
      off = headOffsets(SMALL),
      typed = Int32Array.of(SMALL.types.indexOf('type'), off.text + seenText(SMALL)),
      sample = (choices: Int32Array, more: Partial<EmbeddedSample>): EmbeddedSample => ({
        ...demonstration(SMALL, t, 'read'),
        choices,
        ...more,
      });
    const found = await l.imitate(
        { id: id<BatchId>('read'), samples: [sample(typed, { reads: t.target.word })], epochs: 1 },
        { steps: 1, lr: 1e-9, shift: 0 },
      ),
      absent = await l.imitate(
        { id: id<BatchId>('absent'), samples: [sample(typed, { reads: 'QQQQQQQ' })], epochs: 1 },
        { steps: 1, lr: 1e-9, shift: 0 },
      );
    expect([found.states > 0, absent.states]).toEqual([true, 0]);
    const logprobs = await asReplica(l, async (g) => {
      const logits = await g.run(t.state),
        log = (a: Float32Array, i: number): number =>
          a[i]! - Math.log(a.reduce((s, x) => s + Math.exp(x - most(a)), 0)) - most(a);
      return Float32Array.of(log(logits.type, 0), log(logits.cell, 17));
    });
    const report = await l.update({
      id: id<BatchId>('update'),
      samples: [sample(Int32Array.of(0, off.cell + 17), { kind: 'policy', advantage: 1, rolloutLogprobs: logprobs })],
      epochs: 1,
    });
    expect(Math.abs(report.klK1)).toBeLessThan(1e-3);
    await l.release();
  }, 120_000);
});
