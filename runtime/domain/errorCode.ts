/** The code of a system error, e.g. ENOENT; undefined for anything else. */
export const errorCode = (e: unknown): string | undefined =>
  typeof e === 'object' && e !== null && 'code' in e && typeof e.code === 'string' ? e.code : undefined;
