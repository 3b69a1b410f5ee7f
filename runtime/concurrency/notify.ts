/**
 * Calls every listener. An exception in a listener must not interrupt whoever tells it halfway, so it is rethrown in a
 * microtask.
 */
export function notify<E>(listeners: Iterable<(e: E) => void>, event: E): void {
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
