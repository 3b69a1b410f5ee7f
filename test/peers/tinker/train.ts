/**
 * `node train.mjs ORDER.json`: the production driver trains on a Tinker-protocol server that runs already, and prints
 * what came of it as JSON. What it trains is text: a lesson, then reinforcement of one word out of four.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { id, random, toRunError, type BatchId, type RolloutId } from '../../../runtime/domain/index.js';
import { groupAdvantages } from '../../../runtime/trainer/objective/advantages.js';
import type { ObjectiveOptions } from '../../../runtime/trainer/objective/objective.js';
import { createRemoteTrainer, type RemoteTrainerEngine } from '../../../runtime/trainer/remote/engine.js';
import type { Carriage } from '../../../runtime/trainer/remote/gradient.js';
import type { AdamOptions } from '../../../runtime/trainer/remote/passes.js';
import type { TokenSample, TokenSequence } from '../../../runtime/trainer/remote/sample.js';
import type { CheckpointRef } from '../../../runtime/trainer/types.js';

interface Order {
  readonly url: string;
  readonly key: string;
  readonly base: string;
  readonly rank: number;
  readonly carriage: Carriage;
  readonly leaveModels: boolean;
  /** Folder of this trainer's checkpoints, and of gradient.json. */
  readonly dir: string;
  /** eps of the optimizer that descends; some servers take none above 1. */
  readonly eps: number;
}
const order = JSON.parse(await readFile(process.argv[2]!, 'utf8')) as Order;

const OBJECTIVE: ObjectiveOptions = {
  algorithm: 'ppo',
  epsLow: 0.2,
  epsHigh: 0.28,
  dualClip: 3,
  tis: { enabled: true, level: 'token', cap: 2 },
  unknownBehaviour: 'one',
  klBeta: 0,
  imitationCoef: 1,
};
const ADAM: AdamOptions = { lr: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClip: 0, warmup: 1 };
const LESSON = { steps: 30, lr: 0.01, shift: 0 };
const UPDATES = 12,
  GROUP = 16;

/** The tokenizer of model.py has a token for each byte, the printable ones first. */
const encoded = (text: string): Int32Array => Int32Array.from(text, (c) => c.charCodeAt(0) - 33);
const WORDS = ['click', 'write', 'press', 'start'],
  RIGHT = 'press';
const answering = (prompt: string, answer: string): TokenSequence => ({
  prompt: [{ type: 'encoded_text', tokens: encoded(prompt) }],
  answer: encoded(answer),
});
const PROMPT = 'the-next-move-is:';
const move = (word: string): TokenSequence => answering(PROMPT, word);
const sum = (xs: Iterable<number>): number => [...xs].reduce((a, b) => a + b, 0);

function trainer(adam: AdamOptions): Promise<RemoteTrainerEngine> {
  return createRemoteTrainer({
    server: { url: order.url, apiKey: order.key, version: '0.38.0', deadlineMs: 5 * 60_000 },
    model: { base: order.base, rank: order.rank, seed: 3 },
    dir: order.dir,
    carriage: order.carriage,
    leaveModels: order.leaveModels,
    loss: 'client',
    objective: OBJECTIVE,
    adam,
    minibatch: 0,
    seed: 5,
  });
}

/** All words are taught alike, and something else beside them, so that reinforcement has something to choose from. */
async function lesson(t: RemoteTrainerEngine): Promise<object> {
  const shown = [...WORDS.map(move), answering('say-something-else:', 'good-morning')],
    loss = async (): Promise<number> => {
      const means: number[] = [];
      for (const s of shown) means.push(-sum(await t.score(s)) / s.answer.length);
      return sum(means) / means.length;
    };
  const before = await loss(),
    samples = shown.map((s, i) => sample(i, 'imitation', 0, s)),
    report = await t.imitate!({ id: id<BatchId>('lesson'), epochs: 1, samples }, LESSON);
  return { steps: report.optimizerSteps, lossBefore: before, lossAfter: await loss(), ms: report.ms };
}
function sample(i: number, kind: TokenSample['kind'], advantage: number, s: TokenSequence): TokenSample {
  return { rollout: id<RolloutId>(`r${i}`), step: 0, kind, advantage, weight: 1, sequences: [s] };
}

interface Drawn {
  readonly samples: TokenSample[];
  /** Probability of each word among the four. */
  readonly shares: readonly number[];
}
/**
 * Sixteen answers to one prompt, drawn among the four words by the model's own probabilities, with the log-probs that
 * the server scored them with: not every server samples.
 */
async function draw(t: RemoteTrainerEngine, update: number): Promise<Drawn> {
  const rows: Float32Array[] = [];
  for (const w of WORDS) rows.push(await t.score(move(w)));
  const masses = rows.map((row) => Math.exp(sum(row))),
    all = sum(masses),
    rng = random(`peers/${update}`),
    drawn = Array.from({ length: GROUP }, () => {
      let x = rng.next() * all;
      const found = masses.findIndex((m) => (x -= m) < 0);
      return found < 0 ? WORDS.length - 1 : found;
    });
  const rewards = drawn.map((w) => (WORDS[w] === RIGHT ? 1 : 0)),
    advantages = groupAdvantages(
      rewards,
      drawn.map(() => 1),
      { baseline: 'trajectory', norm: 'std' },
    );
  return {
    samples: drawn.map((w, i) =>
      sample(i, 'policy', advantages[i]!, { ...move(WORDS[w]!), logprobs: Float32Array.from(rows[w]!) }),
    ),
    shares: masses.map((m) => m / all),
  };
}
async function reinforced(t: RemoteTrainerEngine): Promise<object> {
  const right = WORDS.indexOf(RIGHT),
    shares: number[] = [];
  let steps = 0,
    ms = 0;
  for (let u = 0; u < UPDATES; u++) {
    const drawn = await draw(t, u);
    shares.push(drawn.shares[right]!);
    const report = await t.update({ id: id<BatchId>(`b${u}`), epochs: 1, samples: drawn.samples });
    steps += report.optimizerSteps;
    ms += report.ms;
  }
  const { shares: last } = await draw(t, UPDATES);
  return {
    updates: UPDATES,
    optimizerSteps: steps,
    shareBefore: shares[0],
    shareAfter: last[right],
    msAnUpdate: ms / UPDATES,
  };
}

/** Another trainer, another session, the same checkpoint: log-probs must be those of before. */
async function restored(t: RemoteTrainerEngine, at: CheckpointRef): Promise<number> {
  const seen = await t.score(move(RIGHT)),
    other = await trainer(ADAM);
  try {
    await other.restore(at);
    const again = await other.score(move(RIGHT));
    return Math.max(...Array.from(again, (x, i) => Math.abs(x - seen[i]!)));
  } finally {
    await other.close();
  }
}

/**
 * One update by an optimizer that descends: with beta1 = beta2 = 0 and eps far above the gradient the weights move by
 * lr / eps times the gradient, so the adapters exported before and after say what gradient the server had.
 */
async function measured(at: CheckpointRef): Promise<object> {
  const t = await trainer({ ...ADAM, lr: order.eps, beta1: 0, beta2: 0, eps: order.eps });
  try {
    await t.restore(at);
    const samples: TokenSample[] = [];
    // Advantages of both signs, unlike lengths and weights, log-probs of a policy that is some updates old.
    for (const [i, text] of ['press', 'writes', 'clicking', 'go', 'start', 'typed'].entries()) {
      const s = move(text),
        rng = random(`stale/${i}`),
        logprobs = (await t.score(s)).map((x) => x + 0.3 * rng.normal()),
        advantage = [1.1, -0.7, 0.4, -1.3, 0.9, -0.2][i]!;
      samples.push({ ...sample(i, 'policy', advantage, { ...s, logprobs }), weight: 1 / (1 + (i % 3)) });
    }
    const before = await t.exportWeights();
    await t.update({ id: id<BatchId>('gradient'), epochs: 1, samples });
    const after = await t.exportWeights(),
      asked = samples.map(({ advantage, weight, sequences: [s] }) => ({
        prompt: [...encoded(PROMPT)],
        answer: [...s!.answer],
        logprobs: [...s!.logprobs!],
        advantage,
        weight,
      }));
    const file = join(order.dir, 'gradient.json');
    await writeFile(file, JSON.stringify({ samples: asked, cap: OBJECTIVE.tis.cap }));
    return { before: before.path, after: after.path, file };
  } finally {
    await t.close();
  }
}
/** What a server cannot do is part of the result. */
const orWhy = async <T>(work: Promise<T>): Promise<T | { readonly error: string }> => {
  try {
    return await work;
  } catch (e) {
    return { error: toRunError(e).message };
  }
};

const t = await trainer(ADAM);
try {
  const taught = await lesson(t),
    learned = await reinforced(t),
    at = await t.checkpoint(),
    difference = await orWhy(restored(t, at)),
    gradient = await orWhy(measured(at));
  process.stdout.write(JSON.stringify({ lesson: taught, reinforcement: learned, restored: difference, gradient }));
} finally {
  await t.close();
}
