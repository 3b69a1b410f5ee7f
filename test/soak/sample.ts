import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { processes } from '../chaos/processes.js';

/** What a process has at one moment. */
export interface Sample {
  readonly at: number;
  readonly role: string;
  readonly pid: number;
  readonly rssMb: number;
  readonly descriptors: number;
  readonly threads: number;
}
const ROLES = ['__trainer', '__replica'] as const;

/** The daemon, its trainer and its replicas. */
export function sampleProcesses(daemon: number, at: number): Sample[] {
  return processes().flatMap((p) => {
    const role = p.pid === daemon ? 'daemon' : p.parent === daemon ? ROLES.find((r) => p.what.includes(r)) : undefined;
    return role === undefined ? [] : sampleOf(p.pid, role.replace('__', ''), at);
  });
}
/** One process; nothing where it has ended meanwhile. */
export function sampleOf(pid: number, role: string, at: number): Sample[] {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8'),
      field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? NaN);
    return [
      {
        at,
        role,
        pid,
        rssMb: field('VmRSS') / 1024,
        descriptors: readdirSync(`/proc/${pid}/fd`).length,
        threads: field('Threads'),
      },
    ];
  } catch {
    return [];
  }
}

/** What the descriptors of a process are, and how many of each: sockets, pipes, and files by their names without numbers. */
export function descriptorsOf(pid: number): Record<string, number> {
  const out: Record<string, number> = {};
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    let what: string;
    try {
      what = readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      continue; // closed meanwhile
    }
    const kind = what.startsWith('/')
      ? basename(what).replace(/[0-9a-f]{4,}|\d+/g, '#')
      : what.replace(/:?\[\d+\]$/, '');
    out[kind] = (out[kind] ?? 0) + 1;
  }
  return out;
}

/** Bytes of a run folder by what they are. */
export function sampleFolder(run: string): {
  readonly journal: number;
  readonly index: number;
  readonly frames: number;
  readonly frameFiles: number;
} {
  const files = (dir: string): number[] =>
      existsSync(dir)
        ? readdirSync(dir, { recursive: true, withFileTypes: true }).flatMap((e) => {
            if (!e.isFile()) return [];
            try {
              return [statSync(join(e.parentPath, e.name)).size];
            } catch {
              return [];
            }
          })
        : [],
    sum = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0),
    frames = files(join(run, 'frames')),
    index = join(run, 'index.sqlite');
  return {
    journal: sum(files(join(run, 'journal'))),
    index: existsSync(index) ? statSync(index).size : 0,
    frames: sum(frames),
    frameFiles: frames.length,
  };
}
