import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type Docker from 'dockerode';
import { StudioError } from '../../../domain/index.js';
import { deadline } from '../../../concurrency/deadline.js';
import { ignoreFailure, orUndefined } from '../../../concurrency/failures.js';
import { pauseOrStop } from '../../../concurrency/pause.js';
import { OWNER, ROLE } from '../dockerContainer.js';
import { engineError, statusOf } from '../dockerImage.js';
import { makeContainer, removeContainer } from '../engineContainers.js';
import type { MachineDisk, OsworldOptions } from './access.js';
import { OsworldServer } from './server.js';

/** Ports of OSWorld's virtual machine: its server, Chrome's debugger, VLC, and the screen for people. */
const SERVER = '5000/tcp',
  PORTS = [SERVER, '9222/tcp', '8080/tcp', '8006/tcp'];
/** Between two looks whether it has started, ms; one look. The machine says nothing by itself. */
const LOOK_MS = 1000,
  ASK_MS = 10_000;
/** Memory of QEMU beside the machine's own, MB. */
const BESIDE_MB = 1024;
const TAIL_LINES = 20,
  TAIL_CHARACTERS = 2000;
const KVM = '/dev/kvm';

/**
 * The container that runs OSWorld's disk, as OSWorld's own Docker provider makes it: same image, variables, volume and
 * ports; the ports are this machine's alone, and whichever are free.
 */
export function machineContainer(
  m: MachineDisk,
  o: Pick<OsworldOptions, 'ramGb' | 'cores' | 'diskGb'>,
  owned: { readonly name: string; readonly owner: string },
  kvm = existsSync(KVM),
): Docker.ContainerCreateOptions {
  return {
    Image: m.image,
    name: owned.name,
    Labels: { app: 'dart-studio', [ROLE]: 'desktop', [OWNER]: owned.owner },
    Env: [
      `DISK_SIZE=${o.diskGb}G`,
      `RAM_SIZE=${o.ramGb}G`,
      `CPU_CORES=${o.cores}`,
      // Without the device QEMU emulates, which is slow and works.
      ...(kvm ? [] : ['KVM=N']),
    ],
    // With a terminal the log has no frames of the engine's.
    Tty: true,
    ExposedPorts: Object.fromEntries(PORTS.map((p) => [p, {}])),
    HostConfig: {
      Mounts: [{ Type: 'bind', Source: m.disk!, Target: '/System.qcow2', ReadOnly: true }],
      CapAdd: ['NET_ADMIN'],
      ...(kvm ? { Devices: [{ PathOnHost: KVM, PathInContainer: KVM, CgroupPermissions: 'rwm' }] } : {}),
      PortBindings: Object.fromEntries(PORTS.map((p) => [p, [{ HostIp: '127.0.0.1', HostPort: '' }]])),
      Memory: (o.ramGb * 1024 + BESIDE_MB) * 2 ** 20,
      LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } },
      AutoRemove: false,
    },
  };
}

export interface VirtualMachine {
  readonly container: Docker.Container;
  readonly server: OsworldServer;
  /** Resolves when the container has ended. */
  readonly ended: Promise<void>;
}

/** Throws `desktop.unavailable` where the machine names no disk, or none that is there. */
export function checkDisk(m: MachineDisk): void {
  if (m.disk === undefined)
    throw new StudioError(
      'desktop.unavailable',
      "Desktops of OSWorld need servers or OSWorld's virtual machine, and neither is named.",
      'List running servers in desktops.osworld.servers of the run file; or name the file Ubuntu.qcow2 by the setting dartStudio.osworld.vm or DART_STUDIO_OSWORLD_VM (a run file cannot).',
    );
  if (!isAbsolute(m.disk) || !existsSync(m.disk))
    throw new StudioError(
      'desktop.unavailable',
      `The virtual machine ${m.disk} is not there.`,
      "Give the absolute path of OSWorld's Ubuntu.qcow2, unpacked.",
    );
}

/** Starts one and waits until its server answers. What was started and does not come up is removed. */
export async function bootMachine(
  docker: Docker,
  create: Docker.ContainerCreateOptions,
  o: { readonly startSeconds: number; readonly signal: AbortSignal },
): Promise<VirtualMachine> {
  const time = deadline(o.startSeconds * 1000, o.signal);
  let container: Docker.Container | undefined;
  try {
    container = await makeContainer(docker, create, time.signal);
    await container.start({ abortSignal: time.signal } as object);
    const ended = endOf(container),
      server = new OsworldServer({ url: `http://127.0.0.1:${await portOf(container)}` });
    await untilReady(server, ended, time.signal);
    return { container, server, ended };
  } catch (e) {
    const why = container && !o.signal.aborted ? await explained(e, container, create, o.startSeconds) : e;
    if (container) await orUndefined(removeContainer(container), 'what stopped the start is reported');
    throw why instanceof StudioError ? why : imageError(why, create);
  } finally {
    time.end();
  }
}

const endOf = (c: Docker.Container): Promise<void> =>
  // When the engine is gone nobody knows; the machine's server then does not answer.
  c.wait().then(
    () => undefined,
    () => new Promise<never>(() => {}),
  );

async function portOf(c: Docker.Container): Promise<number> {
  const { Ports } = (await c.inspect()).NetworkSettings as { Ports?: Record<string, { HostPort: string }[] | null> },
    port = Number(Ports?.[SERVER]?.[0]?.HostPort);
  if (!Number.isInteger(port) || port < 1)
    throw new StudioError('desktop.start', 'The engine published no port of the virtual machine.', 'Start it again.');
  return port;
}

async function untilReady(server: OsworldServer, ended: Promise<void>, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  let gone = false;
  ignoreFailure(
    ended.then(() => {
      gone = true;
      over.abort();
    }),
    'it is asked below',
  );
  const stop = AbortSignal.any([signal, over.signal]);
  let last = 'nothing listens';
  for (;;) {
    const why = await server.ready({ timeoutMs: ASK_MS, signal: stop });
    if (why === undefined) return;
    if (gone || signal.aborted) throw new NotReady(gone ? 'its container ended' : last);
    last = why;
    await pauseOrStop(LOOK_MS, stop);
  }
}
class NotReady extends Error {}

/** The error with the end of the container's log, which says what its own clients never see. */
async function explained(
  e: unknown,
  c: Docker.Container,
  create: Docker.ContainerCreateOptions,
  seconds: number,
): Promise<unknown> {
  if (!(e instanceof NotReady)) return e;
  const log = await orUndefined(c.logs({ stdout: true, stderr: true, tail: TAIL_LINES }), 'then its log is not told'),
    tail = (log?.toString('utf8') ?? '').replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').trim();
  return new StudioError(
    'desktop.start',
    `OSWorld's virtual machine (${create.Image ?? ''}) did not come up (at most ${seconds} s): ${e.message}.`,
    existsSync(KVM)
      ? 'Look at its log, or raise desktops.osworld.startSeconds.'
      : `This machine has no ${KVM}, so it is emulated: raise desktops.osworld.startSeconds, or use a machine with KVM.`,
    { cause: e, details: { log: tail.slice(-TAIL_CHARACTERS) } },
  );
}
function imageError(e: unknown, create: Docker.ContainerCreateOptions): StudioError {
  if (statusOf(e) === 404)
    return new StudioError(
      'desktop.image',
      `The Docker engine does not have the image ${create.Image ?? ''}.`,
      `Pull it: docker pull ${create.Image ?? ''}`,
      { cause: e },
    );
  return engineError(e);
}
