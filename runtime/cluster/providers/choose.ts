import { parseRunFile } from '../../config/index.js';
import { StudioError, PROVIDER_KINDS, type ProviderChoice, type ProviderKind } from '../../domain/index.js';
import { connectEngine, ensureImage, ensureRootfs, type OnProgress } from '../imageBuild.js';
import type { DesktopProvider } from '../types.js';
import { createDockerProvider, type DockerProviderOptions } from './docker.js';
import { exportImage, parseReference, pushImage } from './kubernetes/images.js';
import { createKubernetesProvider, type KubernetesProviderOptions } from './kubernetes/provider.js';
import { createLocalProvider, type LocalProviderOptions } from './local.js';
import type { FramebufferThreadsOptions } from '../drivers/framebufferThreads.js';
import type { OsworldOptions } from './osworld/access.js';
import { createOsworldProvider } from './osworld/provider.js';

export interface ProviderOptions {
  /** `auto`: Docker when an engine answers, else local sandboxes, else an error that says what to install. */
  readonly provider: ProviderChoice;
  /** Name or reference (imageExtra.ts) of the desktop image; default `desk`. */
  readonly image?: string;
  /** Threads that make files of screens. */
  readonly screens?: FramebufferThreadsOptions;
  readonly local?: LocalProviderOptions;
  readonly docker?: DockerProviderOptions;
  readonly kubernetes?: KubernetesProviderOptions;
  readonly osworld?: OsworldOptions;
}
export interface BuildOptions {
  /** Name or reference (imageExtra.ts) of the desktop image. */
  readonly image: string;
  readonly force: boolean;
  /** Reference under which the image is pushed to a registry, too. */
  readonly push?: string | undefined;
  readonly onProgress: OnProgress;
  readonly signal: AbortSignal;
}

/** A way to run desktops. */
interface ProviderEntry {
  /** `auto` may take it; one that costs money or needs options of its own is only taken when it is asked for. */
  readonly auto: boolean;
  make(o: Omit<ProviderOptions, 'provider'>): DesktopProvider;
  /** Builds what its desktops start from; resolves with what that is, in words. */
  build(o: BuildOptions): Promise<string>;
}
const imageOf = (image: string | undefined): { image?: string } => (image === undefined ? {} : { image });
const screensBy = (screens: FramebufferThreadsOptions | undefined): Pick<ProviderOptions, 'screens'> =>
  screens === undefined ? {} : { screens };

/** The image in the Docker engine and, where it is to be pushed, in a registry. */
async function buildImage({ onProgress, signal, force, image, push }: BuildOptions): Promise<string> {
  if (push !== undefined) parseReference(push, 'built'); // before a minute of building
  const docker = connectEngine(),
    built = await ensureImage(docker, onProgress, signal, { force, image, asked: true });
  return push === undefined
    ? `Docker image ${built}`
    : `Image ${await pushImage(docker, built, push, onProgress, signal)}`;
}

/** Writes a desktop image to a file, built first when it is missing; resolves with its tag. */
export async function exportDesktopImage(o: Omit<BuildOptions, 'force' | 'push'>, file: string): Promise<string> {
  const docker = connectEngine(),
    built = await ensureImage(docker, o.onProgress, o.signal, { image: o.image, asked: true });
  await exportImage(docker, built, file, o.signal);
  return built;
}

const PROVIDERS: Readonly<Record<ProviderKind, ProviderEntry>> = {
  docker: {
    auto: true,
    make: ({ image, screens, docker }) => createDockerProvider({ ...imageOf(image), ...screensBy(screens), ...docker }),
    build: (o) => buildImage(o),
  },
  local: {
    auto: true,
    make: ({ image, screens, local }) => createLocalProvider({ ...imageOf(image), ...screensBy(screens), ...local }),
    build: async ({ onProgress, signal, force, image }) =>
      `Root file system ${await ensureRootfs({ onProgress, signal, force, image })}`,
  },
  kubernetes: {
    auto: false,
    make: ({ image, kubernetes }) =>
      createKubernetesProvider({
        ...imageOf(image),
        ...(kubernetes ?? { config: parseRunFile({}).desktops.kubernetes }),
      }),
    build: (o) => buildImage(o),
  },
  osworld: {
    auto: false,
    make: ({ osworld }) => createOsworldProvider(osworld ?? parseRunFile({}).desktops.osworld),
    build: () =>
      Promise.reject(
        new StudioError(
          'config.invalid',
          'Desktops behind a port of OSWorld are not built here.',
          'Build for another provider, and serve its desktops: `dart-studio desktop serve --osworld`.',
        ),
      ),
  },
};

/** The providers that a choice allows, in order of preference. */
const allowed = (choice: ProviderChoice): readonly ProviderKind[] =>
  choice === 'auto' ? PROVIDER_KINDS.filter((k) => PROVIDERS[k].auto) : [choice];

/** A provider for each that a choice allows, in order of preference; the caller disposes them. */
export const allowedProviders = (o: ProviderOptions): readonly DesktopProvider[] =>
  allowed(o.provider).map((k) => PROVIDERS[k].make(o));

/** Builds what the desktops of a provider start from; resolves with what that is, in words. */
export const buildFor = (kind: ProviderKind, o: BuildOptions): Promise<string> => PROVIDERS[kind].build(o);

/**
 * A provider that works here. Rejects with `desktop.unavailable` (or the error of the one asked for) when there is
 * none.
 */
export async function createProvider(o: ProviderOptions): Promise<DesktopProvider> {
  const problems: string[] = [],
    remedies: string[] = [];
  for (const name of allowed(o.provider)) {
    const p = PROVIDERS[name].make(o);
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
