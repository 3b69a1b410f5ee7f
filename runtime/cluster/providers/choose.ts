import { parseRunFile } from '../../config/index.js';
import { StudioError, type ProviderChoice, type ProviderKind } from '../../domain/index.js';
import type { DesktopProvider } from '../types.js';
import { createDockerProvider, type DockerProviderOptions } from './docker.js';
import { createKubernetesProvider, type KubernetesProviderOptions } from './kubernetes/provider.js';
import { createLocalProvider, type LocalProviderOptions } from './local.js';

export interface ProviderOptions {
  /** `auto`: Docker when an engine answers, else local sandboxes, else an error that says what to install. */
  readonly provider: ProviderChoice;
  /** Name of the desktop image; default `desk`. */
  readonly image?: string;
  readonly local?: LocalProviderOptions;
  readonly docker?: DockerProviderOptions;
  readonly kubernetes?: KubernetesProviderOptions;
}

/**
 * A provider that works here. Rejects with `desktop.unavailable` (or the error of the one asked for) when there is
 * none.
 */
export async function createProvider(o: ProviderOptions): Promise<DesktopProvider> {
  const image = o.image === undefined ? {} : { image: o.image };
  const makers: Record<ProviderKind, () => DesktopProvider> = {
    docker: () => createDockerProvider({ ...image, ...o.docker }),
    local: () => createLocalProvider({ ...image, ...o.local }),
    kubernetes: () =>
      createKubernetesProvider({ ...image, ...(o.kubernetes ?? { config: parseRunFile({}).desktops.kubernetes }) }),
  };
  const problems: string[] = [],
    remedies: string[] = [];
  for (const name of o.provider === 'auto' ? (['docker', 'local'] as const) : [o.provider]) {
    const p = makers[name]();
    const s = await p.status();
    if (s.ok) return p;
    await p.dispose();
    if (o.provider !== 'auto' && s.problem)
      throw new StudioError(
        s.problem.kind,
        s.problem.message,
        s.problem.remedy,
        s.problem.details ? { details: { ...s.problem.details } } : {},
      );
    problems.push(s.problem?.message ?? s.detail);
    if (s.problem) remedies.push(`${name}: ${s.problem.remedy}`);
  }
  throw new StudioError(
    'desktop.unavailable',
    `This machine cannot run desktops. ${problems.join(' ')}`,
    remedies.join(' ') || 'Install Docker, or bubblewrap and mmdebstrap.',
  );
}
