import type { ProviderChoice } from '../domain/index.js';
import { connectEngine, imageStatus, type BuildProgress } from '../cluster/imageBuild.js';
import { imageNames, readImage } from '../cluster/images.js';
import { chooseProvider, desktopsOf, probeProviders, specOf } from '../cluster/provide.js';
import type { ProviderStatus } from '../cluster/types.js';
import { pngOf } from '../data/store/png.js';
import { DEFAULT_IMAGE, id, type ImageContents, type ImageRow, type TaskId } from '../domain/index.js';
import { createTaskEngine } from '../tasks/index.js';
import { deskSuite } from '../tasks/suites/desk/index.js';

export { imageContents } from '../cluster/images.js';
export { buildDesktop, exportDesktop } from '../cluster/provide.js';
export { referenceOf } from '../cluster/imageExtra.js';
export type { BuildProgress };

/** Contents of each image, by its name. */
export async function allImageContents(): Promise<Record<string, ImageContents>> {
  const images = await Promise.all((await imageNames()).map((name) => readImage(name)));
  return Object.fromEntries(images.map(({ name, contents }) => [name, contents]));
}

/** The desktop images there are. */
export async function imageRows(): Promise<ImageRow[]> {
  const images = await Promise.all((await imageNames()).map((name) => readImage(name)));
  return images.map(({ name, title, description }) => ({ name, title, description }));
}

/** Each provider's status for an image (default: `desk`), its builds, and the images there are. */
export async function desktopStatus(image: string = DEFAULT_IMAGE): Promise<{
  readonly providers: readonly ProviderStatus[];
  readonly built: Awaited<ReturnType<typeof imageStatus>>;
  readonly images: readonly ImageRow[];
}> {
  const providers = await probeProviders(desktopsOf(image)),
    docker = providers.some((p) => p.provider === 'docker' && p.ok);
  return {
    providers,
    built: await imageStatus(docker ? connectEngine() : undefined, image),
    images: await imageRows(),
  };
}

/**
 * A picture of what a policy would see: a fresh desktop, with a task of the built-in suite set up on it when one is
 * named.
 */
export async function photographDesktop(o: {
  readonly provider: ProviderChoice;
  /** Name of the desktop image. */
  readonly image: string;
  readonly task?: string | undefined;
  readonly signal: AbortSignal;
}): Promise<{ readonly png: Uint8Array; readonly instruction?: string }> {
  const config = desktopsOf(o.image, { provider: o.provider }),
    provider = await chooseProvider(config);
  try {
    const desktop = await provider.create(specOf(config), o.signal),
      task = o.task === undefined ? undefined : deskSuite().byId(id<TaskId>(o.task));
    if (task) await createTaskEngine().setup(task, desktop, o.signal);
    await desktop.settle();
    return { png: await pngOf(await desktop.observe()), instruction: task?.instruction };
  } finally {
    await provider.dispose();
  }
}
