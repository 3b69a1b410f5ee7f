import { FULL_METRICS, OFFERED_GETTERS, OFFERED_METRICS, UNOFFERED } from './catalog.js';
import { fullyInstalled, findEvaluators, type EvaluatorPlace } from './environment.js';
import { evaluatorWorkers, type EvaluatorWorkers, type WorkerPoolOptions } from './workers.js';

/** OSWorld's own evaluators on this machine: what they can judge, and the workers that do. */
export interface Evaluators {
  readonly place: EvaluatorPlace;
  readonly getters: ReadonlySet<string>;
  readonly metrics: ReadonlySet<string>;
  readonly workers: Pick<EvaluatorWorkers, 'run'>;
}

/** Packages of `osworld install --full`; without one of them its metrics are not offered. */
const FULL_PACKAGES = ['cv2', 'fitz', 'imagehash', 'librosa', 'skimage'];

/**
 * The evaluators that this machine has, or undefined. A checkout is asked what it offers, which starts a worker; of the
 * installed wheel it is known. Rejects with `config.invalid` where the checkout that is named is none.
 */
export async function openEvaluators(o: WorkerPoolOptions = {}): Promise<Evaluators | undefined> {
  const place = await findEvaluators();
  return place && evaluatorsAt(place, o);
}

export async function evaluatorsAt(place: EvaluatorPlace, o: WorkerPoolOptions = {}): Promise<Evaluators> {
  const workers = evaluatorWorkers(place, o);
  if (place.checkout !== undefined) {
    const { getters, metrics, absent } = await workers.offers(),
      full = !FULL_PACKAGES.some((p) => absent.includes(p));
    return { place, workers, getters: new Set(getters), metrics: new Set(metrics.filter((m) => full || !isFull(m))) };
  }
  const full = fullyInstalled(place),
    able = (name: string): boolean => !Object.hasOwn(UNOFFERED, name) && (full || !isFull(name));
  return {
    place,
    workers,
    getters: new Set([...OFFERED_GETTERS].filter(able)),
    metrics: new Set([...OFFERED_METRICS].filter(able)),
  };
}
const isFull = (metric: string): boolean => FULL_METRICS.has(metric);

/** The installation that would provide a missing metric or getter; undefined where we know of none. */
export function installFor(kind: 'metric' | 'getter', name: string): string | undefined {
  if (Object.hasOwn(UNOFFERED, name)) return undefined;
  if (kind === 'metric' ? !OFFERED_METRICS.has(name) : !OFFERED_GETTERS.has(name)) return undefined;
  return isFull(name) ? 'osworld install --full' : 'osworld install';
}
