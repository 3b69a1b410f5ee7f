import { ignoreFailure } from './failures.js';

/** A promise with its resolvers. It need not be awaited: an unobserved rejection is not a fault. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly settled: boolean;
  resolve(v: T): void;
  reject(e: unknown): void;
}
export function deferred<T>(): Deferred<T> {
  let resolve!: (v: T) => void, reject!: (e: unknown) => void;
  const promise = new Promise<T>((a, b) => {
    resolve = a;
    reject = b;
  });
  ignoreFailure(promise, 'whoever waits for it hears of it');
  const d = {
    promise,
    settled: false,
    resolve: (v: T) => {
      d.settled = true;
      resolve(v);
    },
    reject: (e: unknown) => {
      d.settled = true;
      reject(e);
    },
  };
  return d;
}
