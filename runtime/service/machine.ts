import { arch, cpus, freemem, homedir, platform, release, totalmem } from 'node:os';
import * as m from '../protocol/methods.js';
import { machineChecks } from './checks.js';
import { z } from 'zod';
import { schemas, type Handlers } from './params.js';
import type { Studio } from './studio.js';
import { configProblems, templateOf } from './templates.js';

const alertTargets = z.strictObject({
  command: z
    .string()
    .max(4096)
    .refine((s) => !s.includes('\0'), 'must not contain NUL'),
  webhook: z.string().max(4096),
  desktop: z.boolean(),
});

/** machine/doctor, alerts, diagnostics; config/check, template. */
export function machineHandlers(h: Handlers, s: Studio): void {
  h.on(m.doctor, schemas.empty, async () => ({ checks: await machineChecks(s.entry) }));
  h.on(m.setAlerts, alertTargets, (p) => {
    s.alerts.use(p);
    return {};
  });
  h.on(m.checkConfig, schemas.checkConfig, (p) => ({ problems: configProblems(p.text, p.file) }));
  h.on(m.template, schemas.template, (p) => ({ text: templateOf(p.preset) }));
  h.on(m.diagnostics, schemas.empty, async () => {
    const checks = await machineChecks(s.entry).catch((e: unknown) => [
        { name: 'checks', ok: false, level: 'optional', detail: String(e) },
      ]),
      { session } = s;
    const files: Record<string, unknown> = {
      'versions.json': {
        node: process.versions,
        platform: platform(),
        release: release(),
        arch: arch(),
        execPath: process.execPath,
      },
      'machine.json': {
        cores: cpus().length,
        model: cpus()[0]?.model,
        memoryMb: Math.round(totalmem() / 2 ** 20),
        freeMb: Math.round(freemem() / 2 ** 20),
        rssMb: Math.round(process.memoryUsage().rss / 2 ** 20),
        uptimeS: Math.round(process.uptime()),
      },
      'doctor.json': checks,
      'run.json': session
        ? { run: session.run, status: session.status(), ledger: s.ledger(session), desktops: session.desktops.rows() }
        : {},
      'log.txt': s.recent.join('\n'),
    };
    return {
      files: Object.fromEntries(
        Object.entries(files).map(([name, v]) => [
          name,
          redact(typeof v === 'string' ? v : JSON.stringify(v, null, 2)),
        ]),
      ),
    };
  });
}

/** A value in JSON that is no text: a token's id is no secret. */
const NO_TEXT = /^(?:-?\d[\d.eE+-]*$|true$|false$|null$|[[{])/;
/**
 * The home folder as ~, secrets blotted out: bearer tokens, and values of what is called key, token, secret or
 * password. Pure.
 */
export function redact(text: string, home = homedir()): string {
  const plain = home.length > 1 ? text.replaceAll(home, '~') : text;
  return plain
    .replace(/\b(bearer)\s+[\w.~+/=-]+/gi, '$1 [redacted]')
    .replace(
      /((?:token|secret|password|api_?key)(["']?)\s*[:=]\s*)(["']?)([^\s"',}]+)\3/gi,
      (all, name: string, quoted: string, quote: string, value: string) =>
        quoted === '"' && quote === '' && NO_TEXT.test(value) ? all : `${name}${quote}[redacted]${quote}`,
    )
    .replace(/\bsk-[\w-]{8,}/g, '[redacted]');
}
