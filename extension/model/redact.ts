/** The text as it may leave the machine in a bug report: no secrets, no home folder, no user name in paths. */
export function redact(text: string, o: { readonly home: string; readonly user: string }): string {
  let out = text
    .replace(/\bBearer\s+[\w.~+/=-]+/gi, 'Bearer [redacted]')
    .replace(
      /((?:token|api[-_]?key|secret|password|authorization)["']?\s*[:=]\s*["']?)(?!Bearer )[^\s"',;}&]{6,}/gi,
      '$1[redacted]',
    )
    .replace(/\b[0-9a-f]{64}\b/g, '[64 hex digits]')
    .replace(/:\/\/[^/\s:@]+:[^/\s@]+@/g, '://[redacted]@');
  if (o.home.length > 1) out = out.replaceAll(o.home, '~').replaceAll(o.home.replaceAll('\\', '\\\\'), '~');
  if (o.user.length > 2)
    out = out.replace(
      new RegExp(`([/\\\\](?:home|Users)[/\\\\]+)${o.user.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}\\b`, 'gi'),
      '$1[user]',
    );
  return out;
}
