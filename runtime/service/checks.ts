import { cpus, totalmem } from 'node:os';
import { traitsOf, parseRunFile, type RunConfig } from '../config/index.js';
import { toRunError } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { desktopCache, readRecipe, rootfsInfo } from '../cluster/imageBuild.js';
import { imageNames } from '../cluster/images.js';
import { freeBytes } from '../files/freeSpace.js';
import type { CheckRow } from '../protocol/types.js';
import { localLimits, probeProviders } from '../cluster/provide.js';
import { probeEngine } from './engines.js';

type AddRow = (name: string, level: CheckRow['level'], ok: boolean, detail: string, remedy: string) => void;

/**
 * Everything a run needs of this machine, each with what to do when it is missing. Without what is `required` no run
 * can start; `run` is the one that is meant, else any.
 */
export async function machineChecks(entry: ProcessEntry, run?: RunConfig): Promise<CheckRow[]> {
  const checks: CheckRow[] = [];
  const row: AddRow = (name, level, ok, detail, remedy) => {
    checks.push({ name, ok, level, detail, remedy: ok ? undefined : remedy });
  };
  await checkComputer(row);
  // ONNX Runtime is loaded in the child processes only; here one is started to see whether it can be.
  const level = run && !traitsOf(run.policy.kind).onnx ? 'optional' : 'required';
  await probeEngine(entry).then(
    (found) => {
      row('ONNX Runtime', level, true, found, '');
    },
    (e: unknown) => {
      const err = toRunError(e);
      row('ONNX Runtime', level, false, err.message, err.remedy);
    },
  );
  await checkDesktops(row, run?.desktops);
  return checks;
}

async function checkComputer(row: AddRow): Promise<void> {
  const node = process.versions.node,
    gb = totalmem() / 2 ** 30;
  row('Node.js', 'required', Number(node.split('.')[0]) >= 20, node, 'Install Node 20 or newer.');
  row('processor cores', 'optional', cpus().length >= 2, String(cpus().length), 'Training works on one core, slowly.');
  row('memory', 'optional', gb >= 4, `${gb.toFixed(1)} GB`, 'Use fewer desktops (desktops.count).');
  const shared = await freeBytes('/dev/shm');
  if (shared !== undefined) {
    const mb = Math.round(shared / 2 ** 20);
    row('/dev/shm', 'optional', mb >= 256, `${mb} MB free`, 'Make it larger: mount -o remount,size=1g /dev/shm');
  }
}

async function checkDesktops(row: AddRow, wanted?: RunConfig['desktops']): Promise<void> {
  const states = await probeProviders(wanted ?? parseRunFile({}).desktops),
    any = states.some((s) => s.ok);
  for (const s of states)
    row(
      `desktops: ${s.provider}`,
      any ? 'optional' : 'required',
      s.ok,
      s.ok ? s.detail : (s.problem?.message ?? s.detail),
      s.problem?.remedy ?? '',
    );
  const { provider, capacity } = states.find((s) => s.ok) ?? {};
  if (wanted && capacity !== undefined)
    row(
      'room for desktops',
      'optional',
      capacity >= wanted.count,
      `${wanted.count} wanted, room for ${capacity} (${provider})`,
      'Lower desktops.count, or spread them over more machines (desktops.hosts).',
    );
  if (states.some((s) => s.provider === 'local' && s.ok)) {
    const { counts, memory } = await localLimits(),
      own = counts !== 'user';
    row(
      'process limit',
      'optional',
      own,
      own
        ? 'each local desktop has its own'
        : 'counts all processes of this user: one desktop can use up what others need',
      'Use Linux 5.14 or newer, or start from a systemd user session; or use Docker.',
    );
    row(
      'memory limit',
      'optional',
      memory,
      memory
        ? 'each local desktop has its own'
        : 'none for a whole desktop, only for each of its processes; no more desktops start than this memory could hold',
      'Start from a systemd user session whose memory controller is delegated, as root, or use Docker.',
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
}
