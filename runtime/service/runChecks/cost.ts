import {
  SCORED,
  samplingRate,
  startsEngine,
  trainingMemory,
  trainingRate,
  type RunConfig,
  type TrainingMemory,
} from '../../config/index.js';
import { imageTokens, resizeLimits } from '../../policy/actions/imageTokens.js';
import { TEXT_TOKENS } from './types.js';

/**
 * Cost of an update of a vision-language model, from the run file alone
 * (runtime/config/README.md#what-an-update-costs).
 */
export interface UpdateCost {
  /** Groups, rollouts and trained steps of an update, at most. */
  readonly groups: number;
  readonly rollouts: number;
  readonly steps: number;
  readonly tokens: {
    readonly image: number;
    readonly images: number;
    readonly text: number;
    readonly answer: number;
    /** Most tokens of one step. */
    readonly step: number;
    readonly update: number;
  };
  /** Passes over the tokens of an update, a pass that only scores counted as half of one that trains. */
  readonly passes: number;
  /**
   * Absent where no figure is known for the model. `atLeast`: all weights are trained, which takes what an adapter takes
   * and the gradient of every weight besides; the figure is the adapter's.
   */
  readonly seconds?: { readonly value: number; readonly source: string; readonly atLeast: boolean };
  /** On one GPU; absent where nothing is known of the model. */
  readonly memory?: TrainingMemory;
  /** Where the engine alone acts, and by its rate rollouts would run into `rollout.taskTimeoutS`. */
  readonly slow?: SlowRollouts;
  /** Bytes that a step and an update add to the run folder. */
  readonly bytes: { readonly step: number; readonly update: number };
}

/** Rollouts that share one engine, seconds. */
interface SlowRollouts {
  readonly desktops: number;
  readonly decision: number;
  readonly rollout: number;
  readonly limit: number;
  /** As many desktops as keep within the limit. */
  readonly most: number;
  readonly source: string;
}

/** A screen as PNG, by pixel: the mean over the screens of the sample run is 0.09. */
const BYTES_PER_PIXEL = 0.1;
/** Prompt of a step: its difference to the one before, ids as 4 bytes. */
const PROMPT_BYTES = 1000;
/** Id, log-prob and entropy of a token; an alternative is its label and probability, about half of those asked are kept. */
const TOKEN_BYTES = 12,
  ALTERNATIVE_BYTES = 12;

export function updateCost(c: RunConfig): UpdateCost | undefined {
  const { vlm } = c.policy,
    { remote } = c.trainer;
  if (!vlm || !remote) return undefined;
  const groups = c.trainer.batchGroups,
    rollouts = groups * c.curation.dynamicRollouts.max,
    kept = c.curation.highEntropy.enabled ? c.curation.highEntropy.keep : 1,
    steps = Math.ceil(rollouts * c.rollout.maxSteps * kept);
  const image = imageTokens(c.desktops.screen, resizeLimits(vlm.coordinates, remote.options)),
    step = TEXT_TOKENS + vlm.images * image + vlm.maxTokens,
    passes = passesOf(c),
    memory = trainingMemory(c),
    slow = slowRollouts(c),
    rate = trainingRate(vlm.model),
    { width, height } = c.desktops.screen;
  const bytes = Math.round(
    width * height * BYTES_PER_PIXEL +
      PROMPT_BYTES +
      vlm.maxTokens * (TOKEN_BYTES + (vlm.alternatives / 2) * ALTERNATIVE_BYTES),
  );
  return {
    groups,
    rollouts,
    steps,
    tokens: { image, images: vlm.images, text: TEXT_TOKENS, answer: vlm.maxTokens, step, update: steps * step },
    passes,
    ...(rate && {
      seconds: {
        value: Math.round(steps * step * passes * rate.seconds),
        source: rate.source,
        atLeast: remote.rank === 0,
      },
    }),
    ...(memory && { memory }),
    ...(slow && { slow }),
    bytes: { step: bytes, update: Math.round(rollouts * c.rollout.maxSteps * bytes) },
  };
}

/** The client's gradient needs the log-probs before each pass, and the KL term those of the reference once. */
function passesOf({ trainer }: RunConfig): number {
  const most = trainer.reuse.enabled ? Math.max(trainer.epochs, trainer.reuse.epochs) : trainer.epochs,
    scored = trainer.remote?.loss === 'client' ? SCORED : 0;
  return most * (1 + scored) + (trainer.klBeta > 0 ? SCORED : 0);
}

/** All desktops wait for one engine, which makes so many tokens a second however many ask. */
function slowRollouts(c: RunConfig): SlowRollouts | undefined {
  const { endpoints, model, maxTokens } = c.policy.vlm!,
    { url } = c.trainer.remote!,
    rate = samplingRate(model),
    alone = startsEngine(c)
      ? endpoints.length === 0
      : endpoints.every((e) => new URL(e).origin === new URL(url!).origin);
  if (!rate || !alone) return undefined;
  const { count: desktops } = c.desktops,
    { maxSteps, taskTimeoutS: limit } = c.rollout,
    // Longer answers are allowed; these are what was measured.
    each = Math.min(rate.answer, maxTokens) / rate.tokens,
    decision = desktops * each,
    rollout = decision * maxSteps;
  if (rollout <= limit) return undefined;
  return {
    desktops,
    decision: Math.round(decision),
    rollout: Math.round(rollout),
    limit,
    most: Math.max(1, Math.floor(limit / (each * maxSteps))),
    source: `${rate.answer} tokens an answer, ${rate.tokens} tokens/s; ${rate.source}`,
  };
}

/** The cost in words, a line each. */
export function costLines(u: UpdateCost): string[] {
  const n = (x: number): string => Math.round(x).toLocaleString('en-US'),
    { tokens } = u;
  return [
    `rollouts   ${n(u.groups)} groups, ${n(u.rollouts)} rollouts, ${n(u.steps)} trained steps at most`,
    `tokens     ${n(tokens.step)} a step at most: ${tokens.images} screens of ${n(tokens.image)}, text about ${n(tokens.text)}, answer ${n(tokens.answer)}; ${n(tokens.update)} an update`,
    `passes     ${u.passes} (one that only scores counts as half)`,
    `time       ${u.seconds ? timeWords(u.seconds) : 'no figure is known for this model'}`,
    `memory     ${u.memory ? memoryWords(u.memory) : 'no figure is known for this model'}`,
    ...(u.slow ? [`rollouts   ${slowWords(u.slow)}`] : []),
    `disk       about ${n(u.bytes.step / 1000)} kB a step, ${n(u.bytes.update / 1e6)} MB an update (an estimate)`,
  ];
}
const timeWords = ({ value, source, atLeast }: NonNullable<UpdateCost['seconds']>): string =>
  atLeast
    ? `more than ${duration(value)} on one GPU, which is what an adapter takes; training all weights takes longer (${source})`
    : `about ${duration(value)} on one GPU (${source})`;
const memoryWords = ({ gib, atLeast, source }: TrainingMemory): string =>
  atLeast
    ? `at least ${gib} GiB if it is one GPU, activations not counted (${source})`
    : `about ${gib} GiB of one GPU at the peak of training (${source})`;
const slowWords = ({ desktops, decision, rollout, limit, most, source }: SlowRollouts): string =>
  `one engine gives ${desktops} desktops a decision each ${duration(decision)}: a rollout of all steps takes ${duration(rollout)}, and rollout.taskTimeoutS ends it after ${duration(limit)}. Set desktops.count to ${most} or less, rollout.taskTimeoutS to ${rollout} or more, or let a pool act (${source})`;
const duration = (s: number): string =>
  s < 120 ? `${s} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
