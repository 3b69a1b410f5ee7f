import { startsEngine, type RunConfig } from '../../config/index.js';
import { withoutSlashes } from '../../foreign/address.js';
import { StudioError } from '../../domain/index.js';
import type { RemoteTrainerOptions } from '../../trainer/remote/engine.js';
import { actingFace } from '../../trainer/remote/http.js';
import { probeEngine, type ProbeNeeds } from '../../trainer/remote/probe.js';

/** The features that a run needs of its training server. */
export function needsOf(c: RunConfig): ProbeNeeds {
  const { trainer: t } = c;
  return {
    images: true,
    clip: t.gradClip > 0,
    weightDecay: t.weightDecay > 0,
    serverLoss: t.remote?.loss === 'server',
    sampling: actsItself(c),
  };
}
/** The training server acts too: rollouts are of the weights that it trains only where it samples with them. */
function actsItself(c: RunConfig): boolean {
  const { endpoints } = c.policy.vlm!,
    { url } = c.trainer.remote!;
  if (startsEngine(c)) return endpoints.length === 0;
  const own = actingFace(url!);
  return endpoints.some((e) => withoutSlashes(e) === own);
}

/**
 * How this server takes a gradient, measured before anything is rolled out. Rejects with `config.invalid` when there is
 * no exact way, or when something that the run file asks for is not done.
 */
export async function probed(
  config: RunConfig,
  o: Pick<RemoteTrainerOptions, 'server' | 'model'>,
  signal: AbortSignal,
): Promise<Pick<RemoteTrainerOptions, 'carriage' | 'leaveModels'>> {
  const report = await probeEngine({ server: o.server, model: o.model, needs: needsOf(config) }, signal),
    failed = report.checks.filter((c) => c.needed && !c.ok);
  if (report.ok && report.carriage) return { carriage: report.carriage, leaveModels: report.leaveModels };
  throw new StudioError(
    'config.invalid',
    `The engine at ${o.server.url} cannot train this run: ${failed.map((c) => `${c.name}: ${c.detail}`).join('; ') || 'no way to send a gradient is exact'}.`,
    'Use another engine, or change what it does not do in the run file; `dart-studio engine probe` shows every check.',
    { details: { checks: report.checks } },
  );
}
