/**
 * At most one call per `ms`: the first at once, the last never lost. For refreshes driven by events that come in
 * bursts. `later` is injected so that tests own the time.
 */
export interface Throttled {
  (): void;
  dispose(): void;
}
export type Later = (f: () => void, ms: number) => () => void;
const realLater: Later = (f, ms) => {
  const h = setTimeout(f, ms);
  return () => clearTimeout(h);
};

export function throttle(call: () => void, ms: number, later: Later = realLater): Throttled {
  let cancel: (() => void) | undefined,
    again = false,
    ended = false;
  const wait = (): void => {
    cancel = later(() => {
      cancel = undefined;
      if (!again || ended) return;
      again = false;
      wait();
      call();
    }, ms);
  };
  const out = (): void => {
    if (ended) return;
    if (cancel) {
      again = true;
      return;
    }
    wait();
    call();
  };
  return Object.assign(out, {
    dispose: () => {
      ended = true;
      cancel?.();
      cancel = undefined;
    },
  });
}
