import { createHash } from 'node:crypto';

const known = new WeakMap<Uint8Array, string>();

/** Hex sha-256 of bytes that nobody changes any more; computed once. */
export function digestOf(bytes: Uint8Array): string {
  let hash = known.get(bytes);
  if (hash === undefined) {
    hash = createHash('sha256').update(bytes).digest('hex');
    known.set(bytes, hash);
  }
  return hash;
}
