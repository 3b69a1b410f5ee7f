import { dirname } from 'node:path/posix';
import { demoDesktops, type RunConfig } from '../../../config/index.js';
import { RUNTIME_POD } from '../../../domain/index.js';
import { APP, ROLE, type KubernetesConfig } from './podSpec.js';

export interface ManifestOptions {
  readonly desktops: RunConfig['desktops'];
  /** Image of the runtime, for a Job that trains in the cluster; its entry point is `dart-studio`. */
  readonly job?: { readonly image: string; readonly runFile: string };
}

export const NAMESPACE = RUNTIME_POD.namespace;
const NAME = 'dart-studio';
/** User and group of the runtime, in its image and in the Job. */
export const RUNTIME_USER = 1000;
/** Secret with environment variables for the Job, where somebody made one. */
const KEYS = 'dart-studio-keys';
/** Pods beside the desktops: the runtime's Job and the pods of `doctor --run`. */
const OTHERS = 2;

/** Rights that suffice in one namespace; `doctor --run` asks for each. */
export const RIGHTS = [
  { resource: 'pods', verbs: ['get', 'list', 'watch', 'create', 'delete'] },
  { resource: 'pods/exec', verbs: ['create', 'get'] },
  { resource: 'events', verbs: ['list'] },
] as const;

/** Number of desktops within the cluster's capacity. */
export const withinCapacity = ({ kubernetes: { capacity } }: RunConfig['desktops'], desktops: number): number =>
  Math.min(desktops, capacity ?? Infinity);

/**
 * The objects that a cluster needs before desktops run in it: a namespace whose pod security allows SYS_PTRACE, an
 * account with the rights above, a policy that keeps desktops from every network, and a quota for the desktops that the
 * run file asks for, those that make demonstrations included.
 */
export function manifests(o: ManifestOptions): object[] {
  const { kubernetes: k } = o.desktops,
    namespace = k.namespace ?? NAMESPACE,
    count = withinCapacity(o.desktops, o.desktops.count + demoDesktops(o.desktops) + k.spares),
    labels = { [APP]: NAME };
  const meta = (name: string): object => ({ name, namespace, labels });
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { ...labels, 'pod-security.kubernetes.io/enforce': 'privileged' } },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: meta(NAME) },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: meta(NAME),
      rules: RIGHTS.map((r) => ({ apiGroups: [''], resources: [r.resource], verbs: [...r.verbs] })),
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: meta(NAME),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: NAME },
      subjects: [{ kind: 'ServiceAccount', name: NAME, namespace }],
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: meta('dart-desktops-no-network'),
      spec: { podSelector: { matchLabels: { [APP]: NAME, [ROLE]: 'desktop' } }, policyTypes: ['Ingress', 'Egress'] },
    },
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: meta(NAME),
      spec: { hard: { pods: String(count + OTHERS) } },
    },
    ...(o.job ? jobOf(o.job, k, meta) : []),
  ];
}

/**
 * Training in the cluster: the run file as a ConfigMap, a volume for run folders, and the runtime's Job, which is pulled
 * and placed as desktops are. Windows attach to it (extension/README.md#a-runtime-elsewhere): it listens on the pod's own
 * loopback, and its token is in a file of a volume that no other pod mounts.
 */
function jobOf(
  job: NonNullable<ManifestOptions['job']>,
  k: KubernetesConfig,
  meta: (name: string) => object,
): object[] {
  const train = 'dart-studio-train';
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta(train), data: { 'run.json': job.runFile } },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: meta('dart-studio-runs'),
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '50Gi' } } },
    },
    {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: meta(train),
      spec: {
        // A run that ended is gone on with by hand (`train --resume RUN`): a second pod would begin another one.
        backoffLimit: 0,
        template: {
          metadata: { labels: { ...RUNTIME_POD.labels } },
          spec: {
            serviceAccountName: NAME,
            restartPolicy: 'Never',
            terminationGracePeriodSeconds: 120,
            ...(k.pullSecret === undefined ? {} : { imagePullSecrets: [{ name: k.pullSecret }] }),
            ...(k.nodeSelector ? { nodeSelector: k.nodeSelector } : {}),
            ...(k.tolerations ? { tolerations: k.tolerations } : {}),
            // The group may write the volume.
            securityContext: {
              runAsNonRoot: true,
              runAsUser: RUNTIME_USER,
              runAsGroup: RUNTIME_USER,
              fsGroup: RUNTIME_USER,
              seccompProfile: { type: 'RuntimeDefault' },
            },
            containers: [
              {
                name: RUNTIME_POD.container,
                image: job.image,
                args: ['train', '/config/run.json', '--json', '--runs', '/runs', '--serve', RUNTIME_POD.storage],
                env: [{ name: 'DART_STUDIO_OWNER', value: train }],
                // Keys of model servers, by the names that the run file has for them.
                envFrom: [{ secretRef: { name: KEYS, optional: true } }],
                securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
                resources: { requests: { cpu: '2', memory: '4Gi' } },
                volumeMounts: [
                  { name: 'config', mountPath: '/config', readOnly: true },
                  { name: 'runs', mountPath: '/runs' },
                  { name: 'studio', mountPath: dirname(RUNTIME_POD.storage) },
                ],
              },
            ],
            volumes: [
              { name: 'config', configMap: { name: train } },
              { name: 'runs', persistentVolumeClaim: { claimName: 'dart-studio-runs' } },
              { name: 'studio', emptyDir: {} },
            ],
          },
        },
      },
    },
  ];
}

/** Objects as YAML documents, for `kubectl apply -f -`. */
export const yamlOf = (objects: readonly object[]): string =>
  objects.map((o) => `${linesOf(o, '').join('\n')}\n`).join('---\n');

/** Block style; every text but plain words is quoted as JSON, which YAML reads. */
function linesOf(value: unknown, indent: string): string[] {
  const inline = (v: unknown): string | undefined => {
    if (typeof v === 'string') return /^[a-zA-Z/][\w./-]*$/.test(v) && !WORDS.test(v) ? v : JSON.stringify(v);
    if (typeof v !== 'object' || v === null) return JSON.stringify(v);
    return Object.keys(v).length === 0 ? (Array.isArray(v) ? '[]' : '{}') : undefined;
  };
  if (Array.isArray(value))
    return value.flatMap((v: unknown) => {
      const one = inline(v);
      if (one !== undefined) return [`${indent}- ${one}`];
      const [first, ...rest] = linesOf(v, `${indent}  `);
      return [`${indent}- ${first!.trimStart()}`, ...rest];
    });
  return Object.entries(value as object)
    .filter(([, v]) => v !== undefined)
    .flatMap(([k, v]) => {
      const one = inline(v),
        key = inline(k)!;
      return one === undefined ? [`${indent}${key}:`, ...linesOf(v, `${indent}  `)] : [`${indent}${key}: ${one}`];
    });
}
/** Plain words that YAML does not read as text. */
const WORDS = /^(true|false|yes|no|on|off|null|y|n)$/i;
