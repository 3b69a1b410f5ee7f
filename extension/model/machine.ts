import type { CheckRow } from '../../runtime/protocol/types.js';
import type { Machine } from './contextKeys.js';

/**
 * Whether any provider of desktops works here, from the rows of the machine check (`desktops: docker`, `desktops:
 * local`).
 */
export function machineOf(checks: readonly CheckRow[]): Machine {
  const providers = checks.filter((c) => /^desktops?\b/i.test(c.name));
  return providers.length === 0 ? 'unknown' : providers.some((c) => c.ok) ? 'ok' : 'noDesktops';
}
