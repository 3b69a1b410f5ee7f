import type { RunResult } from '../../bench/lib/experiments.js';
import type { RunMeasure, Throughput } from '../../bench/lib/runMeasure.js';

/** A run's result with nothing in it but what a test gives. */
export function resultOf(
  variant: string,
  seed: number,
  o: {
    before?: Record<string, [number, number]>;
    after?: Record<string, [number, number]>;
    throughput?: Partial<Throughput>;
    measure?: Partial<RunMeasure>;
  } = {},
): RunResult {
  const evaluation = (label: string, of: Record<string, [number, number]>): RunMeasure['evals'][number] => {
    const all = Object.values(of),
      sum = (i: 0 | 1): number => all.reduce((n, x) => n + x[i], 0);
    return {
      label,
      version: 1,
      successes: sum(0),
      episodes: sum(1),
      errors: 0,
      low: 0,
      high: 1,
      perFamily: Object.fromEntries(
        Object.entries(of).map(([f, [successes, episodes]]) => [f, { successes, episodes }]),
      ),
    };
  };
  const throughput: Throughput | undefined = o.throughput && {
    seconds: 60,
    rate: 1,
    bound: 1,
    boundBy: 'desktops',
    ratio: 1,
    loose: 1,
    strict: 0.9,
    strictCap: 0.9,
    replicaBusy: 0.1,
    trainerIdle: 0.5,
    staleness: { mean: 0, p95: 0, max: 0 },
    syncDown: 0,
    syncDrain: 0,
    syncs: 1,
    outMax: 1,
    failed: 0,
    generatedActions: 100,
    trainedActions: 50,
    rolloutSeconds: 1,
    meanLength: 3,
    alpha: 0.5,
    updateSeconds: 1,
    ...o.throughput,
  };
  return {
    bench: 'b',
    name: `s${seed}-${variant}`,
    variant,
    seed,
    fingerprint: 'f',
    commit: 'c0ffee',
    command: 'train',
    machine: { cpu: 'x', cores: 2, node: 'v20' },
    load: [1, 2],
    startedAt: '2026-01-01T00:00:00.000Z',
    wallSeconds: 10,
    resumed: false,
    file: {},
    measure: {
      evals: [
        ...(o.before ? [evaluation('untrained', o.before)] : []),
        ...(o.after ? [evaluation('final', o.after)] : []),
      ],
      rollouts: { queued: 100, ended: 100, successes: 0, errors: 0, trained: 50, retired: {} },
      groups: { formed: 10, dropped: 2, meanN: 8, injected: 3 },
      steps: { generated: 300, trained: 120, meanLength: 3 },
      updates: 4,
      gradientShare: 0.5,
      curve: [],
      rlSeconds: 60,
      throughput,
      ...o.measure,
    },
  };
}
