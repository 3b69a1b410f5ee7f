import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const SUDO = resolve('runtime/cluster/images/osworld/overlay/opt/osworld/sudo');

describe('sudo of a desktop', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-sudo-'));
    writeFileSync(join(dir, 'dpkg'), '#!/bin/sh\n[ "$2" = unzip ] || [ "$2" = jq ]\n', { mode: 0o755 });
  });
  afterEach(() => rmSync(dir, { recursive: true }));
  const run = (file: string, args: readonly string[], input: string): { code: number | null; says: string } => {
    const r = spawnSync(file, args, {
      input,
      encoding: 'utf8',
      cwd: dir,
      timeout: 20_000,
      env: { PATH: `${dir}:${process.env['PATH']!}`, XDG_RUNTIME_DIR: dir, SHELL: '/bin/sh' },
    });
    return { code: r.status, says: r.stdout + r.stderr };
  };
  /** Without a terminal, as commands of task files run; a session of its own has none. */
  const sudo = (args: readonly string[], input = 'password\n'): { code: number | null; says: string } =>
    run('setsid', ['-w', 'sh', SUDO, ...args], input);

  it.each<[readonly string[], string]>([
    [['-S', 'echo', 'a', '-b'], 'a -b\n'],
    [['-S', '-p', '', 'echo', 'a'], 'a\n'],
    [['-SHu', 'user', '--', 'echo', '--', 'a'], '-- a\n'],
    [['--stdin', '--user=root', 'X=1', 'sh', '-c', 'echo $X'], '1\n'],
    [['-S', '-s', 'echo', 'a', '&&', 'echo', 'b'], 'a\nb\n'],
    [['-S', 'apt-get', 'update', '-y'], ''],
    [['-S', 'apt', '-y', 'install', 'unzip', 'jq'], ''],
    [['-S', 'modprobe', 'snd-dummy'], ''],
    [['-Sv'], ''],
  ])('%j', (args, says) => {
    expect(sudo(args)).toEqual({ code: 0, says });
  });
  it('runs a command with its own input, exit code and no more rights than the user has', () => {
    expect(sudo(['-S', 'sh', '-c', 'cat; exit 3'], 'password\nrest\n')).toEqual({ code: 3, says: 'rest\n' });
    expect(sudo(['-S', 'echo', 'a'], 'password')).toEqual({ code: 0, says: 'a\n' });
    expect(sudo(['-S', 'id', '-u']).says).toBe(`${process.getuid!()}\n`);
  });
  it('refuses another password, none, and what it cannot do', () => {
    expect(sudo(['-S', 'echo', 'a'], 'x\npassword\n')).toEqual({
      code: 0,
      says: expect.stringMatching(/^a\nSorry/) as string,
    });
    expect(sudo(['-S', 'echo', 'a'], 'x\ny\nz\npassword\n')).toMatchObject({
      code: 1,
      says: expect.stringContaining('3 incorrect') as string,
    });
    expect(sudo(['-S', 'echo', 'a'], '')).toMatchObject({
      code: 1,
      says: expect.stringContaining('no password') as string,
    });
    expect(sudo(['echo', 'a'])).toMatchObject({ code: 1, says: expect.stringContaining('-S option') as string });
    expect(sudo(['-n', 'echo', 'a'])).toEqual({ code: 1, says: 'sudo: a password is required\n' });
    expect(sudo(['-S', 'apt', 'install', 'cowsay'])).toEqual({
      code: 100,
      says: 'E: Unable to locate package cowsay\n',
    });
    expect(sudo(['-S', 'apt', 'remove', 'jq']).code).toBe(100);
    expect(sudo([]).code).toBe(1);
  });
  it('asks at the terminal, once, and again after -k', () => {
    const commands = `sh ${SUDO} echo first; sh ${SUDO} echo second; sh ${SUDO} -k; sh ${SUDO} -n echo third`,
      { says } = run('script', ['-qec', commands, '/dev/null'], 'wrong\npassword\n');
    expect(says.match(/\[sudo\] password for user: /g)).toHaveLength(2);
    expect(says.replace(/\r/g, '')).toMatch(/Sorry, try again\.[^]*\nfirst\nsecond\nsudo: a password is required/);
  });
});
