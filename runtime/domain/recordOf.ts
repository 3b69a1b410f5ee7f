/** An object with a value for each of the keys, in their order. */
export const recordOf = <K extends string, V>(keys: readonly K[], value: (key: K, index: number) => V): Record<K, V> =>
  Object.fromEntries(keys.map((k, i) => [k, value(k, i)])) as Record<K, V>;
