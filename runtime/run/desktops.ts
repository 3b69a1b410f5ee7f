import type { RunConfig } from '../config/index.js';
import { createLocalProvider, createProvider } from '../cluster/index.js';
import { createDockerProvider } from '../cluster/providers/docker.js';
import type { DesktopProvider, DesktopSpec, ProviderStatus, SettleOptions } from '../cluster/types.js';

type DesktopsConfig = RunConfig['desktops'];

export const specOf = (c: DesktopsConfig, o: { a11y?: boolean; run?: string } = {}): DesktopSpec => ({
  screen: c.screen, memoryMb: c.memoryMb, pids: c.pids, cpus: c.cpus,
  ...(o.a11y ? { a11y: true } : {}), ...(o.run ? { labels: { run: o.run } } : {}),
});

/** How long an action's screen is waited for. */
export const settleOf = (c: DesktopsConfig): SettleOptions => ({ horizonMs: c.settleHorizonMs, maxMs: c.settleMaxMs });

/** The providers a configuration allows, in order of preference. */
function providersOf(c: DesktopsConfig): DesktopProvider[] {
  const docker = (): DesktopProvider => createDockerProvider(c.hosts ? { hosts: c.hosts } : {});
  if (c.provider === 'docker') return [docker()];
  if (c.provider === 'local') return [createLocalProvider()];
  return [docker(), createLocalProvider()];
}

/** A provider that works here; `desktop.unavailable` says what each of those allowed lacks. */
export const chooseProvider = (c: DesktopsConfig): Promise<DesktopProvider> => createProvider({ provider: c.provider, ...(c.hosts ? { docker: { hosts: c.hosts } } : {}) });

/** What each provider a configuration allows says of itself. */
export async function probeProviders(c: DesktopsConfig): Promise<ProviderStatus[]> {
  const providers = providersOf(c);
  try { return await Promise.all(providers.map((p) => p.probe())); } finally { await Promise.all(providers.map((p) => p.dispose())); }
}
