import { mkdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { errorCode } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import type { DesktopSpec } from '../types.js';

/** The control groups of one desktop. `procs` are the files a process writes its pid to in order to join. */
export interface CgroupLease {
  readonly dirs: readonly string[];
  readonly procs: readonly string[];
  /** Whether it limits memory. */
  readonly memory: boolean;
  remove(): Promise<void>;
}

const BASE = '/sys/fs/cgroup';
const CPU_PERIOD_US = 100_000;
/**
 * The parent group of desktops, and the processor share of all of them together against the machine's other work (1: as
 * much as one other group).
 */
const parentOf = (spec: DesktopSpec): { readonly name: string; readonly share: number } =>
  spec.background ? { name: 'dart-studio-background', share: 0.1 } : { name: 'dart-studio', share: 1 };

/** Limits to write for a controller, as [file, value], for version 1 and 2. */
export function cgroupLimits(spec: DesktopSpec): Record<1 | 2, Record<string, readonly (readonly [string, string])[]>> {
  const bytes = String(spec.memoryMb * (1 << 20)),
    quota = spec.cpus === undefined ? undefined : Math.round(spec.cpus * CPU_PERIOD_US);
  return {
    1: {
      memory: [['memory.limit_in_bytes', bytes]],
      pids: [['pids.max', String(spec.pids)]],
      cpu:
        quota === undefined
          ? []
          : [
              ['cpu.cfs_period_us', String(CPU_PERIOD_US)],
              ['cpu.cfs_quota_us', String(quota)],
            ],
    },
    2: {
      all: [
        ['memory.max', bytes],
        ['memory.swap.max', '0'],
        ['pids.max', String(spec.pids)],
        ...(quota === undefined ? [] : [['cpu.max', `${quota} ${CPU_PERIOD_US}`] as const]),
      ],
    },
  };
}

/**
 * Makes control groups for a desktop; undefined where that is not allowed (an ordinary user): then limits per process
 * are used.
 */
export async function joinCgroups(id: string, spec: DesktopSpec): Promise<CgroupLease | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined;
  const made: string[] = [];
  const remove = async (): Promise<void> => {
    for (const d of made) await removeGroup(d);
  };
  try {
    const v2 = await stat(`${BASE}/cgroup.controllers`).then(
      () => true,
      () => false,
    );
    const limits = cgroupLimits(spec),
      { name, share } = parentOf(spec);
    if (v2) {
      await orUndefined(
        writeFile(`${BASE}/cgroup.subtree_control`, '+memory +pids +cpu'),
        'limits that are not delegated are not set',
      );
      await mkdir(`${BASE}/${name}`, { recursive: true });
      await writeFile(`${BASE}/${name}/cgroup.subtree_control`, '+memory +pids +cpu');
      await orUndefined(
        writeFile(`${BASE}/${name}/cpu.weight`, String(Math.round(100 * share))),
        'the weight is a courtesy to others',
      );
      await group(`${BASE}/${name}/${id}`, limits[2]['all']!, made);
    } else {
      for (const [controller, values] of Object.entries(limits[1])) {
        if (
          !(await readFile(`${BASE}/${controller}/cgroup.procs`).then(
            () => true,
            () => false,
          ))
        )
          continue;
        await group(`${BASE}/${controller}/${name}/${id}`, values, made);
        if (controller === 'cpu')
          await orUndefined(
            writeFile(`${BASE}/cpu/${name}/cpu.shares`, String(Math.round(1024 * share))),
            'the weight is a courtesy to others',
          );
      }
    }
    const memory = v2 || made.some((d) => d.startsWith(`${BASE}/memory/`));
    return made.length === 0 ? undefined : { dirs: made, procs: made.map((d) => `${d}/cgroup.procs`), memory, remove };
  } catch {
    await remove();
    return undefined;
  }
}

/** How often processes of a control group were ended for want of memory; undefined when it does not say. */
export async function outOfMemory(dirs: readonly string[]): Promise<number | undefined> {
  for (const d of dirs)
    for (const file of ['memory.events', 'memory.oom_control']) {
      const text = await orUndefined(readFile(`${d}/${file}`, 'utf8'), 'a group of another controller or version');
      const n = /^oom_kill (\d+)$/m.exec(text ?? '')?.[1];
      if (n !== undefined) return Number(n);
    }
  return undefined;
}

/** Whether root's sandboxes get a memory limit each on this machine. */
export const memoryGroups = (): Promise<boolean> =>
  readFile(`${BASE}/cgroup.controllers`, 'utf8').then(
    (text) => text.split(/\s+/).includes('memory'),
    () =>
      stat(`${BASE}/memory/cgroup.procs`)
        .then(() => true)
        .catch(() => false),
  );

async function group(dir: string, values: readonly (readonly [string, string])[], made: string[]): Promise<void> {
  await mkdir(dir, { recursive: true });
  made.push(dir);
  for (const [file, value] of values) {
    // Swap accounting is often off; the memory limit works without it.
    await writeFile(`${dir}/${file}`, value).catch((e: unknown) => {
      if (!file.includes('swap')) throw e;
    });
  }
}

/** Removes a control group. Its processes were just killed; the kernel takes a few ms to release them. */
export async function removeGroup(dir: string): Promise<void> {
  for (let i = 0; i < 50; i++) {
    try {
      await rmdir(dir);
      return;
    } catch (e) {
      if (errorCode(e) !== 'EBUSY') return;
      await new Promise((r) => {
        setTimeout(r, 4);
      });
    }
  }
}
