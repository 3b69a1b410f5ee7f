import { describe, expect, it } from 'vitest';
import {
  forwardedPatienceMs,
  forwardedRuntime,
  loopbackPort,
  recordFrom,
} from '../../../extension/daemon/forwarded.js';
import {
  faultOf,
  forwardArguments,
  forwardedPort,
  isContext,
  isNamespace,
  kubectl,
  parsePods,
  podsArguments,
  recordArguments,
} from '../../../extension/daemon/kubectl.js';
import { isLasting, remotePatience } from '../../../extension/daemon/remote.js';
import { yamlOf, manifests } from '../../../runtime/cluster/providers/kubernetes/manifests.js';
import { parseRunFile } from '../../../runtime/config/index.js';

const place = (o: object = {}): Parameters<typeof podsArguments>[0] => ({
  program: 'kubectl',
  cwd: '/',
  context: 'gke_a_b',
  namespace: 'team-a',
  ...o,
});

describe('arguments of kubectl', () => {
  it('select the pod of the Job that the manifests describe, and read the record where that Job writes it', () => {
    const yaml = yamlOf(manifests({ desktops: parseRunFile({}, {}).desktops, job: { image: 'r:1', runFile: '{}' } })),
      [selector] = podsArguments(place()).filter((a) => a.startsWith('--selector='));
    for (const label of selector!.slice('--selector='.length).split(',')) {
      const [key, value] = label.split('=');
      expect(yaml).toContain(`${key}: ${value}`);
    }
    const record = recordArguments(place(), 'p-1');
    expect(record.slice(-3)).toEqual(['--', 'cat', '/studio/runtime/daemon.json']);
    expect(yaml).toContain('- "--serve"\n');
    expect(yaml).toContain('- /studio/runtime\n');
    expect(yaml).toContain(`name: ${record.find((a) => a.startsWith('--container='))!.slice('--container='.length)}\n`);
  });
  it('are one argument for each name, on loopback, at a port of the system', () => {
    expect(forwardArguments(place(), 'train-x', 4321)).toEqual([
      'port-forward',
      '--context=gke_a_b',
      '--namespace=team-a',
      '--address=127.0.0.1',
      'pod/train-x',
      ':4321',
    ]);
    expect(podsArguments(place({ context: undefined }))).not.toContain('--context=undefined');
  });
  it('hold no name that could be an option, a path or another command', () => {
    for (const bad of ['--kubeconfig=/x', '-n', '', ' a', 'a\nb', 'ä', 'a'.repeat(300)])
      expect(() => podsArguments(place({ context: bad })), bad).toThrow(/context/);
    for (const bad of ['--all-namespaces', '-A', '', 'A', 'a_b', 'a/b', 'a b', 'a\n', '$(id)', 'a'.repeat(64)])
      expect(() => podsArguments(place({ namespace: bad })), bad).toThrow(/namespace/);
    for (const bad of ['--server=http://evil', '-x', '../x', 'a/b', 'a b', '', 'a;b', 'a'.repeat(254)]) {
      expect(() => recordArguments(place(), bad), bad).toThrow(/pod/);
      expect(() => forwardArguments(place(), bad, 1), bad).toThrow(/pod/);
    }
    for (const good of ['kubernetes-admin@kubernetes', 'arn:aws:eks:us-east-1:1:cluster/a', 'gke_a_b_c', 'a b'])
      expect(isContext(good), good).toBe(true);
    expect([isNamespace('dart-desktops'), isNamespace('a'), isNamespace('1')]).toEqual([true, true, true]);
  });
});

describe('answers of kubectl', () => {
  it('list pods newest first, without those that end and those whose names are none', () => {
    const item = (name: unknown, creationTimestamp?: string, deletionTimestamp?: string): object => ({
      metadata: { name, creationTimestamp, ...(deletionTimestamp ? { deletionTimestamp } : {}) },
    });
    const items = [
      item('old', '2026-01-01T00:00:00Z'),
      item('new', '2026-02-01T00:00:00Z'),
      item('leaving', '2026-02-01T00:00:00Z', '2026-02-02T00:00:00Z'),
      item('--server=http://evil'),
      item(7),
      null,
      'x',
      {},
    ];
    expect(parsePods(JSON.stringify({ items })).map((p) => p.pod)).toEqual(['new', 'old']);
    for (const bad of ['', 'null', '[]', '{"items":{}}', '<html>'])
      expect(() => parsePods(bad), bad).toThrow(expect.objectContaining({ kind: 'remote.invalid' }));
  });
  it('say the port here, and only one of loopback', () => {
    expect(forwardedPort('Forwarding from 127.0.0.1:38123 -> 41234\nForwarding from [::1]:38123 -> 41234\n')).toBe(
      38_123,
    );
    expect(forwardedPort('Forwarding from 127.0.0.1:381')).toBeUndefined();
    for (const other of ['', 'Forwarding from 0.0.0.0:1 -> 2', 'Forwarding from [::1]:1 -> 2', 'x 127.0.0.1:1 ->'])
      expect(forwardedPort(other), other).toBeUndefined();
  });
  it('that are failures have a kind, and what to do; only those that may pass are tried again', () => {
    const kinds: Record<string, string> = {
      'Error from server (Forbidden): pods "x" is forbidden: User "u" cannot create resource "pods/portforward"':
        'remote.rights',
      'error: You must be logged in to the server (Unauthorized)': 'remote.rights',
      'Error from server (NotFound): pods "x" not found': 'remote.gone',
      'error: unable to forward port because pod is not running. Current status=Succeeded': 'remote.gone',
      'error: cannot exec into a container in a completed pod; current phase is Succeeded': 'remote.gone',
      'cat: /studio/runtime/daemon.json: No such file or directory\ncommand terminated with exit code 1':
        'remote.unreachable',
      "cat: can't open '/studio/runtime/daemon.json': No such file or directory": 'remote.unreachable',
      'error: unable to read client-cert /x.crt for u due to open /x.crt: no such file or directory':
        'remote.unreachable',
      'Unable to connect to the server: getting credentials: exec: executable kubelogin not found\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.\n':
        'remote.program',
      'Unable to connect to the server: getting credentials: exec: fork/exec /opt/aws: no such file or directory':
        'remote.program',
      'error: Internal error occurred: exec failed: exec: "cat": executable file not found in $PATH': 'remote.gone',
      'error: context "x" does not exist': 'remote.invalid',
      'Error in configuration: context was not found for specified context: x': 'remote.invalid',
      'Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout': 'remote.unreachable',
      'error: lost connection to pod': 'remote.unreachable',
      '': 'remote.unreachable',
    };
    for (const [said, kind] of Object.entries(kinds)) {
      const e = faultOf(said, 'kubectl');
      expect(e.kind, said).toBe(kind);
      expect(e.remedy, said).not.toBe('');
      expect(isLasting(e.kind)).toBe(kind !== 'remote.unreachable');
    }
    expect(
      faultOf('getting credentials: exec: executable kubelogin not found\n\nTo learn more about it\n', 'kubectl')
        .message,
    ).toContain('kubelogin');
    expect(faultOf('error: open /x.crt: no such file or directory', 'kubectl').message).toContain('/x.crt');
    expect(faultOf('\u001b[31mred\u0007\nerror: last', 'kubectl').message).toBe('kubectl failed: error: last');
  });
  it('come from a program, without a shell; one that is not there is said to be', async () => {
    const cwd = process.cwd();
    expect(await kubectl({ program: process.execPath, cwd }, ['-p', 'process.argv.at(-1)', '$(id); `id`'])).toBe(
      '$(id); `id`\n',
    );
    await expect(kubectl({ program: '/no/such/kubectl', cwd }, ['x'])).rejects.toMatchObject({
      kind: 'remote.program',
      remedy: expect.stringContaining('dartStudio.kubernetes.kubectl') as string,
    });
  });
  it('that do not come, or are not wanted any more, end the program', async () => {
    const cwd = process.cwd(),
      for_ever = ['-e', 'setInterval(() => {}, 1e6)'],
      cancel = new AbortController();
    await expect(kubectl({ program: process.execPath, cwd }, for_ever, { ms: 50 })).rejects.toMatchObject({
      kind: 'remote.unreachable',
    });
    const asked = kubectl({ program: process.execPath, cwd }, for_ever, { signal: cancel.signal });
    cancel.abort();
    await expect(asked).rejects.toMatchObject({ kind: 'cancelled' });
  });
});

describe('a runtime that was lost', () => {
  it('is sought for as long as the window is attached; refused rights are believed when they last', () => {
    const over = remotePatience({}, 0),
      hours = 8 * 3_600_000;
    expect(over('remote.unreachable', hours)).toBe(false);
    const refused = (n: number): boolean[] => Array.from({ length: n }, () => over('remote.rights', hours));
    expect(refused(7)).not.toContain(true);
    expect(over('remote.unreachable', hours)).toBe(false);
    expect(refused(8)).toEqual([...Array<boolean>(7).fill(false), true]);
    expect(over('remote.gone', 1)).toBe(true);
  });
  it('is sought for a minute where it was at a port of this machine', () => {
    const remote = forwardedRuntime(recordFrom('ab'.repeat(32), 7)!, 7),
      over = remotePatience(remote, 1000);
    expect(forwardedPatienceMs).toBe(60_000);
    expect(over('remote.unreachable', 61_000)).toBe(false);
    expect(over('remote.unreachable', 61_001)).toBe(true);
  });
});

describe('an address that was forwarded already', () => {
  it('is on loopback', () => {
    for (const good of [
      '127.0.0.1:40123',
      'localhost:40123',
      '40123',
      'ws://127.0.0.1:40123/',
      ' http://localhost:40123 ',
    ])
      expect(loopbackPort(good), good).toBe(40_123);
    for (const bad of [
      '10.0.0.1:80',
      'example.com:80',
      '127.0.0.1.evil.example:80',
      '127.0.0.1@evil.example:80',
      'https://127.0.0.1:1/x',
      '0.0.0.0:80',
      '[::1]:80',
      '127.0.0.1',
      '127.0.0.1:0',
      '65536',
      '',
      '-1',
    ])
      expect(loopbackPort(bad), bad).toBeUndefined();
  });
  it('has a token, alone or in its record', () => {
    const token = 'ab'.repeat(32);
    expect(recordFrom(` ${token}\n`, 7)).toMatchObject({ token, port: 7 });
    const record = {
      pid: 1,
      port: 9,
      token,
      protocol: 1,
      minClient: 1,
      build: { version: '1', time: 1 },
      startedAt: 1,
    };
    expect(recordFrom(JSON.stringify(record), 7)).toMatchObject({ token, port: 9 });
    for (const bad of ['', 'x', token.slice(1), `${token}a`, '{}', JSON.stringify({ ...record, token: 'x' })])
      expect(recordFrom(bad, 7), bad).toBeUndefined();
  });
});
