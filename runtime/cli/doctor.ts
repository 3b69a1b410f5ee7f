import { machineChecks } from '../service/checks.js';
import { thisBundle } from '../service/engines.js';
import type { Options } from './options.js';

/** `doctor`: exit code 1 when a run cannot start here. */
export async function doctor(o: Options): Promise<number> {
  const checks = (await machineChecks(thisBundle())).map((c) => ({
    what: c.name,
    ok: c.ok,
    needed: c.level === 'required',
    found: c.detail,
    remedy: c.remedy || undefined,
  }));
  if (o['json']) process.stdout.write(JSON.stringify(checks, null, 2) + '\n');
  else
    for (const c of checks)
      process.stdout.write(
        `${c.ok ? '✓' : c.needed ? '✗' : '!'} ${c.what.padEnd(20)} ${c.found}${c.ok || !c.remedy ? '' : `\n  ${' '.repeat(20)} → ${c.remedy}`}\n`,
      );
  return checks.some((c) => c.needed && !c.ok) ? 1 : 0;
}
