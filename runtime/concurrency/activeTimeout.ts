/** ms so far during which a desktop's connection was cut and is being made again; absent where it cannot be. */
export type Stalled = (() => number) | undefined;

/** A clock's timer: calls once after `ms`; the returned function cancels it. */
type After = (ms: number, fn: () => void) => () => void;
const realTime: After = (ms, fn) => {
  const timer = setTimeout(fn, ms);
  return () => clearTimeout(timer);
};

/** Calls `fn` after `ms` in which the connection was there; a cut does not count. Returns what cancels it. */
export function activeTimeout(ms: number, stalledMs: Stalled, fn: () => void, after = realTime): () => void {
  let counted = stalledMs?.() ?? 0,
    cancel = (): void => undefined;
  const arm = (left: number): void => {
    cancel = after(left, () => {
      const more = (stalledMs?.() ?? 0) - counted;
      counted += more;
      if (more > 0) arm(more);
      else fn();
    });
  };
  arm(ms);
  return () => cancel();
}
