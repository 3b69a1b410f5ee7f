import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { machineAccess, openAccess, type ClusterAccess } from '../../../runtime/cluster/providers/kubernetes/access.js';
import { Api } from '../../../runtime/cluster/providers/kubernetes/api.js';
import { ApiServer } from '../../helpers/kubernetes/apiServer.js';

let dir: string, plugin: string;
const before = process.env['KUBECONFIG'];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-kubeconfig-'));
  plugin = join(dir, 'plugin.sh');
  const answer = '{"status":{"token":"from-plugin","expirationTimestamp":"2100-01-01T00:00:00Z"}}';
  await writeFile(plugin, `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" > ${dir}/asked\necho '${answer}'\n`);
  await chmod(plugin, 0o755);
  process.env['KUBECONFIG'] = join(dir, 'config');
});
afterEach(() => rm(join(dir, 'asked'), { force: true }));
afterAll(async () => {
  if (before === undefined) delete process.env['KUBECONFIG'];
  else process.env['KUBECONFIG'] = before;
  await rm(dir, { recursive: true, force: true });
});

const config = (user: object, cluster: object = {}): Promise<void> =>
  writeFile(
    join(dir, 'config'),
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443/base', ...cluster } }],
      users: [{ name: 'u', user }],
      contexts: [
        { name: 'train', context: { cluster: 'c', user: 'u', namespace: 'desktops' } },
        { name: 'production', context: { cluster: 'c', user: 'u' } },
      ],
      'current-context': 'production',
    }),
  );
const none = { context: undefined, plugins: [] };

describe('access to a cluster', () => {
  it('is a decision of the machine: without one, no context is used, not even the current one', async () => {
    await config({ token: 'x' });
    await expect(openAccess(none, { root: dir })).rejects.toMatchObject({
      kind: 'desktop.unavailable',
      message: expect.stringContaining('context that this machine allows') as string,
    });
    expect(machineAccess({ DART_STUDIO_KUBE_CONTEXT: ' train ', DART_STUDIO_KUBE_PLUGINS: 'a, b' })).toEqual({
      context: 'train',
      plugins: ['a', 'b'],
    });
    expect(machineAccess({})).toEqual(none);
  });

  it('uses the context that was named, its namespace and its credentials', async () => {
    await config({ token: 'secret' });
    const a = await openAccess({ context: 'train', plugins: [] });
    expect(a).toMatchObject({ name: 'train', namespace: 'desktops' });
    expect(a.server.href).toBe('https://10.0.0.1:6443/base');
    const [one, two] = [await a.options(), await a.options()];
    expect(one.headers).toMatchObject({ Authorization: 'Bearer secret' });
    expect(two.agent).toBe(one.agent);
    await expect(openAccess({ context: 'test', plugins: [] })).rejects.toMatchObject({
      message: expect.stringContaining('it has: train, production') as string,
    });
  });

  it('runs a credential plug-in only where the machine allows exactly that program', async () => {
    await config({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: plugin } });
    for (const plugins of [[], ['plugin.sh'], ['/bin/sh']])
      await expect(openAccess({ context: 'train', plugins })).rejects.toMatchObject({
        message: expect.stringContaining('does not allow it') as string,
      });
    expect(existsSync(join(dir, 'asked'))).toBe(false);
    const a = await openAccess({ context: 'train', plugins: [plugin] });
    expect((await a.options()).headers).toMatchObject({ Authorization: 'Bearer from-plugin' });
    expect(existsSync(join(dir, 'asked'))).toBe(true);
  });

  describe('by a credential plug-in', () => {
    let now: number;
    /** A plug-in that says which of its runs it is, after `body`, and how often it ran. */
    const counted = async (
      body: string,
      o: { deadlineMs?: number; server?: string } = {},
    ): Promise<{ access: ClusterAccess; runs: () => number }> => {
      const log = join(dir, `runs-${randomBytes(4).toString('hex')}`),
        program = `${log}.sh`;
      await writeFile(program, `#!/bin/sh\necho x >> ${log}\nN=$(wc -l < ${log})\n${body}\n`);
      await chmod(program, 0o755);
      await config(
        { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: program } },
        o.server === undefined ? {} : { server: o.server, 'insecure-skip-tls-verify': true },
      );
      now = 0;
      const access = await openAccess({ context: 'train', plugins: [program] }, { now: () => now, ...o });
      return { access, runs: () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0) };
    };
    const tokenOf = async (a: ClusterAccess): Promise<string> =>
      String((await a.options()).headers!['Authorization' as never]);
    const TOKEN = `echo "{\\"status\\":{\\"token\\":\\"t$N\\"}}"`;

    it('runs once for all who ask at the same time, and again when its answer is old', async () => {
      const { access, runs } = await counted(TOKEN);
      const all = await Promise.all(Array.from({ length: 200 }, () => tokenOf(access)));
      expect(new Set(all)).toEqual(new Set(['Bearer t1']));
      now = 59_999;
      expect(await tokenOf(access)).toBe('Bearer t1');
      expect(runs()).toBe(1);
      now = 60_001;
      expect(await tokenOf(access)).toBe('Bearer t2');
      expect(runs()).toBe(2);
    });

    it('keeps an answer as long as it says', async () => {
      const at = new Date(600_000).toISOString();
      const { access, runs } = await counted(
        `echo "{\\"status\\":{\\"token\\":\\"t$N\\",\\"expirationTimestamp\\":\\"${at}\\"}}"`,
      );
      expect(await tokenOf(access)).toBe('Bearer t1');
      now = 599_999;
      expect(await tokenOf(access)).toBe('Bearer t1');
      now = 600_000;
      expect(await tokenOf(access)).toBe('Bearer t2');
      expect(runs()).toBe(2);
    });

    it('asks for another after a 401, once for all who got one, and at most once a second', async () => {
      const { access, runs } = await counted(TOKEN);
      const old = await access.options();
      now = 5000;
      for (let i = 0; i < 50; i++) access.refused!(old);
      const all = await Promise.all(Array.from({ length: 50 }, () => tokenOf(access)));
      expect(new Set(all)).toEqual(new Set(['Bearer t2']));
      access.refused!(old); // a late answer to a request with the first token
      now = 20_000;
      expect(await tokenOf(access)).toBe('Bearer t2');
      expect(runs()).toBe(2);
      access.refused!(await access.options());
      expect(await tokenOf(access)).toBe('Bearer t3');
      access.refused!(await access.options());
      now = 20_999;
      expect(await tokenOf(access)).toBe('Bearer t3');
      now = 21_000;
      expect(await tokenOf(access)).toBe('Bearer t4');
    });

    it('a server that refuses its token makes it run again', async () => {
      const server = await ApiServer.open();
      try {
        const { access } = await counted(TOKEN, { server: (await server.access()).server.href });
        const api = new Api(access);
        const version = (): Promise<unknown> => api.call('GET', '/version', { what: 'say its version' });
        server.tokens = ['t1'];
        await version();
        server.tokens = ['t2'];
        now = 2000;
        await expect(version()).rejects.toMatchObject({ kind: 'desktop.unavailable' });
        await version();
      } finally {
        await server.close();
      }
    });

    it.each([
      ['echo "no login" >&2; exit 3', /plug-in .*\.sh ended with code 3: no login$/],
      ['echo nonsense', /plug-in .*\.sh gave an answer that is not JSON/],
      ['echo "{}"', /plug-in .*\.sh gave neither a token nor a certificate$/],
      ['kill -9 $$', /plug-in .*\.sh ended with SIGKILL$/],
      ['head -c 2000000 /dev/zero', /plug-in .*\.sh said more than 1048576 bytes$/],
      ['exec sleep 600', /plug-in .*\.sh did not answer within 0\.3 s$/],
      ['sleep 600', /plug-in .*\.sh did not answer within 0\.3 s$/],
    ])('says what is wrong with it, and asks it again after a second: %s', async (body, message) => {
      const late = message.source.includes('within'),
        // One that is ended may not have come so far as to count itself.
        matcher = late ? 'toBeLessThanOrEqual' : 'toBe';
      const { access, runs } = await counted(body, late ? { deadlineMs: 300 } : {});
      const failed = { kind: 'desktop.unavailable', message: expect.stringMatching(message) as string };
      await Promise.all(Array.from({ length: 20 }, () => expect(access.options()).rejects.toMatchObject(failed)));
      await expect(access.options()).rejects.toMatchObject(failed);
      expect(runs())[matcher](1);
      now = 1000;
      await expect(access.options()).rejects.toMatchObject(failed);
      expect(runs())[matcher](2);
    });

    it('that does not exist is reported with its path', async () => {
      await config({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: '/nonexistent/plugin' } });
      const a = await openAccess({ context: 'train', plugins: ['/nonexistent/plugin'] });
      await expect(a.options()).rejects.toMatchObject({
        message: expect.stringMatching(/plug-in \/nonexistent\/plugin cannot be started: .*ENOENT/) as string,
      });
    });
  });

  describe('in a pod', () => {
    const secrets = (): string => join(dir, 'var/run/secrets/kubernetes.io/serviceaccount');
    afterEach(() => {
      vi.unstubAllEnvs();
      vi.useRealTimers();
    });

    it('is what its service account says, with the token that is there now', async () => {
      await mkdir(secrets(), { recursive: true });
      await writeFile(join(secrets(), 'token'), 'first');
      await writeFile(join(secrets(), 'ca.crt'), 'a certificate');
      await writeFile(join(secrets(), 'namespace'), 'team-a\n');
      vi.stubEnv('KUBERNETES_SERVICE_HOST', '10.96.0.1');
      vi.stubEnv('KUBERNETES_SERVICE_PORT', '443');
      vi.useFakeTimers({ toFake: ['Date'] });
      const a = await openAccess(none, { root: dir });
      expect(a).toMatchObject({ name: 'this cluster', namespace: 'team-a' });
      expect(a.server.href).toBe('https://10.96.0.1/');
      const options = await a.options();
      expect(options.headers).toEqual({ Authorization: 'Bearer first' });
      expect(String(options.ca)).toBe('a certificate');
      // The kubelet puts a new one there before the old one ends.
      await writeFile(join(secrets(), 'token'), 'second');
      vi.setSystemTime(Date.now() + 61_000);
      expect((await a.options()).headers).toEqual({ Authorization: 'Bearer second' });
    });

    it('without the address of the API server says so', async () => {
      await mkdir(secrets(), { recursive: true });
      await writeFile(join(secrets(), 'token'), 'first');
      vi.stubEnv('KUBERNETES_SERVICE_HOST', undefined);
      await expect(openAccess(none, { root: dir })).rejects.toMatchObject({
        kind: 'desktop.unavailable',
        message: expect.stringContaining('KUBERNETES_SERVICE_HOST') as string,
      });
    });
  });

  it.each([
    [{ 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'evil' } } }, {}, /auth-provider gcp/],
    [{ 'auth-provider': { name: 'exec', config: { exec: { command: 'evil' } } } }, {}, /auth-provider exec/],
    [{ token: 'x' }, { 'proxy-url': 'socks5://127.0.0.1:1' }, /SOCKS/],
  ])('refuses what starts programs by another name, or is not there: %j', async (user, cluster, message) => {
    await config(user, cluster);
    await expect(openAccess({ context: 'train', plugins: [] })).rejects.toMatchObject({
      kind: 'desktop.unavailable',
      message: expect.stringMatching(message) as string,
    });
  });

  it('says what is wrong with a kubeconfig', async () => {
    await writeFile(join(dir, 'config'), '{ not yaml');
    await expect(openAccess({ context: 'train', plugins: [] })).rejects.toMatchObject({
      message: expect.stringContaining('kubeconfig cannot be read') as string,
    });
  });
});
