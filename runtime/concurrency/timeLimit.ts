/**
 * Calls `over` after `ms`, unless what it returns is called before; keeps the process alive only if asked to. A process
 * that stood still finds its timers due before it hears the answers that have arrived, and before a worker that stood
 * still with it could answer: so each half of the time ends after what has arrived was heard, and the second begins only
 * then.
 */
export function timeLimit(ms: number, over: () => void, o: { readonly keepsAlive?: boolean } = {}): () => void {
  let timer: NodeJS.Timeout | undefined,
    ended = false;
  const half = (then: () => void): void => {
    timer = setTimeout(() => setImmediate(() => ended || then()), ms / 2);
    if (!o.keepsAlive) timer.unref();
  };
  half(() => half(over));
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
