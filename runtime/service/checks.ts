import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { parseRunFile } from '../config/index.js';
import { toRunError, type ProcessEntry } from '../domain/index.js';
import { desktopCache, readRecipe, rootfsInfo } from '../cluster/imageBuild.js';
import { imageNames } from '../cluster/images.js';
import type { CheckRow } from '../protocol/types.js';
import { localProcessLimit, probeProviders } from '../cluster/provide.js';
import { probeEngine } from './engines.js';

/**
 * Everything a run needs of this machine, each with what to do when it is missing. Without what is `required` no run
 * can start.
 */
export async function machineChecks(entry: ProcessEntry): Promise<CheckRow[]> {
  const checks: CheckRow[] = [];
  const row = (name: string, level: CheckRow['level'], ok: boolean, detail: string, remedy: string): void => {
    checks.push({ name, ok, level, detail, ...(ok ? {} : { remedy }) });
  };
  row(
    'Node.js',
    'required',
    Number(process.versions.node.split('.')[0]) >= 20,
    process.versions.node,
    'Install Node 20 or newer.',
  );
  row('processor cores', 'optional', cpus().length >= 2, String(cpus().length), 'Training works on one core, slowly.');
  const gb = totalmem() / 2 ** 30;
  row('memory', 'optional', gb >= 4, `${gb.toFixed(1)} GB`, 'Use fewer desktops (desktops.count).');
  if (existsSync('/dev/shm')) {
    const s = await statfs('/dev/shm'),
      mb = Math.round((s.bavail * s.bsize) / 2 ** 20);
    row('/dev/shm', 'optional', mb >= 256, `${mb} MB free`, 'Make it larger: mount -o remount,size=1g /dev/shm');
  }
  // ONNX Runtime is loaded in the child processes only; here one is started to see whether it can be.
  await probeEngine(entry).then(
    (found) => {
      row('ONNX Runtime', 'required', true, found, '');
    },
    (e: unknown) => {
      const err = toRunError(e);
      row('ONNX Runtime', 'required', false, err.message, err.remedy);
    },
  );
  const states = await probeProviders(parseRunFile({}).desktops),
    any = states.some((s) => s.ok);
  for (const s of states)
    row(
      `desktops: ${s.provider}`,
      any ? 'optional' : 'required',
      s.ok,
      s.ok ? s.detail : (s.problem?.message ?? s.detail),
      s.problem?.remedy ?? '',
    );
  if (states.some((s) => s.provider === 'local' && s.ok)) {
    const own = (await localProcessLimit()) !== 'user';
    row(
      'process limit',
      'optional',
      own,
      own
        ? 'each local desktop has its own'
        : 'counts all processes of this user: one desktop can use up what others need',
      'Use Linux 5.14 or newer, or start from a systemd user session; or use Docker.',
    );
  }
  for (const name of await imageNames()) {
    const root = await rootfsInfo(await readRecipe(name));
    row(
      `root file system: ${name}`,
      'optional',
      root !== undefined,
      root?.path ?? `not built (in ${desktopCache()})`,
      `It is built on first use, or now by \`dart-studio desktop build --image ${name} --provider local\`.`,
    );
  }
  return checks;
}
