import type { RunConfig } from '../config/index.js';
import { createLocalProvider, createProvider } from '../cluster/index.js';
import { createDockerProvider } from '../cluster/providers/docker.js';
import type { DesktopProvider, DesktopSpec } from '../cluster/types.js';

type DesktopsConfig = RunConfig['desktops'];

export const specOf = (c: DesktopsConfig, o: { a11y?: boolean; run?: string } = {}): DesktopSpec => ({
  screen: c.screen, memoryMb: c.memoryMb, pids: c.pids, cpus: c.cpus,
  ...(o.a11y ? { a11y: true } : {}), ...(o.run ? { labels: { run: o.run } } : {}),
});

/** The providers a configuration allows, in order of preference. */
export function providersOf(c: DesktopsConfig): DesktopProvider[] {
  const docker = (): DesktopProvider => createDockerProvider(c.hosts ? { hosts: c.hosts } : {});
  if (c.provider === 'docker') return [docker()];
  if (c.provider === 'local') return [createLocalProvider()];
  return [docker(), createLocalProvider()];
}

/** A provider that works here; `desktop.unavailable` says what each of those allowed lacks. */
export const chooseProvider = (c: DesktopsConfig): Promise<DesktopProvider> => createProvider({ provider: c.provider, ...(c.hosts ? { docker: { hosts: c.hosts } } : {}) });
