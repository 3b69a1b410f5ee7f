import { describe, expect, it } from 'vitest';
import {
  HEADS,
  id,
  random,
  type BatchId,
  type EmbeddedPolicySpec,
  type EmbeddedSample,
} from '../../../runtime/domain/index.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { policyGraph } from '../../../runtime/trainer/native/model/policyGraph.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { groupAdvantages } from '../../../runtime/trainer/objective/advantages.js';
import { loadOrt } from '../../../runtime/domain/onnxRuntime.js';
import { demonstration, glyphTask, hits, type GlyphTask } from '../../helpers/trainer/glyphScreens.js';

/**
 * The glyph policy on small synthetic screens ("click WORD", words at random pixels) learns from demonstrations, and
 * from reward alone.
 */
const SMALL: EmbeddedPolicySpec = {
  id: 'small',
  obs: { width: 96, height: 64, cell: 8 },
  instruction: { maxTokens: 4, buckets: 64, classes: 2 },
  history: { length: 2, maxSteps: 4 },
  types: ['click', 'wait', 'finished', 'fail'],
  keys: ['enter'],
  phrases: ['yes'],
};
const WORDS = ['SAVE', 'EXIT'];

type Logits = Record<'cell' | 'type', Float32Array>;
async function decide(l: Learner, tasks: readonly GlyphTask[]): Promise<Logits[]> {
  const ort = await loadOrt(),
    s = await ort.InferenceSession.create(policyGraph(l.model).toModel('policy'), {
      intraOpNumThreads: 1,
      logSeverityLevel: 3,
    });
  const theta = new ort.Tensor('float32', l.theta, [l.theta.length]),
    logits: Logits[] = [];
  for (const { state } of tasks) {
    const out = await s.run({
      theta,
      obs: new ort.Tensor('uint8', state.obs, [1, SMALL.obs.height, SMALL.obs.width]),
      instruction: new ort.Tensor('int32', state.instruction, [1, state.instruction.length]),
      history: new ort.Tensor('int32', state.history, [1, state.history.length]),
    });
    expect(Object.keys(out).sort()).toEqual([...HEADS].sort());
    logits.push({ cell: out.cell!.data as Float32Array, type: out.type!.data as Float32Array });
  }
  await s.release();
  return logits;
}
const best = (a: Float32Array): number => a.reduce((b, x, i) => (x > a[b]! ? i : b), 0);
function logSoftmax(a: Float32Array): number[] {
  const m = Math.max(...a),
    z = Math.log(a.reduce((s, x) => s + Math.exp(x - m), 0)) + m;
  return Array.from(a, (x) => x - z);
}

describe('learning', () => {
  it('imitates: from no hit to most hits on screens it has not seen', async () => {
    const rng = random('imitation'),
      l = await Learner.create(SMALL, baseTrainerOptions, 1);
    const probe = Array.from({ length: 80 }, () => glyphTask(SMALL, rng, 1, WORDS));
    const hit = async (): Promise<number> => {
      const d = await decide(l, probe);
      return (
        probe.filter((t, i) => best(d[i]!.type) === 0 && hits(SMALL, t.target, best(d[i]!.cell))).length / probe.length
      );
    };
    const before = await hit(),
      demos = Array.from({ length: 200 }, (_, i) => demonstration(SMALL, glyphTask(SMALL, rng, 1, WORDS), `d${i}`));
    await l.imitate({ id: id<BatchId>('demos'), samples: demos, epochs: 1 }, { steps: 150, lr: 2e-3, shift: 8 });
    const after = await hit();
    console.log(`hits ${before} -> ${after}`);
    await l.release();
    expect(before).toBeLessThan(0.3);
    expect(after).toBeGreaterThan(0.7);
  });

  it('learns from reward alone which action a word asks for', async () => {
    const rng = random('reward'),
      l = await Learner.create(SMALL, { ...baseTrainerOptions, lr: 2e-3, warmup: 5, minibatchStates: 8 }, 1);
    const rewards: number[] = [];
    for (let r = 0; r < 30; r++) {
      const tasks = Array.from({ length: 16 }, () => glyphTask(SMALL, rng, 2, WORDS)),
        logits = await decide(l, tasks);
      let reward = 0;
      const samples = tasks.flatMap((t, i): EmbeddedSample[] => {
        const lp = logSoftmax(logits[i]!.type),
          right = SMALL.types.length - 1 - WORDS.indexOf(t.target.word);
        const draw = (): number => {
          let u = rng.next();
          for (let k = 0; k < lp.length; k++) {
            u -= Math.exp(lp[k]!);
            if (u < 0) return k;
          }
          return lp.length - 1;
        };
        const group = Array.from({ length: 8 }, draw),
          got = group.map((a) => (a === right ? 1 : 0)),
          advantage = groupAdvantages(
            got,
            got.map(() => 1),
            { baseline: 'trajectory', norm: 'std' },
          );
        reward += got.reduce((x: number, y) => x + y, 0) / 8 / tasks.length;
        return group.map((a, k) => ({
          ...demonstration(SMALL, t, `r${r}/${i}`),
          choices: Int32Array.of(a),
          kind: 'policy',
          rolloutLogprobs: Float32Array.of(lp[a]!),
          advantage: advantage[k]!,
          weight: advantage[k] === 0 ? 0 : 1,
        }));
      });
      rewards.push(reward);
      const report = await l.update({ id: id<BatchId>(`u${r}`), samples, epochs: 1 });
      // The trainer's log-probs are those the replica's graph sampled from.
      expect(Math.abs(report.klK1)).toBeLessThan(1e-4);
    }
    const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;
    console.log(`reward ${mean(rewards.slice(0, 3)).toFixed(2)} -> ${mean(rewards.slice(-3)).toFixed(2)}`);
    await l.release();
    expect(mean(rewards.slice(0, 3))).toBeLessThan(0.5);
    expect(mean(rewards.slice(-3))).toBeGreaterThan(0.8);
  });
});
