import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as ort from 'onnxruntime-node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  GLYPH_SPEC,
  headOffsets,
  id,
  random,
  StudioError,
  type BatchId,
  type RolloutId,
  type EmbeddedSample,
  type EmbeddedBatch,
} from '../../../runtime/domain/index.js';
import type { ProcessEntry } from '../../../runtime/concurrency/process.js';
import { sha256 } from '../../../runtime/trainer/checkpoint.js';
import { createTrainer, type TrainerSetup } from '../../../runtime/trainer/native/engine.js';
import type { LearnerProgress } from '../../../runtime/trainer/native/learner.js';
import { writePolicyGraph } from '../../../runtime/trainer/native/model/policyGraph.js';
import type { EmbeddedTrainer } from '../../../runtime/trainer/types.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { trainerEntry } from '../../helpers/trainer/entry.js';
import { randomStates, TINY } from '../../helpers/trainer/tinyModel.js';

const off = headOffsets(TINY);
function batch(n: number, seed = 1, spec = TINY): EmbeddedBatch {
  const rng = random(`engine/${seed}`);
  const samples = Array.from({ length: n }, (_, i): EmbeddedSample => {
    const s = randomStates(spec, 1, random(`state/${seed}/${i >> 2}`));
    return {
      rollout: id<RolloutId>(`r${i}`),
      step: 0,
      stateKey: `s${i >> 2}`,
      state: {
        obs: s.obs.data as Uint8Array,
        instruction: s.instruction.data as Int32Array,
        history: s.history.data as Int32Array,
      },
      choices: Int32Array.of(0, off.cell + rng.int(8)),
      rolloutLogprobs: Float32Array.of(-1.6, -2.1),
      kind: 'policy',
      advantage: i % 2 ? 1 : -1,
      weight: 1,
    };
  });
  return { id: id<BatchId>(`b${seed}`), samples, epochs: 1 };
}
const demos = (b: EmbeddedBatch): EmbeddedBatch => ({
  ...b,
  samples: b.samples.map((s) => ({ ...s, kind: 'imitation', advantage: 0 })),
});
async function failure(p: Promise<unknown>): Promise<StudioError> {
  try {
    await p;
  } catch (e) {
    if (e instanceof StudioError) return e;
    throw e;
  }
  throw new Error('it did not fail');
}

describe('the trainer process', () => {
  let entry: ProcessEntry, dir: string;
  const open: EmbeddedTrainer[] = [];
  beforeAll(async () => {
    entry = await trainerEntry();
    dir = await mkdtemp(join(tmpdir(), 'trainer-'));
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((t) => t.close()));
  });
  afterAll(async () => {
    await rm(dir, { recursive: true, force: true });
  });
  const start = async (
    o: Partial<Omit<TrainerSetup, 'options'>> & { name: string; options?: Partial<TrainerSetup['options']> },
  ): Promise<EmbeddedTrainer> => {
    const t = await createTrainer({
      entry,
      spec: TINY,
      seed: 1,
      dir: join(dir, o.name),
      ...o,
      options: { ...baseTrainerOptions, lr: 3e-3, warmup: 1, imitateStates: 4, ...o.options },
    });
    open.push(t);
    return t;
  };
  const weights = async (t: EmbeddedTrainer): Promise<Buffer> => readFile((await t.exportWeights()).path);

  it('learns: imitation lowers its loss, rewarded actions become likelier', async () => {
    const seen: LearnerProgress[] = [];
    const t = await start({
      name: 'learns',
      onProgress: (p) => {
        seen.push(p);
      },
    });
    const b = batch(12),
      first = await t.imitate(demos(b), { steps: 1, lr: 1e-3, shift: 0 }),
      later = await t.imitate(demos(b), { steps: 60, lr: 5e-3, shift: 0 });
    expect(later.imitationLoss).toBeLessThan(first.imitationLoss);
    expect(later).toMatchObject({ version: 2, optimizerSteps: 60, states: 240, skippedNonFinite: 0 });
    expect(seen.at(-1)).toMatchObject({ kind: 'imitate', step: 60, steps: 60 });
    // The same advantages again and again: the surrogate -A rho w at lpOld falls below its start.
    const u = await t.update({ ...b, epochs: 6 });
    expect(u).toMatchObject({ version: 3, samples: 12, states: 3, optimizerSteps: 6 });
    expect(u.policyLoss).toBeLessThan(0);
    expect(u.ratioMax).toBeGreaterThan(1);
    expect(u.tisHistogram.reduce((a, x) => a + x, 0)).toBe(24);
    expect(u.gradNorm).toBeGreaterThan(0);
  });

  it('reuses a batch as long as its samples still speak for the weights reached', async () => {
    const t = await start({ name: 'reuse', options: { lr: 1e-2, warmup: 1 } }),
      b = batch(12);
    const all = await t.update({ ...b, epochs: 1, reuse: { epochs: 5, ess: 0 } });
    expect(all).toMatchObject({ epochs: 5, optimizerSteps: 5 });
    expect(all.reuseEss).toBeLessThan(1);
    // The gate is asked after each pass: above what the passes reached it stops them, and the passes of `epochs` are
    // always made.
    const gated = await t.update({ ...batch(12, 2), epochs: 2, reuse: { epochs: 50, ess: 0.999 } });
    expect(gated.epochs).toBeGreaterThanOrEqual(2);
    expect(gated.epochs).toBeLessThan(50);
    expect(gated.reuseEss).toBeLessThan(0.999);
    expect(await t.update(batch(12, 3))).toMatchObject({ epochs: 1, reuseEss: 1 });
  });

  it('trains a batch with the share of the learning rate it is told', async () => {
    const half = await start({ name: 'half' }),
      slow = await start({ name: 'slow', options: { lr: 1.5e-3, warmup: 1 } }),
      whole = await start({ name: 'whole' });
    await half.update({ ...batch(12), lrScale: 0.5 });
    await slow.update(batch(12));
    await whole.update({ ...batch(12), lrScale: 1 });
    expect((await weights(half)).equals(await weights(slow))).toBe(true);
    expect((await weights(half)).equals(await weights(whole))).toBe(false);
  });

  it('goes on from a checkpoint bit for bit', async () => {
    const a = await start({ name: 'resume' });
    await a.imitate(demos(batch(8)), { steps: 3, lr: 1e-3, shift: 3 });
    await a.update(batch(12));
    const c = await a.checkpoint();
    const go = async (t: EmbeddedTrainer): Promise<Buffer> => {
      await t.update({ ...batch(12, 2), epochs: 2 });
      await t.imitate(demos(batch(8, 3)), { steps: 2, lr: 1e-3, shift: 3 });
      return weights(t);
    };
    const straight = await go(a);
    const b = await start({ name: 'resume', seed: 99 });
    await b.restore(c);
    expect((await b.exportWeights()).version).toBe(2);
    expect((await go(b)).equals(straight)).toBe(true);
    expect(await readdir(join(dir, 'resume'))).not.toContainEqual(expect.stringMatching(/tmp$/));
  });

  it('writes a policy.onnx that anyone can run, equal to the policy graph fed with the exported weights', async () => {
    const t = await start({ name: 'onnx', spec: GLYPH_SPEC });
    const c = await t.checkpoint(),
      w = await t.exportWeights();
    const file = join(dir, 'policy-with-theta.onnx');
    await writePolicyGraph(GLYPH_SPEC, file);
    const bytes = await readFile(w.path),
      theta = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    expect(sha256(bytes)).toBe(w.sha256);
    const baked = await ort.InferenceSession.create(join(c.dir, 'policy.onnx')),
      open2 = await ort.InferenceSession.create(file);
    expect([...baked.inputNames].sort()).toEqual(['history', 'instruction', 'obs']);
    expect([...open2.inputNames].sort()).toEqual(['history', 'instruction', 'obs', 'theta']);
    const inputs = randomStates(GLYPH_SPEC, 1, random(4));
    const x = await baked.run(inputs),
      y = await open2.run({ ...inputs, theta: new ort.Tensor('float32', theta, [theta.length]) });
    for (const [head, size] of Object.entries({ type: 12, cell: 1000, cell2: 1000, text: 26, key: 36 })) {
      expect(x[head]!.dims).toEqual([1, size]);
      const p = x[head]!.data as Float32Array,
        q = y[head]!.data as Float32Array;
      p.forEach((v, i) => {
        expect(Math.abs(v - q[i]!)).toBeLessThan(1e-4 * Math.max(1, Math.abs(v)));
      });
    }
    expect((x.text!.data as Float32Array)[23]).toBeLessThan(-1e8);
    await baked.release();
    await open2.release();
  });

  it('says what is wrong with a damaged or foreign checkpoint, and goes on', async () => {
    const t = await start({ name: 'damage' }),
      c = await t.checkpoint();
    const weightsFile = join(c.dir, 'weights.f32'),
      good = await readFile(weightsFile);
    const bad = Buffer.from(good);
    bad[100]! ^= 1;
    await writeFile(weightsFile, bad);
    expect((await failure(t.restore(c))).error).toMatchObject({
      kind: 'trainer.invalid',
      message: expect.stringContaining('checksum') as string,
    });
    await truncate(weightsFile, 40);
    expect((await failure(t.restore(c))).message).toMatch(/40 bytes/);
    await rm(weightsFile);
    expect((await failure(t.restore(c))).message).toMatch(/missing/);
    expect((await failure(t.restore({ version: 1, dir: join(dir, 'nowhere') }))).message).toMatch(/manifest/);
    await writeFile(weightsFile, good);
    await t.restore(c);
    const other = await start({ name: 'other', spec: { ...TINY, id: 'tiny-2' } });
    expect((await failure(other.restore(c))).message).toMatch(/'tiny'.*'tiny-2'/);
  });

  it('refuses batches it cannot use, before computing', async () => {
    const t = await start({ name: 'invalid' }),
      b = batch(4);
    const alter = (o: Partial<EmbeddedSample>): EmbeddedBatch => ({ ...b, samples: [{ ...b.samples[0]!, ...o }] });
    for (const [o, words] of [
      [{ choices: Int32Array.of(0, 9999) }, /outside/],
      [{ choices: new Int32Array(0) }, /1 to 3/],
      [{ rolloutLogprobs: Float32Array.of(-1) }, /log-probs/],
      [{ advantage: NaN }, /advantage/],
      [{ state: { ...b.samples[0]!.state, obs: new Uint8Array(3) } }, /does not fit/],
      [{ state: { ...b.samples[0]!.state, instruction: Int32Array.of(99, 0, 0, 0, 0, 0) } }, /instruction token/],
      [{ state: { ...b.samples[0]!.state, history: Int32Array.of(0, 9, 0, 0, 0, 0, 0, 0, 0) } }, /history entry/],
    ] as const) {
      const e = await failure(t.update(alter(o)));
      expect(e.kind).toBe('trainer.invalid');
      expect(e.message).toMatch(words);
    }
    expect((await t.update(b)).version).toBe(1);
    expect((await t.update({ ...b, samples: [] })).version).toBe(1);
  });

  it('skips a step whose gradient is not finite and keeps the weights', async () => {
    const t = await start({ name: 'nan' }),
      before = await weights(t);
    const r = await t.update({
      ...batch(4),
      samples: batch(4).samples.map((s) => ({ ...s, advantage: 3e38, weight: 1e38 })),
    });
    expect(r).toMatchObject({ skippedNonFinite: 1, optimizerSteps: 0 });
    expect((await weights(t)).equals(before)).toBe(true);
    expect((await t.update(batch(4))).skippedNonFinite).toBe(0);
  });

  it('reports a killed process as trainer.lost, now and afterwards', async () => {
    const t = await start({ name: 'killed' });
    const pid = (t as unknown as { child: { pid: number } }).child.pid,
      running = failure(t.imitate(demos(batch(8)), { steps: 100_000, lr: 1e-3, shift: 0 }));
    process.kill(pid, 'SIGKILL');
    expect((await running).kind).toBe('trainer.lost');
    expect((await failure(t.update(batch(4)))).kind).toBe('trainer.lost');
    await t.close();
  });

  it('ends cleanly while a call is running, and answers that call first', async () => {
    const t = await start({ name: 'close' });
    const running = t.imitate(demos(batch(8)), { steps: 20, lr: 1e-3, shift: 0 }),
      child = (t as unknown as { child: { exitCode: number | null; signalCode: string | null } }).child;
    await t.close();
    expect((await running).optimizerSteps).toBe(20);
    expect([child.exitCode, child.signalCode]).toEqual([0, null]);
  });

  it('keeps the last exports only', async () => {
    const exportDir = join(dir, 'exports'),
      t = await start({ name: 'exports', options: { exportDir } });
    for (let i = 0; i < 5; i++) {
      await t.update(batch(4, i));
      await t.exportWeights();
    }
    expect((await readdir(exportDir)).sort()).toEqual([
      'weights-v000003.f32',
      'weights-v000004.f32',
      'weights-v000005.f32',
    ]);
  });
});
