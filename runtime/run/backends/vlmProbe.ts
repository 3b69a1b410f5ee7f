import { startsEngine, type RunConfig } from '../../config/index.js';
import { withoutSlashes } from '../../foreign/address.js';
import { StudioError } from '../../domain/index.js';
import type { CoordinateMode } from '../../policy/actions/coordinates.js';
import { imageTokens, resizeLimits } from '../../policy/actions/imageTokens.js';
import type { RemoteTrainerOptions } from '../../trainer/remote/engine.js';
import { actingFace } from '../../trainer/remote/http.js';
import { probeEngine, type ProbeNeeds, type ProbeScreen } from '../../trainer/remote/probe.js';

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
const actsItself = (c: RunConfig): boolean => acting(c).some((own) => own);
/**
 * Whether adapters have a part for the output layer: vLLM before 2026 refuses `lm_head` for Qwen's models, so only
 * where nobody but the training server acts.
 */
export const trainsHead = (c: RunConfig): boolean => acting(c).every((own) => own);
/**
 * The run's own screen: how large pictures may be is set for each engine, so that any other may be resized. Where clicks
 * are pixels of the resized screen it must be resized here as it is there; other clicks are shares of it, and the models
 * that write them differ.
 */
export function screenOf({ desktops: { screen: size }, policy, trainer }: RunConfig): ProbeScreen {
  const mode = policy.vlm!.coordinates,
    options = trainer.remote!.options,
    tokens = (m: CoordinateMode): number => imageTokens(size, resizeLimits(m, options));
  if (mode === 'qwen25') return { size, tokens: [tokens(mode)], otherwise: RESIZED };
  return { size, tokens: [...new Set([tokens(mode), tokens('qwen25'), tokens('relative999')])] };
}
const RESIZED =
  'Clicks are read as pixels of the screen resized by trainer.remote.options.minPixels and maxPixels, or by the limits of UI-TARS-1.5: set both to what the engine resizes by (its --min-pixels and --max-pixels, else min_pixels and max_pixels in preprocessor_config.json of the model)';
/** Of each server that acts, whether it is the one that trains. */
function acting(c: RunConfig): readonly boolean[] {
  const { endpoints } = c.policy.vlm!,
    { url } = c.trainer.remote!;
  if (startsEngine(c)) return endpoints.length === 0 ? [true] : endpoints.map(() => false);
  const own = actingFace(url!);
  return endpoints.map((e) => withoutSlashes(e) === own);
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
  const screen = screenOf(config),
    report = await probeEngine({ server: o.server, model: o.model, needs: needsOf(config), screen }, signal),
    failed = report.checks.filter((c) => c.needed && !c.ok);
  if (report.ok && report.carriage) return { carriage: report.carriage, leaveModels: report.leaveModels };
  throw new StudioError(
    'config.invalid',
    `The engine at ${o.server.url} cannot train this run: ${failed.map((c) => `${c.name}: ${c.detail}`).join('; ') || 'no way to send a gradient is exact'}.`,
    'Use another engine, or change what it does not do in the run file; `dart-studio engine probe` shows every check.',
    { details: { checks: report.checks } },
  );
}
