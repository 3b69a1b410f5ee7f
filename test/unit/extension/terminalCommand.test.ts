import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { offerCommand } from '../../../extension/terminalCommand.js';

const run = promisify(execFile);
let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "dart it's here-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

function terminals() {
  const put: [string, string][] = [];
  return { put, persistent: false, description: undefined, prepend: (k: string, v: string) => void put.push([k, v]) };
}

describe('the command in terminals', () => {
  it('is found by its name and passes on what was typed, wherever the extension is', async () => {
    const runtime = join(dir, 'the runtime.js'),
      storage = join(dir, 'global storage'),
      to = terminals();
    await writeFile(
      runtime,
      'console.log(JSON.stringify([process.env.ELECTRON_RUN_AS_NODE, ...process.argv.slice(2)]))',
    );
    await offerCommand({ storage, runtime, node: process.execPath, windows: false }, to);
    expect(to).toMatchObject({ persistent: true, put: [['PATH', `${join(storage, 'bin')}:`]] });
    const env = { PATH: `${to.put[0]![1]}${process.env['PATH']}` },
      { stdout } = await run('dart-studio', ['runs', 'a b', '$HOME'], { env });
    expect(JSON.parse(stdout)).toEqual(['1', 'runs', 'a b', '$HOME']);
  });

  it('is that of the newest installation, and is left alone where it is the same', async () => {
    const o = { storage: dir, runtime: '/one/runtime.js', node: '/usr/bin/node', windows: false },
      file = join(dir, 'bin/dart-studio');
    await offerCommand(o, terminals());
    const first = await stat(file);
    await offerCommand(o, terminals());
    expect((await stat(file)).ino).toBe(first.ino);
    await offerCommand({ ...o, runtime: '/two/runtime.js' }, terminals());
    expect(await readFile(file, 'utf8')).toContain("exec '/usr/bin/node' '/two/runtime.js' \"$@\"\n");
    // Until the extension of a later version has been used, this one's runtime may be gone.
    await expect(run(file)).rejects.toMatchObject({
      code: 127,
      stderr: expect.stringContaining('open its view') as string,
    });
  });

  it('writes through no link that somebody put in its place', async () => {
    const victim = join(dir, 'victim');
    await writeFile(victim, 'mine');
    await chmod(victim, 0o600);
    await mkdir(join(dir, 'bin'));
    await symlink(victim, join(dir, 'bin/dart-studio'));
    await offerCommand({ storage: dir, runtime: '/r.js', node: '/n', windows: false }, terminals());
    expect(await readFile(victim, 'utf8')).toBe('mine');
  });

  it('is a batch file on Windows', async () => {
    await offerCommand({ storage: dir, runtime: 'C:\\100%\\r.js', node: 'C:\\n.exe', windows: true }, terminals());
    expect(await readFile(join(dir, 'bin/dart-studio.cmd'), 'utf8')).toBe(
      '@echo off\r\nsetlocal\r\nset ELECTRON_RUN_AS_NODE=1\r\n"C:\\n.exe" "C:\\100%%\\r.js" %*\r\n',
    );
  });
});
