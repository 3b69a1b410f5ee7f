/** A line of the runtime's log, `<ISO time> [level] message`, for a channel that writes time and level itself. */
export function parseLine(line: string): { readonly level: 'info' | 'warn' | 'error'; readonly message: string } {
  const m = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) \[(info|warn|error)\] (.*)$/.exec(line);
  return m ? { level: m[2] as 'info' | 'warn' | 'error', message: m[3] ?? '' } : { level: 'info', message: line };
}
