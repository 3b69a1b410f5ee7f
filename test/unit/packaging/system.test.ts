import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const { dockerAddress } = (await import(pathToFileURL('scripts/lib/system.mjs').href)) as {
  dockerAddress(env: NodeJS.ProcessEnv, home: string): Readonly<Record<string, unknown>>;
};
let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'system-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const module = (name: string): string => JSON.stringify(pathToFileURL(resolve('scripts/lib', name)).href);
/** In the test's own folder. */
const run = (code: string, env: Readonly<Record<string, string>>): SpawnSyncReturns<string> =>
  spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: dir,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });

describe('the Docker engine of the quick start', () => {
  it('is looked for where the runtime does', async () => {
    expect(dockerAddress({}, dir)).toEqual({ path: '/var/run/docker.sock' });
    await mkdir(join(dir, '.docker/run'), { recursive: true });
    await writeFile(join(dir, '.docker/run/docker.sock'), '');
    expect(dockerAddress({}, dir)).toEqual({ path: join(dir, '.docker/run/docker.sock') });
    const of = (DOCKER_HOST: string): unknown => dockerAddress({ DOCKER_HOST }, dir);
    expect(of('unix:///run/user/1000/docker.sock')).toEqual({ path: '/run/user/1000/docker.sock' });
    expect(of('/run/docker.sock')).toEqual({ path: '/run/docker.sock' });
    expect(of('tcp://10.0.0.5')).toEqual({ host: '10.0.0.5', port: 2375 });
    expect(of('tcp://[::1]:2376')).toEqual({ host: '::1', port: 2376 });
    expect(of('ssh://ann@far')).toEqual({ ssh: true });
  });
  it.each(['10.0.0.5:2375', 'localhost:2375', 'tcp://'])('at %j is none, which is said in words', (DOCKER_HOST) => {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/quickstart.mjs'], {
      encoding: 'utf8',
      env: { ...process.env, DOCKER_HOST },
    });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^DOCKER_HOST=.* is no address .*tcp:\/\/host:2375/)]);
  });
});

describe('the end-to-end rig', () => {
  it('says what is missing where its folder cannot be written', async () => {
    // A file stands where the cache folder would be.
    await writeFile(join(dir, 'cache'), '');
    const { stdout } = run(
      `console.log(JSON.stringify(await (await import(${module('rig.mjs')})).ensureRig({ tools: true, packer: true })))`,
      { DART_STUDIO_CACHE: join(dir, 'cache') },
    );
    const why = expect.stringMatching(/cannot be written .* set DART_STUDIO_CACHE/) as string;
    expect(JSON.parse(stdout)).toEqual({ tools: { ok: false, why }, packer: { ok: false, why } });
  });
});

describe('the packages of a checkout', () => {
  it('have what building takes, also on a machine set up for production', async () => {
    // An npm that says what it was asked.
    await writeFile(join(dir, 'npm'), `#!/bin/sh\necho "$@" > ${join(dir, 'asked')}\n`);
    await chmod(join(dir, 'npm'), 0o755);
    await writeFile(join(dir, 'package-lock.json'), '{}');
    await mkdir(join(dir, 'node_modules'));
    const { status } = run(`(await import(${module('ensure.mjs')})).ensureDeps()`, {
      NODE_ENV: 'production',
      PATH: `${dir}${delimiter}${process.env['PATH']}`,
    });
    expect(status).toBe(0);
    expect(await readFile(join(dir, 'asked'), 'utf8')).toMatch(/^ci .*--include=dev/);
  });
});
