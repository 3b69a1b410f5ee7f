import { dualClipSlope, ppoClip, ratioOf, cispo, cispoSlope } from '../../../runtime/trainer/objective/policyLoss.js';
import type { Datum, ForwardBackwardRequest } from '../../../runtime/trainer/remote/wire/types.js';
import type { Fault } from './faults.js';
import { UserError, type TinyPolicy } from './policy.js';

/** What a Tinker server does with one model: score, differentiate, step; with every fault it may have. */

export interface AdamParams {
  readonly learning_rate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weight_decay: number;
  readonly grad_clip_norm: number;
}
export const ADAM_DEFAULTS: AdamParams = {
  learning_rate: 1e-4,
  beta1: 0.9,
  beta2: 0.95,
  eps: 1e-12,
  weight_decay: 0,
  grad_clip_norm: 0,
};
export interface LearnerState {
  readonly delta: Float64Array;
  readonly m: Float64Array;
  readonly v: Float64Array;
  readonly steps: number;
}
const LOSSES = ['cross_entropy', 'importance_sampling', 'ppo', 'cispo'];

export class Learner {
  readonly policy: TinyPolicy;
  readonly faults: ReadonlySet<Fault>;
  delta: Float64Array;
  gradient: Float64Array;
  /** Weights before the last optimizer step. */
  previous: Float64Array;
  #m: Float64Array;
  #v: Float64Array;
  #steps = 0;

  constructor(policy: TinyPolicy, faults: ReadonlySet<Fault>) {
    this.policy = policy;
    this.faults = faults;
    this.delta = new Float64Array(policy.parameters);
    this.previous = this.delta;
    this.gradient = new Float64Array(policy.parameters);
    this.#m = new Float64Array(policy.parameters);
    this.#v = new Float64Array(policy.parameters);
  }
  get steps(): number {
    return this.#steps;
  }
  state(): LearnerState {
    return { delta: this.delta.slice(), m: this.#m.slice(), v: this.#v.slice(), steps: this.#steps };
  }
  load(s: LearnerState, optimizer: boolean): void {
    this.delta = s.delta.slice();
    this.previous = this.delta;
    this.gradient.fill(0);
    if (this.faults.has('lossy-restore')) return;
    this.#m = optimizer ? s.m.slice() : new Float64Array(s.m.length);
    this.#v = optimizer ? s.v.slice() : new Float64Array(s.v.length);
    this.#steps = optimizer ? s.steps : 0;
  }

  /** Log-probs of all targets and the loss; the gradient is added to what is there. */
  pass(r: ForwardBackwardRequest): { readonly logprobs: Float64Array[]; readonly loss: number } {
    if (!LOSSES.includes(r.lossFn)) throw new UserError(`there is no loss ${r.lossFn}`);
    const trains = !r.forwardOnly || this.faults.has('forward-trains'),
      into = new Float64Array(this.delta.length);
    let loss = 0;
    const logprobs = r.data.map((d) => {
      const one = this.#datum(d, r, trains ? into : undefined);
      loss += one.loss;
      return one.logprobs;
    });
    if (trains) {
      if (this.faults.has('forget-gradient')) this.gradient.fill(0);
      for (let i = 0; i < into.length; i++) this.gradient[i]! += into[i]!;
    }
    if (this.faults.has('swap-datums')) logprobs.reverse();
    return { logprobs, loss };
  }

  #datum(
    d: Datum,
    r: ForwardBackwardRequest,
    into: Float64Array | undefined,
  ): { readonly logprobs: Float64Array; readonly loss: number } {
    const { faults, policy } = this,
      chunks = faults.has('reorder-chunks')
        ? [...d.chunks.filter((c) => c.type !== 'image'), ...d.chunks.filter((c) => c.type === 'image')]
        : d.chunks;
    for (const c of chunks)
      if (c.type === 'image' && !faults.has('unchecked-image-tokens')) {
        const n = policy.imageTokens(c.data);
        if (c.expectedTokens !== undefined && c.expectedTokens !== n)
          throw new UserError(`an image has ${n} tokens and not ${c.expectedTokens} (expected_tokens)`);
      }
    const { positions } = policy.read(chunks, faults.has('drop-images')),
      targets = row(d, 'target_tokens');
    if (targets.length !== positions.length)
      throw new UserError(`${positions.length} positions and ${targets.length} targets`);
    const terms = termsOf(d, r, faults, targets.length),
      scale = this.#scale(d, r, targets.length),
      logprobs = new Float64Array(targets.length);
    let loss = 0;
    positions.forEach((p, i) => {
      const target = targets[faults.has('targets-off-by-one') ? Math.min(i + 1, targets.length - 1) : i]!;
      if (!Number.isInteger(target) || target < 0 || target >= policy.vocabulary)
        throw new UserError(`${target} is no token`);
      const lp = policy.logProbs(this.delta, p),
        x = lp[target]!,
        term = terms(i, x);
      loss += scale * term.loss;
      logprobs[i] = faults.has('unscored-rows') && term.slope === 0 ? 0 : x;
      if (into && term.slope !== 0) policy.addGradient(into, p, lp, target, scale * term.slope);
    });
    return { logprobs, loss };
  }

  /** 1 where losses are summed, as they must be. */
  #scale(d: Datum, r: ForwardBackwardRequest, targets: number): number {
    const { faults } = this;
    let scale = 1;
    if (faults.has('normalise-by-weights') && r.lossFn === 'cross_entropy')
      scale /= Math.max(
        Array.from(weightsOf(d, targets)).reduce((a, b) => a + b, 0),
        1e-9,
      );
    if (faults.has('mean-over-tokens')) scale /= targets;
    if (faults.has('mean-over-request')) scale /= r.data.reduce((n, x) => n + row(x, 'target_tokens').length, 0);
    if (faults.has('mean-over-datums') || faults.has('normalise-by-weights')) scale /= r.data.length;
    return scale;
  }

  /** AdamW; answers the norm of the gradient before it is clipped. */
  step(given: Partial<AdamParams>): { readonly norm: number } {
    const { faults } = this,
      o = { ...ADAM_DEFAULTS, ...given },
      lr = faults.has('ignore-learning-rate') ? 1e-4 : o.learning_rate,
      norm = Math.hypot(...this.gradient),
      clip = o.grad_clip_norm > 0 && !faults.has('ignore-clip') ? Math.min(1, o.grad_clip_norm / (norm + 1e-6)) : 1,
      decay = faults.has('ignore-weight-decay') ? 0 : o.weight_decay,
      next = this.delta.slice();
    this.#steps++;
    const c1 = 1 - o.beta1 ** this.#steps,
      c2 = 1 - o.beta2 ** this.#steps;
    for (let i = 0; i < next.length; i++) {
      const g = this.gradient[i]! * clip;
      this.#m[i] = o.beta1 * this.#m[i]! + (1 - o.beta1) * g;
      this.#v[i] = o.beta2 * this.#v[i]! + (1 - o.beta2) * g * g;
      next[i]! -= lr * decay * next[i]!;
      next[i]! -= (lr * this.policy.reach * (this.#m[i]! / c1)) / (Math.sqrt(this.#v[i]! / c2) + o.eps);
    }
    this.#bend(next);
    this.previous = this.delta;
    this.delta = next;
    if (!faults.has('keep-gradient')) this.gradient.fill(0);
    return { norm };
  }
  /** What deep models do: a step twice as long takes them more than twice as far. */
  #bend(next: Float64Array): void {
    const { bends, sticks } = this.policy,
      short = this.#steps === 1 ? sticks : 0;
    if (bends === Infinity && short === 0) return;
    const length = Math.hypot(...next.map((x, i) => x - this.delta[i]!)),
      by = Math.min(4 / 3, Math.max(1, length / bends)) * (length > 0 ? Math.max(0, 1 - short / length) : 1);
    for (let i = 0; i < next.length; i++) next[i] = this.delta[i]! + by * (next[i]! - this.delta[i]!);
  }
}

function row(d: Datum, name: string): Float32Array | Float64Array {
  const t = d.inputs[name];
  if (!t) throw new UserError(`${name} is missing`);
  return t.data;
}
const weightsOf = (d: Datum, targets: number): Float32Array | Float64Array =>
  d.inputs.weights?.data ?? new Float32Array(targets).fill(1);

type Term = (i: number, x: number) => { readonly loss: number; readonly slope: number };
/** Loss and d loss / d log p of each target. */
function termsOf(d: Datum, r: ForwardBackwardRequest, faults: ReadonlySet<Fault>, targets: number): Term {
  if (r.lossFn === 'cross_entropy') {
    const w = weightsOf(d, targets);
    if (w.length !== targets) throw new UserError(`${targets} targets and ${w.length} weights`);
    return (i, x) => {
      let a = w[i]!;
      if (faults.has('mask-weights')) a = a === 0 ? 0 : 1;
      if (faults.has('clamp-negative-weights')) a = Math.max(a, 0);
      return { loss: -a * x, slope: -a };
    };
  }
  const q = row(d, 'logprobs'),
    advantages = row(d, 'advantages');
  if (q.length !== targets || advantages.length !== targets)
    throw new UserError(`${targets} targets, ${q.length} logprobs and ${advantages.length} advantages`);
  const config = faults.has('ignore-clip-bands') ? {} : (r.lossFnConfig ?? {}),
    band = { low: 1 - (config.clip_low_threshold ?? 0.8), high: (config.clip_high_threshold ?? 1.2) - 1 };
  return (i, x) => {
    const a = faults.has('clamp-negative-advantages') ? Math.max(advantages[i]!, 0) : advantages[i]!,
      ratio = ratioOf(x, q[i]!);
    switch (r.lossFn) {
      case 'ppo':
        return { loss: ppoClip(ratio, a, band), slope: dualClipSlope(ratio, a, band, Infinity) * ratio };
      case 'cispo':
        return { loss: cispo(ratio, a, x, band), slope: cispoSlope(ratio, a, band) };
      default:
        return { loss: -ratio * a, slope: -ratio * a };
    }
  };
}
