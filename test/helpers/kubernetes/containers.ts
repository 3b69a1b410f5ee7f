import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Backend, PodObject } from './apiServer.js';

const CAPABILITIES = ['SETUID', 'SETGID', 'KILL', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SYS_PTRACE'];

/**
 * Pods as containers of the local Docker engine, with the rights that a pod's security context gives: a real desktop
 * behind the test's API server. As in a cluster, what a channel started goes on when the channel is cut.
 */
export class Containers implements Backend {
  /** Where pods believe the API server is: an address that no packet reaches, or this pod itself. */
  serviceHost = '10.96.0.1';
  /** Ports on which something listens in every pod. */
  listens: readonly number[] = [];
  readonly #programs = new Set<ChildProcessWithoutNullStreams>();

  async start(pod: PodObject): Promise<void> {
    const c = pod.spec!.containers![0]!;
    const tmpfs = ['/home/user', '/tmp', '/var/tmp', '/dev/shm', '/run', '/run/dart'].flatMap((p) => [
      '--tmpfs',
      `${p}:rw,mode=1777,exec`,
    ]);
    await docker([
      ...[
        'run',
        '-d',
        '--name',
        pod.metadata!.name!,
        '--label',
        'app=dart-studio-test',
        '--network',
        'none',
        '--read-only',
      ],
      ...['--cap-drop', 'ALL', ...CAPABILITIES.flatMap((x) => ['--cap-add', x]), '--security-opt', 'no-new-privileges'],
      ...tmpfs,
      ...['-e', `KUBERNETES_SERVICE_HOST=${this.serviceHost}`, '-e', 'KUBERNETES_SERVICE_PORT=6443'],
      ...[c.image!, ...c.command!],
    ]);
    for (const port of this.listens) {
      const listen = `import socket, time; s = socket.create_server(('127.0.0.1', ${port})); time.sleep(600)`;
      await docker(['exec', '-d', '-u', '0', pod.metadata!.name!, 'python3', '-c', listen]);
    }
  }
  async stop(name: string): Promise<void> {
    await docker(['rm', '-f', name]);
  }
  exec(
    name: string,
    command: readonly string[],
    on: { stdout(b: Buffer): void; stderr(b: Buffer): void; exit(code: number): void },
  ): ReturnType<Backend['exec']> {
    const p = spawn('docker', ['exec', '-i', '-u', '0', name, ...command]);
    this.#programs.add(p);
    p.stdout.on('data', on.stdout);
    p.stderr.on('data', on.stderr);
    p.stdin.on('error', () => {
      /* it has ended */
    });
    p.on('close', (code) => {
      this.#programs.delete(p);
      on.exit(code ?? 137);
    });
    return Promise.resolve({
      stdin: (b) => void p.stdin.write(b),
      end: () => void p.stdin.end(),
      cut: () => void p.kill('SIGKILL'),
    });
  }
}

function docker(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const p = spawn('docker', args);
    let out = '',
      err = '';
    p.stdout.on('data', (d) => (out += String(d)));
    p.stderr.on('data', (d) => (err += String(d)));
    p.on('close', (code) => {
      if (code === 0) resolve(out.trim());
      else reject(new Error(`docker ${args[0]}: ${err.trim()}`));
    });
  });
}
