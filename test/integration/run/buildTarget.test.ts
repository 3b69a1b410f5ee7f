import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { buildTarget } from '../../../runtime/cluster/provide.js';

const { desktops } = parseRunFile({});

describe('desktop build on a machine where nothing is built yet', () => {
  let dir: string;
  const before = {
    cache: process.env['DART_STUDIO_CACHE'],
    docker: process.env['DOCKER_HOST'],
    path: process.env['PATH'],
  };
  const put = (key: string, value: string | undefined): void => {
    if (value === undefined) delete process.env[key];
    else process.env[key] = value;
  };
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-bare-'));
    process.env['DART_STUDIO_CACHE'] = dir;
    process.env['DOCKER_HOST'] = `unix://${dir}/no-engine.sock`;
  });
  afterEach(async () => {
    put('DART_STUDIO_CACHE', before.cache);
    put('DOCKER_HOST', before.docker);
    put('PATH', before.path);
    await rm(dir, { recursive: true });
  });

  it.skipIf(spawnSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true']).status !== 0)(
    'chooses the local provider, which lacks nothing but the build',
    async () => {
      expect(await buildTarget(desktops)).toBe('local');
    },
  );
  it('says what to install when neither provider could run', async () => {
    process.env['PATH'] = dir;
    await expect(buildTarget(desktops)).rejects.toMatchObject({
      error: { kind: 'desktop.unavailable', remedy: expect.stringContaining('bubblewrap') as string },
    });
  });
});
