import { rm } from 'node:fs/promises';
import { probeEngine } from '../../../runtime/trainer/remote/probe.js';
import type { EngineEnvironment } from '../../../runtime/trainer/engine/environment.js';
import { startEngine } from './servers.js';

/** What the conformance probe makes of our own engine, which is exact: what it refuses, it refuses wrongly. */
export interface ProbedEngine {
  readonly dtype: string;
  readonly layers: number;
  /** 0: all weights. */
  readonly rank: number;
  readonly ok: boolean;
  /** Checks that did not hold, needed or not. */
  readonly failed: readonly { readonly name: string; readonly needed: boolean; readonly detail: string }[];
  readonly seconds: number;
}
export interface ProbesResult {
  readonly probes: readonly ProbedEngine[];
  readonly probe_false_refusals: number;
}
/** Everything that a run may ask of a server. */
export const EVERY_NEED = { images: true, clip: true, weightDecay: true, serverLoss: true, sampling: true };
const RANKS = [8, 0];
/** What bfloat16 rounds away grows with the layers: published models have 28 to 64. */
export const DEEP = 36;

/** Starts the engine of each model in its number format, and probes it with an adapter and with all weights. */
export async function probedEngines(
  e: EngineEnvironment,
  o: { readonly tiny: string; readonly deep: string; readonly state: string; readonly port: number },
): Promise<ProbesResult> {
  const probes: ProbedEngine[] = [],
    engines = [
      { model: o.tiny, layers: 2, dtype: 'float32' },
      { model: o.tiny, layers: 2, dtype: 'bfloat16' },
      { model: o.deep, layers: DEEP, dtype: 'bfloat16' },
    ];
  for (const { model, layers, dtype } of engines) {
    await rm(o.state, { recursive: true, force: true });
    const { url, stop } = await startEngine(e, { ...o, model, options: ['--dtype', dtype] });
    try {
      for (const rank of RANKS) {
        const began = performance.now(),
          server = { url, version: '0.38.0' },
          r = await probeEngine(
            { server, model: { base: 'base', rank }, needs: EVERY_NEED },
            new AbortController().signal,
          );
        probes.push({
          dtype,
          layers,
          rank,
          ok: r.ok,
          failed: r.checks.filter((c) => !c.ok).map(({ name, needed, detail }) => ({ name, needed, detail })),
          seconds: Math.round((performance.now() - began) / 1000),
        });
        console.error(`${layers} layers, ${dtype}, rank ${rank}: ${r.ok ? 'passes' : 'refused'}`);
      }
    } finally {
      await stop();
    }
  }
  return { probes, probe_false_refusals: probes.filter((p) => !p.ok).length };
}
