import { StudioError, toRunError } from '../../domain/index.js';
import { SUM, type Carrier } from '../objective/signedWeights.js';
import { TrainingClient, type ClientOptions, type ModelOptions } from './client.js';
import type { Carriage } from './gradient.js';
import { TrainingHttp, type HttpOptions } from './http.js';
import { chosen, measureCarrier, reductionWords, type Carried } from './probe/carriers.js';
import { bad, Checks, good, tried, type ProbeCheck } from './probe/checks.js';
import { Lab } from './probe/lab.js';
import { samplingChecks } from './probe/sampling.js';
import { imageChecks, refusals, scoringChecks, type ProbeScreen } from './probe/scoring.js';
import { cleared, deafToLearningRate, refusesEps, steppingChecks } from './probe/stepping.js';

export type { ProbeCheck } from './probe/checks.js';
export type { ProbeScreen } from './probe/scoring.js';

/**
 * Measures from outside what a training server does with what it is told (runtime/trainer/README.md#conformance-probe).
 * Only log-probs are looked at; metrics are not believed.
 */

/** The features that the run cannot do without. */
export interface ProbeNeeds {
  readonly images: boolean;
  /** trainer.gradClip > 0 */
  readonly clip: boolean;
  /** trainer.weightDecay > 0 */
  readonly weightDecay: boolean;
  /** trainer.remote.loss: server */
  readonly serverLoss: boolean;
  /** Rollouts are sampled by this server, through this protocol; `able`: they may be, where it samples at all. */
  readonly sampling: boolean | 'able';
}
export const ALL_NEEDS: ProbeNeeds = {
  images: true,
  clip: true,
  weightDecay: true,
  serverLoss: false,
  sampling: 'able',
};

export interface ProbeOptions {
  readonly server: ClientOptions;
  /** Model to probe; without a base, the first model the server names. */
  readonly model: Omit<ModelOptions, 'base'> & { readonly base?: string | undefined };
  readonly needs: ProbeNeeds;
  /** The screen of the run that asks, instead of a square that most models take. */
  readonly screen?: ProbeScreen;
  readonly onCheck?: (c: ProbeCheck) => void;
}
export interface ProbeReport {
  /** Every check that is needed holds. */
  readonly ok: boolean;
  readonly checks: readonly ProbeCheck[];
  /** How a gradient is carried; absent where nothing is exact. */
  readonly carriage?: Carriage;
  /** The server's own ppo and cispo are exact. */
  readonly serverLoss: boolean;
  /** Saved weights are lost when the model that saved them is unloaded. */
  readonly leaveModels: boolean;
  readonly model?: string;
}
/** A probe asks for small things; what takes longer is lost. A 409 is an answer here. */
const PATIENCE = { deadlineMs: 5 * 60_000, conflictMs: 2000 };

/** How long `reachServer` waits for an answer. */
const ANSWER_MS = 20_000;

/**
 * Throws `trainer.remote` where nothing answers, `config.invalid` where the address is none. For a person who asks about a
 * server: the probe itself waits for one that is starting, as a run does.
 */
export async function reachServer(server: HttpOptions, signal: AbortSignal): Promise<void> {
  const r = await new TrainingHttp(server).send({ path: 'healthz', timeoutMs: ANSWER_MS }, signal);
  // A server that takes its time is there, whatever it thinks of this page.
  if (r.kind === 'answer' || r.timedOut) return;
  throw new StudioError(
    'trainer.remote',
    `No training server answers at ${server.url.slice(0, 200)}: ${r.why}.`,
    'Check host and port, and that the server runs; `dart-studio engine serve --model MODEL` starts one on this machine.',
  );
}

/** Throws only `cancelled`; whatever a server does wrong is a check that failed. */
export async function probeEngine(o: ProbeOptions, signal: AbortSignal): Promise<ProbeReport> {
  const checks = new Checks(o.onCheck);
  let client: TrainingClient | undefined;
  const done = (more: Partial<ProbeReport> = {}): ProbeReport => ({
    serverLoss: false,
    leaveModels: false,
    ...more,
    ok: checks.ok,
    checks: checks.list,
  });
  try {
    client = await TrainingClient.connect({ ...PATIENCE, ...o.server }, signal);
    const base = o.model.base ?? (await client.supportedModels(signal))[0];
    if (base === undefined) {
      checks.add('connection', true, bad('the server names no model; name one'));
      return done();
    }
    const lab = new Lab(client, { ...o.model, base }, signal);
    await lab.fresh((m) => Promise.resolve(m.id));
    checks.add('connection', true, good(`${base}, ${o.model.rank === 0 ? 'all weights' : `rank ${o.model.rank}`}`));
    const found = await measured(lab, checks, o);
    await lab.tidy();
    return done({ ...found, model: base });
  } catch (e) {
    const { kind, message } = toRunError(e);
    if (kind === 'cancelled' || !(e instanceof StudioError)) throw e;
    checks.add('connection', true, bad(message));
    return done();
  } finally {
    client?.close();
  }
}

async function measured(lab: Lab, checks: Checks, o: ProbeOptions): Promise<Partial<ProbeReport>> {
  await scoringChecks(lab, checks);
  await imageChecks(lab, checks, o.needs.images, o.screen);
  const carriage = await carriers(lab, checks);
  let found = { serverLoss: false, leaveModels: false };
  if (carriage) {
    lab.rate = carriage.rate;
    found = await steppingChecks(lab, carriage, checks, o.needs);
    const sampled = await tried(async () => {
      await samplingChecks(lab, carriage, checks, o.needs.sampling);
      return good('');
    });
    if (!sampled.ok) checks.add('sampling', o.needs.sampling === true, sampled);
  }
  await checks.make('refusals', false, () => refusals(lab));
  return { carriage: carriage && { carrier: carriage.carrier, reduction: carriage.reduction }, ...found };
}

async function carriers(lab: Lab, checks: Checks): Promise<ReturnType<typeof chosen>> {
  const of = async (carrier: Carrier): Promise<Carried> => {
    let found: Carried = { finding: bad('not measured'), error: Infinity };
    const finding = await tried(async () => {
      found = await measureCarrier(lab, carrier);
      return found.finding;
    });
    checks.add(carrier, false, finding);
    return { ...found, finding };
  };
  if (await refusesEps(lab)) lab.comeNear();
  const both = { cross_entropy: await of('cross_entropy'), importance_sampling: await of('importance_sampling') },
    best = chosen(both);
  checks.add(
    'carrier',
    true,
    best
      ? good(`${best.carrier}; ${reductionWords(best.reduction)}`)
      : bad(
          `no loss of this server carries a gradient: cross_entropy ${both.cross_entropy.finding.detail}; importance_sampling ${both.importance_sampling.finding.detail}`,
        ),
  );
  if (!best) await why(lab, checks, both);
  return best;
}
/** When no carrier is exact: checks what else the server does wrong, which may be why. */
async function why(lab: Lab, checks: Checks, of: Readonly<Record<Carrier, Carried>>): Promise<void> {
  const carrier = (['cross_entropy', 'importance_sampling'] as const).find((c) => of[c].rate !== undefined);
  if (!carrier) {
    await checks.make('learning-rate', true, () => deafToLearningRate(lab));
    return;
  }
  lab.rate = of[carrier].rate!;
  await checks.make('gradient-cleared', true, () => cleared(lab, { carrier, reduction: SUM }));
}
