import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { probeEngine } from '../../../runtime/trainer/remote/probe.js';
import { FAULTS, type Fault } from '../../helpers/engine/faults.js';
import { ReferenceServer, type ReferenceServerOptions } from '../../helpers/engine/server.js';
import type { Bar } from '../lib/report.js';
import { bar } from '../lib/report.js';
import type { KillsResult } from './kills.js';
import { EVERY_NEED, type ProbesResult } from './probes.js';

/** Figures of a trained vision-language model that are no learning: of the engine, the probe, and crashes. */

/** The pool's to find (test/unit/policy/endpointReplica.test.ts): this protocol does not show the cache of another one. */
const NOT_THE_PROBES: readonly Fault[] = ['stale-adapter'];

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
          { server, model: { base: s.baseModel, rank: 4 }, needs: EVERY_NEED },
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

/** A result that another command wrote, of a folder of results or, where it has none, as it is recorded. */
function recorded<T>(...files: readonly string[]): T | undefined {
  const file = files.find(existsSync);
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, 'utf8')) as T);
}
interface EngineFigures {
  readonly gradient_relative_error: number;
  readonly logprob_max_difference: number;
  readonly failed_calls_during_publish: number;
}
interface VllmFigures {
  readonly logprob_max_difference: number;
  readonly failed_calls_during_publish: number;
  readonly logprobs: { readonly tokens: number };
  readonly publishing: { readonly calls_during_publish: number };
}
interface GpuProbe {
  readonly shape: string;
  readonly commit: string;
  readonly dtype: string;
  readonly ok: boolean;
  readonly device?: string;
}
/** The probe on our engine on a GPU, in the last `node scripts/engine.mjs gpu` that asked it. */
export function gpuFigures(): GpuProbe | undefined {
  const file = recorded<{ runs: { commit: string; device: string }[]; probe?: GpuProbe }>(
    'test/engine/results/gpu.json',
  );
  return file?.probe && { ...file.probe, device: deviceOf(file.runs, file.probe) };
}
const deviceOf = (runs: readonly { commit: string; device: string }[], p: GpuProbe): string =>
  p.device ?? runs.find((r) => r.commit === p.commit)?.device ?? 'a GPU';
/** Of the last whole `npm run test:engine`. */
export const engineFigures = (): EngineFigures | undefined =>
  recorded<{ figures: EngineFigures }>('test/engine/results/engine.json')?.figures;
/** Of the last `npm run test:peers:vllm`, and of TuFT in the last `npm run test:peers:tinker`. */
export const peerFigures = (): Pick<Figures, 'vllm' | 'tuft'> => ({
  vllm: recorded<VllmFigures>('test/peers/vllm/results/vllm.json'),
  tuft: recorded<{ probe_false_refusals: number | null }>('test/peers/tinker/results/tinker.json'),
});
/** Of the last `--kills`, and of the last `--probes`. */
export const killsFigures = (out: string): KillsResult | undefined =>
  recorded(join(out, 'kills.json'), 'test/bench/results/vlm/kills.json');
export const probesFigures = (out: string): ProbesResult | undefined =>
  recorded(join(out, 'probes.json'), 'test/bench/results/vlm/probes.json');

export interface Figures {
  readonly probe?: ProbeFigures | undefined;
  readonly engine?: EngineFigures | undefined;
  readonly vllm?: VllmFigures | undefined;
  readonly kills?: KillsResult | undefined;
  readonly probes?: ProbesResult | undefined;
  readonly gpu?: GpuProbe | undefined;
  /** Needed checks of a run on text that TuFT's exact server failed; null where it was not measured. */
  readonly tuft?: { readonly probe_false_refusals: number | null } | undefined;
}
/** Older records have none of a daemon. */
const killsWords = (k: Pick<KillsResult, 'batches' | 'kills'> & Partial<KillsResult>): string =>
  `of ${k.batches}, over ${k.kills} kills${k.daemon_kills === undefined ? '' : `, ${k.daemon_kills} of a daemon`}`;

/** Each names its source: what our engine makes of itself says nothing of a vLLM. */
export function figureBars({ probe, engine, vllm, kills, probes, gpu, tuft }: Figures): Bar[] {
  const scored = 'sampled against scored, fp32';
  return [
    ...(engine
      ? [bar('gradient_relative_error', engine.gradient_relative_error, 'our engine against autograd', '<= 1e-5')]
      : []),
    ...(vllm
      ? [
          bar(
            'logprob_max_difference',
            vllm.logprob_max_difference,
            `a real vLLM against the trainer, fp32, ${vllm.logprobs.tokens} tokens`,
            '<= 3e-5',
          ),
          bar(
            'failed_calls_during_publish',
            vllm.failed_calls_during_publish,
            `of ${vllm.publishing.calls_during_publish}, two real vLLM servers`,
            '<= 0',
          ),
        ]
      : []),
    ...(engine
      ? [
          bar('logprob_max_difference_own', engine.logprob_max_difference, `our engine, ${scored}`, '<= 3e-5'),
          bar('failed_calls_during_publish_own', engine.failed_calls_during_publish, 'calls, our engine', '<= 0'),
        ]
      : []),
    ...(kills
      ? [
          bar('batches_twice', kills.batches_twice, killsWords(kills), '<= 0'),
          bar('batches_skipped', kills.batches_skipped, killsWords(kills), '<= 0'),
          bar('steps_beside_batches', Math.abs(kills.optimizer_steps - kills.batches), 'optimizer steps', '<= 0'),
        ]
      : []),
    ...(probe
      ? [
          bar('probe_faults_caught', probe.caught, `of ${probe.planted} planted`, '>= 12'),
          bar('probe_false_refusals', ...falseRefusals(probe, { probes, gpu, tuft }), '<= 0'),
        ]
      : []),
  ];
}
/** Servers that are exact and were refused, and which were asked. */
function falseRefusals(
  probe: ProbeFigures,
  { probes, gpu, tuft }: Pick<Figures, 'probes' | 'gpu' | 'tuft'>,
): [value: number, unit: string] {
  const texts = tuft?.probe_false_refusals ?? undefined,
    asked = [
      `${probe.faultless} reference servers`,
      probes
        ? probes.probes
            .map(
              (p) => `our engine (${p.layers} layers, ${p.dtype}, ${p.rank === 0 ? 'all weights' : `rank ${p.rank}`})`,
            )
            .join(', ')
        : 'our engine not asked',
      ...(gpu
        ? [
            `our engine (${gpu.shape}, ${gpu.dtype}, ${gpu.device ?? 'a GPU'}${gpu.ok ? '' : `: refused at ${gpu.commit}, not asked there since`})`,
          ]
        : []),
      texts === undefined ? 'TuFT not asked' : 'TuFT on text',
    ];
  return [
    probe.falseRefusals +
      (probes?.probe_false_refusals ?? 0) +
      (gpu?.ok === false ? 1 : 0) +
      (texts === undefined || texts === 0 ? 0 : 1),
    `of ${asked.join(', ')}`,
  ];
}
