/** One word of a shell, whatever it holds. */
export const shellQuoted = (s: string): string => `'${s.replaceAll("'", `'\\''`)}'`;
/** The same, quoted only where it must be: for commands that people read. */
export const shellWord = (s: string): string => (/^[\w@%+=:,./-]+$/.test(s) ? s : shellQuoted(s));
