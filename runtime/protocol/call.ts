/** How a request is declared: its parameters, its result, and whether it changes anything. Pure. */

/** `types` never has a value: it carries the types. */
export interface Call<P, R> {
  readonly writes: boolean;
  readonly types?: [params: P, result: R];
}
/** A request that changes nothing. */
export const reads = <P, R>(): Call<P, R> => ({ writes: false });
/** A request that changes something: never from a window that does not trust its workspace. */
export const writes = <P, R>(): Call<P, R> => ({ writes: true });

export type Empty = Record<string, never>;
