import { Duplex, PassThrough } from 'node:stream';
import type Docker from 'dockerode';
import type { RelayPipes } from '../drivers/portable.js';
import type { DesktopSpec } from '../types.js';
import { withNamespaces } from './seccomp.js';

export const ROLE = 'dart-studio.role',
  OWNER = 'dart-studio.owner',
  RUN = 'dart-studio.run';
/**
 * Capabilities of the agent, in containers and pods: to start programs under other uids, to end them, to change the
 * owner of files, and to inspect sleeping tasks.
 */
export const CAPABILITIES = ['SETUID', 'SETGID', 'KILL', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SYS_PTRACE'];
const MB = 1 << 20;

/**
 * A desktop's container (runtime/cluster/README.md#container): no network unless the run file says so, a read-only
 * image, no capability but the agent's, limited memory, processes and cores. Everything writable is in memory, limited in
 * size, and gone with the container.
 */
export function containerOptions(
  image: string,
  spec: DesktopSpec,
  o: { name: string; owner: string; run?: string },
): Docker.ContainerCreateOptions {
  const memory = Math.max(64, spec.memoryMb) * MB;
  return {
    Image: image,
    name: o.name,
    Hostname: 'desktop',
    Labels: {
      ...spec.labels,
      app: 'dart-studio',
      [ROLE]: 'desktop',
      [OWNER]: o.owner,
      ...(o.run ? { [RUN]: o.run } : {}),
    },
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    OpenStdin: false,
    Tty: false,
    HostConfig: {
      ReadonlyRootfs: true,
      NetworkMode: spec.network === 'internet' ? 'bridge' : 'none',
      LogConfig: { Type: 'none', Config: {} },
      Init: false,
      AutoRemove: false,
      Memory: memory,
      MemorySwap: memory,
      PidsLimit: spec.pids,
      NanoCpus: spec.cpus ? Math.round(spec.cpus * 1e9) : undefined,
      CapDrop: ['ALL'],
      CapAdd: CAPABILITIES,
      SecurityOpt: [
        'no-new-privileges',
        // A browser that meets the web keeps its own sandbox.
        ...(spec.network === 'internet' ? [`seccomp=${withNamespaces()}`] : []),
      ],
      Tmpfs: writableFolders(spec),
    },
  };
}

/**
 * Folders in memory and how large each may become, with room for one file per 4 KB: what programs can fill is at most
 * half of the desktop's memory, so that filling it cannot end the agent.
 */
export function writableFolders(spec: DesktopSpec): Record<string, string> {
  const most = (mb: number, share: number): number => Math.max(4, Math.min(mb, Math.floor(spec.memoryMb * share)));
  const frame = Math.ceil((spec.screen.width * spec.screen.height * 4) / MB);
  const folder = (mb: number, mode: number, more = ''): string =>
    `rw,nosuid,nodev,${more}size=${mb}m,nr_inodes=${mb * 256},mode=${mode}`;
  return {
    '/home/user': folder(most(spec.diskMb ?? 128, 1 / 4), 755),
    '/tmp': folder(most(spec.diskMb ?? 64, 1 / 8), 1777),
    '/var/tmp': folder(most(16, 1 / 32), 1777),
    '/dev/shm': folder(most(spec.diskMb ?? 32, 1 / 16), 1777, 'noexec,'),
    '/run': folder(16, 755),
    '/run/dart': folder(Math.max(16, 2 * frame), 755, 'noexec,'),
  };
}

/**
 * Removes the engine's framing (8 bytes: stream number, length) from an exec's output; standard error goes to
 * `onError`.
 */
export class Demux {
  #head = Buffer.alloc(0);
  #left = 0;
  #target = 0;
  readonly #out: (b: Buffer) => void;
  readonly #err: (b: Buffer) => void;
  constructor(out: (b: Buffer) => void, err: (b: Buffer) => void) {
    this.#out = out;
    this.#err = err;
  }

  take(d: Buffer): void {
    for (;;) {
      if (this.#left > 0) {
        const part = d.subarray(0, this.#left);
        if (part.length === 0) return;
        this.#left -= part.length;
        (this.#target === 2 ? this.#err : this.#out)(part);
        d = d.subarray(part.length);
        continue;
      }
      if (this.#head.length + d.length < 8) {
        this.#head = Buffer.concat([this.#head, d]);
        return;
      }
      const need = 8 - this.#head.length;
      const head = need === 8 ? d.subarray(0, 8) : Buffer.concat([this.#head, d.subarray(0, need)]);
      this.#head = Buffer.alloc(0);
      d = d.subarray(need);
      this.#target = head[0]!;
      this.#left = head.readUInt32BE(4);
    }
  }
}

/**
 * Starts the relay inside a container and returns its two pipes. It runs as root there, so a reset does not kill it.
 */
export async function openRelay(container: Docker.Container, signal: AbortSignal): Promise<RelayPipes> {
  const exec = await container.exec({
    Cmd: ['/usr/bin/python3', '-S', '-E', '/opt/dart/relay.py'],
    User: '0',
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    abortSignal: signal,
  });
  const stream = (await exec.start({ hijack: true, stdin: true, Tty: false })) as unknown as Duplex;
  const output = new PassThrough({ highWaterMark: 16 * MB });
  let said = '';
  const demux = new Demux(
    (b) => output.write(b),
    (b) => {
      said = (said + b.toString()).slice(-1000);
    },
  );
  stream.on('data', (d: Buffer) => demux.take(d));
  stream.on('error', (e) => output.destroy(e));
  stream.on('close', () => {
    if (said) output.destroy(new Error(said.trim()));
    else output.end();
  });
  stream.on('end', () => output.end());
  return {
    input: stream,
    output,
    close: () => {
      stream.destroy();
      output.destroy();
    },
  };
}

/**
 * A stream to a unix socket inside a container, a process of its own: bytes that nobody takes keep no other stream
 * waiting, as they would on the relay's one pair of pipes.
 */
export async function openBridge(container: Docker.Container, path: string, signal: AbortSignal): Promise<Duplex> {
  const exec = await container.exec({
    Cmd: ['/usr/bin/python3', '-S', '-E', '/opt/dart/agent.py', '--bridge', path],
    User: '0',
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: false,
    Tty: false,
    abortSignal: signal,
  });
  return unframed((await exec.start({ hijack: true, stdin: true, Tty: false })) as unknown as Duplex);
}

/** The standard input and output of an exec as one stream, each as fast as its reader. */
export function unframed(stream: Duplex): Duplex {
  const plain = new Duplex({
    read: () => void stream.resume(),
    write: (b: Buffer, _encoding, done) => void stream.write(b, done),
    final: (done) => void stream.end(() => done()),
    destroy: (e, done) => {
      stream.destroy();
      done(e);
    },
  });
  const demux = new Demux(
    (b) => {
      if (!plain.push(b)) stream.pause();
    },
    () => undefined,
  );
  stream.on('data', (d: Buffer) => demux.take(d));
  stream.on('error', (e) => plain.destroy(e));
  let ended = false;
  stream.on('end', () => {
    ended = true;
    plain.push(null);
  });
  // After an `end` the output in the buffer can still be read.
  stream.on('close', () => {
    if (!ended) plain.destroy();
  });
  return plain;
}
