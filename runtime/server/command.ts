import { StudioError } from '../domain/index.js';
import { thisBundle } from '../service/engines.js';
import { createStudioService, type AlertTargets } from '../service/index.js';
import type { SessionPlan } from '../service/runSession.js';
import type { StudioService } from '../service/types.js';
import { serve } from './serve.js';

interface ServeOptions {
  readonly idleMinutes?: string;
  readonly alerts?: AlertTargets;
}
/** `serve <storage>`; resolves when the daemon serves, and the process ends by itself. */
export async function serveCommand(storage: string, o: ServeOptions): Promise<void> {
  const idle = o.idleMinutes ?? process.env['DART_STUDIO_IDLE_MINUTES'],
    idleMinutes = idle === undefined ? undefined : Number(idle);
  if (idleMinutes !== undefined && !(idleMinutes > 0 && idleMinutes <= 10_000))
    throw new StudioError(
      'config.invalid',
      `${idle} is not a number of minutes.`,
      'Give --idle-minutes a number above 0.',
    );
  const port = process.env['DART_STUDIO_METRICS_PORT'],
    metricsPort = port === undefined || port === '' ? undefined : Number(port);
  if (metricsPort !== undefined && !(Number.isInteger(metricsPort) && metricsPort > 0 && metricsPort < 65_536))
    throw new StudioError('config.invalid', `${port} is no port.`, 'Set DART_STUDIO_METRICS_PORT to 1 to 65535.');
  await serve({
    storage,
    idleMinutes,
    metricsPort,
    alerts: o.alerts,
    createService: (s) => createStudioService({ entry: { ...thisBundle(), background: true }, ...s }),
    exit: (code) => process.exit(code),
  });
}

/**
 * `train --serve <storage>`: one run in a daemon that windows attach to. Resolves when they can; the process ends after
 * the run, with the code that `conclude` makes of its result.
 */
export async function trainServed(
  storage: string,
  plan: SessionPlan,
  o: { readonly alerts: AlertTargets; conclude(r: Awaited<ReturnType<StudioService['train']>>): Promise<number> },
): Promise<void> {
  await serve({
    storage,
    alerts: o.alerts,
    createService: (s) => createStudioService({ entry: thisBundle(), ...s }),
    work: async (service) => o.conclude(await service.train(plan)),
    exit: (code) => process.exit(code),
  });
}
