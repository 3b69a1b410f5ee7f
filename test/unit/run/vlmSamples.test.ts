import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  encodePrompt,
  id,
  imageSymbol,
  type FrameRef,
  type LearnStep,
  type RolloutId,
  type Step,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { ChatTokenizer } from '../../../runtime/policy/remote/demonstrationTokens.js';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import { TokenSamples, type TokenSamplesOptions } from '../../../runtime/run/backends/vlmSamples.js';
import { SPECIAL } from '../../helpers/engine/policy.js';
import { ReferenceServer } from '../../helpers/engine/server.js';

let dir: string, server: ReferenceServer, samples: TokenSamples;
const pictures = [Buffer.from('first picture'), Buffer.from('second picture')];
const frame = (n: number): FrameRef => ({ hash: `f${n}`, width: 64, height: 64 });
const sha256 = (b: Buffer): string => createHash('sha256').update(b).digest('hex');

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'vlm-samples-'));
  for (const [n, p] of pictures.entries()) await writeFile(join(dir, `f${n}.png`), p);
  server = await ReferenceServer.start({ policy: { words: ['Action: wait()'] } });
  samples = samplesOf(server);
});
const optionsOf = (server: ReferenceServer): TokenSamplesOptions => ({
  shown: (f) => readFile(join(dir, `${f.hash}.png`)),
  tokenizer: new ChatTokenizer([new ModelServer({ url: `${server.url}/v1` })], server.baseModel),
  imageToken: SPECIAL.imagePad,
  coordinates: 'relative1000',
  images: 2,
  signal: new AbortController().signal,
});
const samplesOf = (server: ReferenceServer): TokenSamples => new TokenSamples(optionsOf(server));
afterEach(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

const bare = { settled: true, timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 } };
const answer = { ids: Int32Array.of(7, 8), logprobs: Float32Array.of(-1, NaN), entropies: Float32Array.of(1, 1) };
/** Two steps of a model: the first with an answer that was no action before its own. */
function rollout(provenance: Trajectory['provenance'] = { kind: 'rollout' }, hash = sha256(pictures[0]!)): Trajectory {
  const first = Int32Array.of(1, imageSymbol(0), 2),
    said = Int32Array.of(...first, 7, 8),
    second = Int32Array.of(1, imageSymbol(0), 2, 7, 8, imageSymbol(1), 3);
  const image = (n: number, sha: string) => ({ sha256: sha, format: 'png' as const, tokens: 4 + n });
  const steps: Step[] = [
    {
      ...bare,
      index: 0,
      frame: frame(0),
      origin: 'policy',
      actions: [{ type: 'wait' }],
      tokens: answer,
      prompt: encodePrompt(said, first, []),
      version: 3,
      rejected: [
        { text: 'hm', reason: 'x', tokens: answer, prompt: encodePrompt(new Int32Array(), first, [image(0, hash)]) },
      ],
    },
    {
      ...bare,
      index: 1,
      frame: frame(1),
      origin: 'policy',
      actions: [{ type: 'wait' }],
      tokens: answer,
      prompt: encodePrompt(said, second, [image(1, sha256(pictures[1]!))]),
      version: 3,
    },
  ];
  return {
    id: id<RolloutId>('r'),
    task: id('t'),
    family: id('f'),
    instruction: 'Wait.',
    provenance,
    steps,
    outcome: { kind: 'success', reward: 1, truncated: false },
    cap: 4,
    startedAt: 0,
    endedAt: 1,
    resetMs: 0,
    verifyMs: 0,
  };
}
const learn = (trajectory: Trajectory, step: number, o: Partial<LearnStep> = {}): LearnStep => ({
  trajectory,
  step,
  kind: 'policy',
  advantage: 1,
  weight: 1,
  ...o,
});

describe('steps of a vision-language model', () => {
  it('are the very tokens and pictures that were sent, rejected answers with them', async () => {
    const t = rollout(),
      s = await samples.sampleOf(learn(t, 0));
    expect(s).toMatchObject({ rollout: 'r', step: 0, kind: 'policy', version: 3 });
    expect(s.sequences).toHaveLength(2);
    for (const x of s.sequences) {
      expect(x.prompt).toEqual([
        { type: 'encoded_text', tokens: [1] },
        { type: 'image', data: pictures[0], format: 'png', expectedTokens: 4 },
        { type: 'encoded_text', tokens: [2] },
      ]);
      expect([...x.answer]).toEqual([7, 8]);
      expect([...x.logprobs!]).toEqual([-1, NaN]);
    }
    const next = await samples.sampleOf(learn(t, 1));
    expect(next.sequences[0]!.prompt.map((c) => c.type)).toEqual([
      'encoded_text',
      'image',
      'encoded_text',
      'image',
      'encoded_text',
    ]);
  });

  it('are imitated without what was rejected, and without log-probs', async () => {
    const s = await samples.sampleOf(learn(rollout(), 0, { kind: 'imitation', advantage: 0 }));
    expect(s.sequences.map((x) => x.logprobs)).toEqual([undefined]);
    expect(s.rolloutLogprobs).toBeUndefined();
  });

  it('that were demonstrated keep their tokens, and of their pictures the newest', async () => {
    const shown: string[] = [],
      // As many pictures as it is shown, of two tokens each.
      tokens = vi.fn(({ messages }: Parameters<ChatTokenizer['tokens']>[0]) => {
        const count = JSON.stringify(messages).split('data:image').length - 1,
          picture = [SPECIAL.imagePad, SPECIAL.imagePad, 1];
        return Promise.resolve({ prompt: Array(count).fill(picture).flat() as number[], answer: Int32Array.of(7) });
      }),
      mine = new TokenSamples({
        ...optionsOf(server),
        tokenizer: { tokens } as unknown as ChatTokenizer,
        shown: (f) => {
          shown.push(f.hash);
          return Promise.resolve(pictures[0]!);
        },
      }),
      wait = { ...bare, origin: 'oracle', actions: [{ type: 'wait' }] } as const,
      steps = Array.from({ length: 520 }, (__, index): Step => ({ ...wait, index, frame: frame(index) })),
      t: Trajectory = { ...rollout({ kind: 'oracle' }), steps };
    for (let i = 0; i < steps.length; i++) await mine.sampleOf(learn(t, i, { kind: 'imitation' }));
    const times = tokens.mock.calls.length;
    expect(shown.filter((h) => h === 'f0')).toHaveLength(1);
    await mine.sampleOf(learn(t, 0, { kind: 'imitation' }));
    expect(shown.filter((h) => h === 'f0')).toHaveLength(2);
    expect([times, tokens.mock.calls.length]).toEqual([520, 520]);
  });

  it('whose picture is another one are refused, not trained', async () => {
    await expect(samples.sampleOf(learn(rollout(undefined, sha256(pictures[1]!)), 0))).rejects.toMatchObject({
      kind: 'store.damaged',
    });
  });

  it('whose record is damaged cannot be trained; the rest of a batch can', () => {
    const t = rollout(),
      broken = { ...t, steps: t.steps.slice(1) };
    expect([samples.expressible(broken, 0), samples.expressible(t, 0)]).toEqual([false, true]);
  });

  it('of somebody else, or of a person, become the tokens that the model itself would have to say', async () => {
    const human = rollout({ kind: 'human' });
    const demonstration = {
      ...human,
      steps: human.steps.map((s) => ({ ...s, origin: 'human' as const, tokens: undefined, prompt: undefined })),
    };
    for (const t of [rollout({ kind: 'imported', from: 'elsewhere' }), demonstration]) {
      expect(samples.expressible(t, 1)).toBe(true);
      const s = await samples.sampleOf(learn(t, 1, { kind: 'imitation', advantage: 0 })),
        [only] = s.sequences;
      expect(s.sequences).toHaveLength(1);
      expect(only!.answer.at(-1)).toBe(SPECIAL.eos);
      expect(only!.prompt.filter((c) => c.type === 'image').map((c) => c.data)).toEqual(pictures);
    }
  });

  it('are the same from a tokenizer that leaves one token for a picture: its server is asked how many it takes', async () => {
    const blind = await ReferenceServer.start({ policy: { words: ['Action: wait()'] }, onePad: true }),
      t = rollout({ kind: 'imported', from: 'x' }),
      step: LearnStep = { trajectory: t, step: 1, kind: 'imitation', advantage: 0, weight: 1 };
    try {
      const asked = await samplesOf(blind).sampleOf(step);
      expect(asked).toEqual(await samples.sampleOf(step));
      const images = asked.sequences[0]!.prompt.filter((c) => c.type === 'image');
      expect(images).toHaveLength(2);
      expect(images.every((c) => c.expectedTokens! > 1)).toBe(true);
      // Pictures of one size are asked about once.
      expect(blind.count('/chat/completions')).toBe(1);
    } finally {
      blind.close();
    }
  });
});
