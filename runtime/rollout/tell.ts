/**
 * Tell every listener. A listener's fault must not stop the rollout service in the middle of a move: it is thrown
 * outside of it.
 */
export function tell<E>(listeners: Iterable<(e: E) => void>, event: E): void {
  for (const l of [...listeners]) {
    try {
      l(event);
    } catch (e) {
      queueMicrotask(() => {
        throw e;
      });
    }
  }
}
