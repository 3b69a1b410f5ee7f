import { StudioError } from '../../domain/index.js';

/**
 * Any objective on a server that knows none of it. A server's `cross_entropy` is sum(-log p * weight), so with
 * weight = -dL/dlog p its gradient is ours, whatever L is (runtime/trainer/README.md#losses-on-a-server). The same goes
 * for `importance_sampling`, sum(-e^(log p - q) * advantage), where q is the server's own log p: the ratio is 1, and its
 * derivative there is -advantage.
 */
export type Carrier = 'cross_entropy' | 'importance_sampling';

/** How a server combines the losses of a request's tokens before it differentiates. The probe finds it. */
export interface Reduction {
  /** Sum over a datum's targets; or that divided by all its targets, or by those whose weight is not 0. */
  readonly withinDatum: 'sum' | 'targets' | 'scored';
  /** Sum over the datums of a request, or their mean. */
  readonly overDatums: 'sum' | 'mean';
}
export const SUM: Reduction = { withinDatum: 'sum', overDatums: 'sum' };

/** Place of a step's tokens in the targets of its datum. */
export interface TargetSpan {
  /** All targets of the datum, those of the prompt as well. */
  readonly targets: number;
  /** Index of the step's first token among them. */
  readonly start: number;
}

/**
 * Weights of a datum's targets, f32[targets]: -dL/dlog p at the step's tokens, 0 elsewhere. `gradient` is a row of
 * `ObjectiveResult.gradient`; `datums` is how many datums go into the same request. What the server's reduction will
 * divide by is multiplied in, so that the sum of all requests' gradients is that of L.
 * Throws `trainer.invalid` where the span does not hold the tokens or a weight is no f32.
 */
export function signedWeights(
  gradient: ArrayLike<number>,
  span: TargetSpan,
  reduction: Reduction = SUM,
  datums = 1,
): Float32Array {
  if (span.start < 0 || span.start + gradient.length > span.targets)
    throw mismatch(`${gradient.length} tokens from ${span.start} on do not lie within ${span.targets} targets`);
  const out = new Float32Array(span.targets),
    factor = undo(reduction, gradient, span.targets, datums);
  for (let t = 0; t < gradient.length; t++) {
    const w = -gradient[t]! * factor;
    out[span.start + t] = w === 0 ? 0 : w;
    if (!Number.isFinite(out[span.start + t])) throw mismatch(`token ${t} has the weight ${w}`);
  }
  return out;
}

/** The server's divisor. A weight of 0 is not counted as scored, so only the others are. */
function undo(r: Reduction, gradient: ArrayLike<number>, targets: number, datums: number): number {
  let scored = 0;
  for (let t = 0; t < gradient.length; t++) if (gradient[t] !== 0) scored++;
  const within = { sum: 1, targets, scored: Math.max(1, scored) }[r.withinDatum];
  return within * (r.overDatums === 'mean' ? datums : 1);
}

/**
 * The tensors of a datum beside its targets, by name. `logprobs` are the server's own of all targets, from a forward
 * pass with the same weights; `importance_sampling` needs them, `cross_entropy` does not.
 */
export function carried(
  carrier: Carrier,
  weights: Float32Array,
  logprobs?: ArrayLike<number>,
): Readonly<Record<string, Float32Array>> {
  if (carrier === 'cross_entropy') return { weights };
  if (logprobs?.length !== weights.length)
    throw mismatch(`${weights.length} targets but ${logprobs?.length ?? 0} log-probs of the forward pass`);
  return { logprobs: Float32Array.from(logprobs), advantages: weights };
}

const mismatch = (what: string): StudioError =>
  new StudioError(
    'trainer.invalid',
    `A step does not fit the datum it is sent in: ${what}.`,
    'The batch is kept. `dart-studio engine probe` says whether the engine scores every target token.',
  );
