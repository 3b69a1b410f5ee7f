declare const __BUILD_VERSION__: string | undefined;

/** What verdicts of our own getters and metrics are signed with. */
export const OURSELVES = {
  name: 'DART Studio',
  version: typeof __BUILD_VERSION__ === 'string' ? __BUILD_VERSION__ : '0.0.0',
};
