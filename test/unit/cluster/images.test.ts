import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { imageAsset, imageContents, imageNames, imagesDir, readImage } from '../../../runtime/cluster/images.js';
import { readRecipe } from '../../../runtime/cluster/imageBuild/recipe.js';
import { chooseProvider, probeProviders } from '../../../runtime/cluster/provide.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { IMAGE_NAME } from '../../../runtime/domain/index.js';

const words = { title: 'T', description: 'D.' };

describe('the images of this repository', async () => {
  const names = await imageNames();
  it('are there, desk among them, under names that a run file may have', () => {
    expect(names).toContain('desk');
    for (const name of names) {
      expect(name).toMatch(IMAGE_NAME);
      expect(parseRunFile({ desktops: { image: name } }).desktops.image).toBe(name);
    }
    expect(parseRunFile({}).desktops.image).toBe('desk');
  });

  it.each(names)('%s: its manifest is valid, and each program it names comes from a listed package', async (name) => {
    const image = await readImage(name);
    expect(image.title).not.toBe('');
    expect(image.packages.length).toBeGreaterThan(0);
    for (const p of image.packages) expect(p).toMatch(/^[a-z0-9][a-z0-9.+-]+$/);
    expect(image.contents.apps.length).toBeGreaterThan(0);
    // What every desktop is started with: the provider, the agent and its window manager.
    for (const p of ['xvfb', 'jwm', 'python3']) expect(image.packages).toContain(p);
    const paths = (await readRecipe(name)).files.map((f) => f.path);
    for (const p of ['Dockerfile', 'packages.txt', 'setup.sh', 'overlay/opt/dart/agent.py']) expect(paths).toContain(p);
    expect(await imageAsset(name, 'overlay/opt/dart/words.py')).toMatch(/words\.py$/);
  });

  it('desk offers task files what it always did', async () => {
    expect(await imageContents('desk')).toEqual({
      apps: ['xterm', 'mousepad', 'pcmanfm', 'galculator', 'yad', 'gnumeric', 'jwm', 'os', 'terminal', 'shell'],
      programs: ['python3', 'xclip', 'xdotool', 'wmctrl'],
      shortcuts: [],
      packages: (await readImage('desk')).packages,
    });
  });

  it('an image that is not there is refused in words that name those there are', async () => {
    await expect(readImage('kiosk')).rejects.toMatchObject({
      kind: 'config.invalid',
      message: `desktops.image: there is no desktop image "kiosk"; there are: ${names.join(', ')}.`,
    });
    await expect(imageContents('constructor')).rejects.toMatchObject({ kind: 'config.invalid' });
    const { desktops } = parseRunFile({ desktops: { image: 'kiosk' } });
    for (const asks of [chooseProvider(desktops), probeProviders(desktops)])
      await expect(asks).rejects.toMatchObject({
        kind: 'config.invalid',
        message: expect.stringContaining('"kiosk"') as string,
      });
  });

  it('a name that is a path is no name', async () => {
    for (const image of ['../desk', 'desk/overlay', '', '.', 'Desk', `${imagesDir()}/desk`]) {
      expect(() => parseRunFile({ desktops: { image } }), image).toThrow(/desktops\.image/);
      await expect(readImage(image)).rejects.toMatchObject({ kind: 'config.invalid' });
    }
  });
});

describe('an image of its own folder', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'images-'));
    await put('base', { ...words, apps: { os: 'wm', edit: 'ed' }, programs: { sh: 'dash' }, shortcuts: ['ctrl+t'] });
    await writeFile(join(root, 'base/packages.txt'), 'wm\ned # an editor\ndash\n');
  });
  afterEach(() => rm(root, { recursive: true }));
  async function put(name: string, manifest: unknown, packages = ''): Promise<void> {
    await mkdir(join(root, name), { recursive: true });
    await writeFile(join(root, name, 'image.json'), typeof manifest === 'string' ? manifest : JSON.stringify(manifest));
    await writeFile(join(root, name, 'packages.txt'), packages);
  }

  it('offers its own and what the image it extends offers', async () => {
    await put('more', { ...words, extends: 'base', apps: { draw: 'paint' }, shortcuts: ['ctrl+t', 'f1'] }, 'paint\n');
    const image = await readImage('more', root);
    expect(image).toMatchObject({ name: 'more', title: 'T', packages: ['dash', 'ed', 'paint', 'wm'] });
    expect(image.layers).toEqual([join(root, 'base'), join(root, 'more')]);
    expect(image.contents).toEqual({
      apps: ['os', 'edit', 'draw'],
      programs: ['sh'],
      shortcuts: ['ctrl+t', 'f1'],
      packages: ['dash', 'ed', 'paint', 'wm'],
    });
    expect(await imageNames(root)).toEqual(['base', 'more']);
  });

  it.each<[string, unknown, RegExp]>([
    ['that is not JSON', '{', /image\.json is not JSON/],
    ['without a title', { description: 'x' }, /title/],
    ['with a key that nothing reads', { ...words, screen: 1 }, /screen/],
    ['that names an application no package brings', { ...words, apps: { gimp: 'gimp' } }, /gimp.*packages\.txt/],
    ['that extends what is not there', { ...words, extends: 'nothing' }, /extends nothing, which is not an image/],
    ['that extends itself', { ...words, extends: 'bad' }, /bad -> bad/],
  ])('is refused with a manifest %s', async (_what, manifest, message) => {
    await put('bad', manifest);
    await expect(readImage('bad', root)).rejects.toMatchObject({
      kind: 'desktop.image',
      message: expect.stringMatching(message) as string,
      error: { remedy: expect.stringContaining('images/bad') as string },
    });
  });

  it('is refused without packages.txt; a folder without image.json is no image', async () => {
    await put('bad', words);
    await rm(join(root, 'bad/packages.txt'));
    await expect(readImage('bad', root)).rejects.toMatchObject({ kind: 'desktop.image' });
    await mkdir(join(root, 'notes'));
    await expect(readImage('notes', root)).rejects.toMatchObject({ kind: 'config.invalid' });
  });
});
