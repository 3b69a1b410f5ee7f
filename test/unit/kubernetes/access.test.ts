import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { machineAccess, openAccess } from '../../../runtime/cluster/providers/kubernetes/access.js';

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
    await expect(openAccess(none, false)).rejects.toMatchObject({
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
    const a = await openAccess({ context: 'train', plugins: [] }, false);
    expect(a).toMatchObject({ name: 'train', namespace: 'desktops' });
    expect(a.server.href).toBe('https://10.0.0.1:6443/base');
    const [one, two] = [await a.options(), await a.options()];
    expect(one.headers).toMatchObject({ Authorization: 'Bearer secret' });
    expect(two.agent).toBe(one.agent);
    await expect(openAccess({ context: 'test', plugins: [] }, false)).rejects.toMatchObject({
      message: expect.stringContaining('it has: train, production') as string,
    });
  });

  it('runs a credential plug-in only where the machine allows exactly that program', async () => {
    await config({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: plugin } });
    for (const plugins of [[], ['plugin.sh'], ['/bin/sh']])
      await expect(openAccess({ context: 'train', plugins }, false)).rejects.toMatchObject({
        message: expect.stringContaining('does not allow it') as string,
      });
    expect(existsSync(join(dir, 'asked'))).toBe(false);
    const a = await openAccess({ context: 'train', plugins: [plugin] }, false);
    expect((await a.options()).headers).toMatchObject({ Authorization: 'Bearer from-plugin' });
    expect(existsSync(join(dir, 'asked'))).toBe(true);
  });

  it.each([
    [{ 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'evil' } } }, {}, /auth-provider gcp/],
    [{ 'auth-provider': { name: 'exec', config: { exec: { command: 'evil' } } } }, {}, /auth-provider exec/],
    [{ token: 'x' }, { 'proxy-url': 'socks5://127.0.0.1:1' }, /SOCKS/],
  ])('refuses what starts programs by another name, or is not there: %j', async (user, cluster, message) => {
    await config(user, cluster);
    await expect(openAccess({ context: 'train', plugins: [] }, false)).rejects.toMatchObject({
      kind: 'desktop.unavailable',
      message: expect.stringMatching(message) as string,
    });
  });

  it('says what is wrong with a kubeconfig', async () => {
    await writeFile(join(dir, 'config'), '{ not yaml');
    await expect(openAccess({ context: 'train', plugins: [] }, false)).rejects.toMatchObject({
      message: expect.stringContaining('kubeconfig cannot be read') as string,
    });
  });
});
