import { parseRunFile, type RunConfig } from '../config/index.js';
import { StudioError } from '../domain/index.js';
import { connectEngine, ensureImage, ensureRootfs, type OnProgress } from './imageBuild.js';
import { readImage } from './images.js';
import { createLocalProvider, createProvider } from './index.js';
import { createDockerProvider } from './providers/docker.js';
import { exportImage, parseReference, pushImage } from './providers/kubernetes/images.js';
import { createKubernetesProvider } from './providers/kubernetes/provider.js';
import { processLimit, type ProcessLimit } from './providers/processLimit.js';
import type { DesktopProvider, DesktopSpec, ProviderStatus, SettleOptions } from './types.js';

type DesktopsConfig = RunConfig['desktops'];

export const specOf = (
  c: DesktopsConfig,
  o: { a11y?: boolean; run?: string; background?: boolean | undefined } = {},
): DesktopSpec => ({
  screen: c.screen,
  memoryMb: c.memoryMb,
  pids: c.pids,
  cpus: c.cpus,
  a11y: o.a11y,
  labels: o.run ? { run: o.run } : undefined,
  background: o.background,
});

/** How long to wait for the screen after an action. */
export const settleOf = (c: DesktopsConfig): SettleOptions => ({ horizonMs: c.settleHorizonMs, maxMs: c.settleMaxMs });

/** The providers a configuration allows, in order of preference. */
function providersOf(c: DesktopsConfig): DesktopProvider[] {
  const image = { image: c.image };
  const docker = (): DesktopProvider => createDockerProvider({ ...image, hosts: c.hosts });
  if (c.provider === 'docker') return [docker()];
  if (c.provider === 'local') return [createLocalProvider(image)];
  if (c.provider === 'kubernetes') return [createKubernetesProvider({ ...image, config: c.kubernetes })];
  return [docker(), createLocalProvider(image)];
}

/**
 * A provider that works here. Rejects with `config.invalid` when there is no image of this name, and with
 * `desktop.unavailable` saying what each allowed provider lacks.
 */
export async function chooseProvider(c: DesktopsConfig): Promise<DesktopProvider> {
  await readImage(c.image);
  return createProvider({
    provider: c.provider,
    image: c.image,
    docker: { hosts: c.hosts },
    kubernetes: { config: c.kubernetes },
  });
}

/** Whose processes count toward a local desktop's limit on this machine. */
export const localProcessLimit = async (): Promise<ProcessLimit['counts']> => (await processLimit(1)).counts;

/**
 * The status of each provider that a configuration allows. Rejects with `config.invalid` without an image of this name.
 */
export async function probeProviders(c: DesktopsConfig): Promise<ProviderStatus[]> {
  await readImage(c.image);
  const providers = providersOf(c);
  try {
    return await Promise.all(providers.map((p) => p.status()));
  } finally {
    await Promise.all(providers.map((p) => p.dispose()));
  }
}

/**
 * The provider that `desktop build` builds for when none is named: the one that would be used, else one that lacks only
 * the build.
 */
export async function buildTarget(c: DesktopsConfig): Promise<string> {
  const found = await probeProviders(c);
  const target = found.find((s) => s.ok) ?? found.find((s) => s.problem?.kind === 'desktop.image');
  return target?.provider ?? (await chooseProvider(c)).name;
}

/** Builds what desktops start from: the image in the Docker engine, or the root file system of the local provider. */
export async function buildDesktop(o: {
  readonly provider: string;
  /** Name of the desktop image. */
  readonly image: string;
  readonly force: boolean;
  /** Reference under which the image is pushed to a registry, too. */
  readonly push?: string | undefined;
  readonly onProgress: OnProgress;
  readonly signal: AbortSignal;
}): Promise<{ readonly provider: string; readonly what: string }> {
  const { image, force, onProgress, signal } = o;
  await readImage(image);
  const provider =
    o.provider === 'auto' && o.push === undefined
      ? await buildTarget(parseRunFile({}, { desktops: { image } }).desktops)
      : o.provider;
  if (o.push !== undefined) parseReference(o.push, 'built'); // before a minute of building
  if (provider === 'docker' || provider === 'kubernetes' || o.push !== undefined) {
    const docker = connectEngine(),
      built = await ensureImage(docker, onProgress, signal, { force, image });
    if (o.push === undefined) return { provider, what: `Docker image ${built}` };
    return { provider, what: `Image ${await pushImage(docker, built, o.push, onProgress, signal)}` };
  }
  if (provider === 'local')
    return {
      provider,
      what: `Root file system ${await ensureRootfs({ onProgress, signal, force, image })}`,
    };
  throw new StudioError('config.invalid', `--provider ${provider}: unknown`, 'Use auto, docker, local or kubernetes.');
}

/** Writes a desktop image to a file, built first when it is missing; resolves with its tag. */
export async function exportDesktop(o: {
  readonly image: string;
  readonly file: string;
  readonly onProgress: OnProgress;
  readonly signal: AbortSignal;
}): Promise<string> {
  await readImage(o.image);
  const docker = connectEngine(),
    built = await ensureImage(docker, o.onProgress, o.signal, { image: o.image });
  await exportImage(docker, built, o.file, o.signal);
  return built;
}

/** Removes orphaned desktops of every provider; returns how many. */
export async function reapLeftovers(c: DesktopsConfig): Promise<number> {
  const counts = await Promise.all(
    providersOf(c).map(async (p) => {
      try {
        return (await p.status()).ok ? await p.reap() : 0;
      } finally {
        await p.dispose();
      }
    }),
  );
  return counts.reduce((a, b) => a + b, 0);
}
