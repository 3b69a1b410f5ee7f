/** ms so far during which a desktop's connection was cut and is being made again; absent where it cannot be. */
export type Stalled = (() => number) | undefined;

/** Calls `fn` after `ms` in which the connection was there; a cut does not count. Returns what cancels it. */
export function activeTimeout(ms: number, stalledMs: Stalled, fn: () => void): () => void {
  let counted = stalledMs?.() ?? 0,
    timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    timer = setTimeout(() => {
      const more = (stalledMs?.() ?? 0) - counted;
      counted += more;
      if (more > 0) arm(more);
      else fn();
    }, left);
  };
  arm(ms);
  return () => clearTimeout(timer);
}
