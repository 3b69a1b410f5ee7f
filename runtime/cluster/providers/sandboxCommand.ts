/** The command that starts one sandbox: bubblewrap with its limits, after dropping root's privileges. */
import { existsSync } from 'node:fs';
import type { DesktopSpec } from '../types.js';
import type { CgroupLease } from './cgroups.js';
import type { ProcessLimit } from './processLimit.js';
import type { SandboxCommand } from './sandboxProcess.js';
import { AGENT_PATH, NAME_VARIABLE } from './sandboxRecords.js';

const MB = 1 << 20;
/** Far above real users and above the ranges of containers' subordinate uids. */
const UID_BASE = 1_500_000_000;

export interface SandboxPlan {
  readonly name: string;
  readonly rootfs: string;
  readonly spec: DesktopSpec;
  readonly diskMb: number;
  readonly cgroup: CgroupLease | undefined;
  readonly uid: number;
  readonly stateDir: string;
  readonly processes: ProcessLimit;
}

/** The command line of one sandbox. */
export function sandboxCommand(p: SandboxPlan): SandboxCommand {
  if (p.uid === 0) return closingDescriptors(withoutPrivilege(p, `${p.stateDir}/mnt`));
  return { ...closingDescriptors([...p.processes.prefix, ...bubblewrap(p, p.rootfs)]), env: p.processes.env };
}

function bubblewrap(p: SandboxPlan, root: string): string[] {
  return [
    'bwrap',
    ...['user', 'pid', 'ipc', 'uts', 'net', 'cgroup-try'].map((n) => `--unshare-${n}`),
    ...['--hostname', 'desktop', '--uid', '1000', '--gid', '1000'],
    ...['--die-with-parent', '--as-pid-1', '--new-session', '--cap-drop', 'ALL'],
    ...fileSystem(p, root),
    ...['--info-fd', '4', '--chdir', '/', '--clearenv'],
    ...['--setenv', 'PATH', '/usr/bin:/bin'],
    ...['--setenv', 'LANG', 'C.UTF-8'],
    ...['--setenv', 'DART_ONCE', '1'],
    ...['--setenv', NAME_VARIABLE, p.name],
    '--',
    ...processLimits(p),
    '--',
    ...['/usr/bin/python3', '-I', '-S', AGENT_PATH, p.name],
  ];
}

/** Read-only except for tmpfs of limited size; the agent's code comes through descriptor 3. */
function fileSystem(p: SandboxPlan, root: string): string[] {
  const frameMb = (p.spec.screen.width * p.spec.screen.height * 4) / MB;
  const tmpfs = (path: string, mb: number, mode: string): string[] => [
    ...['--perms', mode, '--size', String(Math.ceil(mb) * MB)],
    ...['--tmpfs', path],
  ];
  return [
    ...['--ro-bind', root, '/', '--proc', '/proc', '--dev', '/dev', '--remount-ro', '/dev'],
    ...tmpfs('/dev/shm', p.diskMb, '1777'),
    ...tmpfs('/tmp', p.diskMb, '1777'),
    ...tmpfs('/var/tmp', p.diskMb, '1777'),
    // The framebuffer's file lies in it.
    ...tmpfs('/run', 16 + 2 * frameMb, '0755'),
    ...tmpfs('/home/user', p.diskMb, '0755'),
    ...['--ro-bind-data', '3', AGENT_PATH],
  ];
}

/**
 * A process limit set in the sandbox's user namespace counts the sandbox's processes; set before it, everything that
 * the user runs.
 */
function processLimits(p: SandboxPlan): string[] {
  // Without a memory cgroup only each process is bounded; GTK programs map some 500 MB that they never touch.
  const memory = p.cgroup?.memory || p.processes.memory ? [] : [`--as=${Math.max(p.spec.memoryMb, 1024) * MB}`];
  return ['/usr/bin/prlimit', '--core=0', `--nproc=${p.processes.max}`, ...memory];
}

/**
 * The command when we are root: a private mount makes the root file system reachable wherever it is (say, under /root),
 * then all privileges are dropped.
 */
function withoutPrivilege(p: SandboxPlan, mount: string): string[] {
  const cgroups = p.cgroup?.procs ?? [];
  const joins = cgroups.map((_, i) => `echo $$ > "$${i + 3}"`);
  const script = [`mount --bind "$1" "$2"`, ...joins, `shift ${2 + joins.length}`, 'exec "$@"'].join(' && ');
  const uid = String(UID_BASE + Math.floor(Math.random() * 1_000_000));
  return [
    ...['unshare', '--mount', '--propagation', 'private', '--'],
    ...['sh', '-c', script, 'sh', p.rootfs, mount, ...cgroups],
    ...['setpriv', '--reuid', uid, '--regid', uid, '--clear-groups', '--no-new-privs'],
    ...bubblewrap(p, mount),
  ];
}

/**
 * The command, started by a shell that first closes inherited descriptors: Node.js marks them for closing only up to
 * the first gap. 0 to 4 belong to the sandbox. Only bash can name descriptors above 9; without it those are left to the
 * agent, which closes all again.
 */
export function closingDescriptors(command: readonly string[]): SandboxCommand {
  const bash = onPath('bash');
  const script = `for f in /proc/self/fd/*; do f=\${f##*/}; if [ "$f" -gt 4 ]${bash ? '' : ' && [ "$f" -lt 10 ]'}; then eval "exec $f>&-"; fi; done; exec "$@"`;
  // Node.js gives it a socket as its input: bash takes that for a remote login and would run the user's ~/.bashrc.
  const [shell, options] = bash ? ['bash', ['--norc']] : ['sh', []];
  return { file: shell, args: [...options, '-c', script, shell, ...command] };
}

export function onPath(file: string): boolean {
  return (process.env['PATH'] ?? '/usr/bin:/bin').split(':').some((d) => existsSync(`${d}/${file}`));
}
