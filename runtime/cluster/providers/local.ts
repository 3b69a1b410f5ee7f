import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { availableParallelism, freemem } from 'node:os';
import type { DesktopId } from '../../domain/index.js';
import { DEFAULT_IMAGE, id as brand, StudioError, toRunError } from '../../domain/index.js';
import { lost, type AgentClient } from '../agentClient.js';
import { SandboxDesktop } from '../drivers/desktop.js';
import { FramebufferReader } from '../drivers/framebuffer.js';
import { procSettler } from '../drivers/settle.js';
import { TaskWatch } from '../drivers/taskWatch.js';
import { X11Client } from '../drivers/x11Client.js';
import { readRecipe, rootfsPath } from '../imageBuild.js';
import { imageAsset } from '../images.js';
import type { Desktop, DesktopProvider, DesktopSpec, ProviderStatus } from '../types.js';
import { joinCgroups, type CgroupLease } from './cgroups.js';
import { SandboxProcess, type SandboxCommand } from './sandboxProcess.js';
import { processLimit, type ProcessLimit } from './processLimit.js';
import { AGENT_PATH, NAME_VARIABLE, reapSandboxes, recordSandbox, stateDir } from './sandboxRecords.js';

export interface LocalProviderOptions {
  /** Name of the desktop image; default `desk`. */
  readonly image?: string;
  /** Root file system of the desktop. Default: $DART_STUDIO_ROOTFS, else the one `dart-studio desktop build` made. */
  readonly rootfs?: () => Promise<string>;
  /** Size limit of HOME and of each temporary folder, MB. Default 64. */
  readonly diskMb?: number;
}

const START_TIMEOUT_MS = 20_000;
const MB = 1 << 20;

interface Sandbox {
  readonly process: SandboxProcess;
  readonly desktop: SandboxDesktop;
  readonly cgroup: CgroupLease | undefined;
  readonly forget: () => Promise<void>;
}

/**
 * Desktops as bubblewrap sandboxes on this machine: user, PID, IPC, UTS, network namespaces of their own; the root file
 * system is read-only, everything writable is a size-limited tmpfs inside, so nothing of the host can be written and
 * nothing is left behind. The host reaches in through /proc/PID/root. Run by root, the sandbox gets an unused uid of
 * its own, so that no host root is inside.
 */
export class LocalProvider implements DesktopProvider {
  readonly name = 'local' as const;
  private readonly o: LocalProviderOptions & { readonly image: string; readonly rootfs: () => Promise<string> };
  private readonly boxes = new Map<Desktop, Sandbox>();

  constructor(o: LocalProviderOptions = {}) {
    const image = o.image ?? DEFAULT_IMAGE;
    this.o = { ...o, image, rootfs: o.rootfs ?? (() => builtRootfs(image)) };
  }

  async probe(): Promise<ProviderStatus> {
    const no = (e: StudioError): ProviderStatus => ({
      provider: 'local',
      ok: false,
      detail: e.message,
      problem: toRunError(e),
    });
    if (process.platform !== 'linux')
      return no(unavailable('Local desktops need Linux.', 'Use Docker: install it and set provider to docker.'));
    if (!onPath('bwrap'))
      return no(
        unavailable('bubblewrap is not installed.', 'Install it: apt-get install bubblewrap. Or install Docker.'),
      );
    // What a build mends comes last: `desktop.image` says that nothing else is in the way.
    const r = await run('bwrap', ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true']);
    if (r.code !== 0)
      return no(
        unavailable(
          `bubblewrap cannot make a sandbox here: ${r.stderr.trim() || `exit code ${r.code}`}.`,
          'Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or the AppArmor setting of your distribution), or use Docker.',
        ),
      );
    let rootfs: string;
    try {
      rootfs = await this.o.rootfs();
      await access(`${rootfs}/usr/bin/Xvfb`);
    } catch (e) {
      return no(
        e instanceof StudioError
          ? e
          : new StudioError(
              'desktop.image',
              'The root file system of the desktop is not there.',
              `Build it: dart-studio desktop build --image ${this.o.image} --provider local.`,
              { cause: e, details: { image: this.o.image } },
            ),
      );
    }
    return {
      provider: 'local',
      ok: true,
      detail: `bubblewrap, root file system ${rootfs}`,
      capacity: localCapacity(availableParallelism(), freemem()),
    };
  }

  async create(spec: DesktopSpec, signal?: AbortSignal): Promise<Desktop> {
    signal?.throwIfAborted();
    const rootfs = await this.o.rootfs();
    const name = brand<DesktopId>(`local-${randomBytes(4).toString('hex')}`);
    const cgroup = await joinCgroups(name, spec);
    const agentCode = await readFile(await imageAsset(this.o.image, 'overlay/opt/dart/agent.py'));
    const plan = sandboxCommand({
      name,
      rootfs,
      spec,
      diskMb: this.o.diskMb ?? 64,
      cgroup,
      uid: process.getuid!(),
      stateDir: await stateDir(),
      processes: await processLimit(spec.pids),
    });
    // Before there is a process: whoever comes after us finds it by its name, wherever we are killed.
    const forget = await recordSandbox(name, [], cgroup?.dirs ?? []);
    const sandbox = new SandboxProcess(plan, name, agentCode);
    let agent: AgentClient | undefined;
    const abort = (): void => sandbox.kill();
    signal?.addEventListener('abort', abort, { once: true });
    const timer = setTimeout(abort, START_TIMEOUT_MS);
    try {
      if (signal?.aborted) sandbox.kill();
      const pid = await Promise.race([sandbox.init, sandbox.died]);
      await recordSandbox(name, [sandbox.pid!, pid], cgroup?.dirs ?? []);
      const root = `/proc/${pid}/root`;
      agent = await sandbox.agent(`${root}/run/dart/agent.sock`);
      const desktop = new SandboxDesktop({
        id: name,
        provider: 'local',
        spec,
        agent,
        channels: {
          openX: () => X11Client.open(`${root}/tmp/.X11-unix/X0`),
          openScreen: () => new FramebufferReader(`${root}/run/dart/fb/Xvfb_screen0`),
          openSettler: (x) => procSettler(x, new TaskWatch(`${root}/proc`)),
        },
      });
      this.boxes.set(desktop, { process: sandbox, desktop, cgroup, forget });
      void sandbox.ended.then(() => desktop.lose(lost('The sandbox of the desktop ended.')));
      try {
        await desktop.reset();
        signal?.throwIfAborted();
      } catch (e) {
        await this.destroy(desktop);
        throw e;
      }
      return desktop;
    } catch (e) {
      agent?.close();
      sandbox.kill();
      await sandbox.ended;
      await forget();
      await cgroup?.remove();
      if (signal?.aborted)
        throw new StudioError('cancelled', 'Starting the desktop was cancelled.', 'Start it again when you want it.', {
          cause: e,
        });
      if (e instanceof StudioError) throw e;
      throw new StudioError(
        'desktop.start',
        `The desktop did not start: ${(e as Error).message}.`,
        'Run `dart-studio doctor` to see what this machine lacks.',
        { cause: e, details: { stderr: sandbox.stderr } },
      );
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  async reset(d: Desktop): Promise<Desktop> {
    const box = this.boxes.get(d);
    if (!box) throw lost('This desktop was taken down.');
    await box.desktop.reset();
    return d;
  }

  async destroy(d: Desktop): Promise<void> {
    const box = this.boxes.get(d);
    if (!box) return;
    this.boxes.delete(d);
    box.desktop.dispose();
    box.process.kill();
    await box.process.ended;
    await box.forget();
    await box.cgroup?.remove();
  }

  reap(): Promise<number> {
    return reapSandboxes();
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.boxes.keys()].map((d) => this.destroy(d)));
  }
}

/**
 * Desktops that this machine can keep busy: 80 MB each (runtime/cluster/README.md#capacity) with as much again for what
 * they run, and no
 * more than 16 a core.
 */
export const localCapacity = (cores: number, freeBytes: number): number =>
  Math.max(1, Math.min(16 * cores, Math.floor(freeBytes / (160 * MB))));

export const createLocalProvider = (o?: LocalProviderOptions): LocalProvider => new LocalProvider(o);

async function builtRootfs(image: string): Promise<string> {
  const path = process.env['DART_STUDIO_ROOTFS'] || (await rootfsPath(await readRecipe(image)));
  if (!path)
    throw new StudioError(
      'desktop.image',
      `The root file system of the desktop image "${image}" was not built yet.`,
      `Build it: dart-studio desktop build --image ${image} (about a minute).`,
      { details: { image } },
    );
  return path;
}

interface SandboxPlan {
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
  const asRoot = p.uid === 0;
  const base = asRoot ? `${p.stateDir}/mnt` : p.rootfs;
  const size = (mb: number): string[] => ['--size', String(Math.ceil(mb) * MB)];
  const frameMb = (p.spec.screen.width * p.spec.screen.height * 4) / MB;
  const tmpfs = (path: string, mb: number, mode: string): string[] => ['--perms', mode, ...size(mb), '--tmpfs', path];
  const bwrap = [
    'bwrap',
    '--unshare-user',
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-net',
    '--unshare-cgroup-try',
    '--hostname',
    'desktop',
    '--uid',
    '1000',
    '--gid',
    '1000',
    '--die-with-parent',
    '--as-pid-1',
    '--new-session',
    '--cap-drop',
    'ALL',
    '--ro-bind',
    base,
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--remount-ro',
    '/dev',
    ...tmpfs('/dev/shm', p.diskMb, '1777'),
    ...tmpfs('/tmp', p.diskMb, '1777'),
    ...tmpfs('/var/tmp', p.diskMb, '1777'),
    ...tmpfs('/run', 16 + 2 * frameMb, '0755'),
    ...tmpfs('/home/user', p.diskMb, '0755'),
    '--ro-bind-data',
    '3',
    AGENT_PATH,
    '--info-fd',
    '4',
    '--chdir',
    '/',
    '--clearenv',
    '--setenv',
    'PATH',
    '/usr/bin:/bin',
    '--setenv',
    'LANG',
    'C.UTF-8',
    '--setenv',
    'DART_ONCE',
    '1',
    '--setenv',
    NAME_VARIABLE,
    p.name,
    '--',
    // Set in the sandbox's user namespace, a limit on processes counts those of the sandbox; set before it, all that
    // the user runs anywhere.
    '/usr/bin/prlimit',
    '--core=0',
    `--nproc=${p.processes.max}`,
    // Without a memory cgroup each process alone is bounded; GTK programs map some 500 MB that they never touch.
    ...(p.cgroup?.memory ? [] : [`--as=${Math.max(p.spec.memoryMb, 1024) * MB}`]),
    '--',
    '/usr/bin/python3',
    '-I',
    '-S',
    AGENT_PATH,
    p.name,
  ];
  if (!asRoot) return { ...closingDescriptors([...p.processes.prefix, ...bwrap]), env: p.processes.env };
  // Root: a private mount makes the root file system reachable wherever it lies (say, under /root), then all privilege
  // is given up.
  const joins = (p.cgroup?.procs ?? []).map((_, i) => `echo $$ > "$${i + 3}"`);
  const script = [`mount --bind "$1" "$2"`, ...joins, `shift ${2 + joins.length}`, 'exec "$@"'].join(' && ');
  const uid = String(UID_BASE + Math.floor(Math.random() * 1_000_000));
  return closingDescriptors([
    'unshare',
    '--mount',
    '--propagation',
    'private',
    '--',
    'sh',
    '-c',
    script,
    'sh',
    p.rootfs,
    base,
    ...(p.cgroup?.procs ?? []),
    'setpriv',
    '--reuid',
    uid,
    '--regid',
    uid,
    '--clear-groups',
    '--no-new-privs',
    ...bwrap,
  ]);
}

/**
 * The command, started by a shell that first closes what this process inherited and Node.js hands on: it marks
 * descriptors for closing only up to the first gap. 0 to 4 are the sandbox's own. Only bash can name descriptors above
 * 9; without it those are left to the agent, which closes all again.
 */
export function closingDescriptors(command: readonly string[]): SandboxCommand {
  const bash = onPath('bash');
  const script = `for f in /proc/self/fd/*; do f=\${f##*/}; if [ "$f" -gt 4 ]${bash ? '' : ' && [ "$f" -lt 10 ]'}; then eval "exec $f>&-"; fi; done; exec "$@"`;
  const shell = bash ? 'bash' : 'sh';
  return { file: shell, args: ['-c', script, shell, ...command] };
}

/** Far above real users and above the ranges of containers' subordinate uids. */
const UID_BASE = 1_500_000_000;

function onPath(file: string): boolean {
  return (process.env['PATH'] ?? '/usr/bin:/bin').split(':').some((d) => existsSync(`${d}/${file}`));
}

function run(file: string, args: string[]): Promise<{ code: number | null; stderr: string }> {
  return new Promise((resolve) => {
    const c = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    c.stderr.on('data', (d: Buffer) => {
      stderr += d.toString();
    });
    c.once('error', (e) => resolve({ code: null, stderr: e.message }));
    c.once('close', (code) => resolve({ code, stderr }));
  });
}

const unavailable = (message: string, remedy: string): StudioError =>
  new StudioError('desktop.unavailable', message, remedy);
