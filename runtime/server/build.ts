import type { Build } from '../protocol/version.js';

declare const __BUILD_TIME__: number | undefined;
declare const __BUILD_VERSION__: string | undefined;

/** Build of this bundle (scripts/build.mjs); sources that run unbundled are older than every bundle. */
export const thisBuild: Build = {
  version: typeof __BUILD_VERSION__ === 'string' ? __BUILD_VERSION__ : '0.0.0',
  time: typeof __BUILD_TIME__ === 'number' ? __BUILD_TIME__ : 0,
};
