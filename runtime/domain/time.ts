/**
 * Milliseconds since the epoch that only go forward: all times of a run are of this clock, since the machine's own may
 * be set while a desktop is at work.
 */
export const monotonicNow = (): number => performance.timeOrigin + performance.now();
