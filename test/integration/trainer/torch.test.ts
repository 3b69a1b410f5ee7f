import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { GLYPH_SPEC } from '../../../runtime/domain/index.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { placedParams } from '../../../runtime/trainer/native/model/params.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { packSamples, applyLossWeights } from '../../../runtime/trainer/native/packing.js';
import { loadOrt } from '../../../runtime/domain/onnxRuntime.js';
import { Sessions } from '../../../runtime/trainer/native/sessions.js';
import { policySamples, writeProblem } from '../../bench/trainer/problem.js';
import { pythonWithTorch } from '../../bench/trainer/python.js';

const run = promisify(execFile);
const floats = (b: Buffer): Float32Array => new Float32Array(b.buffer.slice(b.byteOffset, b.byteOffset + b.length));
const length = (a: Float32Array): number => Math.sqrt(a.reduce((s, x) => s + x * x, 0));

describe('one whole update against PyTorch autograd', () => {
  let python: string | undefined;
  beforeAll(() => {
    python = pythonWithTorch();
  });

  it('gives the same gradient and, after clipping and AdamW, the same weights', async (t) => {
    if (!python) {
      console.log('skipped: PyTorch is not installed (apt-get install python3-torch)');
      t.skip();
      return;
    }
    const states = 3,
      o = {
        ...baseTrainerOptions,
        microBatch: states,
        entropyBonus: 0.02,
        temperature: 1.1,
        gradClip: 0.2,
        adamEpsilon: 1e-3,
      };
    const samples = policySamples(GLYPH_SPEC, states, o.slots, 1).map((s, i) =>
      i % 7 === 0
        ? { ...s, kind: 'imitation' as const, advantage: 0 }
        : i % 5 === 0
          ? { ...s, rolloutLogprobs: undefined }
          : s,
    );
    const learner = await Learner.create(GLYPH_SPEC, o, 5),
      before = learner.theta.slice();
    const packed = packSamples(samples, o.slots),
      sessions = new Sessions(await loadOrt(), learner.model, states, o.slots, 1);
    applyLossWeights(packed, o.imitationCoef, o.entropyBonus);
    const feeds = sessions.pack(packed, {
      epsLow: o.epsLow,
      epsHigh: o.epsHigh,
      dualClip: o.dualClip,
      tisCap: o.tis.cap,
      klBeta: 0,
      temperature: o.temperature,
    });
    const dir = await mkdtemp(join(tmpdir(), 'torch-'));
    try {
      writeProblem(dir, learner.model, before, feeds, o, states);
      const ours = await sessions.grad(
        { algorithm: 'ppo', tis: true, fresh: true, reference: false },
        { ...feeds, theta: sessions.floats(before), accumulated: sessions.floats(new Float32Array(before.length)) },
      );
      await run(python, ['test/bench/trainer/torch_peer.py', dir, 'check']);
      const theirs = JSON.parse(await readFile(join(dir, 'result.json'), 'utf8')) as { loss: number; norm: number };
      const gradient = floats(await readFile(join(dir, 'gradient.f32'))),
        mine = ours.gradient!.data as Float32Array;
      expect(Math.abs((ours.parts!.data as Float32Array)[0]! - theirs.loss)).toBeLessThan(
        1e-4 * Math.max(1, Math.abs(theirs.loss)),
      );
      expect(length(mine.map((x, i) => x - gradient[i]!)) / length(gradient)).toBeLessThan(1e-4);
      // Array by array as well, so that a small one cannot hide behind a large one.
      for (const { name, from, to } of placedParams(learner.model.layout)) {
        const a = mine.subarray(from, to),
          b = gradient.subarray(from, to);
        expect(length(a.map((x, i) => x - b[i]!)), name).toBeLessThan(1e-4 * length(b) + 1e-6 * length(gradient));
      }
      const report = await learner.update({ id: 'b' as never, samples, epochs: 1 });
      expect(Math.abs(report.gradNorm / theirs.norm - 1)).toBeLessThan(1e-4);
      const after = floats(await readFile(join(dir, 'theta2.f32'))),
        moved = learner.theta.map((x, i) => x - before[i]!);
      expect(length(moved.map((x, i) => x - (after[i]! - before[i]!))) / length(moved)).toBeLessThan(2e-3);
    } finally {
      await rm(dir, { recursive: true, force: true });
      await sessions.release();
      await learner.release();
    }
  });
});
