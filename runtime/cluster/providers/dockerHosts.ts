import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { StudioError } from '../../domain/index.js';

/**
 * One engine of the run file. `host` as in DOCKER_HOST (unix://, tcp://, http(s)://, ssh://); absent = the
 * environment's own.
 */
export interface DockerHostOptions {
  readonly host?: string;
  /** Most desktops on this engine; default: what its memory and cores allow. */
  readonly capacity?: number;
}

/** Options for dockerode from a DOCKER_HOST-like address; undefined lets dockerode read the environment. */
export interface EngineAddress {
  readonly socketPath?: string;
  readonly protocol?: 'http' | 'https' | 'ssh';
  readonly host?: string;
  readonly port?: number;
  readonly username?: string;
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export function parseHost(
  host: string,
  env: NodeJS.ProcessEnv = process.env,
  read: (f: string) => Buffer = (f) => readFileSync(f),
): EngineAddress {
  const bad = (why: string): StudioError =>
    new StudioError(
      'config.invalid',
      `The Docker host '${host}' cannot be used: ${why}.`,
      'Write it as unix:///var/run/docker.sock, tcp://host:2375 or ssh://user@host.',
    );
  if (host.startsWith('/')) return { socketPath: host };
  let u: URL;
  try {
    u = new URL(host);
  } catch {
    throw bad('it is not an address');
  }
  switch (u.protocol) {
    case 'unix:':
      return { socketPath: decodeURIComponent(u.pathname) };
    case 'ssh:':
      return {
        protocol: 'ssh',
        host: u.hostname,
        port: u.port ? Number(u.port) : 22,
        ...(u.username ? { username: decodeURIComponent(u.username) } : {}),
      };
    case 'tcp:':
    case 'http:':
    case 'https:': {
      if (!u.hostname) throw bad('it has no host name');
      const tls = u.protocol === 'https:' || (u.protocol === 'tcp:' && Boolean(env['DOCKER_TLS_VERIFY']));
      const certs = env['DOCKER_CERT_PATH'];
      const address: EngineAddress = {
        protocol: tls ? 'https' : 'http',
        host: u.hostname,
        port: u.port ? Number(u.port) : tls ? 2376 : 2375,
      };
      return tls && certs
        ? { ...address, ca: read(`${certs}/ca.pem`), cert: read(`${certs}/cert.pem`), key: read(`${certs}/key.pem`) }
        : address;
    }
    default:
      throw bad(`'${u.protocol}//' is not a kind of address that Docker knows`);
  }
}

/** Whether screens go over a network (then deflating them pays). */
export const isRemote = (a: EngineAddress | undefined): boolean =>
  a?.protocol !== undefined && !/^(localhost|127\.|\[?::1)/.test(a.host ?? '');

/**
 * The engine for the next desktop: the one with the most free places, the first of equals; undefined when all are full
 * or down.
 */
export function place(
  hosts: readonly { readonly capacity: number; readonly used: number; readonly down: boolean }[],
): number | undefined {
  let best: number | undefined;
  hosts.forEach((h, i) => {
    const free = h.capacity - h.used;
    if (!h.down && free > 0 && (best === undefined || free > hosts[best]!.capacity - hosts[best]!.used)) best = i;
  });
  return best;
}

/**
 * Desktops an engine can take: 80 % of its memory at the desktops' real need (about 120 MB), and 16 a core, whichever
 * is less.
 */
export function defaultCapacity(engine: { readonly memoryBytes: number; readonly cores: number }): number {
  return Math.max(1, Math.min(Math.floor((engine.memoryBytes * 0.8) / 120e6), engine.cores * 16));
}

/**
 * The process that created a container. The start time distinguishes it from a later one with the same pid, and the
 * boot id from one before a reboot.
 */
export interface Owner {
  readonly machine: string;
  readonly boot: string;
  readonly pid: number;
  readonly started: string;
}

const text = (f: string): string => {
  try {
    return readFileSync(f, 'utf8').trim();
  } catch {
    return '';
  }
};

/** Clock ticks since boot at which the process started; '' when there is no such process (or no /proc). */
export function startTime(pid: number): string {
  const stat = text(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

export function self(): Owner {
  return {
    machine: `${hostname()}-${text('/etc/machine-id').slice(0, 8)}`,
    boot: text('/proc/sys/kernel/random/boot_id'),
    pid: process.pid,
    started: startTime(process.pid),
  };
}

export const ownerLabel = (o: Owner): string => [o.machine, o.boot, o.pid, o.started].join('/');

export function parseOwner(label: string | undefined): Owner | undefined {
  const [machine, boot, pid, started] = (label ?? '').split('/');
  return machine && Number(pid) > 0
    ? { machine, boot: boot ?? '', pid: Number(pid), started: started ?? '' }
    : undefined;
}

/**
 * Whether a container is orphaned: its owner was a process of this machine that no longer runs. Containers of other
 * machines are not.
 */
export function isOrphan(o: Owner | undefined, me: Owner, started: (pid: number) => string = startTime): boolean {
  if (!o || o.machine !== me.machine) return false;
  if (o.boot !== me.boot) return true;
  return started(o.pid) !== o.started;
}
