import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type Docker from 'dockerode';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ensureImage, readRecipe } from '../../../runtime/cluster/imageBuild.js';
import { imageOf, partsOf, referenceOf } from '../../../runtime/cluster/imageExtra.js';
import { imageAsset, readImage, roomFor } from '../../../runtime/cluster/images.js';
import { desktopContents, desktopsOf, specOf } from '../../../runtime/cluster/provide.js';
import { imageTag } from '../../../runtime/cluster/providers/dockerImage.js';
import { createLocalProvider } from '../../../runtime/cluster/providers/local.js';
import { parseRunFile } from '../../../runtime/config/index.js';

describe("a layer of the user's own upon an image", () => {
  let dir: string;
  const at = (path: string, data: string | Buffer = 'x'): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), data);
  };
  const reference = (): string => referenceOf({ name: 'desk', extra: dir });
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart+layer-'));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(dir, { recursive: true, force: true });
  });

  it('is told by the name of the image and its folder, whatever that is called', () => {
    expect(partsOf('desk')).toEqual({ name: 'desk' });
    expect(partsOf(reference())).toEqual({ name: 'desk', extra: dir });
    const c = parseRunFile({ desktops: { image: 'osworld', imageExtra: '/a+b' } }).desktops;
    expect(imageOf(c)).toBe('osworld+/a+b');
    expect(desktopsOf(imageOf(c))).toMatchObject({ image: 'osworld', imageExtra: '/a+b' });
    expect(imageOf(parseRunFile({ desktops: { imageExtra: '' } }).desktops)).toBe('desk');
  });

  it('adds packages, applications, programs and room, and takes nothing away', async () => {
    at('packages.txt', 'zsh\n# why\n');
    at('debs/code_1.95.3_amd64.deb');
    at(
      'image.json',
      JSON.stringify({ apps: { vscode: 'code' }, programs: { zsh: 'zsh' }, floor: { memoryMb: 4096, pids: 1 } }),
    );
    at('README.md');
    const desk = await readImage('desk'),
      more = await readImage(reference());
    expect(more.packages).toEqual([...desk.packages, 'zsh'].sort());
    expect(more.contents.apps).toEqual([...desk.contents.apps, 'vscode']);
    expect(more.contents.programs).toEqual([...desk.contents.programs, 'zsh']);
    const spec = specOf(parseRunFile({}).desktops);
    expect(await roomFor(reference(), spec)).toMatchObject({ memoryMb: 4096, pids: spec.pids });
    expect((await desktopContents(desktopsOf(reference()))).apps).toContain('vscode');
    // What the host talks to is never the layer's.
    at('overlay/opt/dart/agent.py');
    expect(await imageAsset(reference(), 'overlay/opt/dart/agent.py')).toMatch(/images\/desk\/overlay/);
  });

  it('is another image, by everything in it: packages by their content', async () => {
    at('setup.sh', 'true\n');
    const hashes = new Set([(await readRecipe('desk')).imageHash]);
    const other = async (): Promise<void> => {
      const r = await readRecipe(reference());
      expect([hashes.has(r.imageHash), imageTag(r)]).toEqual([false, `dart-studio/desktop:desk-${r.imageHash}`]);
      hashes.add(r.imageHash).add(r.rootfsHash);
    };
    await other();
    at('overlay/etc/x');
    await other();
    at('image.json', '{}');
    await other();
    at('debs/a_1_all.deb', 'one');
    await other();
    at('debs/a_1_all.deb', 'other');
    await other();
    const again = await readRecipe(reference());
    at('README.md');
    expect((await readRecipe(reference())).imageHash).toBe(again.imageHash);
    expect(again.files.some((f) => f.path.endsWith('.deb'))).toBe(false);
  });

  it.each<[string, () => void, RegExp]>([
    ['nothing', () => undefined, /none of image\.json/],
    ['a file of no meaning', () => at('setup.hs'), /"setup\.hs" is no part of a layer/],
    ['the agent', () => at('overlay/opt/dart/agent.py'), /overlay\/opt\/dart: an overlay/],
    ['another folder of the system', () => at('overlay/usr/bin/sudo'), /overlay\/usr: an overlay/],
    [
      'a link',
      () => symlinkSync('/etc/shadow', (at('overlay/etc/a'), join(dir, 'overlay/etc/shadow'))),
      /is not a regular/,
    ],
    [
      'a FIFO',
      () => void execFileSync('mkfifo', [join(dir, 'setup.sh')]),
      /setup\.sh cannot be read: it is not a regular/,
    ],
    [
      'a manifest that is a FIFO',
      () => void execFileSync('mkfifo', [join(dir, 'image.json')]),
      /image\.json cannot be read/,
    ],
    ['what is not JSON', () => at('image.json', '{'), /image\.json is not JSON, or was cut/],
    ['an image to extend', () => at('image.json', '{"extends":"web"}'), /extends/],
    ['an application of no package', () => at('image.json', '{"apps":{"a":"b"}}'), /a comes from the package b/],
    ['an option of apt', () => at('packages.txt', '-oDir=/\n'), /"-oDir=\/" is not the name of a package/],
    ['a package that apt would remove', () => at('packages.txt', 'xvfb-\n'), /"xvfb-" is not the name of a package/],
    ['the folder of the agent', () => at('overlay/opt/dart'), /overlay\/opt\/dart: an overlay/],
    [
      'an empty folder of the system',
      () => mkdirSync(join(dir, 'overlay/usr'), { recursive: true }),
      /overlay\/usr: an overlay/,
    ],
    [
      'an overlay that is a link',
      () => symlinkSync('/etc', join(dir, 'overlay')),
      /overlay cannot be read: is not a folder/,
    ],
    ['packages that are a file', () => at('debs'), /debs cannot be read: is not a folder/],
    ['an option of tar', () => at('debs/-Tx.deb'), /"-Tx\.deb" is not the file of a package/],
    ['a floor beyond any desktop', () => at('image.json', '{"floor":{"diskMb":1000000}}'), /diskMb|Too big/],
    ['what is no package', () => at('debs/run.sh'), /debs\/"run\.sh" is not the file of a package/],
    [
      'a package that is a link',
      () => symlinkSync('/etc/shadow', (at('debs/b_1_all.deb'), join(dir, 'debs/a_1_all.deb'))),
      /a_1_all\.deb cannot be read/,
    ],
    ['a path that is too long', () => at(`overlay/etc/${'a'.repeat(100)}`), /longer than 100/],
  ])('is refused with %s', async (_, make, words) => {
    make();
    await expect(readRecipe(reference())).rejects.toMatchObject({
      kind: 'desktop.image',
      message: expect.stringMatching(words) as string,
    });
  });

  it('is never built by a run: its set-up would run as root', async () => {
    at('setup.sh', 'touch /tmp/never\n');
    const built: unknown[] = [],
      engine = {
        getImage: () => ({ inspect: () => Promise.reject(Object.assign(new Error('none'), { statusCode: 404 })) }),
        buildImage: (...a: unknown[]) => Promise.reject(new Error(`${built.push(a)} builds`)),
      } as unknown as Docker;
    const remedy = expect.stringContaining(`--image desk --image-extra '${dir}'`) as string,
      refusal = { kind: 'desktop.image', error: { remedy } };
    vi.stubEnv('DART_STUDIO_ROOTFS', '');
    await expect(ensureImage(engine, undefined, undefined, { image: reference() })).rejects.toMatchObject(refusal);
    expect(built).toEqual([]);
    const local = createLocalProvider({ image: reference() });
    await expect(local.create(specOf(parseRunFile({}).desktops))).rejects.toMatchObject(refusal);
    await local.dispose();
  });
});
