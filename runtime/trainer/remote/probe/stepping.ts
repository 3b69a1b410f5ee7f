import { randomBytes } from 'node:crypto';
import type { RemoteModel } from '../client.js';
import type { Carriage } from '../gradient.js';
import { bad, figure, good, judged, percent, refusal, tried, type Checks, type Finding } from './checks.js';
import { apart, datum, distance, MAIN, SHORT, sizeOf, type Combo, type Effect, type Lab } from './lab.js';

/** Checks of forward_backward, optim_step and the saving of weights, by the changes of log p they cause. */

/** Effects of steps that should be alike differ by less: steps are not quite linear. */
const ALIKE = 0.25;
/** A step that should do nothing moves less than this share of a normal step. */
const NOTHING = 0.1;
/** Advantage at a ratio of e: such a step is still nearly linear. */
const SMALL = 0.3;
/** Share of the weights that a step of decay takes away. */
const DECAY = { learningRate: 0.05, weightDecay: 10 };

export interface SteppingNeeds {
  readonly clip: boolean;
  readonly weightDecay: boolean;
  readonly serverLoss: boolean;
}
export interface SteppingFindings {
  readonly serverLoss: boolean;
  readonly leaveModels: boolean;
}
export async function steppingChecks(
  lab: Lab,
  c: Carriage,
  checks: Checks,
  needs: SteppingNeeds,
): Promise<SteppingFindings> {
  await checks.make('learning-rate', true, () => learningRate(lab, c));
  await checks.make('accumulation', true, () => accumulation(lab, c));
  await checks.make('gradient-cleared', true, () => cleared(lab, c));
  await checks.make('forward-only', true, () => forwardOnly(lab, c));
  await checks.make('idempotency', true, () => idempotency(lab, c));
  await checks.make('clip', needs.clip, () => clip(lab, c));
  await checks.make('weight-decay', needs.weightDecay, () => weightDecay(lab, c));
  const leaveModels = await restoring(lab, c, checks);
  return { leaveModels, serverLoss: await checks.make('server-loss', needs.serverLoss, () => serverLoss(lab, c)) };
}

const alike = (lab: Lab, a: Effect, b: Effect): boolean => distance(a, b) <= ALIKE * sizeOf(b) + 2 * lab.slack;
const nothing = (lab: Lab, a: Effect, beside: Effect): boolean => sizeOf(a) <= NOTHING * sizeOf(beside) + 2 * lab.slack;
/** Effect of the first step of a model: what two of them do can be compared, however large it is. */
const first = (lab: Lab, c: Carriage, combo: Combo, o: { readonly rate?: number } = {}): Promise<Effect> =>
  lab.fresh((m) => lab.moved(m, c, combo, o));
/** A pass without any gradient: for servers that take no optimizer step without one. */
const idle = (lab: Lab, m: RemoteModel, c: Carriage): Promise<unknown> => lab.push(m, c, [0, 0]);

function learningRate(lab: Lab, c: Carriage): Promise<Finding> {
  return lab.fresh(async (m) => {
    const single = await lab.moved(m, c, [1, 0]),
      double = await first(lab, c, [1, 0], { rate: 2 * lab.rate }),
      none = await lab.moved(m, c, [1, 0], { rate: 0 }),
      ratio = sizeOf(double) / sizeOf(single);
    // Where steps are far from linear (many layers, all weights), a gradient twice as large must do what twice the rate does.
    const linear = !lab.coarse && ratio > 1.6 && ratio < 2.5,
      twice = linear || (ratio > 1.2 && alike(lab, await first(lab, c, [2, 0]), double));
    return judged(
      twice && nothing(lab, none, single),
      `twice the rate moves ${figure(ratio)} times as far, a rate of 0 not at all`,
      `twice the learning rate moves ${figure(ratio)} times as far, a rate of 0 ${percent(sizeOf(none) / sizeOf(single))} of a step`,
    );
  });
}
/**
 * Used when no carrier moved anything at any rate: whether a step of ordinary Adam does, and whether its rate matters.
 */
export async function deafToLearningRate(lab: Lab): Promise<Finding> {
  const moved = (learningRate: number): Promise<number> =>
    lab.fresh(async (m) =>
      sizeOf(
        await lab.effect(m, async () => {
          await m.forwardBackward(
            await lab.raw(m, 'cross_entropy', [MAIN], [1, 0]),
            { name: 'cross_entropy' },
            lab.signal,
          );
          await lab.step(m, { learningRate, eps: 1e-8 });
        }),
      ),
    );
  const [small, large] = [await moved(1e-3), await moved(0.1)];
  if (large <= 2 * lab.slack + 1e-7) return bad('optimizer steps change no log-prob');
  return judged(
    large > 3 * small,
    `a larger learning rate moves further (${figure(small)}, ${figure(large)} nat)`,
    `the learning rate is not honoured: 0.001 and 0.1 move log p by ${figure(small)} and ${figure(large)}`,
  );
}
/** The server says that the optimizer which descends has an eps out of its range. */
export async function refusesEps(lab: Lab): Promise<boolean> {
  const no = await refusal(() =>
    lab.fresh(async (m) => {
      const data = await lab.raw(m, 'cross_entropy', [MAIN], [1, 0]);
      await m.forwardBackward(data, { name: 'cross_entropy' }, lab.signal);
      await lab.step(m, { rate: 0 });
    }),
  );
  return no !== undefined && /\beps\b/.test(no);
}
/** Two passes before one step count as much as one pass over both. */
function accumulation(lab: Lab, c: Carriage): Promise<Finding> {
  return lab.fresh(async (m) => {
    const together = await first(lab, c, [1, 1]);
    const apartFrom = await lab.effect(m, async () => {
      await lab.push(m, c, [1, 0]);
      await lab.push(m, c, [0, 1]);
      await lab.step(m);
    });
    return judged(
      alike(lab, apartFrom, together),
      'gradients of several requests add up',
      `two requests before a step move log p by ${figure(apartFrom[0])} and ${figure(apartFrom[1])} instead of ${figure(together[0])} and ${figure(together[1])}: gradients do not add up`,
    );
  });
}
export function cleared(lab: Lab, c: Carriage): Promise<Finding> {
  return lab.fresh(async (m) => {
    const first = await lab.moved(m, c, [1, 0]),
      second = await lab.moved(m, c, [0, 0]);
    return judged(
      nothing(lab, second, first),
      'an optimizer step clears the gradient',
      `a step without a gradient repeats ${percent(sizeOf(second) / sizeOf(first))} of the step before: the gradient is kept`,
    );
  });
}
function forwardOnly(lab: Lab, c: Carriage): Promise<Finding> {
  return lab.fresh(async (m) => {
    const step = await lab.moved(m, c, [1, 0]),
      after = await lab.effect(m, async () => {
        await lab.rows(m, [MAIN], 1);
        await idle(lab, m, c);
        await lab.step(m);
      });
    return judged(
      nothing(lab, after, step),
      'a forward pass leaves no gradient',
      `a forward pass leaves a gradient: the step after it moves log p by ${figure(after[0])}`,
    );
  });
}
/**
 * Every call twice under its number. The momentum of the second step is what a step done twice would show. A server that
 * refuses a number it had is as good: the driver then starts the update over.
 */
function idempotency(lab: Lab, c: Carriage): Promise<Finding> {
  return lab.fresh(async (m) => {
    const single = await first(lab, c, [1, 0]);
    let refused: string | undefined;
    const twice = await lab.effect(m, async () => {
      const data = await lab.push(m, c, [1, 0]),
        same = { modelId: m.id, seqId: m.seq, data, lossFn: c.carrier, forwardOnly: false };
      refused = await refusal(async () => (await lab.client.pass(same, lab.signal)).result);
      await lab.step(m);
    });
    if (!alike(lab, twice, single))
      return bad(`a pass that is sent again counts again: ${figure(sizeOf(twice) / sizeOf(single))} times the step`);
    const heavy = { beta1: 0.5 };
    await lab.push(m, c, [-1, 0]);
    await lab.step(m, heavy);
    const { seq } = m,
      again = await lab.effect(m, async () => {
        refused = (await refusal(() => m.optimStep(lab.adam(heavy), lab.signal, seq))) ?? refused;
      });
    return judged(
      nothing(lab, again, single),
      refused === undefined
        ? 'a call that is sent again under its number is not done again'
        : `a call that is sent again under its number is refused, and not done again (${refused})`,
      `an optimizer step that is sent again is done again: log p moves by ${figure(again[0])}`,
    );
  });
}
/** Far below any gradient, a clip leaves nothing of a step. */
function clip(lab: Lab, c: Carriage): Promise<Finding> {
  return lab.fresh(async (m) => {
    const open = await lab.moved(m, c, [1, 0]),
      clipped = await lab.moved(m, c, [-1, 0], { gradClip: 1e-9 });
    return judged(
      nothing(lab, clipped, open),
      'grad_clip_norm is applied',
      `a gradient clipped to 1e-9 still moves log p by ${percent(sizeOf(clipped) / sizeOf(open))} of a step: grad_clip_norm is ignored`,
    );
  });
}
function weightDecay(lab: Lab, c: Carriage): Promise<Finding> {
  return lab.fresh(async (m) => {
    // Log-probs of every position: where all weights decay, the trained ones may change less than others.
    const row = async (): Promise<Float32Array> => (await lab.rows(m, [MAIN]))[0]!,
      start = await row();
    for (let i = 0; i < 2; i++) {
      await lab.push(m, c, [1, 0]);
      await lab.step(m);
    }
    const taught = await row();
    await idle(lab, m, c);
    await lab.step(m, DECAY);
    const learned = apart(start, taught),
      decayed = apart(taught, await row());
    return judged(
      decayed > 0.2 * learned,
      `weight_decay is applied: half the weights move log p by ${percent(decayed / learned)} of what was learned`,
      `weight_decay is ignored: where half the weights should go, log p moves by ${percent(decayed / learned)} of what was learned`,
    );
  });
}

/**
 * The driver lets a model go and a fresh one takes its weights. Where they went with it they must come back while it is
 * there, and it is left to the server; answers whether that is so.
 */
async function restoring(lab: Lab, c: Carriage, checks: Checks): Promise<boolean> {
  const gone = await tried(() => restore(lab, c, 'gone')),
    there = gone.ok ? undefined : await tried(() => restore(lab, c, 'there'));
  checks.add('restore', true, there?.ok ? there : gone);
  if (!gone.ok && !there?.ok) return false;
  return !checks.add(
    'unload',
    false,
    gone.ok
      ? good('weights outlive the model that saved them')
      : bad(`weights are lost with the model that saved them, so it is left to the server (${gone.detail})`),
  );
}
/** Weights and momentum on a fresh model; `saver`: what has become of the model they are of. */
async function restore(lab: Lab, c: Carriage, saver: 'gone' | 'there'): Promise<Finding> {
  const momentum = { beta1: 0.9 },
    name = `probe-${randomBytes(4).toString('hex')}`;
  const second = async (m: RemoteModel): Promise<{ readonly before: Float32Array; readonly effect: Effect }> => {
    const [before] = await lab.rows(m, [MAIN]);
    return { before: before!, effect: await lab.moved(m, c, [0, 1], momentum) };
  };
  const back = (path: string): ReturnType<typeof second> =>
    lab.fresh(async (m) => {
      await m.load(path, true, lab.signal);
      return second(m);
    });
  const { here, there, first } = await lab.fresh(async (m) => {
    const saved = async (as: string): Promise<string> => {
      const path = await m.saveWeights(as, lab.signal);
      lab.saved.push(path);
      return path;
    };
    const [first] = await lab.rows(m, [MAIN]);
    // A run saves again and again: what comes back must be what was saved last.
    await saved(`${name}-before`);
    await lab.moved(m, c, [1, 0], momentum);
    const path = await saved(name),
      own = await second(m);
    if (saver === 'gone') await lab.unload(m);
    return { here: own, there: await back(path), first: first! };
  });
  const off = apart(here.before, there.before);
  if (off > 0.01 + 3 * lab.noise)
    return bad(
      apart(first, there.before) < off / 2
        ? 'weights that are saved again are those that were saved first'
        : `restored weights give other log-probs (by ${figure(off)} nat)`,
    );
  return judged(
    alike(lab, there.effect, here.effect),
    'weights and optimizer come back as they were',
    `the optimizer is not restored: the step after it moves log p by ${figure(there.effect[0])} and ${figure(there.effect[1])} instead of ${figure(here.effect[0])} and ${figure(here.effect[1])}`,
  );
}

/** ppo and cispo with bounds of our own, at a ratio of e, beside another datum: nothing may be averaged. */
async function serverLoss(lab: Lab, c: Carriage): Promise<Finding> {
  const bounded = (name: string, high: number): Promise<Effect> =>
    lab.fresh((m) => lab.effect(m, () => boundedStep(lab, m, name, high)));
  // The effect, by the exact carrier, of the weights that the bounded losses should come to.
  const weighed = (by: number): Promise<Effect> => first(lab, c, [SMALL * by, 0]);
  const [some, all] = [await weighed(1.5), await weighed(Math.E)],
    [low, high, open, shut] = [
      await bounded('cispo', 1.5),
      await bounded('cispo', 4),
      await bounded('ppo', 4),
      await bounded('ppo', 1.5),
    ] as const,
    share = (e: Effect, of: Effect): string => percent(sizeOf(e) / sizeOf(of));
  return judged(
    alike(lab, low, some) && alike(lab, high, all) && alike(lab, open, all) && nothing(lab, shut, all),
    'ppo and cispo keep to the bounds they are given and add up',
    `ppo or cispo does not keep to the bounds it is given, or averages: at a ratio of 2.72 cispo with a bound of 1.5 makes ${share(low, some)} of the step of that weight, with a bound of 4 ${share(high, all)} of that of 2.72; ppo ${share(open, all)} of it, and where it should be shut ${share(shut, all)}`,
  );
}
/** One step with a loss that is bounded above by `high`, at a ratio of e. */
async function boundedStep(lab: Lab, m: RemoteModel, name: string, high: number): Promise<void> {
  const [row] = await lab.rows(m, [MAIN]),
    n = SHORT.targets.length,
    advantages = new Float32Array(row!.length).fill(SMALL * lab.scale, 8, 14);
  const data = [
    datum(MAIN, { logprobs: row!.map((x) => x - 1), advantages }),
    datum(SHORT, { logprobs: new Float32Array(n), advantages: new Float32Array(n) }),
  ];
  const config = { clip_low_threshold: 0, clip_high_threshold: high };
  await m.forwardBackward(data, { name, config }, lab.signal);
  await lab.step(m);
}
