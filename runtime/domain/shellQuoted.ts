/** One word of a shell, whatever it holds. */
export const shellQuoted = (s: string): string => `'${s.replaceAll("'", `'\\''`)}'`;
