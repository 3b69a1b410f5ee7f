declare const __BUILD_VERSION__: string | undefined;

/** Name and version that sign verdicts of our own getters and metrics. */
export const OURSELVES = {
  name: 'DART Studio',
  version: typeof __BUILD_VERSION__ === 'string' ? __BUILD_VERSION__ : '0.0.0',
};
