import { spawn, execFileSync, type ChildProcess } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as after } from 'node:timers/promises';
import type Docker from 'dockerode';
import { connectEngine, ensureImage } from '../../runtime/cluster/imageBuild.js';

const READY_MS = 60_000,
  GONE_MS = 10_000;

/**
 * A Docker Engine of our own, which may be stopped and killed without harm to anybody else's containers. It takes the
 * desktop image from the machine's engine.
 */
export class Engine {
  readonly host: string;
  readonly #dir: string;
  readonly #docker: Docker;
  #daemon: ChildProcess | undefined;

  constructor(dir: string) {
    this.#dir = dir;
    mkdirSync(dir, { recursive: true });
    this.host = `unix://${join(dir, 'docker.sock')}`;
    this.#docker = connectEngine(this.host);
  }

  /** Why there can be none here; undefined when there can. */
  static whyNot(): string | undefined {
    if (process.getuid?.() !== 0) return 'only root can start a Docker Engine';
    try {
      execFileSync('dockerd', ['--version'], { stdio: 'ignore' });
      return undefined;
    } catch {
      return 'dockerd is not installed';
    }
  }

  /** Starts it and gives it the desktop image. */
  async begin(): Promise<void> {
    await this.start();
    const machine = connectEngine(),
      tag = await ensureImage(machine);
    await this.#docker.loadImage(await machine.getImage(tag).get());
    for (const end = performance.now() + READY_MS; performance.now() < end; await after(200))
      if (await this.#has(tag)) return;
    throw new Error(`The engine does not have ${tag} after it was loaded.`);
  }
  async #has(tag: string): Promise<boolean> {
    return this.#docker
      .getImage(tag)
      .inspect()
      .then(() => true)
      .catch(() => false);
  }

  async start(): Promise<void> {
    const log = createWriteStream(join(this.#dir, 'log'), { flags: 'a' });
    const args = ['--data-root', 'data', '--exec-root', 'exec', '--pidfile', 'pid'].map((a) =>
      a.startsWith('--') ? a : join(this.#dir, a),
    );
    // A network of its own: an engine without a bridge removes docker0, which is that of the machine's engine.
    const daemon = spawn(
      'unshare',
      [
        '--net',
        'dockerd',
        ...args,
        '-H',
        this.host,
        '--bridge',
        'none',
        '--iptables=false',
        '--ip6tables=false',
        '--shutdown-timeout',
        '1',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    this.#daemon = daemon;
    pipeline(daemon.stderr, log).catch(() => undefined);
    for (const end = performance.now() + READY_MS; performance.now() < end; await after(50)) {
      if (daemon.exitCode !== null) throw new Error(`dockerd ended with ${daemon.exitCode}; see ${this.#dir}/log`);
      if (
        await this.#docker.ping().then(
          () => true,
          () => false,
        )
      )
        return;
    }
    throw new Error('dockerd does not answer.');
  }
  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }
  async #end(how: NodeJS.Signals): Promise<void> {
    const daemon = this.#daemon!;
    if (daemon.exitCode !== null || daemon.signalCode !== null) return;
    const gone = new Promise((done) => daemon.once('exit', done));
    daemon.kill(how);
    await gone;
    await this.#containerdGone();
    rmSync(join(this.#dir, 'pid'), { force: true });
  }

  /** It dies with the engine, a moment later; an engine that finds its number in use by then waits for it in vain. */
  async #containerdGone(): Promise<void> {
    const file = join(this.#dir, 'exec', 'containerd', 'containerd.pid');
    if (!existsSync(file)) return;
    const status = `/proc/${readFileSync(file, 'utf8').trim()}/status`;
    const lives = (): boolean => {
      try {
        return !/^State:\s+Z/m.test(readFileSync(status, 'utf8'));
      } catch {
        return false;
      }
    };
    for (const end = performance.now() + GONE_MS; lives() && performance.now() < end;) await after(20);
    rmSync(file, { force: true });
  }

  async #containers(all = false): Promise<Docker.ContainerInfo[]> {
    return this.#docker.listContainers({ all, filters: { label: ['dart-studio.role=desktop'] } });
  }
  /** PID 1 of each desktop. */
  async desktops(): Promise<number[]> {
    const found = await Promise.all(
      (await this.#containers()).map((c) =>
        this.#docker
          .getContainer(c.Id)
          .inspect()
          .catch(() => undefined),
      ),
    );
    return found.flatMap((c) => (c && c.State.Pid > 0 ? [c.State.Pid] : []));
  }
  /** Containers that are left, in words. */
  async left(): Promise<string[]> {
    return this.#containers(true).then(
      (all) => all.map((c) => `container ${c.Names.join(' ')} (${c.State})`),
      (e: unknown) => [`whatever the engine has: it does not answer (${String(e)})`],
    );
  }
  async one(): Promise<Docker.Container | undefined> {
    const [c] = await this.#containers();
    return c && this.#docker.getContainer(c.Id);
  }
  async killOne(): Promise<boolean> {
    const c = await this.one();
    await c?.kill();
    return c !== undefined;
  }
  async pauseOne(ms: number): Promise<boolean> {
    const c = await this.one();
    await c?.pause();
    await after(ms);
    await c?.unpause();
    return c !== undefined;
  }

  async close(): Promise<void> {
    await this.stop();
    // One that was killed leaves mounts of its containers, and of its own folder.
    const mounts = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .flatMap((l) => l.split(' ')[1] ?? [])
      .filter((m) => m.startsWith(`${this.#dir}/`));
    for (const m of mounts.reverse()) execFileSync('umount', ['-l', m], { stdio: 'ignore' });
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
