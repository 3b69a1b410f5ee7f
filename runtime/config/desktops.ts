import { z } from 'zod';
import { flag, positive, section, whole } from './fields.js';

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
export const hostOptions = z
  .array(
    z.strictObject({
      host: z.string().describe('DOCKER_HOST form: unix:///var/run/docker.sock, tcp://10.0.0.2:2375'),
      capacity: z.int().positive().describe('Maximum desktops on this host.'),
    }),
  )
  .optional()
  .describe('Docker engines to spread desktops over; default: DOCKER_HOST or the local engine.');

/**
 * Options of desktops on Kubernetes. Which context's credentials are used, and which credential plug-ins may run, is no
 * option of a run file: a machine's setting or the command line says it (runtime/cluster/README.md#kubernetes).
 */
export const kubernetesOptions = section(
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
