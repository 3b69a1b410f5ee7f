import { createHash } from 'node:crypto';
import type { RunConfig } from '../../../config/index.js';
import type { DesktopSpec } from '../../types.js';
import { CAPABILITIES, writableFolders } from '../dockerContainer.js';
import { ownerLabel, type Owner } from '../dockerHosts.js';

export type KubernetesConfig = RunConfig['desktops']['kubernetes'];

export const CONTAINER = 'desktop';
/** Labels of a pod, and the annotation with its owner in full. */
export const APP = 'app.kubernetes.io/name',
  ROLE = 'dart-studio/role',
  OWNER = 'dart-studio/owner',
  EPOCH = 'dart-studio/epoch',
  RUN = 'dart-studio/run';
export const LINK = ['/usr/bin/python3', '-S', '-E', '/opt/dart/link.py'] as const;
/** Writable folders, all in memory, as large as in a container of an engine. */
const volumesOf = (spec: DesktopSpec): { name: string; path: string; size: string }[] =>
  Object.entries(writableFolders(spec)).map(([path, options]) => ({
    name: path.slice(1).replaceAll('/', '-'),
    path,
    size: `${/size=(\d+)m/.exec(options)![1]!}Mi`,
  }));

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);
/**
 * Owner and epoch of a desktop as label values: the machine (or the Job) that made it, and which of its processes.
 */
export const ownerLabels = (o: Owner): Record<string, string> => ({
  [OWNER]: digest(o.machine),
  [EPOCH]: digest(ownerLabel(o)),
});
export const selectorOf = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([k, v]) => `${k}=${v}`)
    .join(',');

/** Any text as a label's value. */
export const labelValue = (text: string): string =>
  text
    .replace(/[^\w.-]+/g, '-')
    .slice(0, 63)
    .replace(/^[^a-zA-Z0-9]+|[^a-zA-Z0-9]+$/g, '');

/** A desktop's pod (runtime/cluster/README.md#kubernetes). `command` in place of the desktop: for trials. */
export function podOf(
  c: KubernetesConfig,
  spec: DesktopSpec,
  o: {
    readonly name: string;
    readonly image: string;
    readonly owner: Owner;
    readonly command?: readonly string[];
    readonly labels?: Readonly<Record<string, string>>;
  },
): object {
  const limits = { cpu: cpuText(spec.cpus ?? 1), memory: `${Math.max(64, spec.memoryMb)}Mi` };
  const run = spec.labels?.['run'],
    volumes = volumesOf(spec);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: o.name,
      labels: {
        [APP]: 'dart-studio',
        [ROLE]: 'desktop',
        ...ownerLabels(o.owner),
        ...(run === undefined ? {} : { [RUN]: labelValue(run) }),
        ...o.labels,
      },
      annotations: { [OWNER]: ownerLabel(o.owner) },
    },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      activeDeadlineSeconds: Math.round(c.lifeHours * 3600),
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostname: 'desktop',
      ...(c.userNamespaces ? { hostUsers: false } : {}),
      ...(c.nodeSelector ? { nodeSelector: c.nodeSelector } : {}),
      ...(c.tolerations ? { tolerations: c.tolerations } : {}),
      ...(c.runtimeClass === undefined ? {} : { runtimeClassName: c.runtimeClass }),
      ...(c.priorityClass === undefined ? {} : { priorityClassName: c.priorityClass }),
      ...(c.pullSecret === undefined ? {} : { imagePullSecrets: [{ name: c.pullSecret }] }),
      containers: [
        {
          name: CONTAINER,
          image: o.image,
          imagePullPolicy: 'IfNotPresent',
          command: o.command ?? [
            ...LINK,
            'serve',
            String(Math.round(c.idleMinutes * 60)),
            // Without a user namespace the limit would count the node's other desktops, too.
            String(c.userNamespaces ? spec.pids : 0),
          ],
          resources: { requests: { cpu: c.requests.cpu, memory: c.requests.memory }, limits },
          securityContext: {
            readOnlyRootFilesystem: true,
            allowPrivilegeEscalation: false,
            runAsUser: 0,
            capabilities: { drop: ['ALL'], add: CAPABILITIES },
            seccompProfile: { type: 'RuntimeDefault' },
          },
          volumeMounts: volumes.map((v) => ({ name: v.name, mountPath: v.path })),
        },
      ],
      volumes: volumes.map((v) => ({ name: v.name, emptyDir: { medium: 'Memory', sizeLimit: v.size } })),
    },
  };
}

const cpuText = (cpus: number): string => `${Math.max(1, Math.round(cpus * 1000))}m`;
