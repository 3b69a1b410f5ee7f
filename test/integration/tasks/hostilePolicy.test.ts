import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLocalProvider } from '../../../runtime/cluster/index.js';
import { createDockerProvider } from '../../../runtime/cluster/providers/docker.js';
import type { Desktop, DesktopProvider, DesktopSpec } from '../../../runtime/cluster/types.js';
import type { Action, Outcome } from '../../../runtime/domain/index.js';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { sh, untilSettled, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { BOMB, FORGER, GRABBER, HOLDER, KILLER, MEDDLER, NEST, TITLES } from '../../helpers/tasks/hostilePrograms.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';

/**
 * What a policy does inside its desktop is survived or judged a failure: it neither makes a verdict, nor an error that
 * is tried again, nor a wait without end.
 */
const SPEC: DesktopSpec = { screen: { width: 640, height: 400 }, memoryMb: 512, pids: 128 };
const DONE: Action = { type: 'finished' };
const kinds = [
  { name: 'local', make: (): DesktopProvider => createLocalProvider(), why: await whyNoLocalDesktops() },
  {
    name: 'docker',
    make: (): DesktopProvider => createDockerProvider({ spares: 0 }),
    why: (await engineHere()) ? undefined : 'no Docker engine answers here',
  },
];
for (const { why } of kinds) if (why) console.warn(`skipped: ${why}`);

const engine = createTaskEngine({ metrics: localMetrics });
const prints = (command: string, wanted: string): ReturnType<typeof taskOf> =>
  taskOf({
    func: 'exact_match',
    result: { type: 'vm_command_line', command, shell: true },
    expected: { type: 'rule', rules: { expected: wanted } },
  });
const holds = (path: string): ReturnType<typeof taskOf> =>
  taskOf({
    func: 'check_include_exclude',
    result: { type: 'vm_file', path },
    expected: { type: 'rule', rules: { include: ['x'] } },
  });

describe.each(kinds)('a hostile policy in a $name desktop', ({ make, why }) => {
  describe.skipIf(why)('', () => {
    const p = make();
    let d: Desktop;
    beforeAll(async () => {
      d = await p.create(SPEC);
    }, 120_000);
    beforeEach(async () => {
      await p.reset(d); // and it copes with whatever the test before left
    });
    afterAll(() => p.dispose());

    const run = async (program: string, mark?: string): Promise<void> => {
      await d.spawn(['python3', '-c', program]);
      if (mark)
        await expect.poll(() => sh(d, `test -e ${mark} && echo yes || true`), { timeout: 20_000 }).toContain('yes');
    };
    const verify = (t: ReturnType<typeof taskOf>): Promise<Outcome> => engine.verify(t, d, DONE, never);
    const failure = (found: RegExp): object => ({
      kind: 'failure',
      reward: 0,
      report: { checks: [{ score: 0, found: expect.stringMatching(found) as string }] },
    });

    // The first asks nothing of the applications, which therefore stand still; the second does, and they run.
    const BUSY = '(i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo honest) | cat';
    it.each([
      ['while the applications stand still', BUSY],
      ['while they run', '(sleep 0.1; echo honest) | cat'],
    ])('forges no output of a command of the verifier %s', async (_when, command) => {
      for (let i = 0; i < 3; i++) await d.spawn(['python3', '-c', FORGER]);
      await run(FORGER, '/tmp/forging');
      // The attack is real: it works on commands that are not the verifier's.
      await expect.poll(() => sh(d, '(sleep 0.5; echo honest) | cat'), { timeout: 60_000 }).toContain('forged');
      let forged = 0,
        honest = 0;
      for (let i = 0; i < 10; i++) {
        if ((await verify(prints(command, 'honest\n'))).kind === 'success') honest++;
        const r = await d.exec(['sh', '-c', command], { verifier: true });
        if (r.stdout.includes('forged')) forged++;
      }
      expect({ forged, honest }).toEqual({ forged: 0, honest: 10 });
    });

    it('ends no command of the verifier that asks nothing of the applications', async () => {
      await run(KILLER);
      for (let i = 0; i < 5; i++) expect(await verify(prints(BUSY, 'honest\n'))).toMatchObject({ kind: 'success' });
    });

    // Long enough for a timer of 20 ms. What it prints when nothing meddles is "bad".
    const LONG = 'head -c 200000000 /dev/zero | md5sum > /dev/null && echo bad || echo good';
    /** In a container it is the kernel that keeps signals from the verifier's commands, from 6.12 on (Landlock's version 6). */
    const reached = async (): Promise<boolean> =>
      d.provider === 'docker' &&
      Number(await sh(d, 'python3 -c "import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))"')) < 6;
    describe.each(['KILL', 'STOP'] as const)('with a timer against being stopped, and SIG%s', (signal) => {
      const quick = createTaskEngine({ metrics: localMetrics, settings: { commandMs: 5000 } });
      it.each([
        ['while its programs are to stand still', LONG],
        ['while they run', `sleep 0; ${LONG}`],
      ])('makes of a failure neither a success nor an error %s', async (_when, command) => {
        await run(MEDDLER(signal), '/tmp/moves');
        // The attack is real: it works on commands that are not the verifier's.
        const theirs = await d.exec(['sh', '-c', LONG], { timeoutMs: signal === 'KILL' ? 30_000 : 2000 });
        expect([theirs.stdout.toString(), theirs.timedOut]).toEqual(signal === 'KILL' ? ['good\n', false] : ['', true]);
        for (let i = 0; i < 3; i++) {
          const { kind } = await quick.verify(prints(command, 'good\n'), d, DONE, never);
          expect(command !== LONG && (await reached()) ? ['success', 'failure'] : ['failure']).toContain(kind);
        }
      });
    });

    it('does not go on while it is judged, whatever its timers say', async () => {
      await run(MEDDLER('KILL'), '/tmp/moves');
      const moved = `a=$(cat /tmp/moves); (${LONG}) > /dev/null; test "$a" = "$(cat /tmp/moves)" && echo still || echo moved`;
      for (let i = 0; i < 3; i++)
        expect(await verify(prints(moved, 'moved\n'))).toMatchObject({ kind: 'failure', reward: 0 });
    });

    it('runs nothing inside a python of the verifier', async () => {
      await sh(
        d,
        'd=$(python3 -c "import site; print(site.getusersitepackages())"); mkdir -p "$d"; echo "print(\'forged\')" | tee "$d/usercustomize.py" "$d/evil.pth" ~/json.py ~/usercustomize.py',
      );
      expect(await sh(d, 'python3 -c "import json"')).toContain('forged');
      const task = prints('python3 -c "import json; print(json.dumps(1))"', '1\n');
      expect(await verify(task)).toMatchObject({ kind: 'success' });
    });

    it('reaches neither the host nor a network, and makes no namespaces', async () => {
      const tried = await sh(
        d,
        `python3 - <<'E'
import ctypes, os, socket
c = ctypes.CDLL(None, use_errno=True)
def tried(what, f):
    try: print(what, f())
    except OSError as e: print(what, 'no')
def connected(*a, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(2); s.connect(*a); return 'yes'
tried('internet', lambda: connected(('192.0.2.1', 80)))
tried('host', lambda: connected(('172.17.0.1', 22)))
tried('engine', lambda: connected('/var/run/docker.sock', family=socket.AF_UNIX))
tried('name', lambda: socket.getaddrinfo('example.org', 80) and 'yes')
tried('interfaces', lambda: ' '.join(sorted(os.listdir('/sys/class/net'))) if os.path.isdir('/sys/class/net') else 'lo')
for name, flag in (('user', 0x10000000), ('mount', 0x20000), ('process', 0x20000000), ('network', 0x40000000)):
    tried(name + ' namespace', lambda: 'yes' if c.unshare(flag) == 0 else 'no')
tried('mount', lambda: 'yes' if c.mount(b't', b'/tmp', b'tmpfs', 0, None) == 0 else 'no')
tried('keys', lambda: 'yes' if c.syscall(248, b'user', b'a', b'b', 1, -1) >= 0 else 'no')
print('filter', [l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp:')][0])
E`,
      );
      expect(tried.split('\n')).toEqual(
        [
          'internet no, host no, engine no, name no, interfaces lo',
          'user namespace no, mount namespace no, process namespace no, network namespace no, mount no, keys no, filter 2',
        ].flatMap((l) => l.split(', ')),
      );
    });

    it('is seen to keep its desktop busy, and not to where nothing works', async () => {
      expect(await d.blame!('late')).toBeUndefined();
      await d.spawn(['sh', '-c', 'while :; do :; done']);
      await expect.poll(() => d.blame!('late')).toBe('its programs keep the desktop busy');
    });

    it('sees its programs go on after the verdict', async () => {
      await d.spawn(['sh', '-c', 'while :; do date +%N > ~/tick; done']);
      expect(await verify(prints('echo honest', 'honest\n'))).toMatchObject({ kind: 'success' });
      const first = await sh(d, 'cat ~/tick');
      await expect.poll(() => sh(d, 'cat ~/tick')).not.toBe(first);
    });

    it.each([
      ['a pipe', 'mkfifo ~/r', /not a regular file/],
      ['a socket', 'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'r\')"', /not a regular file/],
      ['a link to a pipe', 'mkfifo /tmp/p; ln -s /tmp/p ~/r', /not a regular file/],
      ['a sparse file of 300 MB', 'truncate -s 300M ~/r', /too large/],
      ['a folder', 'mkdir ~/r', /./],
      ['nothing one may read', 'echo x > ~/r; chmod 0 ~/r', /./],
      ['a link to itself', 'ln -s r ~/r', /./],
      ['a terminal', 'ln -s /dev/ptmx ~/r', /./],
      ["a link to what is not the user's", 'ln -s /proc/1/environ ~/r', /./],
      ['a link to the memory of a program', 'sleep 600 > /dev/null 2>&1 & ln -s /proc/$!/mem ~/r', /./],
      ['a file that a program holds for itself', HOLDER, /holds .* for itself/],
    ])('leaves %s as its result', async (_what, script, found) => {
      await sh(d, script);
      expect(await verify(holds('/home/user/r'))).toMatchObject(failure(found));
    });

    it('has a large file read without harm to the agent', async () => {
      await sh(d, 'head -c 30000000 /dev/zero > ~/r');
      expect((await d.readFile('/home/user/r')).length).toBe(30_000_000);
    });

    it('prints 100 MB', async () => {
      await sh(d, 'ln -s /dev/zero ~/r');
      expect(await verify(prints('head -c 100000000 ~/r', 'x'))).toMatchObject(failure(/more than 4 MiB/));
      await untilSettled(d);
    });

    it('keeps a command of the verifier waiting', async () => {
      const slow = createTaskEngine({ metrics: localMetrics, settings: { commandMs: 700 } });
      await sh(d, 'mkfifo ~/r');
      expect(await slow.verify(prints('cat ~/r', 'x'), d, DONE, never)).toMatchObject(failure(/did not end within/));
    });

    it('forks without end', async () => {
      await run(BOMB);
      await new Promise((r) => setTimeout(r, 300)); // until it has all that it can get
      const o = await verify(prints('echo honest | cat', 'honest\n'));
      expect(['success', 'failure']).toContain(o.kind);
      expect((await d.observe()).width).toBe(640);
    });

    it('fills every folder it can write to', async () => {
      await sh(
        d,
        'for f in ~/big /tmp/big /var/tmp/big /dev/shm/big /run/user/1000/big; do head -c 300M /dev/zero > $f; done 2>&1; true',
      );
      const put = taskOf({
        func: 'exact_match',
        postconfig: [{ type: 'execute', parameters: { command: 'echo a >> ~/note && echo', shell: true } }],
        result: { type: 'vm_command_line', command: 'cat ~/note', shell: true },
        expected: { type: 'rule', rules: { expected: 'a\n' } },
      });
      expect((await verify(put)).kind).toBe('failure');
      await expect(d.writeFile('/home/user/x', Buffer.alloc(1 << 20))).rejects.toMatchObject({
        error: { details: { code: 'ENOSPC' } },
      });
    });

    it('makes more files than there is room for', async () => {
      const made = await sh(
        d,
        `python3 -c "
n = 0
try:
    while n < 60000:
        open('/tmp/%d' % n, 'w').close(); n += 1
except OSError as e: print(e.strerror)
print(n)"`,
      );
      expect(made).toMatch(/No space left on device\n\d+/);
    });

    it('takes the X server for itself', async () => {
      await run(GRABBER, '/tmp/grabbed');
      await d.perform({ type: 'click', at: { x: 5, y: 5 } });
      await untilSettled(d);
      expect((await verify(prints('echo honest', 'honest\n'))).kind).toBe('success');
    });

    it('gives windows long titles, and opens dozens', async () => {
      await run(TITLES, '/tmp/titled');
      const size = taskOf({
        func: 'exact_match',
        result: { type: 'vm_window_size', app_class_name: 'nothing' },
        expected: { type: 'rule', rules: { expected: 'x' } },
      });
      expect((await verify(size)).kind).toBe('failure');
    });

    it('ends the window manager, again and again', async () => {
      for (let i = 0; i < 3; i++) {
        const before = await sh(d, 'pgrep -x jwm');
        await sh(d, 'pkill -9 -x jwm');
        // The one that was ended may still be listed for a moment.
        const another = new RegExp(`^(?!${before}$)\\d+$`);
        await expect.poll(() => sh(d, 'pgrep -x jwm || true')).toMatch(another);
      }
      await untilSettled(d);
    });

    it('has no window manager while it is judged, and then has one again', async () => {
      const before = await sh(d, 'pgrep -x jwm'),
        // Its parent, which stands still in a local desktop, may not have let go of it.
        there = async (): Promise<string> =>
          String((await d.exec(['ps', '-o', 'stat=', '-C', 'jwm'], { verifier: true })).stdout).trim();
      await d.freeze!();
      await d.exec(['pkill', '-9', '-x', 'jwm'], { verifier: true });
      await expect.poll(there).toMatch(/^(Z.*)?$/);
      await d.thaw!();
      await expect.poll(() => sh(d, 'pgrep -x jwm || true')).toMatch(new RegExp(`^(?!${before}$)\\d+$`));
    });

    it('can neither end nor stop the X server', async () => {
      await sh(d, 'pkill -STOP Xvfb; pkill -KILL Xvfb; kill -9 -1 2>/dev/null; true').catch(() => undefined);
      await untilSettled(d);
      expect((await d.exec(['true'])).code).toBe(0);
    });

    it('stops its applications', async () => {
      await d.spawn(['galculator']);
      await untilSettled(d, { horizonMs: 100, maxMs: 5000 });
      await sh(d, 'pkill -STOP galculator; pkill -STOP jwm');
      await untilSettled(d);
      const close = taskOf({
        func: 'exact_match',
        postconfig: [{ type: 'close_window', parameters: { window_name: 'galculator' } }],
        result: { type: 'vm_command_line', command: 'echo honest', shell: true },
        expected: { type: 'rule', rules: { expected: 'honest\n' } },
      });
      expect(['success', 'failure']).toContain((await verify(close)).kind);
    });

    it('leaves 3,000 nested folders, modes of 0 and memory that outlives it, and a reset removes all', async () => {
      await sh(d, 'chmod 0 ~/Desktop; mkdir -p /tmp/a/b && chmod 0 /tmp/a/b /tmp/a; chmod 700 /tmp 2>/dev/null; true');
      await d.exec(['python3', '-c', NEST(3000)], { timeoutMs: 20_000 });
      await sh(
        d,
        `python3 -c "import ctypes; c = ctypes.CDLL(None); print(c.shmget(77, 4096, 0o1666), c.msgget(78, 0o1666), c.semget(79, 1, 0o1666))"`,
      );
      expect(await sh(d, 'tail -n +2 -q /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem | wc -l')).toBe('3');
      await sh(d, 'echo left > /run/left 2>/dev/null; echo left > /dev/mqueue/left 2>/dev/null; true');
      await p.reset(d);
      expect(await sh(d, 'ls -A ~ | tr "\\n" " "; ls /run/left /dev/mqueue/left 2>/dev/null; stat -c %a /tmp')).toMatch(
        /Desktop.* 1777$/,
      );
      expect(await sh(d, 'ls -d ~/d 2>&1')).toMatch(/No such file/);
      expect(await sh(d, 'tail -n +2 -q /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem | wc -l')).toBe('0');
    });
  });
});
