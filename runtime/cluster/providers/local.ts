import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, readFile } from 'node:fs/promises';
import { availableParallelism, freemem } from 'node:os';
import type { DesktopId } from '../../domain/index.js';
import { DEFAULT_IMAGE, id as brand, StudioError, toRunError, messageOf, cancelled } from '../../domain/index.js';
import { lost, type AgentClient } from '../agentClient.js';
import { SandboxDesktop } from '../drivers/desktop.js';
import { FramebufferThreads, type FramebufferThreadsOptions } from '../drivers/framebufferThreads.js';
import { channelsAt } from '../drivers/visibleRoot.js';
import { readRecipe, rootfsPath } from '../imageBuild.js';
import { notBuilt, partsOf } from '../imageExtra.js';
import { imageAsset, readImage, roomFor } from '../images.js';
import type { Desktop, DesktopProvider, DesktopSpec, ProviderStatus } from '../types.js';
import { joinCgroups, outOfMemory, type CgroupLease } from './cgroups.js';
import { SandboxProcess } from './sandboxProcess.js';
import { processorMs } from './usage.js';
import { processLimit } from './processLimit.js';
import { onPath, sandboxCommand } from './sandboxCommand.js';
import { reapSandboxes, recordSandbox, stateDir } from './sandboxRecords.js';

export interface LocalProviderOptions {
  /** Name of the desktop image; default `desk`. */
  readonly image?: string;
  /** Root file system of the desktop. Default: $DART_STUDIO_ROOTFS, else the one `dart-studio desktop build` made. */
  readonly rootfs?: () => Promise<string>;
  /** Threads that make files of screens; without them, whoever needs files gets pixels. */
  readonly screens?: FramebufferThreadsOptions;
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
 * Desktops as bubblewrap sandboxes on this machine: separate user, PID, IPC, UTS and network namespaces; the root file
 * system is read-only and everything writable is a size-limited tmpfs inside, so the sandbox cannot write to the host
 * and leaves nothing behind. The host reaches in through /proc/PID/root. Run by root, each sandbox gets an unused uid,
 * so that no host root is inside.
 */
export class LocalProvider implements DesktopProvider {
  readonly name = 'local' as const;
  readonly #o: LocalProviderOptions & { readonly image: string; readonly rootfs: () => Promise<string> };
  /** Public so that tests can cut the line to a sandbox. */
  readonly boxes = new Map<Desktop, Sandbox>();
  readonly #threads: FramebufferThreads | undefined;

  constructor(o: LocalProviderOptions = {}) {
    const image = o.image ?? DEFAULT_IMAGE;
    this.#o = { ...o, image, rootfs: o.rootfs ?? (() => builtRootfs(image)) };
    this.#threads = o.screens && new FramebufferThreads(o.screens);
  }

  async status(): Promise<ProviderStatus> {
    const no = (e: StudioError): ProviderStatus => ({
      provider: 'local',
      ok: false,
      detail: e.message,
      problem: toRunError(e),
    });
    if (process.platform !== 'linux')
      return no(unavailable('Local desktops need Linux.', 'Install Docker and set the provider to docker.'));
    if (!onPath('bwrap'))
      return no(
        unavailable('bubblewrap is not installed.', 'Install it: apt-get install bubblewrap. Or install Docker.'),
      );
    // The image is checked last: an error of kind `desktop.image` means that only building it is left to do.
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
      await stateDir();
      rootfs = await this.#o.rootfs();
      await access(`${rootfs}/usr/bin/Xvfb`);
    } catch (e) {
      return no(
        e instanceof StudioError
          ? e
          : new StudioError(
              'desktop.image',
              'The root file system of the desktop is missing.',
              `Build it: dart-studio desktop build --image ${this.#o.image} --provider local.`,
              { cause: e, details: { image: this.#o.image } },
            ),
      );
    }
    return {
      provider: 'local',
      ok: true,
      detail: `bubblewrap, root file system ${rootfs}`,
      capacity: localCapacity(availableParallelism(), freemem(), (await readImage(this.#o.image)).floor.memoryMb),
    };
  }

  async create(wanted: DesktopSpec, signal?: AbortSignal): Promise<Desktop> {
    signal?.throwIfAborted();
    const spec = await roomFor(this.#o.image, wanted);
    const rootfs = await this.#o.rootfs();
    const name = brand<DesktopId>(`local-${randomBytes(4).toString('hex')}`);
    const cgroup = await joinCgroups(name, spec),
      processes = await processLimit(spec.pids, spec.memoryMb);
    const limited = (cgroup?.memory ?? false) || processes.memory;
    if (!limited && !hasRoom(spec.memoryMb, this.boxes.size, await availableMemory())) {
      await cgroup?.remove();
      throw noRoom(spec.memoryMb, this.boxes.size);
    }
    const agentCode = await readFile(await imageAsset(this.#o.image, 'overlay/opt/dart/agent.py'));
    const plan = sandboxCommand({
      name,
      rootfs,
      spec,
      diskMb: this.#o.diskMb ?? spec.diskMb ?? 64,
      cgroup,
      uid: process.getuid!(),
      stateDir: await stateDir(),
      processes,
    });
    // Recorded before there is a process: whenever this one is killed, a later one finds the sandbox by its name.
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
      const desktop = desktopIn(root, name, spec, agent, { cgroup, threads: this.#threads });
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
      throw startError(e, signal, sandbox.stderr);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  async reset(d: Desktop): Promise<Desktop> {
    const box = this.boxes.get(d);
    if (!box) throw lost('This desktop was destroyed.');
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
    this.#threads?.close();
  }
}

/**
 * Desktops that this machine can run: 80 MB each (runtime/cluster/README.md#capacity), as much again for their
 * programs, and no more than 16 a core. Programs of an image that needs at least `floorMb` take a quarter of that: those
 * of OSWorld 120 to 500 MB of 3,072.
 */
export const localCapacity = (cores: number, freeBytes: number, floorMb = 0): number =>
  Math.max(1, Math.min(16 * cores, Math.floor(freeBytes / (Math.max(160, floorMb / 4) * MB))));

/**
 * Whether one more desktop may start where nothing limits the memory of a whole desktop: those that run may still grow
 * to `memoryMb` each. The first always may.
 */
export const hasRoom = (memoryMb: number, running: number, availableBytes: number): boolean =>
  running === 0 || availableBytes / MB >= memoryMb + running * Math.max(0, memoryMb - IDLE_MB);

/** An idle desktop's memory (runtime/cluster/README.md#capacity). */
const IDLE_MB = 80;

/** Memory that programs can still get, bytes. */
async function availableMemory(): Promise<number> {
  const kb = /^MemAvailable:\s+(\d+) kB/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1];
  return kb === undefined ? freemem() : Number(kb) * 1024;
}

const noRoom = (memoryMb: number, running: number): StudioError =>
  new StudioError(
    'desktop.unavailable',
    `There is not enough memory for another desktop of ${memoryMb} MB beside the ${running} that are running.`,
    'Use fewer desktops (desktops.count) or a lower desktops.memoryMb; or start from a systemd user session, where each desktop gets a memory limit of its own.',
  );

export const createLocalProvider = (o?: LocalProviderOptions): LocalProvider => new LocalProvider(o);

/** The desktop whose file system is at `root`, driven from outside. */
function desktopIn(
  root: string,
  id: DesktopId,
  spec: DesktopSpec,
  agent: AgentClient,
  { cgroup, threads }: { readonly cgroup: CgroupLease | undefined; readonly threads: FramebufferThreads | undefined },
): SandboxDesktop {
  return new SandboxDesktop({
    id,
    provider: 'local',
    spec,
    agent,
    usage: { outOfMemory: () => outOfMemory(cgroup?.dirs ?? []), processorMs: () => processorMs(`${root}/proc`) },
    channels: channelsAt(root, spec.screen, threads),
  });
}

function startError(e: unknown, signal: AbortSignal | undefined, stderr: string): StudioError {
  if (signal?.aborted) return cancelled('Starting the desktop', { cause: e });
  if (e instanceof StudioError) return e;
  return new StudioError(
    'desktop.start',
    `The desktop did not start: ${messageOf(e)}.`,
    'Run `dart-studio doctor` to see what this machine lacks.',
    { cause: e, details: { stderr } },
  );
}

async function builtRootfs(image: string): Promise<string> {
  const path = process.env['DART_STUDIO_ROOTFS'] || (await rootfsPath(await readRecipe(image)));
  if (path) return path;
  const { name, extra } = partsOf(image);
  if (extra !== undefined) throw notBuilt({ name, extra });
  throw new StudioError(
    'desktop.image',
    `The root file system of the desktop image "${image}" has not been built yet.`,
    `Build it: dart-studio desktop build --image ${image} (about a minute).`,
    { details: { image } },
  );
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
