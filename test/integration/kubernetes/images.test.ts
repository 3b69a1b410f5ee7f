import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { connectEngine, ensureImage } from '../../../runtime/cluster/imageBuild.js';
import { buildDesktop, exportDesktop } from '../../../runtime/cluster/provide.js';
import { exportImage, pushImage } from '../../../runtime/cluster/providers/kubernetes/images.js';
import { DEFAULT_IMAGE } from '../../../runtime/domain/index.js';
import { tar } from '../../../runtime/files/tar.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { digestOf, Registry } from '../../helpers/docker/registry.js';

const run = promisify(execFile);
const engine = await engineHere();
if (!engine) console.log('skipped: images for a cluster (no Docker engine answers here)');
const signal = new AbortController().signal,
  quiet = (): void => undefined;

describe.skipIf(!engine)('images for a cluster', () => {
  const docker = connectEngine(),
    id = randomBytes(4).toString('hex'),
    small = `dart-studio/test-small:${id}`,
    said = randomBytes(100_000);
  let registry: Registry, dir: string;

  beforeAll(async () => {
    const stream = (await docker.importImage(Readable.from([tar([{ path: 'said', data: said }])]) as never, {
      repo: 'dart-studio/test-small',
      tag: id,
    })) as NodeJS.ReadableStream;
    await once(stream.resume(), 'end');
  });
  beforeEach(async () => {
    registry = await Registry.open();
    dir = await mkdtemp(join(tmpdir(), 'dart-push-'));
    vi.stubEnv('DOCKER_CONFIG', dir);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    for (const i of await docker.listImages({ filters: { reference: [`${registry.host}/*/*`] } }))
      for (const tag of i.RepoTags ?? [])
        if (tag.startsWith(registry.host)) await docker.getImage(tag).remove({ noprune: true });
    await registry.close();
    await rm(dir, { recursive: true });
  });
  afterAll(() => docker.getImage(small).remove());

  const push = (ref: string): Promise<string> => pushImage(docker, small, ref, quiet, signal);
  const login = (more: object): Promise<void> => writeFile(join(dir, 'config.json'), JSON.stringify(more));

  it('are pushed whole, under the tag that is named or else their own', async () => {
    const told: string[] = [];
    const target = await pushImage(docker, small, `${registry.host}/team/desk`, (p) => told.push(p.message), signal);
    expect(target).toBe(`${registry.host}/team/desk:${id}`);
    const manifest = registry.manifests.get(`team/desk:${id}`)!;
    expect(manifest.layers).toHaveLength(1);
    for (const { digest } of [manifest.config, ...manifest.layers])
      expect(digestOf(registry.blobs.get(digest)!)).toBe(digest);
    expect(gunzipSync(registry.blobs.get(manifest.layers[0]!.digest)!).includes(said)).toBe(true);
    expect(told.some((t) => /Push(ing|ed)/.test(t))).toBe(true);
    expect(await push(`${registry.host}/team/desk:1`)).toBe(`${registry.host}/team/desk:1`);
    expect(registry.manifests.get('team/desk:1')).toEqual(manifest);
  });

  it('are pushed with the credentials of `docker login`', async () => {
    registry.login = 'ann:s:ecret';
    await login({ auths: { [registry.host]: { auth: Buffer.from('ann:s:ecret').toString('base64') } } });
    await push(`${registry.host}/team/desk:1`);
    expect([...registry.manifests.keys()]).toEqual(['team/desk:1']);
  });

  it('that the registry does not take: its words, and what to do', async () => {
    registry.login = 'ann:secret';
    const ref = `${registry.host}/team/desk:1`,
      refused = (said: RegExp): object => ({
        kind: 'desktop.image',
        message: expect.stringMatching(said) as string,
        error: {
          remedy: `Log in to it with \`docker login ${registry.host}\`. With a credential helper, push by hand: docker tag ${small} ${ref} && docker push ${ref}`,
        },
      });
    await expect(push(ref)).rejects.toMatchObject(refused(/did not take .*desk:1: no basic auth credentials/));
    // a credential helper keeps the password: it is a program of the person's own, and is not run
    await login({ auths: { [registry.host]: {} }, credsStore: 'pass' });
    await expect(push(ref)).rejects.toMatchObject(refused(/no basic auth credentials/));
    registry.login = undefined;
    registry.denies = 'the repository is full';
    await expect(push(ref)).rejects.toMatchObject(refused(/the repository is full/));
    expect(registry.manifests.size).toBe(0);
  });

  it('of desktops are built and pushed by one command, and a bad reference is refused before', async () => {
    const build = (ref: string): Promise<unknown> =>
      buildDesktop({ provider: 'auto', image: DEFAULT_IMAGE, force: false, push: ref, onProgress: quiet, signal });
    await expect(build('desk')).rejects.toMatchObject({ kind: 'config.invalid' });
    // up to the first of 350 MB
    registry.denies = 'no';
    await expect(build(`${registry.host}/team/desk:2`)).rejects.toMatchObject({
      kind: 'desktop.image',
      message: expect.stringContaining(`did not take ${registry.host}/team/desk:2`) as string,
    });
  });

  it('of desktops are written to a file that a node can read, under the name that pods ask for', async () => {
    const file = join(dir, 'desk.tar'),
      tag = await exportDesktop({ image: DEFAULT_IMAGE, file, onProgress: quiet, signal });
    expect(tag).toBe(await ensureImage(docker));
    const member = async (name: string): Promise<string> =>
      (await run('tar', ['-xOf', file, name], { maxBuffer: 16 << 20 })).stdout;
    const [manifest, ...more] = JSON.parse(await member('manifest.json')) as {
      Config: string;
      RepoTags: string[];
      Layers: string[];
    }[];
    expect(more).toEqual([]);
    expect(manifest!.RepoTags).toEqual([tag]);
    const { config } = JSON.parse(await member(manifest!.Config)) as { config: { Labels: Record<string, string> } };
    expect(config.Labels['app']).toBe('dart-studio');
    const { stdout } = await run('tar', ['-tf', file]);
    expect(stdout.split('\n')).toEqual(expect.arrayContaining(manifest!.Layers));
    expect(await readdir(dir)).toEqual(['desk.tar']);
  });

  it('that cannot be written leave nothing behind, and the reason is the right one', async () => {
    const write = (image: string, file: string, stop = signal): Promise<unknown> =>
      exportImage(docker, image, file, stop);
    await expect(write(small, join(dir, 'nowhere', 'x.tar'))).rejects.toMatchObject({
      message: expect.stringMatching(/nowhere\/x\.tar cannot be written: ENOENT/) as string,
    });
    await expect(write(`${small}-none`, join(dir, 'x.tar'))).rejects.toMatchObject({
      kind: 'desktop.start',
      message: expect.stringContaining('404') as string,
    });
    await expect(write(small, join(dir, 'x.tar'), AbortSignal.abort())).rejects.toMatchObject({ kind: 'cancelled' });
    // an engine that is not there is no fault of the file
    const nobody = createServer().listen(0, '127.0.0.1');
    await once(nobody, 'listening');
    const { port } = nobody.address() as AddressInfo;
    nobody.close();
    await expect(
      exportImage(connectEngine(`tcp://127.0.0.1:${port}`), small, join(dir, 'x.tar'), signal),
    ).rejects.toMatchObject({ kind: 'desktop.unavailable' });
    expect(await readdir(dir)).toEqual([]);
    await exportImage(docker, small, join(dir, 'x.tar'), signal);
    expect((await stat(join(dir, 'x.tar'))).size).toBeGreaterThan(said.length);
  });
});
