import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { self } from '../../../runtime/cluster/providers/dockerHosts.js';
import { parseReference } from '../../../runtime/cluster/providers/kubernetes/images.js';
import { manifests, yamlOf } from '../../../runtime/cluster/providers/kubernetes/manifests.js';
import { labelValue, podOf } from '../../../runtime/cluster/providers/kubernetes/podSpec.js';
import { misfits, modelOf } from '../../helpers/kubernetes/schema.js';

const everything = {
  namespace: 'team-a',
  image: 'r.example/desk:1',
  pullSecret: 'pull',
  capacity: 10,
  requests: { cpu: '50m', memory: '128Mi' },
  nodeSelector: { pool: 'desktops' },
  tolerations: [{ key: 'only', operator: 'Equal' as const, value: 'desktops', effect: 'NoSchedule' as const }],
  runtimeClass: 'gvisor',
  priorityClass: 'low',
  userNamespaces: true,
};
const pod = (kubernetes: object, o: { labels?: Record<string, string> } = {}): object =>
  podOf(
    parseRunFile({}, { desktops: { kubernetes } }).desktops.kubernetes,
    { screen: { width: 640, height: 400 }, memoryMb: 512, pids: 128, cpus: 0.5, labels: { run: 'my run!' } },
    { name: 'dart-desktop-1', image: 'r.example/desk:1', owner: self(), ...o },
  );

describe('Kubernetes objects', () => {
  it('fit the schema of the API itself', () => {
    expect(misfits({ kind: 'Pod', specc: {} }, 'V1Pod')).toEqual(['V1Pod.specc: unknown']);
    expect(misfits({ spec: { containers: [{ name: 1 }] } }, 'V1Pod')).toEqual([
      'V1Pod.spec.containers[0].name: not a string',
    ]);
    const desktops = parseRunFile({}, { desktops: { kubernetes: everything } }).desktops;
    const all = [
      ...manifests({ desktops, job: { image: 'r.example/runtime:1', runFile: '{}' } }),
      pod(everything),
      pod({}),
    ];
    expect(all.flatMap((o) => misfits(o, modelOf(o)))).toEqual([]);
  });

  it('a pod has no more rights than a desktop needs, and says whose it is', () => {
    const p = pod(everything, { labels: { x: 'y' } }) as {
      metadata: { labels: Record<string, string> };
      spec: Record<string, unknown> & { containers: Record<string, unknown>[] };
    };
    expect(p.spec).toMatchObject({
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostUsers: false,
      runtimeClassName: 'gvisor',
      priorityClassName: 'low',
      imagePullSecrets: [{ name: 'pull' }],
      activeDeadlineSeconds: 86_400,
      terminationGracePeriodSeconds: 0,
    });
    expect(p.spec.containers[0]).toMatchObject({
      command: ['/usr/bin/python3', '-S', '-E', '/opt/dart/link.py', 'serve', '600', '128'],
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '500m', memory: '512Mi' } },
      securityContext: {
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: {
          drop: ['ALL'],
          add: ['SETUID', 'SETGID', 'KILL', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SYS_PTRACE'],
        },
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(p.spec['volumes']).toContainEqual({ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } });
    for (const v of Object.values(p.metadata.labels)) expect(v).toMatch(/^[a-zA-Z0-9]([\w.-]{0,61}[a-zA-Z0-9])?$/);
    expect(labelValue('-x/'.repeat(60))).toMatch(/^x[\w.-]*x$/);
  });

  it('a Job is pulled and placed as desktops are', () => {
    const desktops = parseRunFile({}, { desktops: { kubernetes: everything } }).desktops,
      job = manifests({ desktops, job: { image: 'r.example/runtime:1', runFile: '{}' } }).find(
        (o) => 'kind' in o && o.kind === 'Job',
      );
    expect(job).toMatchObject({
      spec: {
        template: {
          spec: {
            imagePullSecrets: [{ name: 'pull' }],
            nodeSelector: everything.nodeSelector,
            tolerations: everything.tolerations,
          },
        },
      },
    });
  });

  it('are printed as YAML that reads back to the same', () => {
    const objects = manifests({
      desktops: parseRunFile({}, { desktops: { count: 180, kubernetes: { ...everything, capacity: 185 } } }).desktops,
      job: { image: 'r.example/runtime:1', runFile: '{\n  "name": "yes", "x": "# - : {"\n}' },
    });
    const text = yamlOf([...objects, { kind: 'X', odd: ['', 'no', '1', 'a: b', null, 1.5, true, {}, [], [['x']]] }]);
    expect(text.split('---\n').map((t) => load(t))).toEqual([
      ...objects,
      { kind: 'X', odd: ['', 'no', '1', 'a: b', null, 1.5, true, {}, [], [['x']]] },
    ]);
    expect(text).toContain('namespace: team-a');
    // 180 and one to spare, four for demonstrations: as many as may be, and what runs beside them.
    expect(text).toContain('pods: "187"');
    const few = parseRunFile({}, { desktops: { count: 180, kubernetes: everything } }).desktops;
    expect(yamlOf(manifests({ desktops: few }))).toContain('pods: "12"');
  });

  it('image references are taken apart as registries write them', () => {
    expect(parseReference('r.example:5000/team/desk', 'desk-1')).toEqual({
      repo: 'r.example:5000/team/desk',
      tag: 'desk-1',
    });
    expect(parseReference('team/desk:2', 'desk-1')).toEqual({ repo: 'team/desk', tag: '2' });
    for (const bad of ['desk', 'r.example/desk:', 'r.example/de sk', '-x/y', 'r.example/desk:a/b:'])
      expect(() => parseReference(bad, 'desk-1')).toThrow(/not an image reference/);
  });
});
