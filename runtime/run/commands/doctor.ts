import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { parseRunFile } from '../../config/index.js';
import { toRunError } from '../../domain/index.js';
import { desktopCache, rootfsInfo } from '../../cluster/imageBuild.js';
import { probeProviders } from '../desktops.js';
import type { Options } from '../options.js';

interface Check { readonly what: string; readonly ok: boolean; /** Without it nothing works; otherwise it only limits. */ readonly needed: boolean; readonly found: string; readonly remedy?: string }

/** `doctor`: everything a run needs of this machine, each with what to do when it is missing. Exit code 1 when a run cannot start. */
export async function doctor(o: Options): Promise<number> {
  const checks: Check[] = [];
  const node = Number(process.versions.node.split('.')[0]);
  checks.push({ what: 'Node.js', ok: node >= 20, needed: true, found: process.versions.node, remedy: 'Install Node 20 or newer.' });
  checks.push({ what: 'processor cores', ok: cpus().length >= 2, needed: false, found: String(cpus().length), remedy: 'Training works on one core, slowly.' });
  const gb = totalmem() / 2 ** 30;
  checks.push({ what: 'memory', ok: gb >= 4, needed: false, found: `${gb.toFixed(1)} GB`, remedy: 'Use fewer desktops (desktops.count).' });
  if (existsSync('/dev/shm')) {
    const s = await statfs('/dev/shm');
    const mb = Math.round((s.bavail * s.bsize) / 2 ** 20);
    checks.push({ what: '/dev/shm', ok: mb >= 256, needed: false, found: `${mb} MB free`, remedy: 'Make it larger: mount -o remount,size=1g /dev/shm' });
  }
  checks.push(await engine());
  const states = await probeProviders(parseRunFile({}).desktops);
  const any = states.some((s) => s.ok);
  for (const s of states) checks.push({ what: `desktops: ${s.provider}`, ok: s.ok, needed: !any, found: s.ok ? s.detail : s.problem?.message ?? s.detail, ...(s.problem ? { remedy: s.problem.remedy } : {}) });
  const root = await rootfsInfo();
  checks.push({ what: 'root file system', ok: root !== undefined, needed: false, found: root?.path ?? `not built (in ${desktopCache()})`, remedy: 'It is built on first use, or now by `dart-studio desktop build --provider local`.' });
  if (o['json']) process.stdout.write(JSON.stringify(checks, null, 2) + '\n');
  else for (const c of checks) process.stdout.write(`${c.ok ? '✓' : c.needed ? '✗' : '!'} ${c.what.padEnd(20)} ${c.found}${c.ok || !c.remedy ? '' : `\n  ${' '.repeat(20)} → ${c.remedy}`}\n`);
  return checks.some((c) => c.needed && !c.ok) ? 1 : 0;
}

/** ONNX Runtime is loaded in the child processes only; here we start one to see whether it can be. */
async function engine(): Promise<Check> {
  const { probeEngine } = await import('../engines.js');
  try { return { what: 'ONNX Runtime', ok: true, needed: true, found: await probeEngine() }; }
  catch (e) { const err = toRunError(e); return { what: 'ONNX Runtime', ok: false, needed: true, found: err.message, remedy: err.remedy }; }
}
