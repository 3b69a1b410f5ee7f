/**
 * What to do with a promise whose failure changes nothing here. `why` tells the reader of the call why that is so; it is
 * not shown. Pure.
 */

/** Lets it run; a failure is dropped. */
export function ignoreFailure(promise: Promise<unknown>, _why: string): void {
  promise.catch(() => undefined);
}
/** Its value, or undefined when it fails. */
export const orUndefined = <T>(promise: Promise<T>, _why: string): Promise<T | undefined> =>
  promise.catch(() => undefined);
/** Resolves when it is over, either way: somebody else hears of the failure. */
export const settled = (promise: Promise<unknown> | undefined): Promise<void> =>
  promise === undefined
    ? Promise.resolve()
    : promise.then(
        () => undefined,
        () => undefined,
      );
