/** What a made-up run comes to, what its episodes do, and figures of its updates. Pure. */
import {
  GLYPH_SPEC,
  headOffsets,
  HEADS_OF_TYPE,
  headSizes,
  type Action,
  type FrameRef,
  type Outcome,
  type PolicyVersion,
  type Random,
  type Step,
} from '../../../runtime/domain/index.js';

export interface TrainedRun {
  readonly name: string;
  readonly seed: number;
  readonly lr: number;
  /** ms since the epoch. */
  readonly begin: number;
  /** Successes of form-one in the last evaluation, where they are not those of every run. */
  readonly formOne?: number;
}
/** What a trained run came to; the same for each. */
export const trained = {
  families: { formOne: 'desk/form-one', pressButton: 'desk/press-button' },
  /** Of the last evaluation, form-one alone: 20 %, while its newest 16 rollouts all succeeded. */
  formOne: { episodes: 10, successes: 2, window: 16 },
  pressButton: { episodes: 10, successes: 9 },
  /** Rollouts that began, and those of them that were curated when the run ended and never trained. */
  rollouts: 40,
  untrained: 4,
  /** Rollouts that their limit of steps cut off: one in every group of press-button. */
  truncated: 5,
  /** Rollouts that were trained one update behind, and as many at once. */
  behind: 8,
  /** Rollouts that were planned and never began. */
  planned: 2,
  updates: 4,
  /** Of the policy in its checkpoint. */
  parameters: 12_000,
} as const;
/** Clicks the field, types the name, ends. A failure types without having clicked; one that is cut off says no end. */
export function actionsOf(won: boolean, r: Random, truncated = false): readonly Action[] {
  const click = (x: number, y: number): Action => ({ type: 'click', at: { x: x + r.int(6), y: y + r.int(6) } }),
    rest: readonly Action[] = [
      { type: 'type', text: 'Ada' },
      click(200, 150),
      ...(truncated ? [] : [{ type: 'finished' } as const]),
    ];
  return won ? [click(60, 50), ...rest] : rest;
}
export const outcomeOf = (won: boolean, truncated = false): Outcome => ({
  kind: won ? 'success' : 'failure',
  reward: won ? 1 : 0,
  truncated,
  report: {
    checks: [{ what: 'text of the field', expected: 'Ada', found: won ? 'Ada' : '', score: won ? 1 : 0 }],
  },
});
export const updateFigures = (r: Random): Readonly<Record<string, number>> => ({
  ms: 4000 + r.int(500),
  loss: r.normal(),
  policyLoss: r.normal(),
  imitationLoss: r.next(),
  entropy: 1 + r.next(),
  klK1: 10 ** -(1 + r.next() * 3),
  klK3: 10 ** -(1 + r.next() * 3),
  ess: 0.97,
  gradNorm: r.next(),
  tisMean: 0.9,
  tisCapped: 0.1,
  refKl: 10 ** -(1 + r.next() * 3),
  oldKl: 0.004,
  clipLow: r.next() / 10,
  clipHigh: r.next() / 10,
  dualClip: r.next() / 100,
});
export const instructionOf = (family: string, seed: number): string =>
  family.endsWith('form-one') ? `Type Ada into field ${seed}` : `Press the button ${seed}`;

export function stepOf(
  index: number,
  action: Action,
  frame: FrameRef,
  version: PolicyVersion,
  r: Random,
): { readonly step: Step; readonly labels: readonly string[] } {
  const heads = ['type', ...HEADS_OF_TYPE[action.type as keyof typeof HEADS_OF_TYPE]] as const,
    offsets = headOffsets(GLYPH_SPEC),
    sizes = headSizes(GLYPH_SPEC);
  return {
    step: {
      index,
      frame,
      actions: [action],
      origin: 'policy',
      version,
      settled: true,
      timings: { observe: 50, queue: 10, decide: 140, perform: 100, settle: 400 },
      tokens: {
        logprobs: Float32Array.from(heads, () => -r.next()),
        entropies: Float32Array.from(heads, () => r.next()),
        ids: Int32Array.from(heads, (h) => offsets[h] + r.int(sizes[h])),
      },
    },
    labels: heads.map((h) => (h === 'type' ? action.type : h)),
  };
}
