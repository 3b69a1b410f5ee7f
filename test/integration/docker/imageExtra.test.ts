import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectEngine, ensureImage, ensureRootfs } from '../../../runtime/cluster/imageBuild.js';
import { referenceOf } from '../../../runtime/cluster/imageExtra.js';
import { which } from '../../../runtime/files/fileLock.js';
import { chooseProvider, desktopsOf, specOf } from '../../../runtime/cluster/provide.js';
import { engineHere } from '../../helpers/cluster/engine.js';

const packs = which('dpkg-deb') !== undefined,
  engine = packs && (await engineHere()),
  mmdebstrap = packs && which('mmdebstrap') !== undefined;
if (!engine) console.log('skipped: layers in a Docker image (no Docker engine answers here)');
if (!mmdebstrap) console.log('skipped: layers in a root file system (mmdebstrap is not installed)');

/** A root file system and an image are built, which takes a minute of two processors, and four behind other tests. */
const BUILD_MS = 1_200_000;
/** What each part of the layer leaves behind, as a desktop sees it. */
const LOOK = `greet; cat /etc/greeting ~/Documents/made.txt; command -v tree jq; find /var/lib/apt/lists /etc/apt/apt.conf.d/99* -type f -size +0 2>/dev/null`;
const SEEN = 'hello\nfrom the overlay\nmade\n/usr/bin/tree\n/usr/bin/jq\n';

describe("a layer of the user's own, built", () => {
  let dir: string, reference: string;
  const cache = process.env['DART_STUDIO_CACHE'];
  beforeAll(() => {
    if (!packs) return;
    dir = mkdtempSync(join(tmpdir(), 'dart-extra-'));
    const layer = join(dir, 'layer'),
      pkg = join(dir, 'greet');
    for (const d of [join(layer, 'overlay/etc'), join(layer, 'debs'), join(pkg, 'DEBIAN'), join(pkg, 'usr/bin')])
      mkdirSync(d, { recursive: true });
    // It needs a package of the archive, which the image has not.
    writeFileSync(
      join(pkg, 'DEBIAN/control'),
      'Package: greet\nVersion: 1.0\nArchitecture: all\nDepends: tree\nMaintainer: a test <test@example.org>\nDescription: greets\n',
    );
    writeFileSync(join(pkg, 'usr/bin/greet'), '#!/bin/sh\necho hello\n');
    chmodSync(join(pkg, 'usr/bin/greet'), 0o755);
    execFileSync('dpkg-deb', ['--root-owner-group', '--build', pkg, join(layer, 'debs/greet_1.0_all.deb')]);
    writeFileSync(join(layer, 'image.json'), '{"programs":{"greet":"greet"}}');
    writeFileSync(join(layer, 'setup.sh'), 'set -eu\ngreet > /dev/null\necho made > /etc/skel/Documents/made.txt\n');
    writeFileSync(join(layer, 'overlay/etc/greeting'), 'from the overlay\n');
    writeFileSync(join(layer, 'packages.txt'), 'jq # a processor of JSON\n');
    // Its folders' modes are nobody's business but its owner's.
    chmodSync(join(layer, 'overlay'), 0o700);
    reference = referenceOf({ name: 'desk', extra: layer });
  });
  afterAll(() => {
    if (cache === undefined) delete process.env['DART_STUDIO_CACHE'];
    else process.env['DART_STUDIO_CACHE'] = cache;
    if (packs) rmSync(dir, { recursive: true, force: true });
  });

  async function seen(provider: 'local' | 'docker'): Promise<string> {
    const config = desktopsOf(reference, { provider }),
      p = await chooseProvider(config);
    try {
      const d = await p.create(specOf(config)),
        r = await d.exec(['bash', '-c', LOOK]);
      return r.stdout.toString('utf8') + r.stderr.toString('utf8');
    } finally {
      await p.dispose();
    }
  }

  it.skipIf(!mmdebstrap)(
    'is found in a local desktop',
    async () => {
      process.env['DART_STUDIO_CACHE'] = join(dir, 'cache');
      const root = await ensureRootfs({ image: reference });
      expect(readdirSync(join(root, 'tmp')).filter((n) => /dart|setup/.test(n))).toEqual([]);
      expect(await seen('local')).toBe(SEEN);
    },
    BUILD_MS,
  );
  it.skipIf(!engine)(
    'is in a desktop in Docker',
    async () => {
      const docker = connectEngine(),
        tag = await ensureImage(docker, undefined, undefined, { image: reference, asked: true });
      try {
        expect(await seen('docker')).toBe(SEEN);
        const { Config, RootFS } = await docker.getImage(tag).inspect();
        const desk = await docker.getImage(await ensureImage(docker)).inspect();
        expect(Config.Cmd).toEqual(desk.Config.Cmd);
        expect(Config.Env).toEqual(desk.Config.Env);
        // Nothing of the build is a layer of it: the system, the overlay's one folder, and the agent.
        expect(RootFS.Layers).toHaveLength(3);
      } finally {
        await docker.getImage(tag).remove({ force: true });
      }
    },
    BUILD_MS,
  );
});
