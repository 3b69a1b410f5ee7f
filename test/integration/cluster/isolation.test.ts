import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { closingDescriptors } from '../../../runtime/cluster/providers/sandboxCommand.js';
import { countsByNamespace } from '../../../runtime/cluster/providers/processLimit.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import { localProvider, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { idleThreads } from '../../helpers/machine/idleThreads.js';

/** What a program inside a local desktop cannot do to its agent, its neighbours and the host. */
const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);
const run = promisify(execFile);

/** Forks sleepers until the kernel refuses; raises the limit first if it may. Prints how many there were, and why no more. */
const FORKER = `
import errno, os, resource, signal, time
soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
try:
    resource.setrlimit(resource.RLIMIT_NPROC, (hard + 100, hard + 100))
except (ValueError, PermissionError):
    pass
made, why = [], 'no limit'
while len(made) < 600:
    try:
        pid = os.fork()
    except OSError as e:
        why = errno.errorcode[e.errno]
        break
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    made.append(pid)
time.sleep(0.5)
for pid in made:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(len(made), why)
`;

/** Tries every way to another process's memory and descriptors; prints those that worked. */
const INTRUDER = `
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def attack(pid):
    won = []
    def tried(what, ok):
        if ok: won.append(what)
    fd = libc.syscall(434, pid, 0)  # pidfd_open
    tried('pidfd_getfd', any(libc.syscall(438, fd, n, 0) >= 0 for n in range(64)))
    for f in ('environ', 'mem', 'maps'):
        try:
            with open('/proc/%d/%s' % (pid, f), 'rb') as h: tried(f, True)
        except OSError: pass
    try:
        os.listdir('/proc/%d/fd' % pid); tried('fd', True)
    except OSError: pass
    class Vec(ctypes.Structure): _fields_ = [('p', ctypes.c_void_p), ('n', ctypes.c_size_t)]
    buf = ctypes.create_string_buffer(8)
    here, there = Vec(ctypes.addressof(buf), 8), Vec(ctypes.addressof(buf), 8)
    tried('process_vm_readv', libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) >= 0 or ctypes.get_errno() == 14)
    tried('ptrace', libc.ptrace(0x4206, pid, 0, 0) == 0)  # PTRACE_SEIZE
    return ' '.join(won)
child = subprocess.Popen(['sleep', '60'])
print('agent: ' + attack(1))
print('child: ' + attack(child.pid))
child.kill()
`;

describe.skipIf(why)('the walls of a local desktop', () => {
  const p = localProvider();
  let d: Desktop, dir: string;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'dart-walls-'));
    d = await p.create(SMALL);
  });
  afterAll(async () => {
    await p.dispose();
    rmSync(dir, { recursive: true, force: true });
  });

  it.skipIf(process.getuid!() !== 0 && !countsByNamespace(release()))(
    'each desktop has its own limit of processes, whatever else this user runs',
    async () => {
      const idle = await idleThreads(300);
      try {
        const [a, b] = await Promise.all([p.create({ ...SMALL, pids: 50 }), p.create({ ...SMALL, pids: 50 })]);
        const forked = await Promise.all([a, b].map((x) => x.exec(['python3', '-c', FORKER], { timeoutMs: 60_000 })));
        for (const { stdout, stderr } of forked) {
          const [n, reason] = stdout.toString().trim().split(' ');
          expect(reason, stderr.toString()).toBe('EAGAIN');
          expect(Number(n)).toBeLessThan(50);
          expect(Number(n)).toBeGreaterThan(38); // beside the agent, the X server, its keymap, the window manager and python
        }
        await p.destroy(a);
        await p.destroy(b);
      } finally {
        await idle.end();
      }
    },
  );

  it('programs can neither look into the agent nor take its descriptors', async () => {
    const { stdout, stderr } = await d.exec(['python3', '-c', INTRUDER]);
    const [agent, child] = stdout.toString().split('\n');
    expect(agent, stderr.toString()).toBe('agent: ');
    // The attack is real: it works on a process that does not defend itself.
    expect(child).toMatch(/^child: .*pidfd_getfd environ mem maps fd process_vm_readv ptrace$/);
    expect((await d.exec(['echo', 'mine'])).stdout.toString()).toBe('mine\n');
  });

  it('what the process that starts it inherited is not open inside', async () => {
    const file = join(dir, 'child.mjs');
    await build({
      entryPoints: ['test/helpers/cluster/sandboxChild.ts'],
      outfile: file,
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'esm',
      external: ['cpu-features', '*.node'],
      banner: {
        js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url), __dirname = import.meta.dirname;",
      },
      logLevel: 'error',
    });
    symlinkSync(resolve('runtime/cluster/images'), join(dir, 'images'));
    writeFileSync(join(dir, 'secret.txt'), 'of the host');
    // 40 lies after a gap, and one leads to a folder of the host.
    const { stdout } = await run('bash', [
      '-c',
      `exec 29<"$1/secret.txt" 40<"$1" 41<"$1/secret.txt" 77>>"$1/secret.txt"; exec "$2" "$1/child.mjs" 29 40 41 77`,
      'bash',
      dir,
      process.execPath,
    ]);
    const { open, seen } = JSON.parse(stdout) as { open: string[]; seen: number[] };
    expect(open).toEqual([]);
    expect(seen.filter((n) => [29, 40, 41, 77].includes(n))).toEqual([]);
  });

  it('it is closed before the first program of the sandbox starts', async () => {
    const { file, args } = closingDescriptors(['ls', '/proc/self/fd']);
    const { stdout } = await run('bash', [
      '-c',
      'exec 3</dev/null 4</dev/null 7</etc 40</etc 123</etc; exec "$@"',
      'bash',
      file,
      ...args,
    ]);
    // 3 and 4 belong to the sandbox; ls reads the folder through one more.
    expect(
      stdout
        .trim()
        .split('\n')
        .map(Number)
        .filter((n) => n !== 5),
    ).toEqual([0, 1, 2, 3, 4]);
  });

  it("the user's own shell settings are not run: bash would, when its input is a socket", async () => {
    writeFileSync(join(dir, '.bashrc'), 'echo settings');
    const { file, args } = closingDescriptors(['echo', 'command']),
      child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: process.env['PATH'], HOME: dir } });
    expect(await text(child.stdout)).toBe('command\n');
  });
});
