import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { contentHash, readRecipe } from '../../../runtime/cluster/imageBuild/recipe.js';
import { parsePackages } from '../../../runtime/cluster/imageManifest.js';
import { desktopCache } from '../../../runtime/cluster/imageBuild/rootfs.js';
import { aptRemedy, lastWords } from '../../../runtime/cluster/imageBuild/process.js';
import { tar } from '../../../runtime/files/tar.js';
import { imageTag, proxyArgs } from '../../../runtime/cluster/providers/dockerImage.js';

describe('recipe', () => {
  let root: string, dir: string;
  const read = (): ReturnType<typeof readRecipe> => readRecipe('small', root);
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'recipe-'));
    dir = join(root, 'small');
    await mkdir(join(dir, 'overlay/opt/dart'), { recursive: true });
    await writeFile(join(dir, 'image.json'), JSON.stringify({ title: 'Small', description: 'For a test.' }));
    await writeFile(join(dir, 'packages.txt'), 'b\n# why\na # x\n\nb\n');
    await writeFile(join(dir, 'overlay/opt/dart/agent.py'), '1');
  });
  afterEach(() => rm(root, { recursive: true }));

  it('reads package names one a line, without comments and repeats', async () => {
    expect((await read()).packages).toEqual(['a', 'b']);
    expect(parsePackages('')).toEqual([]);
  });

  it('an edited agent changes the image but not the root file system; an edited overlay changes both', async () => {
    const before = await read();
    await writeFile(join(dir, 'overlay/opt/dart/agent.py'), '2');
    const agent = await read();
    expect(agent.rootfsHash).toBe(before.rootfsHash);
    expect(agent.imageHash).not.toBe(before.imageHash);
    await mkdir(join(dir, 'overlay/etc'));
    await writeFile(join(dir, 'overlay/etc/hostname'), 'x');
    const etc = await read();
    expect(etc.rootfsHash).not.toBe(before.rootfsHash);
    expect(etc.imageHash).not.toBe(agent.imageHash);
  });

  it('does not depend on compiled Python left in the folder', async () => {
    const before = await read();
    await mkdir(join(dir, 'overlay/opt/dart/__pycache__'));
    await writeFile(join(dir, 'overlay/opt/dart/__pycache__/agent.cpython-311.pyc'), 'x');
    expect((await read()).imageHash).toBe(before.imageHash);
  });

  it('does not depend on the manifest, which is not built into anything', async () => {
    const before = await read();
    await writeFile(join(dir, 'image.json'), JSON.stringify({ title: 'Other', description: 'Words.' }));
    expect(await read()).toMatchObject({ rootfsHash: before.rootfsHash, imageHash: before.imageHash });
  });

  it('an image that extends another is both: packages and set-up added, files replaced, another hash', async () => {
    const own = join(root, 'larger');
    await writeFile(join(dir, 'setup.sh'), 'echo base\n');
    await writeFile(join(dir, 'Dockerfile'), 'FROM x\n');
    await mkdir(join(own, 'overlay/opt/dart'), { recursive: true });
    await writeFile(join(own, 'image.json'), JSON.stringify({ title: 'L', description: 'L.', extends: 'small' }));
    await writeFile(join(own, 'packages.txt'), 'c\na\n');
    await writeFile(join(own, 'setup.sh'), 'echo own\n');
    await writeFile(join(own, 'overlay/opt/dart/agent.py'), 'own');
    const base = await read(),
      r = await readRecipe('larger', root),
      text = (path: string): string | undefined => r.files.find((f) => f.path === path)?.data.toString();
    expect(r.packages).toEqual(['a', 'b', 'c']);
    expect(r.layers).toEqual([dir, own]);
    expect(text('Dockerfile')).toBe('FROM x\n');
    expect(text('setup.sh')).toBe('echo base\n\necho own\n');
    expect(parsePackages(text('packages.txt')!)).toEqual(r.packages);
    expect(text('overlay/opt/dart/agent.py')).toBe('own');
    expect(r.rootfsHash).not.toBe(base.rootfsHash);
    expect(imageTag(r)).toBe(`dart-studio/desktop:larger-${r.imageHash}`);
  });

  it('hashes names, bits and contents apart: no two of these are the same', () => {
    const f = (
      path: string,
      data: string,
      executable = false,
    ): { path: string; data: Buffer; executable: boolean } => ({ path, data: Buffer.from(data), executable });
    const hashes = [[f('a', 'bc')], [f('ab', 'c')], [f('a', 'bc', true)], [f('a', 'b'), f('c', '')], []].map((files) =>
      contentHash(files),
    );
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(contentHash([f('a', '1'), f('b', '2')])).toBe(contentHash([f('b', '2'), f('a', '1')]));
  });

  it('finds the real recipe in the source tree, with what a desktop cannot do without', async () => {
    const r = await readRecipe();
    expect(r.packages).toEqual(
      expect.arrayContaining([
        'xvfb',
        'jwm',
        'xterm',
        'mousepad',
        'pcmanfm',
        'galculator',
        'gnumeric',
        'yad',
        'python3',
      ]),
    );
    expect(r.files.map((f) => f.path)).toEqual(
      expect.arrayContaining([
        'Dockerfile',
        'setup.sh',
        'overlay/etc/jwm/system.jwmrc',
        'overlay/opt/dart/agent.py',
        'overlay/opt/dart/relay.py',
      ]),
    );
  });
});

describe('cache folder', () => {
  it('follows DART_STUDIO_CACHE, then XDG_CACHE_HOME, then the home folder', () => {
    expect(desktopCache({ DART_STUDIO_CACHE: '/a', XDG_CACHE_HOME: '/b' })).toBe('/a/dart-studio/desktop');
    expect(desktopCache({ XDG_CACHE_HOME: '/b' })).toBe('/b/dart-studio/desktop');
    expect(desktopCache({})).toMatch(/\.cache\/dart-studio\/desktop$/);
  });
});

describe('tar', () => {
  it('writes ustar headers whose checksum holds, padded to blocks', () => {
    const t = tar([
      { path: 'd/x.sh', executable: true, data: Buffer.alloc(700, 65) },
      { path: 'y', data: Buffer.alloc(0) },
    ]);
    expect(t.length).toBe(512 + 1024 + 512 + 1024);
    const head = t.subarray(0, 512);
    expect(head.toString('latin1', 0, 6)).toBe('d/x.sh');
    expect(head.toString('latin1', 100, 107)).toBe('0000755');
    expect(parseInt(head.toString('latin1', 124, 135), 8)).toBe(700);
    const sum = head.reduce((a, b, i) => a + (i >= 148 && i < 156 ? 32 : b), 0);
    expect(parseInt(head.toString('latin1', 148, 154), 8)).toBe(sum);
    expect(t.subarray(512, 1212).every((b) => b === 65)).toBe(true);
  });
  it('refuses names that the format cannot hold', () => {
    expect(() => tar([{ path: 'x'.repeat(101), data: Buffer.alloc(0) }])).toThrow(RangeError);
  });
});

describe('what went wrong', () => {
  it('quotes the line that says why', () => {
    expect(lastWords(['Reading', 'E: Unable to locate package foo', 'I: removing tempdir'])).toBe(
      'E: Unable to locate package foo',
    );
    expect(lastWords([])).toBe('there was no output');
  });
  it.each([
    ["E: You don't have enough free space", /2 GB/],
    ['NO_PUBKEY 6ED0E7B82643E131', /debian-archive-keyring/],
    ["Could not resolve 'deb.debian.org'", /mirror/],
    ['E: Unable to locate package foo', /packages\.txt/],
    ['newuidmap: not found', /uidmap/],
  ])('knows what to do about %s', (said, remedy) => {
    expect(aptRemedy(said)).toMatch(remedy);
  });
  it('hands proxies to the engine unless they are on our loopback', () => {
    expect(
      proxyArgs({ http_proxy: 'http://p:1', HTTPS_PROXY: 'http://localhost:2', no_proxy: 'localhost,.x' }),
    ).toEqual({ http_proxy: 'http://p:1', no_proxy: 'localhost,.x' });
  });
});
