import { isObject } from '../../runtime/protocol/shared.js';

interface Private {
  readonly home: string;
  readonly user: string;
  /** Texts that are secret wherever they stand; '': none. */
  readonly secrets?: readonly string[];
}
/** The text as it may leave the machine in a bug report: no secrets, no home folder, no user name in paths. */
export function redact(text: string, o: Private): string {
  let out = text;
  for (const secret of o.secrets ?? []) out = replaced(out, secret, '[redacted]');
  out = out
    .replace(/\bBearer\s+[\w.~+/=-]+/gi, 'Bearer [redacted]')
    .replace(
      /((?:token|api[-_]?key|secret|password|authorization)["']?\s*[:=]\s*["']?)(?!Bearer )[^\s"',;}&]{6,}/gi,
      '$1[redacted]',
    )
    // Keys of model servers, as the service's own redaction has them.
    .replace(/\bsk-[\w-]{8,}/g, '[redacted]')
    .replace(/\b[0-9a-f]{64}\b/g, '[64 hex digits]')
    .replace(/:\/\/[^/\s:@]+:[^/\s@]+@/g, '://[redacted]@');
  out = replaced(out, o.home, '~');
  if (o.user.length > 2)
    out = out.replace(
      new RegExp(`([/\\\\](?:home|Users)[/\\\\]+)${o.user.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}\\b`, 'gi'),
      '$1[user]',
    );
  return out;
}
/** As it is, and as JSON has it; a single character is too little to be told from others. */
const replaced = (text: string, what: string, by: string): string =>
  what.length > 1 ? text.replaceAll(what, by).replaceAll(JSON.stringify(what).slice(1, -1), by) : text;

/** Settings without who is told of alerts, since an address of a webhook is a secret: only whether each is set. */
export function withoutTargets(settings: object): Readonly<Record<string, unknown>> {
  const all = JSON.parse(JSON.stringify(settings)) as Record<string, unknown>,
    alerts = isObject(all['alerts']) ? all['alerts'] : {},
    said = (key: string): string => (alerts[key] ? 'set' : 'not set');
  return { ...all, alerts: { ...alerts, command: said('command'), webhook: said('webhook') } };
}
