import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { defaultState } from '../../../runtime/cli/exportModel.js';
import { which } from '../../../runtime/files/fileLock.js';
import { ensureEngineEnvironment, environmentState } from '../../../runtime/trainer/engine/environment.js';

/** An interpreter in shell: answers the version probe, makes an environment, and logs what pip was asked. */
const fakePython = (version: string, pipExit = 0): string => `#!/bin/sh
case "$1 $2" in
  "-c "*) echo ${version} ;;
  "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  "-m pip") echo "$@" >> "$(dirname "$0")/../pip.log"; echo "pip says"; exit ${pipExit} ;;
esac
`;

describe.skipIf(process.platform === 'win32')('engine environment', () => {
  let folder: string;
  let python: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'engine-environment-'));
    python = join(folder, 'python');
    await mkdir(join(folder, 'source'));
    await writeFile(join(folder, 'source', 'requirements.txt'), 'torch==1\n');
    await write(fakePython('3.12'));
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });

  const write = async (text: string): Promise<void> => {
    await writeFile(python, text);
    await chmod(python, 0o755);
  };
  const ensure = (pythons = [python], onLine?: (line: string) => void) =>
    ensureEngineEnvironment({ source: join(folder, 'source'), cache: join(folder, 'cache'), pythons, onLine });

  it('installs once and is found by the next run', async () => {
    const first = await ensure();
    expect(first.installed).toBe(true);
    expect(await readFile(join(first.folder, 'pip.log'), 'utf8')).toContain('requirements.txt');
    const second = await ensure();
    expect(second).toEqual({ ...first, installed: false });
  });

  it('has another folder for other requirements and for another Python', async () => {
    const first = await ensure();
    await writeFile(join(folder, 'source', 'requirements.txt'), 'torch==2\n');
    const second = await ensure();
    await write(fakePython('3.13'));
    const third = await ensure();
    expect(new Set([first.folder, second.folder, third.folder]).size).toBe(3);
  });

  it('adds packages of tests to the same environment, once', async () => {
    const more = join(folder, 'more.txt');
    await writeFile(more, 'pytest==1\n');
    const options = { source: join(folder, 'source'), cache: join(folder, 'cache'), pythons: [python] };
    const first = await ensure();
    const added = await ensureEngineEnvironment({ ...options, requirements: [more] });
    expect(added).toEqual({ ...first, installed: true });
    expect((await ensureEngineEnvironment({ ...options, requirements: [more] })).installed).toBe(false);
    expect((await readFile(join(first.folder, 'pip.log'), 'utf8')).trim().split('\n')).toHaveLength(2);
  });

  it('begins anew after an installation that failed, and says what pip said', async () => {
    await write(fakePython('3.12', 1));
    await expect(ensure()).rejects.toMatchObject({
      error: { kind: 'engine.unavailable', details: { output: 'pip says' } },
    });
    await write(fakePython('3.12'));
    const made = await ensure();
    expect(made.installed).toBe(true);
    expect((await readFile(join(made.folder, 'pip.log'), 'utf8')).trim().split('\n')).toHaveLength(1);
  });

  it('passes over Pythons it cannot use and says which it tried', async () => {
    await write(fakePython('3.9'));
    const failed = ensure([python, join(folder, 'nothing')]);
    await expect(failed).rejects.toMatchObject({
      error: { details: { tried: [`${python}: 3.9`, `${join(folder, 'nothing')}: not there, or without venv`] } },
    });
  });

  it.skipIf(which('flock') === undefined)(
    'waits for an installation that runs beside it, and does not do it again',
    async () => {
      const go = join(folder, 'go');
      await write(fakePython('3.12').replace('echo "pip says"', `while [ ! -e ${go} ]; do sleep 0.02; done`));
      const lines: string[] = [],
        one = ensure(),
        lock = join(folder, 'cache');
      await expect.poll(() => existsSync(lock) && readdirSync(lock).some((n) => !n.endsWith('.lock'))).toBe(true);
      const other = ensure([python], (line) => lines.push(line));
      await expect.poll(() => lines).toEqual([expect.stringMatching(/is installing the engine's packages; waiting/)]);
      await writeFile(go, '');
      expect([(await one).installed, (await other).installed]).toEqual([true, false]);
      expect((await readFile(join((await one).folder, 'pip.log'), 'utf8')).trim().split('\n')).toHaveLength(1);
    },
  );

  it('is not kept from installing by the lock of one that was cut off, whoever has its pid now', async () => {
    const { folder: made } = await ensure();
    await rm(join(made, 'ready.json'));
    await writeFile(`${made}.lock`, String(process.ppid));
    expect((await ensure()).installed).toBe(true);
  });

  it('is in the cache folder that is set, and says where that cannot be written', async () => {
    const source = join(folder, 'source');
    vi.stubEnv('DART_STUDIO_CACHE', join(folder, 'moved'));
    const { folder: place, unwritable } = await environmentState({ source, pythons: [python] });
    expect([place.startsWith(join(folder, 'moved', 'dart-studio', 'engine')), unwritable]).toEqual([true, undefined]);
    expect(defaultState()).toBe(join(folder, 'moved', 'dart-studio', 'engine-state'));
    // A file stands where the folder would be.
    vi.stubEnv('DART_STUDIO_CACHE', python);
    expect((await environmentState({ source, pythons: [python] })).unwritable).toContain(python);
    await expect(ensureEngineEnvironment({ source, pythons: [python] })).rejects.toMatchObject({
      error: { kind: 'engine.unavailable', remedy: expect.stringContaining('DART_STUDIO_CACHE') as string },
    });
  });
});
