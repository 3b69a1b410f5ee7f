/**
 * Ways to handle a promise whose failure changes nothing here. `why` explains that to the reader of the call; it is
 * never shown. Pure.
 */

/** Lets the promise run and drops its failure. */
export function ignoreFailure(promise: Promise<unknown>, _why: string): void {
  promise.catch(() => undefined);
}
/** The promise's value, or undefined when it fails. */
export const orUndefined = <T>(promise: Promise<T>, _why: string): Promise<T | undefined> =>
  promise.catch(() => undefined);
/** Resolves when the promise has settled, either way; its failure is handled elsewhere. */
export const settled = (promise: Promise<unknown> | undefined): Promise<void> =>
  promise === undefined
    ? Promise.resolve()
    : promise.then(
        () => undefined,
        () => undefined,
      );
