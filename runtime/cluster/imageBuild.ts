/**
 * The desktop in its two forms, built from one recipe (image/packages.txt, setup.sh, overlay/): a root file system for the
 * local provider and a Docker image. spec/desktop.md 1 has the sizes, times and traps.
 */
export { imageDir, readRecipe, type BuildProgress, type OnProgress, type Recipe } from './imageBuild/recipe.js';
export { desktopCache, ensureRootfs, rootfsInfo, rootfsPath, type EnsureRootfsOptions, type RootfsInfo } from './imageBuild/rootfs.js';
export { ensureImage, exportRootfs, imageStatus, imageTag, type ImageStatus } from './providers/dockerImage.js';
