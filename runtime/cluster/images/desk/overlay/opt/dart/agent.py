#!/usr/bin/env python3
"""PID 1 of a DART Studio desktop (Python 3.9+, standard library only).

Speaks JSON lines on a unix socket: requests {"id": n, "cmd": ...}, replies {"id": n, "ok": true, ...} or
{"id": n, "ok": false, "error": text, "code": errno name}, and events {"event": "exit", ...} to every client. Bytes travel as base64.

  ping                                               -> {"pid", "uid", "version"}
  reset   screen [w, h], a11y, timeoutMs             -> {"ms", "xpid", "display", "doubleClickMs"}   X is up and the window manager started
  spawn   argv, cwd, env                             -> {"pid"}
  exec    argv, cwd, env, stdin, timeoutMs           -> {"code", "stdout", "stderr", "timedOut"}
  kill    pid                                        kill a process group started by exec (a caller gave up)
  read    path                                       -> {"data"}
  write   path, data                                 parent folders are made; the file belongs to `user`
  settle  horizonMs, maxMs                           -> {"settled", "ms", "detector"}

In bubblewrap its one argument is the desktop's name, by which a later process finds it (its environment cannot be read).

`agent.py --bridge PATH` copies stdin and stdout to the unix socket PATH: for engines whose files the host cannot see.

In a container it starts as root: the X server runs as uid 1001, applications as uid 1000, so neither can touch the agent.
Inside bubblewrap it has one uid for all; a reset kills every process but this one either way. With DART_ONCE set it takes one client
only, and ends when its standard input does.
"""
import base64, ctypes, errno, json, os, selectors, signal, socket, stat, subprocess, sys, time


def close_inherited():
    """Whoever started the sandbox may have had descriptors open that it did not mark for closing. As this process's, they would
    lead the programs of the desktop to files of the host."""
    for fd in os.listdir('/proc/self/fd'):
        if int(fd) > 2:
            try:
                os.close(int(fd))
            except OSError:  # the listing's own
                pass


def refuse_inspection():
    """Programs of the same uid may not read this process, trace it or take its descriptors (pidfd_getfd): whoever has its socket
    can answer in its name."""
    PR_SET_DUMPABLE = 4
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'prctl(PR_SET_DUMPABLE) failed')


# Before anything else: nothing but this process runs in the sandbox yet.
refuse_inspection()
close_inherited()

VERSION = 1
USER, XUSER = 1000, 1001
HOME, SKEL = '/home/user', '/etc/skel'
RUN = os.environ.get('DART_RUN', '/run/dart')
RUNTIME, X11, BUS = '/run/user/1000', '/tmp/.X11-unix', '/run/user/1000/bus'
WIPED = (HOME, '/tmp', '/var/tmp', '/dev/shm', RUNTIME)
OUTPUT_CAP = 64 << 20          # bytes kept of each of stdout and stderr
READ_CAP = 128 << 20           # bytes of a file that is read; the other side allows for both (agentReplies.ts)
ROOT = os.getuid() == 0
sel = selectors.DefaultSelector()


def env_for(a11y):
    env = {'PATH': '/usr/local/bin:/usr/bin:/bin:/usr/games', 'HOME': HOME, 'USER': 'user', 'LOGNAME': 'user', 'SHELL': '/bin/bash',
           'DISPLAY': ':0', 'LANG': 'C.UTF-8', 'LC_ALL': 'C.UTF-8', 'TZ': 'UTC', 'XDG_RUNTIME_DIR': RUNTIME, 'XDG_CURRENT_DESKTOP': 'JWM',
           'GDK_BACKEND': 'x11', 'GTK_IM_MODULE': 'gtk-im-context-simple', 'GTK_OVERLAY_SCROLLING': '0', 'GIO_USE_VFS': 'local', 'TERM': 'xterm-256color'}
    if a11y:
        env.update(DBUS_SESSION_BUS_ADDRESS='unix:path=' + BUS, GTK_MODULES='gail:atk-bridge')
    else:
        # Without a bus every application would start one by itself (dbus-launch), late and at its own pace.
        env.update(DBUS_SESSION_BUS_ADDRESS='disabled:', NO_AT_BRIDGE='1', GSETTINGS_BACKEND='memory')
    return env


class Timers:
    def __init__(self):
        self.items = []

    def at(self, delay, fn):
        t = [time.monotonic() + delay, fn]
        self.items.append(t)
        return t

    def cancel(self, t):
        if t in self.items:
            self.items.remove(t)

    def run(self):
        """Run what is due; seconds to the next one, or None."""
        now = time.monotonic()
        for t in [t for t in self.items if t[0] <= now]:
            if t in self.items:
                self.items.remove(t)
                t[1]()
        return max(0.0, min(t[0] for t in self.items) - time.monotonic()) if self.items else None


timers = Timers()


class Fail(Exception):
    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code


class Client:
    def __init__(self, sock):
        self.sock, self.inbuf, self.out = sock, bytearray(), bytearray()
        sock.setblocking(False)
        sel.register(sock, selectors.EVENT_READ, self.ready)

    def ready(self, mask):
        if mask & selectors.EVENT_WRITE:
            self.flush()
        if not mask & selectors.EVENT_READ:
            return
        try:
            data = self.sock.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b''
        if not data:
            return self.close()
        self.inbuf += data
        if b'\n' not in data:
            return
        *lines, rest = bytes(self.inbuf).split(b'\n')
        self.inbuf = bytearray(rest)
        for line in lines:
            if line:
                desk.request(self, json.loads(line))

    def send(self, obj):
        if self.sock.fileno() < 0:
            return
        self.out += json.dumps(obj, separators=(',', ':')).encode() + b'\n'
        self.flush()

    def flush(self):
        try:
            while self.out:
                n = self.sock.send(self.out)
                del self.out[:n]
        except BlockingIOError:
            pass
        except OSError:
            return self.close()
        sel.modify(self.sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if self.out else 0), self.ready)

    def close(self):
        if self in desk.clients:
            desk.clients.remove(self)
            sel.unregister(self.sock)
            self.sock.close()


class Exec:
    """One command with its pipes. Ends when the command itself ends, even if something it started still holds the pipes."""

    def __init__(self, proc, stdin, timeout, done):
        self.proc, self.done, self.timed_out = proc, done, False
        self.outs = {proc.stdout: bytearray(), proc.stderr: bytearray()}
        self.pending = bytearray(stdin)
        self.timer = timers.at(timeout, self.expire)
        for f in self.outs:
            os.set_blocking(f.fileno(), False)
            sel.register(f, selectors.EVENT_READ, lambda _m, f=f: self.drain(f))
        os.set_blocking(proc.stdin.fileno(), False)
        if self.pending:
            sel.register(proc.stdin, selectors.EVENT_WRITE, lambda _m: self.feed())
        else:
            proc.stdin.close()

    def feed(self):
        try:
            n = os.write(self.proc.stdin.fileno(), self.pending[:65536])
            del self.pending[:n]
        except BlockingIOError:
            return
        except OSError:
            self.pending.clear()
        if not self.pending:
            sel.unregister(self.proc.stdin)
            self.proc.stdin.close()

    def drain(self, f):
        """False once nothing more can be read now."""
        try:
            data = os.read(f.fileno(), 1 << 18)
        except BlockingIOError:
            return False
        if not data:
            sel.unregister(f)
            f.close()
            return False
        if len(self.outs[f]) < OUTPUT_CAP:
            self.outs[f] += data
        return True

    def expire(self):
        self.timed_out = True
        kill_group(self.proc.pid)

    def finish(self, status):
        timers.cancel(self.timer)
        for f in self.outs:
            while not f.closed and len(self.outs[f]) < OUTPUT_CAP and self.drain(f):
                pass
            if not f.closed:
                sel.unregister(f)
                f.close()
        if not self.proc.stdin.closed:
            sel.unregister(self.proc.stdin)
            self.proc.stdin.close()
        if self.done:
            out, err = (base64.b64encode(b).decode() for b in self.outs.values())
            self.done({'code': os.WEXITSTATUS(status) if os.WIFEXITED(status) else None, 'stdout': out, 'stderr': err, 'timedOut': self.timed_out})


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def kill_all():
    """Kill every process of the desktop. kill(-1) is atomic, so a fork bomb cannot outrun it. As root we become each uid in
    turn (CAP_KILL is out of effect meanwhile), which spares the bridges that run as root."""
    for uid in (USER, XUSER) if ROOT else (None,):
        if uid is not None:
            os.setresuid(uid, uid, 0)
        try:
            os.kill(-1, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        finally:
            if uid is not None:
                os.setresuid(0, 0, 0)


def wipe(path):
    """Empty a folder; other file systems mounted below it keep their mount point."""
    try:
        entries = list(os.scandir(path))
    except FileNotFoundError:
        return
    except PermissionError:
        os.chmod(path, 0o700)
        entries = list(os.scandir(path))
    for e in entries:
        try:
            if e.is_dir(follow_symlinks=False):
                wipe(e.path)
                os.rmdir(e.path)
            else:
                os.unlink(e.path)
        except PermissionError:
            os.chmod(path, 0o700)
            os.unlink(e.path) if not e.is_dir(follow_symlinks=False) else (wipe(e.path), os.rmdir(e.path))
        except OSError as x:
            if x.errno not in (errno.EBUSY, errno.ENOENT):
                raise


def make_dir(path, mode, owner):
    os.makedirs(path, exist_ok=True)
    try:
        os.chmod(path, mode)
        if ROOT:
            os.chown(path, owner, owner)
    except OSError:  # a mount point made by the provider, already right
        pass


def load_skeleton():
    """The HOME skeleton in memory, parents first: (path, mode, content or link target, times)."""
    out = []
    for top, dirs, files in os.walk(SKEL):
        dirs.sort()
        for name in sorted(files) + dirs:
            src = os.path.join(top, name)
            st = os.lstat(src)
            data = None
            if stat.S_ISREG(st.st_mode):
                with open(src, 'rb') as f:
                    data = f.read()
            elif stat.S_ISLNK(st.st_mode):
                data = os.readlink(src)
            out.append((HOME + src[len(SKEL):], st.st_mode, data, (1700000000, 1700000000)))
    return out


def restore_home(skeleton):
    for path, mode, data, _ in skeleton:
        if stat.S_ISDIR(mode):
            os.makedirs(path, exist_ok=True)
        elif stat.S_ISLNK(mode):
            os.symlink(data, path)
        elif data is not None:
            with open(path, 'wb') as f:
                f.write(data)
            os.chmod(path, stat.S_IMODE(mode))
    # Children before parents, so that a folder's date is not moved again. Dates are shown by file dialogs: they are fixed.
    for path, _, _, times in reversed(skeleton):
        if ROOT:
            os.lchown(path, USER, USER)
        os.utime(path, times, follow_symlinks=False)
    os.utime(HOME, (1700000000, 1700000000))


def double_click_ms():
    try:
        with open('/etc/gtk-3.0/settings.ini') as f:
            for line in f:
                k, _, v = line.partition('=')
                if k.strip() == 'gtk-double-click-time':
                    return int(v)
    except (OSError, ValueError):
        pass
    return 400


POLL, EPOLL_WAIT, EPOLL_PWAIT = 7, 232, 281  # x86-64; on other machines every sleeper counts as "no timer" and hold is used


def activity(skip):
    """One look at all tasks: (running?, smallest poll timeout in ms or None, fingerprint of all run times, /proc/T/syscall readable?, a terminal?)."""
    running, soonest, exact, marks, terminal = False, None, os.uname().machine == 'x86_64', [], False
    for pid in os.listdir('/proc'):
        if not pid.isdigit() or pid == skip:
            continue
        try:
            tasks = os.listdir('/proc/%s/task' % pid)
        except OSError:
            continue
        for t in tasks:
            base = '/proc/%s/task/%s/' % (pid, t)
            try:
                with open(base + 'schedstat', 'rb') as f:
                    marks.append((t, f.read()))
                with open(base + 'stat', 'rb') as f:
                    fields = f.read().rpartition(b')')[2].split(None, 5)
                state = fields[0]
                terminal = terminal or fields[4] != b'0'
            except (OSError, IndexError):
                continue
            if state in (b'R', b'D'):
                running = True
                continue
            if not exact or state != b'S':
                continue
            try:
                with open(base + 'syscall', 'rb') as f:
                    call = f.read().split()
                if call[0] == b'running':
                    running = True
                    continue
                nr = int(call[0])
                raw = int(call[3 if nr == POLL else 4], 16) & 0xffffffff if nr in (POLL, EPOLL_WAIT, EPOLL_PWAIT) else 0xffffffff
                if raw < 0x80000000:
                    soonest = raw if soonest is None else min(soonest, raw)
            except PermissionError:
                exact = False
            except (OSError, ValueError, IndexError):
                continue
    return running, soonest, marks, exact, terminal


class Settle:
    """Exact where /proc/T/syscall may be read: all asleep, no timer due within the horizon, nothing ran between two looks.
    Else hold: nothing ran for HOLD seconds (one GTK frame). With a terminal, exact holds too: what is written to one reaches its
    reader through a thread of the kernel, which nobody in here can see."""
    HOLD, TERMINAL_HOLD = 0.018, 0.004

    def __init__(self, horizon, most, done):
        self.horizon, self.done, self.began = horizon, done, time.monotonic()
        self.end, self.quiet_since, self.last, self.exact = self.began + most / 1000, None, None, True
        self.look()

    def look(self):
        running, soonest, marks, self.exact, terminal = activity(str(os.getpid()))
        now = time.monotonic()
        wait = 0.002
        if running or marks != self.last or self.quiet_since is None:
            self.quiet_since = None if running else now
            if not running:
                wait = 0.0005
        elif self.exact and soonest is not None and soonest <= self.horizon:
            wait = max(0.001, soonest / 2000)
        elif now - self.quiet_since >= self.hold(terminal):
            return self.finish(True, now)
        self.last = marks
        if now >= self.end:
            return self.finish(False, now)
        timers.at(min(wait, max(0.0, self.end - now)), self.look)

    def hold(self, terminal):
        """A horizon of 0 asks only whether something is at work now."""
        if self.horizon <= 0:
            return 0
        return self.HOLD if not self.exact else self.TERMINAL_HOLD if terminal else 0

    def finish(self, settled, now):
        self.done({'settled': settled, 'ms': (now - self.began) * 1000, 'detector': 'exact' if self.exact else 'hold'})


class DesktopAgent:
    def __init__(self):
        self.clients, self.children, self.execs = [], {}, {}
        self.env, self.resetting, self.x_line, self.bus_line = env_for(False), None, None, None
        self.skeleton = load_skeleton()
        self.double_click = double_click_ms()

    # --- processes
    def start(self, argv, cwd=None, env=None, pipes=False, user=USER, keep=(), oom=600):
        if not argv or not all(isinstance(a, str) for a in argv):
            raise Fail('argv must be a list of strings', 'EINVAL')
        what = subprocess.PIPE if pipes else subprocess.DEVNULL
        ids = {'user': user, 'group': user, 'extra_groups': []} if ROOT else {}
        try:
            p = subprocess.Popen(argv, stdin=what, stdout=what, stderr=what, cwd=cwd or HOME, env={**self.env, **(env or {})},
                                 start_new_session=True, pass_fds=keep, umask=0o022, **ids)
        except OSError as x:
            raise Fail('%s: %s' % (argv[0], x.strerror), errno.errorcode.get(x.errno)) from None
        try:  # memory runs out on applications first, then on the X server, never on the agent
            with open('/proc/%d/oom_score_adj' % p.pid, 'w') as f:
                f.write(str(oom))
        except OSError:
            pass
        self.children[p.pid] = os.path.basename(argv[0])
        p.returncode = 0  # we reap by ourselves; Popen must not
        return p

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            name, ex = self.children.pop(pid, None), self.execs.pop(pid, None)
            if ex:
                ex.finish(status)
            elif name is not None:
                sig = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
                self.tell({'event': 'exit', 'pid': pid, 'name': name, 'code': None if sig else os.WEXITSTATUS(status),
                           'signal': signal.Signals(sig).name if sig and sig < 32 else sig and str(sig)})
                if self.resetting and name in ('Xvfb', 'dbus-daemon'):
                    self.fail_reset('%s ended while the desktop was being started' % name)

    def tell(self, event):
        for c in list(self.clients):
            c.send(event)

    # --- requests
    def request(self, client, m):
        done = lambda r: client.send({'id': m.get('id'), 'ok': True, **r})
        try:
            fn = getattr(self, 'do_' + str(m.get('cmd')), None)
            if fn is None:
                raise Fail('unknown command %r' % m.get('cmd'), 'EINVAL')
            r = fn(m, done)
            if r is not None:
                done(r)
        except Fail as x:
            client.send({'id': m.get('id'), 'ok': False, 'error': str(x), 'code': x.code})
        except OSError as x:
            client.send({'id': m.get('id'), 'ok': False, 'error': '%s: %s' % (x.filename or m.get('cmd'), x.strerror), 'code': errno.errorcode.get(x.errno)})
        except Exception as x:
            client.send({'id': m.get('id'), 'ok': False, 'error': '%s: %s' % (type(x).__name__, x), 'code': None})

    def do_ping(self, m, _):
        return {'pid': os.getpid(), 'uid': os.getuid(), 'version': VERSION}

    def do_spawn(self, m, _):
        return {'pid': self.start(m.get('argv'), m.get('cwd'), m.get('env')).pid}

    def do_exec(self, m, done):
        p = self.start(m.get('argv'), m.get('cwd'), m.get('env'), pipes=True)
        self.execs[p.pid] = Exec(p, base64.b64decode(m.get('stdin') or ''), (m.get('timeoutMs') or 30000) / 1000, done)
        if m.get('tag') is not None:
            self.execs[p.pid].tag = m['tag']

    def do_kill(self, m, _):
        for pid, ex in self.execs.items():
            if getattr(ex, 'tag', None) == m.get('tag'):
                kill_group(pid)
        return {}

    def do_read(self, m, _):
        with open(m['path'], 'rb') as f:
            data = f.read(READ_CAP + 1)
        if len(data) > READ_CAP:
            raise Fail('%s is larger than %d MB' % (m['path'], READ_CAP >> 20), 'EFBIG')
        return {'data': base64.b64encode(data).decode()}

    def do_write(self, m, _):
        path, made = m['path'], []
        if not os.path.isabs(path):
            raise Fail('path must be absolute', 'EINVAL')
        parent = os.path.dirname(path)
        while not os.path.isdir(parent):
            made.append(parent)
            parent = os.path.dirname(parent)
        for p in reversed(made):
            os.mkdir(p, 0o755)
            if ROOT:
                os.chown(p, USER, USER)
        with open(path, 'wb') as f:
            f.write(base64.b64decode(m['data']))
            if ROOT:
                os.fchown(f.fileno(), USER, USER)
        return {}

    def do_settle(self, m, done):
        Settle(m.get('horizonMs', 20), m.get('maxMs', 2000), done)

    # --- reset: kill, wipe, X server, window manager
    def do_reset(self, m, done):
        if self.resetting:
            raise Fail('a reset is under way', 'EBUSY')
        began = time.monotonic()
        for ex in list(self.execs.values()):
            ex.finish(signal.SIGKILL)
        self.children.clear()
        self.execs.clear()
        for _ in range(100):
            kill_all()
            try:
                while True:
                    os.waitpid(-1, 0)
            except ChildProcessError:
                break
        for path in WIPED:
            wipe(path)
        make_dir(HOME, 0o755, USER)
        make_dir(RUNTIME, 0o700, USER)
        make_dir(X11, 0o1777, 0)
        fb = RUN + '/fb'
        make_dir(fb, 0o755, XUSER)
        wipe(fb)
        self.env = env_for(m.get('a11y'))
        w, h = m['screen']
        r, wfd = os.pipe()
        x = self.start(['Xvfb', ':0', '-screen', '0', '%dx%dx24' % (w, h), '-fbdir', fb, '-displayfd', str(wfd), '-nolisten', 'tcp', '-ac', '-noreset',
                        '-s', '0', '-dpi', '96', '-extension', 'GLX', '-extension', 'SELinux', '-extension', 'MIT-SCREEN-SAVER'], user=XUSER, keep=(wfd,), oom=300)
        os.close(wfd)
        restore_home(self.skeleton)
        self.resetting = {'fail': lambda text: done({'ok': False, 'error': text, 'code': 'EIO'}), 'fds': [r]}
        self.resetting['timer'] = timers.at(m.get('timeoutMs', 10000) / 1000, lambda: self.fail_reset('the X server did not come up in time'))

        def wm():
            for f in self.resetting['fds']:
                if f in sel.get_map():
                    sel.unregister(f)
                os.close(f)
            timers.cancel(self.resetting['timer'])
            self.resetting = None
            self.start(['jwm'], oom=300)
            done({'ms': (time.monotonic() - began) * 1000, 'xpid': x.pid, 'display': 0, 'doubleClickMs': self.double_click})

        def x_up(_mask):
            got = os.read(r, 64)
            if not got:
                return self.fail_reset('the X server ended')
            if not got.endswith(b'\n'):
                return  # it writes number and newline apart, and dies if the pipe is closed in between
            sel.unregister(r)
            self.start_bus(wm) if m.get('a11y') else wm()

        sel.register(r, selectors.EVENT_READ, x_up)

    def start_bus(self, then):
        r, w = os.pipe()
        self.resetting['fds'].append(r)
        self.start(['dbus-daemon', '--session', '--nofork', '--nopidfile', '--address=unix:path=' + BUS, '--print-address=%d' % w], keep=(w,), oom=300)
        os.close(w)

        def up(_mask):
            sel.unregister(r)
            if not os.read(r, 4096):
                return self.fail_reset('the session bus ended')
            self.start(['/usr/libexec/at-spi-bus-launcher', '--launch-immediately', '--a11y=1'], oom=300)
            then()

        sel.register(r, selectors.EVENT_READ, up)

    def fail_reset(self, text):
        s, self.resetting = self.resetting, None
        if s:
            timers.cancel(s['timer'])
            for f in s['fds']:
                if f in sel.get_map():
                    sel.unregister(f)
                os.close(f)
            s['fail'](text)


def serve():
    os.umask(0o022)
    os.makedirs(RUN, exist_ok=True)
    path = RUN + '/agent.sock'
    if os.path.exists(path):
        os.unlink(path)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o700 if not ROOT else 0o600)
    server.listen(16)

    def arrived(_mask):
        desk.clients.append(Client(server.accept()[0]))
        if os.environ.get('DART_ONCE'):  # one uid for all: applications must not talk to the agent
            sel.unregister(server)
            server.close()
            os.unlink(path)

    sel.register(server, selectors.EVENT_READ, arrived)
    wr, ww = os.pipe()
    os.set_blocking(wr, False)
    os.set_blocking(ww, False)
    signal.set_wakeup_fd(ww, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    if ROOT:  # PID 1 ignores what it has no handler for; a container's stop should be prompt. In bubblewrap applications could send it.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    def woken(_mask):
        try:
            os.read(wr, 4096)
        except BlockingIOError:
            pass
        desk.reap()

    sel.register(wr, selectors.EVENT_READ, woken)
    if os.environ.get('DART_ONCE'):  # a line that whoever started this desktop holds: cut, there is nobody left to end it
        sel.register(0, selectors.EVENT_READ, lambda _mask: os._exit(0))
    print('dart-agent ready', file=sys.stderr, flush=True)
    while True:
        for key, mask in sel.select(timers.run()):
            if key.fd in sel.get_map():
                key.data(mask)


def bridge(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    pairs = {0: s.fileno(), s.fileno(): 1}
    for fd in pairs:
        sel.register(fd, selectors.EVENT_READ)
    while True:
        for key, _ in sel.select():
            data = os.read(key.fd, 1 << 18)
            if not data:
                return
            view = memoryview(data)
            while view:
                view = view[os.write(pairs[key.fd], view):]


if __name__ == '__main__':
    if len(sys.argv) > 2 and sys.argv[1] == '--bridge':
        bridge(sys.argv[2])
    else:
        desk = DesktopAgent()
        serve()
