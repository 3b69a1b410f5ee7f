import { execFile } from 'node:child_process';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import {
  connectEngine,
  desktopCache,
  ensureImage,
  ensureRootfs,
  exportRootfs,
  imageStatus,
  readRecipe,
  rootfsInfo,
  type BuildProgress,
} from '../../../runtime/cluster/imageBuild.js';
import { runTool } from '../../../runtime/cluster/imageBuild/process.js';
import { fileLock, which } from '../../../runtime/files/fileLock.js';
import { tar } from '../../../runtime/files/tar.js';
import { engineHere } from '../../helpers/cluster/engine.js';

const run = promisify(execFile);
const engine = await engineHere();
const mmdebstrap = which('mmdebstrap') !== undefined;
if (!engine) console.log('skipped: Docker image tests (no Docker engine answers here)');
if (!mmdebstrap) console.log('skipped: root file system tests (mmdebstrap is not installed)');

const made: string[] = [];
afterAll(async () => {
  for (const d of made) await rm(d, { recursive: true, force: true });
});
const temp = async (): Promise<string> => {
  const d = await mkdtemp(join(tmpdir(), 'dart-image-'));
  made.push(d);
  return d;
};

/** Runs with another cache folder, so that what is built for people stays untouched. */
async function withCache<T>(dir: string, f: () => Promise<T>): Promise<T> {
  const before = process.env['DART_STUDIO_CACHE'];
  process.env['DART_STUDIO_CACHE'] = dir;
  try {
    return await f();
  } finally {
    if (before === undefined) delete process.env['DART_STUDIO_CACHE'];
    else process.env['DART_STUDIO_CACHE'] = before;
  }
}

describe.skipIf(!mmdebstrap)('root file system', () => {
  it('is there after ensureRootfs, whole, and not built twice', async () => {
    const path = await ensureRootfs();
    const recipe = await readRecipe();
    for (const f of [
      'usr/bin/Xvfb',
      'usr/bin/jwm',
      'usr/bin/mousepad',
      'usr/bin/pcmanfm',
      'usr/bin/galculator',
      'usr/bin/gnumeric',
      'usr/bin/yad',
      'usr/bin/xterm',
      'etc/skel/Documents',
      'etc/skel/Desktop',
      'etc/skel/Downloads',
    ])
      expect(existsSync(join(path, f)), f).toBe(true);
    expect(readFileSync(join(path, 'etc/hostname'), 'utf8')).toBe('desktop\n');
    expect(readFileSync(join(path, 'etc/machine-id'), 'utf8')).toMatch(/^[0-9a-f]{32}\n$/);
    expect(readFileSync(join(path, 'etc/passwd'), 'utf8')).toMatch(/^user:x:1000:1000:.*\nxserver:x:1001:1001:/m);
    expect(existsSync(join(path, 'var/lib/apt/lists/deb.debian.org_debian_dists_bookworm_InRelease'))).toBe(false);
    expect(lstatSync(join(path, 'tmp')).mode & 0o7777).toBe(0o1777);
    expect(await rootfsInfo()).toMatchObject({ path, image: 'desk', hash: recipe.rootfsHash });
    const events: BuildProgress[] = [];
    expect(await ensureRootfs({ onProgress: (p) => events.push(p) })).toBe(path);
    expect(events).toEqual([]);
  });

  it('has a font cache that is valid: fontconfig does not want to make another', async () => {
    const path = await ensureRootfs();
    if (process.getuid?.() !== 0) {
      console.log('skipped: font cache (chroot needs root)');
      return;
    }
    const said = (await run('chroot', [path, 'fc-cache', '-v'])).stdout;
    expect(said).toMatch(/skipping, existing cache is valid/);
    expect(said).not.toMatch(/: caching, new cache contents/);
  });

  it('hands the X server the keyboard that was compiled for it, and compiles any other', async () => {
    const path = await ensureRootfs();
    if (process.getuid?.() !== 0) {
      console.log('skipped: the compiled keyboard (chroot needs root)');
      return;
    }
    /** In a mount namespace with a /tmp of its own, after these mounts. */
    const inside = async (mounts: string, script: string): Promise<string> => {
      const all = `set -e; mount -t tmpfs none "$1/tmp"; ${mounts} exec chroot "$1" sh -c "$2"`;
      return (await run('unshare', ['--mount', 'sh', '-c', all, 'sh', path, script])).stdout;
    };
    const start = `mkfifo /tmp/up; Xvfb :77 -screen 0 64x64x24 -nolisten tcp -displayfd 3 3> /tmp/up 2> /tmp/said &
      read -r up < /tmp/up; echo "display $up"; kill $!; wait`;
    // Without its compiler the server comes up all the same.
    expect(await inside('mount --bind "$1/bin/false" "$1/usr/bin/xkbcomp.real";', start)).toBe('display 77\n');
    const compile = `sed 's/pc+us/pc+de/' /usr/share/X11/server.xkb |
      xkbcomp -w 1 -R/usr/share/X11/xkb -xkm - -em1 'a b' -emp '>' -eml c /tmp/de.xkm;
      cmp -s /tmp/de.xkm /usr/share/X11/server.xkm; echo $?; strings=$(tr -d '\\0' < /tmp/de.xkm); case $strings in *pc+de*) echo de;; esac`;
    expect(await inside('', compile)).toBe('1\nde\n');
  });

  it('leaves nothing when it is cancelled, and says so', async () => {
    const cache = await temp();
    await withCache(cache, async () => {
      const stop = new AbortController();
      let sawWork = false;
      const p = ensureRootfs({
        signal: stop.signal,
        onProgress: (e) => {
          if (/downloading|Get:|extracting/.test(e.message)) {
            sawWork = true;
            stop.abort();
          }
        },
      });
      await expect(p).rejects.toMatchObject({ kind: 'cancelled' });
      expect(sawWork).toBe(true);
      expect((await readdir(desktopCache())).filter((n) => !n.endsWith('.lock'))).toEqual([]);
    });
  });

  it('fails with the reason and the remedy when a package does not exist, and leaves nothing', async () => {
    await expect(
      runTool(
        [
          'mmdebstrap',
          '--simulate',
          '--variant=minbase',
          '--include=no-such-package-anywhere',
          'bookworm',
          '/dev/null',
        ],
        { remedy: (t) => t, signal: AbortSignal.timeout(60_000) },
      ),
    ).rejects.toMatchObject({
      kind: 'desktop.image',
      message: expect.stringContaining('no-such-package-anywhere') as string,
    });
  });
});

describe.skipIf(!which('flock'))('build lock', () => {
  it('admits one at a time and is free again when its holder is gone', async () => {
    const file = join(await temp(), 'lock');
    const release = await fileLock(file, { kind: 'desktop.image' });
    let second = false;
    const waiting = fileLock(file, { kind: 'desktop.image' }).then((r) => {
      second = true;
      return r;
    });
    const stop = new AbortController();
    const third = fileLock(file, { kind: 'desktop.image', signal: stop.signal });
    stop.abort();
    await expect(third).rejects.toMatchObject({ kind: 'cancelled' });
    expect(second).toBe(false);
    await release();
    await (
      await waiting
    )();
    expect(second).toBe(true);
  });
});

describe.skipIf(!which('tar'))('tar', () => {
  it("is read by the system's tar", async () => {
    const dir = await temp();
    await writeFile(
      join(dir, 'a.tar'),
      tar([
        { path: 'x/run.sh', executable: true, data: Buffer.from('#!/bin/sh\n') },
        { path: 'empty', data: Buffer.alloc(0) },
      ]),
    );
    await run('tar', ['-xf', join(dir, 'a.tar'), '-C', dir]);
    expect(readFileSync(join(dir, 'x/run.sh'), 'utf8')).toBe('#!/bin/sh\n');
    expect(lstatSync(join(dir, 'x/run.sh')).mode & 0o777).toBe(0o755);
    expect(readFileSync(join(dir, 'empty'), 'utf8')).toBe('');
  });
});

describe.skipIf(!engine)('Docker image', () => {
  const docker = connectEngine();
  it('is there after ensureImage, and a second call does no work', async () => {
    const tag = await ensureImage(docker);
    expect(tag).toBe(`dart-studio/desktop:desk-${(await readRecipe()).imageHash}`);
    const status = await imageStatus(docker);
    expect(status.image!.bytes).toBeGreaterThan(150e6);
    expect(status.image!.bytes).toBeLessThan(500e6);
    const events: BuildProgress[] = [];
    expect(await ensureImage(docker, (p) => events.push(p))).toBe(tag);
    expect(events).toEqual([]);
  });

  it("builds again from the engine's cache, with progress of every step", async () => {
    const { imageHash } = await readRecipe();
    const image = docker.getImage(`dart-studio/desktop:desk-${imageHash}`);
    await image.tag({ repo: 'dart-studio/desktop', tag: 'kept-by-test' });
    try {
      await docker.getImage(`dart-studio/desktop:desk-${imageHash}`).remove({ noprune: true } as object);
      const steps: string[] = [];
      await ensureImage(docker, (p) => {
        if (p.message.startsWith('Step ')) steps.push(p.message);
      });
      expect(steps.length).toBeGreaterThanOrEqual(6);
      expect((await imageStatus(docker)).image).toBeDefined();
    } finally {
      await docker
        .getImage('dart-studio/desktop:kept-by-test')
        .remove({ noprune: true } as object)
        .catch(() => {});
    }
  });

  it('can be exported as a root file system like the other one', async () => {
    const dir = join(await temp(), 'rootfs');
    const how = await exportRootfs(docker, dir, { onProgress: () => {} });
    expect(how).toMatch(/docker export/);
    for (const f of ['usr/bin/Xvfb', 'usr/bin/jwm', 'etc/jwm/system.jwmrc', 'etc/skel/Documents', 'opt/dart/agent.py'])
      expect(existsSync(join(dir, f)), f).toBe(true);
    const left = await docker.listContainers({ all: true, filters: { label: ['dart-studio.role=export'] } });
    expect(left).toEqual([]);
  });
});

it('no engine: a clear error', async () => {
  await expect(ensureImage(connectEngine('unix:///nonexistent/docker.sock'))).rejects.toMatchObject({
    kind: 'desktop.unavailable',
  });
});
