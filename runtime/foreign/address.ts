/**
 * An address without slashes at its end. Not by `/\/+$/`, which takes the square of the time for slashes that are not at
 * the end: addresses come from run files of others.
 */
export function withoutSlashes(address: string): string {
  let end = address.length;
  while (end > 0 && address[end - 1] === '/') end--;
  return address.slice(0, end);
}
