import { ensureRootfs as ensure, type EnsureRootfsOptions } from './imageBuild/rootfs.js';
import { rootfsFromEngine } from './providers/dockerImage.js';

/**
 * The desktop in its two forms, built from one recipe (a folder of images/): a root file system for
 * the local provider and a Docker image. runtime/cluster/README.md#image has the sizes, times and traps.
 */
export { readRecipe, type BuildProgress, type OnProgress, type Recipe } from './imageBuild/recipe.js';
export {
  desktopCache,
  rootfsInfo,
  rootfsPath,
  type EnsureRootfsOptions,
  type RootfsInfo,
} from './imageBuild/rootfs.js';
export {
  connectEngine,
  ensureImage,
  exportRootfs,
  imageStatus,
  imageTag,
  type ImageStatus,
} from './providers/dockerImage.js';

/**
 * The root file system for the local provider: made by mmdebstrap, or exported from the Docker image where only an
 * engine is there.
 */
export const ensureRootfs = (o: EnsureRootfsOptions = {}): Promise<string> => ensure(o, rootfsFromEngine);
