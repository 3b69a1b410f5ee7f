import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { probeEngine } from '../../../runtime/trainer/remote/probe.js';
import { FAULTS, type Fault } from '../../helpers/engine/faults.js';
import { ReferenceServer, type ReferenceServerOptions } from '../../helpers/engine/server.js';
import type { Bar } from '../lib/report.js';
import { bar } from '../lib/report.js';
import type { KillsResult } from './kills.js';

/** Figures of a trained vision-language model that are no learning: of the engine, the probe, and crashes. */

/** What another cache or the pool answers for: not this protocol's to see. */
const NOT_THE_PROBES: readonly Fault[] = ['noop-adapter', 'stale-adapter'];
const NEEDS = { images: true, clip: true, weightDecay: true, serverLoss: true, sampling: true };

export interface ProbeFigures {
  readonly planted: number;
  readonly caught: number;
  readonly missed: readonly string[];
  /** Refusals of servers without a fault: exact, and with the noise of fp32 and of bf16. */
  readonly falseRefusals: number;
  readonly faultless: number;
}
/** Every planted fault, and servers without one, before the probe; no sockets. */
export async function probeFigures(): Promise<ProbeFigures> {
  const probe = async (o: ReferenceServerOptions): Promise<{ ok: boolean; all: boolean }> => {
    const s = await ReferenceServer.start(o);
    try {
      const server = { url: s.url, version: '0.38.0', fetch: s.direct, sleep: () => Promise.resolve() },
        r = await probeEngine(
          { server, model: { base: s.baseModel, rank: 4 }, needs: NEEDS },
          new AbortController().signal,
        );
      return { ok: r.ok, all: r.checks.every((c) => c.ok) };
    } finally {
      s.close();
    }
  };
  const faults = (Object.keys(FAULTS) as Fault[]).filter((f) => !NOT_THE_PROBES.includes(f)),
    missed: string[] = [];
  for (const fault of faults) if ((await probe({ faults: [fault] })).all) missed.push(fault);
  let falseRefusals = 0;
  const noises = [0, 1e-6, 1e-2];
  for (const noise of noises) if (!(await probe({ noise })).ok) falseRefusals++;
  return {
    planted: faults.length,
    caught: faults.length - missed.length,
    missed,
    falseRefusals,
    faultless: noises.length,
  };
}

const RESULTS = 'test/engine/results/engine.json';
interface EngineFigures {
  readonly gradient_relative_error: number;
  readonly logprob_max_difference: number;
  readonly failed_calls_during_publish: number;
}
/** Of the last whole `npm run test:engine`. */
export const engineFigures = (): EngineFigures | undefined =>
  existsSync(RESULTS) ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as { figures: EngineFigures }).figures : undefined;
/** Of the last `--kills`, in the folder of results. */
export const killsFigures = (out: string): KillsResult | undefined => {
  const file = [join(out, 'kills.json'), 'test/bench/results/vlm/kills.json'].find(existsSync);
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, 'utf8')) as KillsResult);
};

export function figureBars(
  probe: ProbeFigures | undefined,
  engine: EngineFigures | undefined,
  kills: KillsResult | undefined,
): Bar[] {
  return [
    ...(engine
      ? [
          bar('gradient_relative_error', engine.gradient_relative_error, 'against autograd', '<= 1e-5'),
          bar('logprob_max_difference', engine.logprob_max_difference, 'sampled against scored, fp32', '<= 3e-5'),
          bar('failed_calls_during_publish', engine.failed_calls_during_publish, 'calls', '<= 0'),
        ]
      : []),
    ...(kills
      ? [
          bar('batches_twice', kills.batches_twice, `of ${kills.batches}, over ${kills.kills} kills`, '<= 0'),
          bar('batches_skipped', kills.batches_skipped, `of ${kills.batches}, over ${kills.kills} kills`, '<= 0'),
          bar('steps_beside_batches', Math.abs(kills.optimizer_steps - kills.batches), 'optimizer steps', '<= 0'),
        ]
      : []),
    ...(probe
      ? [
          bar('probe_faults_caught', probe.caught, `of ${probe.planted} planted`, '>= 12'),
          bar('probe_false_refusals', probe.falseRefusals, `of ${probe.faultless} servers without a fault`, '<= 0'),
        ]
      : []),
  ];
}
