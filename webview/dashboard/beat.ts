/** The page's own clock. */
import type { Beat } from './refresh.js';

export const pageBeat: Beat = {
  now: () => performance.now(),
  after: (ms, f) => setTimeout(f, ms),
  hidden: () => document.hidden,
};
