import { z } from 'zod';
import { DEFAULT_IMAGE, IMAGE_NAME } from '../domain/index.js';
import { count, flag, positive, section, whole } from './fields.js';

/** Name of an object in the cluster. */
const name = (what: string): z.ZodOptional<z.ZodString> =>
  z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'small letters, digits, "-" and "." only')
    .optional()
    .describe(what);
const quantity = (d: string, what: string): z.ZodDefault<z.ZodString> =>
  z
    .string()
    .regex(/^\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/, 'a quantity of Kubernetes, e.g. 250m or 64Mi')
    .default(d)
    .describe(what);

/** Docker engines. */
const hostOptions = z
  .array(
    z.strictObject({
      host: z.string().describe('DOCKER_HOST form: unix:///var/run/docker.sock, tcp://10.0.0.2:2375'),
      capacity: z.int().positive().describe('Maximum desktops on this host.'),
    }),
  )
  .optional()
  .describe('Docker engines to spread desktops over; default: DOCKER_HOST or the local engine.');

/**
 * Options of desktops behind OSWorld's port 5000. Which virtual machine may run here is no option of a run file: a machine's
 * setting or the command line says it (runtime/cluster/README.md#osworld).
 */
const osworldOptions = section(
  {
    servers: z
      .array(z.url({ protocol: /^https?$/ }))
      .max(1024)
      .default([])
      .describe(
        "Servers that run, one desktop each, e.g. http://10.0.0.2:5000 (`dart-studio desktop serve --osworld`, OSWorld's virtual machines). None: OSWorld's virtual machine is run in Docker on this machine, which a setting of the machine must name (`dartStudio.osworld.vm`, `--osworld-vm`).",
      ),
    tokenEnv: z
      .string()
      .optional()
      .describe(
        'Environment variable that holds the token of these servers (DART_STUDIO_..._KEY); it is sent to them and nowhere else.',
      ),
    keepState: flag(
      false,
      'Use servers that cannot bring their desktop back to where it began: each rollout then finds what the one before it left.',
    ),
    startSeconds: positive(300, 'Longest wait for a virtual machine to start.'),
    spares: whole(1, 'Virtual machines kept started beyond those in use: each rollout gets one that nobody has used.'),
    ramGb: count(4, 'Memory of a virtual machine, GB.'),
    cores: count(4, 'Processors of a virtual machine.'),
    diskGb: count(32, 'Disk of a virtual machine, GB.'),
  },
  "Desktops behind OSWorld's port 5000 (provider `osworld`).",
);

/**
 * Options of desktops on Kubernetes. Which context's credentials are used, and which credential plug-ins may run, is no
 * option of a run file: a machine's setting or the command line says it (runtime/cluster/README.md#kubernetes).
 */
const kubernetesOptions = section(
  {
    namespace: name("Namespace of the desktops; default: the context's, else `default`."),
    image: z
      .string()
      .regex(/^[\w][\w./:@-]{0,254}$/, 'an image reference')
      .optional()
      .describe(
        'Image reference that the nodes can pull, as given to `dart-studio desktop build --push REF`; default: the tag of a local build, for nodes into which it was loaded.',
      ),
    pullSecret: name('Secret of the namespace with which the image is pulled.'),
    capacity: z
      .int()
      .positive()
      .optional()
      .describe('Maximum desktops in the cluster; default: what quota and nodes allow.'),
    spares: whole(1, 'Desktops kept started beyond those in use, so that a broken one is replaced at once.'),
    requests: section(
      {
        cpu: quantity('10m', 'CPU that a node reserves.'),
        memory: quantity('64Mi', 'Memory that a node reserves.'),
      },
      'What a desktop requests from its node; this decides how many desktops share a node. Limits are `memoryMb` and `cpus`.',
    ),
    nodeSelector: z.record(z.string(), z.string()).optional().describe('Labels that a node must have.'),
    tolerations: z
      .array(
        z.strictObject({
          key: z.string().optional().describe('Taint; absent: every taint.'),
          operator: z.enum(['Exists', 'Equal']).optional().describe('How `value` is compared; default `Equal`.'),
          value: z.string().optional().describe('Value of the taint.'),
          effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional().describe('Default: every effect.'),
          tolerationSeconds: z.int().optional().describe('How long `NoExecute` is tolerated.'),
        }),
      )
      .optional()
      .describe('Taints of nodes that desktops tolerate.'),
    runtimeClass: name('RuntimeClass of the pods (gVisor, Kata).'),
    priorityClass: name('PriorityClass of the pods.'),
    userNamespaces: flag(
      false,
      "Gives every desktop its own user namespace (`hostUsers: false`; Kubernetes 1.33 or newer). Only then does `pids` limit a desktop's processes; otherwise the kubelet's podPidsLimit does.",
    ),
    startSeconds: positive(120, 'Longest wait for a pod to start, image pull and new nodes included.'),
    patienceSeconds: positive(
      120,
      'Longest interruption of the connection to a desktop (API server restarted, stream closed) that a rollout waits out.',
    ),
    idleMinutes: positive(10, 'A desktop that gets no message from a runtime for this long ends itself.'),
    lifeHours: positive(24, 'Longest lifetime of a pod (`activeDeadlineSeconds`).'),
  },
  'Desktops as pods of a cluster (provider `kubernetes`).',
);

/** Options of the desktops' image, by provider. */
export const imageOptions = {
  image: z
    .string()
    .regex(IMAGE_NAME, 'small letters, digits and "-" only, at most 32')
    .default(DEFAULT_IMAGE)
    .describe('Desktop image: a folder of `images/`; `dart-studio desktop status` lists those there are.'),
  imageExtra: z
    .string()
    .optional()
    .describe(
      'Folder with a layer of your own upon the image (packages, `debs/`, `setup.sh`, `overlay/`), relative to the run file. Build it once: `dart-studio desktop build --image NAME --image-extra DIR`.',
    ),
};
export const providerOptions = {
  network: z
    .enum(['none', 'internet'])
    .default('none')
    .describe(
      '`internet`: desktops reach what this machine reaches, its own network too (providers `docker` and `osworld`; servers of OSWorld have the network that they have). Tasks that visit the live web are left out without it.',
    ),
  hosts: hostOptions,
  kubernetes: kubernetesOptions,
  osworld: osworldOptions,
};
