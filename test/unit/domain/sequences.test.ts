import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  StudioError,
  imageSymbol,
  sequencesOf,
  type FrameRef,
  type RolloutId,
  type Step,
} from '../../../runtime/domain/index.js';
import { remoteEpisode, type RemoteTurn } from '../../helpers/policy/remoteEpisode.js';

const frame = (n: number): FrameRef => ({ hash: n.toString(16).padStart(64, '0'), width: 1280, height: 720 });
const of = (steps: readonly Step[]): Parameters<typeof sequencesOf>[0] => ({ id: 'r1' as RolloutId, steps });

const turn: fc.Arbitrary<RemoteTurn> = fc.record({
  frame: fc.nat(4).map(frame),
  text: fc.constantFrom('Thought: Open the menu.\nAction: click(start_box="(12,40)")', 'Thought: Done.', 'x'),
  rejected: fc.option(fc.constant([{ text: 'I cannot do that', reason: 'no action' }]), { nil: undefined }),
  human: fc.option(fc.constant(true), { nil: undefined, freq: 5 }),
  silent: fc.option(fc.constant(true), { nil: undefined, freq: 5 }),
  unknown: fc.option(fc.constant([0]), { nil: undefined }),
});

describe('the sequences that a trajectory sampled', () => {
  it('come back as they were: rejected answers first, each image with its screen', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 12 }), fc.integer({ min: 1, max: 5 }), (turns, images) => {
        const { steps, sampled } = remoteEpisode(turns, { images });
        const read = sequencesOf(of(steps)).map((s) => ({
          step: s.step.index,
          rejected: s.rejected,
          symbols: [...s.symbols],
          frames: s.images.map((i) => i.frame.hash),
          answer: [...s.answer],
        }));
        expect(read).toEqual(sampled);
      }),
    );
  });

  it('keep versions and log-probs, unknown ones as unknown', () => {
    const { steps } = remoteEpisode(
      [{ frame: frame(1), text: 'Thought: Go.', rejected: [{ text: 'no', reason: 'no action' }], unknown: [1] }],
      { version: 7 },
    );
    const read = sequencesOf(of(steps));
    expect(read.map((s) => [s.rejected, s.version])).toEqual([
      [true, 7],
      [false, 7],
    ]);
    expect(read[1]!.logprobs).toBe(steps[0]!.tokens!.logprobs);
    expect(read[1]!.logprobs[1]).toBeNaN();
    expect(read[1]!.symbols.filter((s) => s < 0)).toEqual(Int32Array.of(imageSymbol(0)));
    expect(read[1]!.images).toEqual([expect.objectContaining({ tokens: 1196, format: 'png', frame: frame(1) })]);
  });

  it('have nothing to say of steps without prompts', () => {
    const { steps } = remoteEpisode([
      { frame: frame(1), text: 'x', silent: true },
      { frame: frame(2), text: 'x', human: true },
    ]);
    expect(sequencesOf(of(steps))).toEqual([]);
  });

  it('a record that does not fit those before it is named, and is an error of the store', () => {
    const { steps } = remoteEpisode([1, 2, 3].map((n) => ({ frame: frame(n), text: 'Thought: Go on to the next.' })));
    const bad: [string, Step][] = [
      ['does not have', { ...steps[2]!, prompt: { ...steps[2]!.prompt!, parts: Int32Array.of(0, 1 << 19, 0) } }],
      ['more than', { ...steps[2]!, prompt: { ...steps[2]!.prompt!, parts: bomb(), symbols: new Int32Array() } }],
      ['no step has named', { ...steps[2]!, prompt: { ...steps[2]!.prompt!, images: [] } }],
      ['no answer', { ...steps[2]!, tokens: undefined }],
      ['differ in number', { ...steps[2]!, tokens: { ...steps[2]!.tokens!, logprobs: new Float32Array(1) } }],
    ];
    for (const [why, step] of bad) {
      const error = thrownBy(() => sequencesOf(of([...steps.slice(0, 2), step])));
      expect(error.kind).toBe('store.damaged');
      expect(error.message).toMatch(/^The prompt of step 3 of r1 cannot be read: /);
      expect(error.message).toContain(why);
    }
  });
});

/** Copies the sequence before it again and again. */
const bomb = (): Int32Array => Int32Array.from({ length: 3 * 50_000 }, (_, i) => (i % 3 === 1 ? 30 : 0));

function thrownBy(f: () => unknown): StudioError {
  try {
    f();
  } catch (e) {
    if (e instanceof StudioError) return e;
    throw e;
  }
  throw new Error('nothing was thrown');
}
