import { parseRunFile, type RunConfig, type RunFile } from '../config/index.js';
import {
  StudioError,
  isProviderChoice,
  providerWords,
  type ImageContents,
  type ProviderKind,
} from '../domain/index.js';
import type { FramebufferThreadsOptions } from './drivers/framebufferThreads.js';
import type { OnProgress } from './imageBuild.js';
import { imageOf, partsOf } from './imageExtra.js';
import { imageContents, readImage } from './images.js';
import { memoryGroups } from './providers/cgroups.js';
import {
  allowedProviders,
  buildFor,
  createProvider,
  exportDesktopImage,
  type BuildOptions,
  type ProviderOptions,
} from './providers/choose.js';
import { BrowserProvider } from './providers/keepBrowser.js';
import { processLimit, type ProcessLimit } from './providers/processLimit.js';
import type { DesktopProvider, DesktopSpec, ProviderStatus, SettleOptions } from './types.js';

type DesktopsConfig = RunConfig['desktops'];

/** A configuration of desktops of this image, by its name or reference. */
export const desktopsOf = (reference: string, more: RunFile['desktops'] = {}): DesktopsConfig => {
  const { name, extra } = partsOf(reference);
  return parseRunFile({}, { desktops: { ...more, image: name, ...(extra === undefined ? {} : { imageExtra: extra }) } })
    .desktops;
};

export const specOf = (
  c: DesktopsConfig,
  o: { a11y?: boolean; run?: string; background?: boolean | undefined } = {},
): DesktopSpec => ({
  screen: c.screen,
  network: c.network,
  memoryMb: c.memoryMb,
  pids: c.pids,
  cpus: c.cpus,
  a11y: o.a11y,
  labels: o.run ? { run: o.run } : undefined,
  background: o.background,
});

/** How long to wait for the screen after an action. */
export const settleOf = (c: DesktopsConfig): SettleOptions => ({ horizonMs: c.settleHorizonMs, maxMs: c.settleMaxMs });

/** The providers' options in a configuration. */
const optionsOf = (
  { provider, hosts, kubernetes, osworld, ...c }: DesktopsConfig,
  screens?: FramebufferThreadsOptions,
): ProviderOptions => ({
  provider,
  image: imageOf(c),
  ...(screens === undefined ? {} : { screens }),
  docker: { hosts },
  kubernetes: { config: kubernetes },
  osworld,
});

/**
 * A provider that works here. Rejects with `config.invalid` when there is no image of this name, and with
 * `desktop.unavailable` saying what each allowed provider lacks. `screens`: threads that make files of screens, for
 * policies that take such.
 */
export async function chooseProvider(c: DesktopsConfig, screens?: FramebufferThreadsOptions): Promise<DesktopProvider> {
  const { keepsBrowser } = await readImage(imageOf(c)),
    provider = await createProvider(optionsOf(c, screens));
  // Servers of OSWorld have applications of their own, whatever the image is called.
  return keepsBrowser && provider.name !== 'osworld' ? new BrowserProvider(provider) : provider;
}

/** Applications of OSWorld's virtual machine that no image of ours has. */
const OSWORLD_ONLY = ['vscode'];
/** The programs and files that task files find on the desktops of a configuration. */
export async function desktopContents(c: DesktopsConfig): Promise<ImageContents> {
  // What servers of OSWorld have cannot be checked: the image and network in the run file are taken as given.
  if (c.provider !== 'osworld' || c.osworld.servers.length > 0)
    return { ...(await imageContents(imageOf(c))), network: c.network === 'internet' };
  const of = await imageContents('osworld');
  return {
    ...of,
    apps: [...of.apps, ...OSWORLD_ONLY],
    // The virtual machine has its own pyautogui, and needs no stand-in of ours.
    programs: [...of.programs, 'pyautogui'],
    root: true,
    network: true,
  };
}

/** Limits of a local desktop on this machine: whose processes count, and whether its memory is limited as a whole. */
export async function localLimits(): Promise<{ readonly counts: ProcessLimit['counts']; readonly memory: boolean }> {
  const { counts, memory } = await processLimit(1, 1);
  return { counts, memory: memory || (process.getuid?.() === 0 && (await memoryGroups())) };
}

/**
 * The status of each provider that a configuration allows. Rejects with `config.invalid` without an image of this name.
 */
export async function probeProviders(c: DesktopsConfig): Promise<ProviderStatus[]> {
  await readImage(imageOf(c));
  const providers = allowedProviders(optionsOf(c));
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
export async function buildTarget(c: DesktopsConfig): Promise<ProviderKind> {
  const found = await probeProviders(c);
  const target = found.find((s) => s.ok) ?? found.find((s) => s.problem?.kind === 'desktop.image');
  return target?.provider ?? (await chooseProvider(c)).name;
}

/** Builds what the desktops of a provider start from: an image in the Docker engine, a root file system. */
export async function buildDesktop(
  o: BuildOptions & { readonly provider: string },
): Promise<{ readonly provider: string; readonly what: string }> {
  if (!isProviderChoice(o.provider))
    throw new StudioError('config.invalid', `--provider ${o.provider}: unknown`, `Use ${providerWords}.`);
  await readImage(o.image);
  // Only an image can be pushed.
  const choice = o.provider === 'auto' && o.push !== undefined ? 'docker' : o.provider;
  const provider = choice === 'auto' ? await buildTarget(desktopsOf(o.image)) : choice;
  return { provider, what: await buildFor(provider, o) };
}

/** Writes a desktop image to a file, built first when it is missing; resolves with its tag. */
export async function exportDesktop(o: {
  readonly image: string;
  readonly file: string;
  readonly onProgress: OnProgress;
  readonly signal: AbortSignal;
}): Promise<string> {
  await readImage(o.image);
  return exportDesktopImage(o, o.file);
}

/** Removes orphaned desktops of every provider; returns how many. */
export async function reapLeftovers(c: DesktopsConfig): Promise<number> {
  const counts = await Promise.all(
    allowedProviders(optionsOf(c)).map(async (p) => {
      try {
        return (await p.status()).ok ? await p.reap() : 0;
      } finally {
        await p.dispose();
      }
    }),
  );
  return counts.reduce((a, b) => a + b, 0);
}
