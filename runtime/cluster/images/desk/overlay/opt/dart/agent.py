#!/usr/bin/env python3
"""PID 1 of a DART Studio desktop (Python 3.9+, standard library only).

Speaks JSON lines on a unix socket: requests {"id": n, "cmd": ...}, replies {"id": n, "ok": true, ...} or
{"id": n, "ok": false, "error": text, "code": errno name}, and events {"event": "exit", ...} to every client. Bytes travel as base64.

  ping                                               -> {"pid", "uid", "version"}
  reset   screen [w, h], a11y, timeoutMs, xDataMb    -> {"ms", "xpid", "display", "doubleClickMs", "walled"}   X is up and the window manager started
  spawn   argv, cwd, env                             -> {"pid"}
  exec    argv, cwd, env, stdin, timeoutMs, verifier -> {"code", "stdout", "stderr", "timedOut", "stopped", "disturbed"}
  kill    tag                                        kill a process group started by exec (a caller gave up)
  read    path, offset                               -> {"data", "more"}
  write   path, data, offset                         at 0 parent folders are made and the file is emptied; it belongs to `user`
  settle  horizonMs, maxMs, terminalHoldMs           -> {"settled", "ms", "detector"}
  freeze, thaw                                       stop all programs of the user; let them go on
  relieve                                            end all programs of the user
  forward port                                       RUN/tcp-PORT.sock leads to 127.0.0.1:PORT in here, until a reset
  state                                              -> {"x", "xCpuMs"}   the X server's state as in /proc, null when it is gone

In bubblewrap its one argument is the desktop's name, by which a later process finds it (its environment cannot be read).

`agent.py --bridge PATH` copies stdin and stdout to the unix socket PATH: for engines whose files the host cannot see.
`agent.py --forward PORT` carries each connection to the listening socket that is its stdin to 127.0.0.1:PORT (see `forward`).

In a container it starts as root: the X server runs as uid 1001, applications as uid 1000, so neither can touch the agent. Where the
kernel has Landlock's scopes (6.12), they start behind one: signals of theirs reach no command of the verifier.
Inside bubblewrap there is one uid for all. There the programs of the user live in a session: user, process and mount namespaces of
their own, from which the agent, the X server and the verifier's commands can neither be seen nor traced nor signalled. A reset kills
every process but this one either way. With DART_ONCE set it takes one client only, and ends when its standard input does.
"""
import base64, contextlib, ctypes, errno, json, os, resource, selectors, signal, socket, stat, struct, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)


def syscall(name, *args):
    """A function of the C library that returns -1 and sets errno when it fails."""
    got = getattr(libc, name)(*args)
    if got < 0:
        raise OSError(ctypes.get_errno(), '%s: %s' % (name, os.strerror(ctypes.get_errno())))
    return got


def close_inherited():
    """Whoever started the sandbox may have had descriptors open that it did not mark for closing. As this process's, they would
    lead the programs of the desktop to files of the host."""
    for fd in os.listdir('/proc/self/fd'):
        if int(fd) > 2:
            try:
                os.close(int(fd))
            except OSError:  # the listing's own
                pass


def inspectable(yes):
    """Whether programs of the same uid may read this process, trace it or take its descriptors (pidfd_getfd): whoever has its
    socket can answer in its name."""
    PR_SET_DUMPABLE = 4
    syscall('prctl', PR_SET_DUMPABLE, 1 if yes else 0, 0, 0, 0)


# Before anything else: nothing but this process runs in the sandbox yet.
inspectable(False)
close_inherited()

VERSION = 2
USER, XUSER, NOBODY = 1000, 1001, 65534
VERIFIER = 1002                # in a container, the group of the verifier's commands: with it, their user cannot trace them
HOME, SKEL = '/home/user', '/etc/skel'
RUN = os.environ.get('DART_RUN', '/run/dart')
RUNTIME, X11, BUS = '/run/user/1000', '/tmp/.X11-unix', '/run/user/1000/bus'
WIPED = (HOME, '/tmp', '/var/tmp', '/dev/shm', '/dev/mqueue', RUNTIME)
# Memory of this process is bounded by these three; the other side allows for them (agentReplies.ts).
OUTPUT_CAP = 8 << 20           # bytes kept of each of stdout and stderr
READ_CAP = 128 << 20           # bytes of the largest file that is read
READ_PART = 4 << 20            # bytes of it that one answer carries
WM_RESTARTS = 5                # a window manager that ends is started again, so often between two resets
FORWARDS = 8                   # ports that are led to at once
CARRIED = 64                   # connections to one of them
STOPPING, ENDING = 5, 3        # seconds for all programs to stop; then for those that resist to end, or all of them are ended
CONNECT, LINGER = 10, 600      # seconds: for a program to accept, and for one direction to end after the other
BRIDGE_LINGER = 60             # seconds: the same where nobody says whether there is a reader
ROOT = os.getuid() == 0
sel = selectors.DefaultSelector()


def read_settings():
    """What an image says of its desktops: {"accessibility": true} always starts the session bus, {"env": {...}} is added for programs."""
    try:
        with open('/etc/dart/desktop.json') as f:
            return json.load(f)
    except OSError:
        return {}


SETTINGS = read_settings()


def env_for(a11y):
    env = {'PATH': '/usr/local/bin:/usr/bin:/bin:/usr/games', 'HOME': HOME, 'USER': 'user', 'LOGNAME': 'user', 'SHELL': '/bin/bash',
           'DISPLAY': ':0', 'LANG': 'C.UTF-8', 'LC_ALL': 'C.UTF-8', 'TZ': 'UTC', 'XDG_RUNTIME_DIR': RUNTIME, 'XDG_CURRENT_DESKTOP': 'JWM',
           'GDK_BACKEND': 'x11', 'GTK_IM_MODULE': 'gtk-im-context-simple', 'GTK_OVERLAY_SCROLLING': '0', 'GIO_USE_VFS': 'local', 'TERM': 'xterm-256color'}
    if a11y:
        env.update(DBUS_SESSION_BUS_ADDRESS='unix:path=' + BUS, GTK_MODULES='gail:atk-bridge')
    else:
        # Without a bus every application would start one by itself (dbus-launch), late and at its own pace.
        env.update(DBUS_SESSION_BUS_ADDRESS='disabled:', NO_AT_BRIDGE='1', GSETTINGS_BACKEND='memory')
    env.update(SETTINGS.get('env', {}))
    return env


# --- walls
#
# What no program of a desktop is allowed, by system call. Numbers for x86-64 and arm64; without a table for a machine there is no filter.
DENIED = {
    'acct': (163, 89), 'add_key': (248, 217), 'adjtimex': (159, 171), 'bpf': (321, 280), 'chroot': (161, 51), 'clock_adjtime': (305, 266),
    'clock_settime': (227, 112), 'delete_module': (176, 106), 'finit_module': (313, 273), 'fsconfig': (431, 431), 'fsmount': (432, 432),
    'fsopen': (430, 430), 'fspick': (433, 433), 'init_module': (175, 105), 'io_uring_enter': (426, 426), 'io_uring_register': (427, 427),
    'io_uring_setup': (425, 425), 'ioperm': (173, None), 'iopl': (172, None), 'kcmp': (312, 272), 'kexec_file_load': (320, 294),
    'kexec_load': (246, 104), 'keyctl': (250, 219), 'mount': (165, 40), 'mount_setattr': (442, 442), 'move_mount': (429, 429),
    'mq_open': (240, 180), 'name_to_handle_at': (303, 264), 'open_by_handle_at': (304, 265), 'open_tree': (428, 428),
    'perf_event_open': (298, 241), 'pivot_root': (155, 41), 'quotactl': (179, 60), 'reboot': (169, 142), 'request_key': (249, 218),
    'setdomainname': (171, 162), 'sethostname': (170, 161), 'setns': (308, 268), 'settimeofday': (164, 170), 'swapoff': (168, 225),
    'swapon': (167, 224), 'syslog': (103, 116), 'umount2': (166, 39), 'unshare': (272, 97), 'userfaultfd': (323, 282),
}
MACHINES = {'x86_64': (0, 0xC000003E), 'aarch64': (1, 0xC00000B7)}
CLONE, CLONE3, SOCKET = (56, 220), (435, 435), (41, 198)
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
NEW_NAMESPACES = 0x7E020000
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)  # not, say, AF_VSOCK: it leads out of the network namespace


def seccomp_filter():
    """The filter as struct sock_fprog, or None. No new namespaces, no mounts, no keys, no kernel interfaces that only widen what a
    program can attack, sockets of ordinary families alone. What is denied fails with EPERM."""
    if os.uname().machine not in MACHINES:
        return None
    which, arch = MACHINES[os.uname().machine]
    LOAD, EQ, GE, ANY, RET = 0x20, 0x15, 0x35, 0x45, 0x06
    ALLOW, REFUSE = 0x7FFF0000, 0x00050000
    NR, ARCH, ARG0 = 0, 4, 16
    deny = (RET, 0, 0, REFUSE | errno.EPERM)
    code = [(LOAD, 0, 0, ARCH), (EQ, 1, 0, arch), deny, (LOAD, 0, 0, NR), (GE, 0, 1, 0x40000000), deny]
    # clone3 keeps its flags in memory, where a filter cannot see them: the C library falls back to clone.
    code += [(EQ, 0, 1, CLONE3[which]), (RET, 0, 0, REFUSE | errno.ENOSYS)]
    code += [(EQ, 0, 4, CLONE[which]), (LOAD, 0, 0, ARG0), (ANY, 0, 1, NEW_NAMESPACES), deny, (RET, 0, 0, ALLOW)]
    code += [(EQ, 0, 2 + 2 * len(FAMILIES), SOCKET[which]), (LOAD, 0, 0, ARG0)]
    for family in FAMILIES:
        code += [(EQ, 0, 1, int(family)), (RET, 0, 0, ALLOW)]
    code += [(RET, 0, 0, REFUSE | errno.EAFNOSUPPORT)]
    for numbers in DENIED.values():
        if numbers[which] is not None:
            code += [(EQ, 0, 1, numbers[which]), deny]
    code += [(RET, 0, 0, ALLOW)]
    program = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *c) for c in code))
    return program, ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(code), ctypes.addressof(program)))


FILTER = seccomp_filter()


def obey_filter():
    """For this process and all that it starts."""
    PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
    syscall('prctl', PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if FILTER:
        syscall('prctl', PR_SET_SECCOMP, SECCOMP_MODE_FILTER, FILTER[1])


LANDLOCK = 444  # landlock_create_ruleset
KEEPS_SIGNALS = libc.syscall(LANDLOCK, None, 0, 1) >= 6  # the version that it speaks


def keep_signals_inside():
    """This process and all that it starts can signal nobody else."""
    PR_SET_NO_NEW_PRIVS, RESTRICT_SELF, SCOPE_SIGNAL = 38, 446, 2
    syscall('prctl', PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    rules = syscall('syscall', LANDLOCK, struct.pack('QQQ', 0, 0, SCOPE_SIGNAL), 24, 0)
    syscall('syscall', RESTRICT_SELF, rules, 0)
    os.close(rules)


def drop_capabilities():
    head = ctypes.create_string_buffer(struct.pack('Ii', 0x20080522, 0))
    syscall('capset', head, ctypes.create_string_buffer(24))


MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096


def mount(what, where, kind, flags, options=''):
    syscall('mount', what.encode(), where.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())


def own_namespaces(flags):
    """Enters a user namespace of its own, in which this process has all capabilities, and those in `flags`. Only while nothing else
    runs: writing the maps needs a process that can be inspected."""
    inspectable(True)
    try:
        syscall('unshare', CLONE_NEWUSER | flags)
        for name, text in (('setgroups', 'deny'), ('uid_map', '%d %d 1' % (USER, USER)), ('gid_map', '%d %d 1' % (USER, USER))):
            with open('/proc/self/' + name, 'w') as f:
                f.write(text)
    finally:
        inspectable(False)


def limit_files():
    """In bubblewrap, which limits the size of its folders in memory but not the number of their files: the same folders again, with
    room for one file per 4 KB."""
    try:
        own_namespaces(CLONE_NEWNS)
    except OSError:
        return False  # nested user namespaces are not allowed on this machine
    try:
        for path, mode in ((HOME, '755'), ('/tmp', '1777'), ('/var/tmp', '1777'), ('/dev/shm', '1777')):
            s = os.statvfs(path)
            size = s.f_blocks * s.f_frsize
            mount('tmpfs', path, 'tmpfs', MS_NOSUID | MS_NODEV, 'size=%d,nr_inodes=%d,mode=%s' % (size, size >> 12, mode))
        return True
    except OSError:
        return False
    finally:
        drop_capabilities()


class Program:
    """One that was started, by this process or by another that starts for it. `number` is its pid where it was started."""

    def __init__(self, number, starter, pipes=(None, None, None)):
        self.number, self.starter = number, starter
        self.stdin, self.stdout, self.stderr = pipes

    @property
    def key(self):
        return self.starter, self.number

    def kill_group(self):
        if self.starter:
            self.starter.kill_group(self.number)
        else:
            kill_group(self.number)


# Ids of programs in a container: the user's, the X server's, and the verifier's.
IDS = {'user': (USER, USER, []), 'x': (XUSER, XUSER, []), 'verifier': (USER, VERIFIER, [USER])}


def popen(argv, cwd, env, fds, who='user'):
    """Starts a program; raises the OSError that it met before it ran."""
    uid, gid, groups = IDS[who]
    ids = {'user': uid, 'group': gid, 'extra_groups': groups} if ROOT else {}
    p = subprocess.Popen(argv, stdin=fds[0], stdout=fds[1], stderr=fds[2], cwd=cwd, env=env, start_new_session=True, umask=0o022, **ids)
    p.returncode = 0  # we reap by ourselves; Popen must not
    return p.pid


def rank(pid, oom):
    """Memory runs out on applications first, then on the window manager, never on the X server or the agent."""
    try:
        with open('/proc/%d/oom_score_adj' % pid, 'w') as f:
            f.write(str(oom))
    except OSError:
        pass


class Starter:
    """A process that starts programs for this one, so that they are born behind its walls: the filter, and with `inside` the namespaces
    of a session, of which it is the first process. Neither can programs of the user end or stop the first process of their namespace,
    nor trace one that refuses inspection. In a container the wall is one for signals, and this process stays root. Making one inside
    fails with OSError where nested user namespaces are not allowed, or the kernel has no such wall."""

    WAIT = 10  # seconds for an answer

    def __init__(self, inside, ended):
        self.ended, self.inbuf, self.late = ended, bytearray(), []
        self.sock, theirs = socket.socketpair()
        maker = os.fork()
        if maker == 0:
            self.become(theirs, inside)
        theirs.close()
        self.sock.settimeout(self.WAIT)
        spaces = inside and not ROOT
        made = {} if spaces else {'pid': maker}
        try:
            while not (made.keys() >= {'pid', 'ready'} or 'error' in made):
                made.update(self.answer())
        except OSError:
            made['error'] = 'it ended'
        self.pid = made.get('pid')
        if spaces:
            os.waitpid(maker, 0)
        if 'error' in made:
            self.sock.close()
            raise OSError(errno.EPERM, made['error'])
        sel.register(self.sock, selectors.EVENT_READ, self.ready)

    # --- this side
    def ready(self, _mask):
        try:
            data = self.sock.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b''
        if not data:
            return self.close()
        self.inbuf += data
        self.tell_exits()

    def lines(self):
        while b'\n' in self.inbuf:
            line, _, rest = bytes(self.inbuf).partition(b'\n')
            self.inbuf = bytearray(rest)
            yield json.loads(line)

    def tell_exits(self):
        self.late += self.lines()
        while self.late:
            said = self.late.pop(0)
            self.ended(self, said['exit'], said['status'])

    def answer(self):
        """The next answer; exits that come with it are told later."""
        while True:
            for said in self.lines():
                if 'exit' not in said:
                    timers.at(0, self.tell_exits)
                    return said
                self.late.append(said)
            data = self.sock.recv(1 << 16)
            if not data:
                raise OSError(errno.EPIPE, 'what starts programs has ended')
            self.inbuf += data

    def ask(self, m, fds=()):
        data = json.dumps(m).encode()
        socket.send_fds(self.sock, [struct.pack('I', len(data))], list(fds))
        self.sock.sendall(data)

    def start(self, argv, cwd, env, fds, oom):
        self.ask({'argv': argv, 'cwd': cwd, 'env': env, 'oom': oom}, fds)
        said = self.answer()
        if 'errno' in said:
            raise OSError(said['errno'], os.strerror(said['errno']))
        return said['pid']

    def kill_group(self, number):
        try:
            self.ask({'kill': number})
        except OSError:
            pass

    def close(self):
        if self.sock.fileno() >= 0:
            if self.sock.fileno() in sel.get_map():
                sel.unregister(self.sock)
            self.sock.close()

    # --- the other side
    def become(self, sock, inside):
        try:
            signal.set_wakeup_fd(-1)
            if ROOT:
                keep_signals_inside()
            elif inside:
                own_namespaces(CLONE_NEWNS | CLONE_NEWPID)
                first = os.fork()
                if first:
                    sock.sendall(b'{"pid":%d}\n' % first)
                    os._exit(0)
                self.furnish()
            if not ROOT:  # containers have their engine's
                obey_filter()
            for fd in os.listdir('/proc/self/fd'):
                if int(fd) > 2 and int(fd) != sock.fileno():
                    try:
                        os.close(int(fd))
                    except OSError:  # the listing's own
                        pass
            self.serve(sock)
        except BaseException as x:
            try:
                sock.sendall(json.dumps({'error': str(x)}).encode() + b'\n')
            finally:
                os._exit(1)

    def furnish(self):
        """The screen's memory and the X server's socket are not the user's to replace."""
        calm = MS_NOSUID | MS_NODEV | MS_NOEXEC
        mount('proc', '/proc', 'proc', calm)
        mount('tmpfs', RUN, 'tmpfs', calm | MS_RDONLY, 'size=4096')
        mount(X11, X11, '', MS_BIND)
        mount('', X11, '', calm | MS_BIND | MS_REMOUNT | MS_RDONLY)
        drop_capabilities()

    def serve(self, sock):
        own = selectors.DefaultSelector()
        wr, ww = os.pipe()
        for fd in (wr, ww):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(ww, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        own.register(sock, selectors.EVENT_READ)
        own.register(wr, selectors.EVENT_READ)
        mine = set()
        sock.sendall(b'{"ready":1}\n')
        while True:
            for key, _ in own.select():
                if key.fd == wr:
                    os.read(wr, 4096)
                    self.report(sock, mine)
                else:
                    self.obey(sock, mine)

    def obey(self, sock, mine):
        head, fds, _, _ = socket.recv_fds(sock, 4, 8)
        if len(head) < 4:
            os._exit(0)
        m = json.loads(sock.recv(struct.unpack('I', head)[0], socket.MSG_WAITALL))
        if 'kill' in m:
            if m['kill'] in mine:
                kill_group(m['kill'])
            return
        try:
            pid = popen(m['argv'], m['cwd'], m['env'], fds)
            rank(pid, m['oom'])
            mine.add(pid)
            said = {'pid': pid}
        except OSError as x:
            said = {'errno': x.errno or errno.EIO}
        except ValueError:
            said = {'errno': errno.EINVAL}
        for fd in fds:
            os.close(fd)
        sock.sendall(json.dumps(said).encode() + b'\n')

    def report(self, sock, mine):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in mine:
                mine.discard(pid)
                sock.sendall(b'{"exit":%d,"status":%d}\n' % (pid, status))


DEVNULL = os.open('/dev/null', os.O_RDWR | os.O_CLOEXEC)


@contextlib.contextmanager
def as_user():
    """Files are opened with the rights of the user, also where this process is root: a link of theirs leads to nothing more."""
    if not ROOT:
        yield
        return
    os.setegid(USER)
    os.seteuid(USER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class SysV:
    """System V shared memory, semaphores and message queues outlive their makers."""
    KINDS = (('shm', 1, lambda i: libc.shmctl(i, 0, None)), ('sem', 1, lambda i: libc.semctl(i, 0, 0)), ('msg', 1, lambda i: libc.msgctl(i, 0, None)))

    @staticmethod
    def remove_all():
        for kind, column, remove in SysV.KINDS:
            try:
                with open('/proc/sysvipc/' + kind) as f:
                    ids = [int(line.split()[column]) for line in f.readlines()[1:]]
            except OSError:
                continue
            for i in ids:
                remove(i)


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
    """One command with its pipes. Ends when the command itself ends, even if something it started still holds the pipes. What a
    command of the verifier leaves running ends with it."""

    def __init__(self, proc, stdin, timeout, verifier, done):
        self.proc, self.done, self.verifier, self.timed_out, self.stopped = proc, done, verifier, False, False
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
        # Without walls a program of the user can have done it, and so it can through a terminal of its own.
        self.stopped = self.verifier and desk.session is not None and (b'T', b'0') in states_of_session(self.proc.number)
        self.proc.kill_group()

    def finish(self, status):
        timers.cancel(self.timer)
        disturbed = self.verifier and desk.disturbed()
        if self.verifier:
            self.proc.kill_group()
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
            self.done({'code': os.WEXITSTATUS(status) if os.WIFEXITED(status) else None, 'stdout': out, 'stderr': err,
                       'timedOut': self.timed_out, 'stopped': self.stopped, 'disturbed': disturbed})


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def states_of_session(sid):
    """State and terminal (as in /proc) of the processes of a session."""
    for pid in os.listdir('/proc'):
        if pid.isdigit():
            try:
                with open('/proc/%s/stat' % pid, 'rb') as f:
                    fields = f.read().rpartition(b')')[2].split(None, 5)
                if int(fields[3]) == sid:
                    yield fields[0], fields[4]
            except (OSError, IndexError):
                pass


def signal_all(sig, users):
    """To every process of the desktop but this one. kill(-1) is atomic, so a fork bomb cannot outrun it. As root we become each user
    in turn (CAP_KILL is out of effect meanwhile), which spares the bridges that run as root."""
    for uid in users if ROOT else (None,):
        if uid is not None:
            os.setresuid(NOBODY, uid, 0)  # as a real uid, it would let the user's programs signal this process meanwhile
        try:
            os.kill(-1, sig)
        except (ProcessLookupError, PermissionError):
            pass
        finally:
            if uid is not None:
                os.setresuid(0, 0, 0)


def wipe(top, keep=()):
    """Empties a folder, however deep and whatever the modes inside. Folders in folders are moved to the top first, so that neither the
    stack nor the length of a path is a limit. File systems mounted below keep their mount point."""
    try:
        root = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        os.chmod(top, 0o700)
        root = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    passed = (errno.EBUSY, errno.ENOENT, errno.ENOTEMPTY)
    mark, moved = '.wiped-' + os.urandom(8).hex(), 0
    pending = [None]
    try:
        while pending:
            name = pending.pop()
            at = root if name is None else os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
            try:
                if name is None:
                    os.fchmod(root, os.fstat(root).st_mode | 0o700)
                with os.scandir(at) as entries:
                    for e in entries:
                        if name is None and e.name in keep:
                            continue
                        try:
                            if not e.is_dir(follow_symlinks=False):
                                os.unlink(e.name, dir_fd=at)
                                continue
                            os.chmod(e.name, 0o700, dir_fd=at)
                            moved += 1
                            os.rename(e.name, '%s-%d' % (mark, moved), src_dir_fd=at, dst_dir_fd=root)
                            pending.append('%s-%d' % (mark, moved))
                        except OSError as x:
                            if x.errno == errno.EXDEV or (x.errno == errno.EBUSY and e.is_dir(follow_symlinks=False)):
                                wipe(os.path.join('/proc/self/fd/%d' % at, e.name))
                            elif x.errno not in passed:
                                raise
                if name is not None:
                    try:
                        os.rmdir(name, dir_fd=root)
                    except OSError as x:
                        if x.errno not in passed:
                            raise
            finally:
                if name is not None:
                    os.close(at)
    finally:
        os.close(root)


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


def user_states():
    """(pid, state) of every process that runs as this user's programs do."""
    for pid in os.listdir('/proc'):
        if pid.isdigit():
            try:
                if ROOT and os.stat('/proc/' + pid).st_uid != USER:
                    continue
                with open('/proc/%s/stat' % pid, 'rb') as f:
                    yield int(pid), f.read().rpartition(b')')[2].split(None, 1)[0]
            except (OSError, IndexError):
                pass


def user_tasks(skip):
    """(pid, task, state, how often it has left a processor) of every task that runs as this user's programs do."""
    for pid in os.listdir('/proc'):
        if not pid.isdigit() or int(pid) in skip:
            continue
        try:
            if ROOT and os.stat('/proc/' + pid).st_uid != USER:
                continue
            tasks = os.listdir('/proc/%s/task' % pid)
        except OSError:
            continue
        for t in tasks:
            try:
                with open('/proc/%s/task/%s/status' % (pid, t), 'rb') as f:
                    status = dict(line.split(b':\t', 1) for line in f.read().splitlines() if b':\t' in line)
                switches = int(status[b'voluntary_ctxt_switches']) + int(status[b'nonvoluntary_ctxt_switches'])
                yield int(pid), int(t), status[b'State'][:1], switches
            except (OSError, KeyError, ValueError):
                pass


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


# Where poll, epoll_wait and epoll_pwait keep their time-out in /proc/T/syscall, as drivers/taskWatch.ts has it; elsewhere hold judges.
TIMED = {'x86_64': {b'7': 3, b'232': 4, b'281': 4}, 'aarch64': {b'22': 4}}.get(os.uname().machine)


def activity(skip=('1',)):
    """One look at all tasks: (running?, smallest poll timeout in ms or None, fingerprint of all run times, /proc/T/syscall readable?, a terminal?)."""
    running, soonest, exact, marks, terminal = False, None, TIMED is not None, [], False
    for pid in os.listdir('/proc'):
        if not pid.isdigit() or pid in skip:
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
                raw = int(call[TIMED[call[0]]], 16) & 0xffffffff if call[0] in TIMED else 0xffffffff
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
    # A program that uses less of a core than this for two horizons only looks whether something is to be done (drivers/settle.ts).
    IDLE_SHARE, FRAME = 0.01, 20

    def __init__(self, horizon, most, terminal_hold, done):
        self.horizon, self.done, self.began = horizon, done, time.monotonic()
        self.terminal_hold = self.TERMINAL_HOLD if terminal_hold is None else terminal_hold / 1000
        self.end, self.quiet_since, self.last, self.exact = self.began + most / 1000, None, None, True
        self.measured, self.idle, self.late = None, False, None
        self.look()

    def look(self):
        running, soonest, marks, self.exact, terminal = activity(desk.own)
        now = time.monotonic()
        wait = 0.002
        if running or marks != self.last or self.quiet_since is None:
            self.quiet_since = None if running else now
            if running:
                self.idle = False
            else:
                wait = 0.0005
        elif self.exact and soonest is not None and soonest <= self.horizon and not self.only_looks(marks, now):
            wait = max(0.001, soonest / 2000)
        elif now - self.quiet_since >= self.hold(terminal):
            return self.finish(True, now)
        self.last = marks
        if now >= self.end:
            return self.finish(False, now)
        if self.late is None and now - self.began >= (self.end - self.began) / 2:
            self.late = now, self.waits(marks)
        timers.at(min(wait, max(0.0, self.end - now)), self.look)

    def only_looks(self, marks, now):
        last, span = self.measured, 2 * self.horizon / 1000
        if self.horizon <= self.FRAME:
            return False
        if not last or now - last[0] >= span:
            self.measured = now, sum(int(m.split()[0]) for _, m in marks) / 1e9
            self.idle = bool(last) and 0 <= self.measured[1] - last[1] <= self.IDLE_SHARE * (now - last[0])
        return self.idle

    @staticmethod
    def waits(marks):
        """Seconds that each task has waited for a processor."""
        return {t: int(m.split()[1]) / 1e9 for t, m in marks}

    def starved(self, now):
        """Of the second half of the time, the share that one task waited for a processor, that which waited longest."""
        if self.late is None or now <= self.late[0]:
            return 0
        since, before = self.late
        longest = max((w - before.get(t, 0) for t, w in self.waits(self.last).items()), default=0)
        return min(1, max(0, longest / (now - since)))

    def hold(self, terminal):
        """A horizon of 0 asks only whether something is at work now."""
        if self.horizon <= 0:
            return 0
        return self.HOLD if not self.exact else self.terminal_hold if terminal else 0

    def finish(self, settled, now):
        report = {'settled': settled, 'ms': (now - self.began) * 1000, 'detector': 'exact' if self.exact else 'hold'}
        self.done(report if settled else {**report, 'starved': self.starved(now)})


class DesktopAgent:
    def __init__(self):
        self.clients, self.children, self.execs, self.forwards = [], {}, {}, {}
        self.env, self.resetting, self.x_line, self.bus_line = env_for(False), None, None, None
        self.session, self.judging, self.xpid, self.wm, self.wm_restarts, self.wm_late, self.frozen = None, None, None, None, 0, False, None
        self.skeleton = load_skeleton()
        self.double_click = double_click_ms()

    @property
    def own(self):
        """Processes whose rest is not asked about: this one and those that start programs."""
        return (str(os.getpid()), *(str(s.pid) for s in (self.session, self.judging) if s))

    # --- processes
    def start(self, argv, cwd=None, env=None, who='user', oom=600, pipes=False, stdin=None, stdout=None):
        if not isinstance(argv, list) or not argv or not all(isinstance(a, str) and '\0' not in a for a in argv):
            raise Fail('argv must be a list of strings', 'EINVAL')
        starter = self.starter_for(who)
        ends, fds = (), [DEVNULL if stdin is None else stdin, DEVNULL if stdout is None else stdout, DEVNULL]
        try:
            if pipes:
                made = []
                try:
                    for _ in range(3):
                        made.append(os.pipe())
                finally:
                    fds, ends = [p[i > 0] for i, p in enumerate(made)], [p[i == 0] for i, p in enumerate(made)]
            what = argv, cwd or HOME, {**self.env, **(env or {})}, fds
            number = starter.start(*what, oom) if starter else popen(*what, who)
        except (OSError, ValueError) as x:
            for fd in ends:
                os.close(fd)
            code = getattr(x, 'errno', None) or errno.EINVAL
            raise Fail('%s: %s' % (argv[0], os.strerror(code)), errno.errorcode.get(code)) from None
        finally:
            if pipes:
                for fd in fds:
                    os.close(fd)
        if not starter:
            rank(number, oom)
        p = Program(number, starter, [os.fdopen(fd, m, 0) for fd, m in zip(ends, ('wb', 'rb', 'rb'))] if pipes else (None, None, None))
        self.children[p.key] = os.path.basename(argv[0])
        return p

    def starter_for(self, who):
        if who == 'user':
            if self.frozen is not None and self.session:
                raise Fail('the programs of the desktop stand still while it is judged', 'EBUSY')
            return self.session
        if ROOT or who == 'x':
            return None
        if not self.judging or self.judging.sock.fileno() < 0:
            self.judging = Starter(False, self.ended)
        return self.judging

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended(None, pid, status)

    def ended(self, starter, pid, status):
        name, ex = self.children.pop((starter, pid), None), self.execs.pop((starter, pid), None)
        self.forwards = {port: key for port, key in self.forwards.items() if key != (starter, pid)}
        if ex:
            ex.finish(status)
        elif name is not None:
            sig = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            self.tell({'event': 'exit', 'pid': pid, 'name': name, 'code': None if sig else os.WEXITSTATUS(status),
                       'signal': signal.Signals(sig).name if sig and sig < 32 else sig and str(sig)})
            if self.resetting and name in ('Xvfb', 'dbus-daemon'):
                self.fail_reset('%s ended while the desktop was being started' % name)
            elif (starter, pid) == self.wm and not self.resetting:
                self.restart_wm()

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
        return {'pid': self.start(m.get('argv'), m.get('cwd'), m.get('env')).number}

    def do_exec(self, m, done):
        verifier = bool(m.get('verifier'))
        # What the user left in their home must not run inside a python of the verifier's.
        clean = {'PYTHONNOUSERSITE': '1', 'PYTHONSAFEPATH': '1', 'PYTHONDONTWRITEBYTECODE': '1'} if verifier else {}
        p = self.start(m.get('argv'), m.get('cwd'), {**clean, **(m.get('env') or {})}, who='verifier' if verifier else 'user', pipes=True)
        self.execs[p.key] = Exec(p, base64.b64decode(m.get('stdin') or ''), (m.get('timeoutMs') or 30000) / 1000, verifier, done)
        if m.get('tag') is not None:
            self.execs[p.key].tag = m['tag']

    def do_kill(self, m, _):
        for ex in list(self.execs.values()):
            if getattr(ex, 'tag', None) == m.get('tag'):
                ex.proc.kill_group()
        return {}

    def do_freeze(self, m, _):
        self.frozen = {}
        if not ROOT:
            self.starter_for('verifier')
        signal_all(signal.SIGSTOP, (USER,))
        if not ROOT:
            for pid in self.spared():
                os.kill(pid, signal.SIGCONT)
        self.frozen = self.marks(self.stopped())
        return {}

    def stopped(self):
        """(pid, task) of all that stand still now. A program that runs on another core stops when the signal reaches it there, within
        microseconds. One that goes on all the same (a timer of its own sends it SIGCONT, say) is stopped again, and ended after a while."""
        began = time.monotonic()
        while True:
            tasks = list(user_tasks(self.not_theirs()))
            late = time.monotonic() - began
            moving = {pid for pid, _, state, _ in tasks if state in b'RS'}
            # One that waits for a disk stops when it has waited; one whose child took its place stops when the child goes on.
            waiting = late < 0.1 and any(state == b'D' for _, _, state, _ in tasks)
            if not moving and not waiting:
                return [(pid, task) for pid, task, state, _ in tasks if state == b'T']
            if late > STOPPING + ENDING:
                self.relieve()
                return []
            for pid in moving:
                resists = late > STOPPING and not (self.session and pid == self.session.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if resists else signal.SIGSTOP)
            time.sleep(0.0005)

    def marks(self, stopped):
        """By task, what changes if it runs."""
        for pid, task in stopped:
            # It is told as stopped before it has left its processor; this file is read when it has.
            with contextlib.suppress(OSError), open('/proc/%d/task/%d/syscall' % (pid, task), 'rb') as f:
                f.read()
        now = {task: switches for _, task, _, switches in user_tasks(self.not_theirs())}
        return {task: now.get(task) for _, task in stopped}

    def disturbed(self):
        """Whether a program of the user has run although all were to stand still."""
        if not self.frozen:
            return False
        now = {task: switches for _, task, _, switches in user_tasks(self.not_theirs())}
        return any(now.get(task) != switches for task, switches in self.frozen.items())

    def spared(self):
        """In bubblewrap, what is not the user's although it runs under their uid."""
        return [pid for pid in (self.xpid, self.judging and self.judging.pid) if pid]

    def not_theirs(self):
        return {os.getpid(), *self.spared()}

    def do_thaw(self, m, _):
        self.frozen = None
        signal_all(signal.SIGCONT, (USER,))
        if self.wm_late:
            self.restart_wm()
        return {}

    def do_relieve(self, m, _):
        """Ends the programs of the user and only them: room for a command where they have used up all processes or memory."""
        if not ROOT and not self.session:
            self.do_freeze(m, None)  # what stands still cannot fork
        self.relieve()
        self.frozen = None
        return {}

    def relieve(self):
        self.wm, self.wm_late = None, False
        if ROOT:
            signal_all(signal.SIGKILL, (USER,))
        elif self.session:
            os.kill(self.session.pid, signal.SIGKILL)  # and with it all of the session
            self.session.close()
            os.waitpid(self.session.pid, 0)
            self.session = Starter(True, self.ended)
        else:
            for pid, _state in user_states():
                if pid != os.getpid() and pid not in self.spared():
                    os.kill(pid, signal.SIGKILL)
        own = {os.getpid(), *self.spared(), self.session and self.session.pid}
        end = time.monotonic() + 2
        while time.monotonic() < end and any(pid not in own for pid, _state in user_states()):
            self.reap()
            time.sleep(0.001)

    def do_state(self, m, _):
        try:
            with open('/proc/%d/stat' % (self.xpid or 0), 'rb') as f:
                fields = f.read().rpartition(b')')[2].split()
        except OSError:
            return {'x': None, 'xCpuMs': 0}
        return {'x': fields[0].decode(), 'xCpuMs': (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf('SC_CLK_TCK')}

    def do_read(self, m, _):
        """A part of a regular file. Nothing else is opened for long: a pipe would block, a device never end."""
        path = m['path']
        with as_user():
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise Fail('%s is a folder' % path, 'EISDIR')
            if not stat.S_ISREG(found.st_mode):
                raise Fail('%s is not a regular file' % path, 'ENOTREG')
            if found.st_size > READ_CAP:
                raise Fail('%s is larger than %d MB' % (path, READ_CAP >> 20), 'EFBIG')
            try:
                data = os.pread(fd, READ_PART, int(m.get('offset') or 0))
            except OSError:
                # A link to /proc/PID/mem is a regular file that cannot be read; a broken disk is another matter.
                # Where nothing is mounted there, it is the root's own device.
                if found.st_dev in {os.stat(d).st_dev for d in ('/proc', '/sys') if os.path.ismount(d)}:
                    raise Fail('%s is not a regular file' % path, 'ENOTREG')
                raise
        finally:
            os.close(fd)
        return {'data': base64.b64encode(data).decode(), 'more': len(data) == READ_PART}

    def do_write(self, m, _):
        """A part of a file, the first of which makes it."""
        path, at, made = m['path'], int(m.get('offset') or 0), []
        if not os.path.isabs(path):
            raise Fail('path must be absolute', 'EINVAL')
        data = base64.b64decode(m['data'])
        with as_user():
            parent = os.path.dirname(path)
            while at == 0 and not os.path.isdir(parent):
                if os.path.lexists(parent):
                    raise Fail('%s is not a folder' % parent, 'ENOTDIR')
                made.append(parent)
                parent = os.path.dirname(parent)
            for p in reversed(made):
                os.mkdir(p, 0o755)
            fd = os.open(path, os.O_WRONLY | (0 if at else os.O_CREAT) | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Fail('%s is not a regular file' % path, 'ENOTREG')
            os.ftruncate(fd, at)
            os.lseek(fd, at, os.SEEK_SET)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
        finally:
            os.close(fd)
        return {}

    def do_forward(self, m, _):
        """The socket is made here, where no program of the user can put another in its place: the host connects to it."""
        port = int(m['port'])
        path = '%s/tcp-%d.sock' % (RUN, port)
        if port in self.forwards:
            return {}
        if not 0 < port < 1 << 16 or len(self.forwards) >= FORWARDS:
            raise Fail('no way can be made to port %d' % port, 'EINVAL')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            os.chmod(path, 0o700 if not ROOT else 0o600)
            listening.listen(CARRIED)
            argv = [sys.executable, '-I', '-S', os.path.abspath(__file__), '--forward', str(port)]
            key = self.start(argv, cwd='/', who='verifier', stdin=listening.fileno()).key
        self.children.pop(key)  # its end is no event
        self.forwards[port] = key
        return {}

    def do_settle(self, m, done):
        Settle(m.get('horizonMs', 20), m.get('maxMs', 2000), m.get('terminalHoldMs'), done)

    # --- reset: kill, wipe, X server, window manager
    def do_reset(self, m, done):
        if self.resetting:
            raise Fail('a reset is under way', 'EBUSY')
        began = time.monotonic()
        for ex in list(self.execs.values()):
            ex.finish(signal.SIGKILL)
        self.children.clear()
        self.execs.clear()
        self.forwards.clear()
        if ROOT and self.session:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.session.pid, signal.SIGKILL)
        for _ in range(100):
            signal_all(signal.SIGKILL, (USER, XUSER))
            try:
                while True:
                    os.waitpid(-1, 0)
            except ChildProcessError:
                break
        for starter in (self.session, self.judging):
            if starter:
                starter.close()
        self.session, self.judging, self.xpid, self.wm, self.wm_restarts, self.wm_late, self.frozen = None, None, None, None, 0, False, None
        with as_user():
            SysV.remove_all()
        # In a container, /run and what else lies there is root's, and the agent's socket is in it.
        for path in WIPED if ROOT else (*WIPED, '/run'):
            wipe(path)
        for path in ('/tmp', '/var/tmp', '/dev/shm'):
            make_dir(path, 0o1777, 0)
        make_dir(HOME, 0o755, USER)
        make_dir(RUNTIME, 0o700, USER)
        make_dir(X11, 0o1777, 0)
        fb = RUN + '/fb'
        make_dir(fb, 0o755, XUSER)
        wipe(fb)
        a11y = m.get('a11y') or SETTINGS.get('accessibility')
        self.env = env_for(a11y)
        w, h = m['screen']
        r, wfd = os.pipe()
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        try:  # what programs have the X server keep for them is theirs, not its: bounded, or they could have it killed
            resource.setrlimit(resource.RLIMIT_DATA, (int(m.get('xDataMb') or 256) << 20, hard))
            x = self.start(['Xvfb', ':0', '-screen', '0', '%dx%dx24' % (w, h), '-fbdir', fb, '-displayfd', '1', '-nolisten', 'tcp', '-ac', '-noreset',
                            '-s', '0', '-dpi', '96', '-extension', 'GLX', '-extension', 'SELinux', '-extension', 'MIT-SCREEN-SAVER'],
                           who='x', stdout=wfd, oom=0)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
            os.close(wfd)
        self.xpid = x.number
        if not ROOT or KEEPS_SIGNALS:
            try:
                self.session = Starter(True, self.ended)
            except OSError as why:
                print('no session: %s' % why, file=sys.stderr, flush=True)
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
            self.start_wm()
            done({'ms': (time.monotonic() - began) * 1000, 'xpid': x.number, 'display': 0, 'doubleClickMs': self.double_click,
                  'walled': ROOT or self.session is not None})

        def x_up(_mask):
            got = os.read(r, 64)
            if not got:
                return self.fail_reset('the X server ended')
            if not got.endswith(b'\n'):
                return  # it writes number and newline apart, and dies if the pipe is closed in between
            sel.unregister(r)
            self.start_bus(wm) if a11y else wm()

        sel.register(r, selectors.EVENT_READ, x_up)

    def start_wm(self):
        self.wm = self.start(['jwm'], oom=300).key

    def restart_wm(self):
        # Nothing of the user's starts while the desktop is judged.
        self.wm_late = self.frozen is not None
        if self.wm_late or self.wm_restarts >= WM_RESTARTS:
            return
        self.wm_restarts += 1
        try:
            self.start_wm()
        except Fail:  # no room for it: the programs of the user have taken it all
            pass

    def start_bus(self, then):
        r, w = os.pipe()
        self.resetting['fds'].append(r)
        try:
            self.start(['dbus-daemon', '--session', '--nofork', '--nopidfile', '--address=unix:path=' + BUS, '--print-address=1'], stdout=w, oom=300)
        finally:
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

    def up():
        with contextlib.suppress(OSError):
            while True:
                data = os.read(0, 1 << 18)
                if not data:
                    s.shutdown(socket.SHUT_WR)
                    break
                s.sendall(data)
        # Nobody may be there any more to read what still comes.
        time.sleep(BRIDGE_LINGER)
        os._exit(0)

    # Each way by itself: who waits until one is taken up must not keep the other waiting.
    threading.Thread(target=up, daemon=True).start()
    with contextlib.suppress(OSError):
        while True:
            data = s.recv(1 << 18)
            if not data:
                break
            view = memoryview(data)
            while view:
                view = view[os.write(1, view):]
    os._exit(0)


def forward(port):
    import asyncio

    async def copy(reader, writer):
        while True:
            data = await reader.read(1 << 16)
            if not data:
                return writer.write_eof()
            writer.write(data)
            await writer.drain()

    async def carry(reader, writer):
        if len(carried) < CARRIED:
            carried.add(writer)
            try:
                await both_ways(reader, writer)
            except (OSError, asyncio.TimeoutError):  # nobody listens, or one side was cut
                pass
            finally:
                carried.discard(writer)
        writer.close()

    async def both_ways(reader, writer):
        to, there = await asyncio.wait_for(asyncio.open_connection('127.0.0.1', port), CONNECT)
        ways = [asyncio.ensure_future(copy(reader, there)), asyncio.ensure_future(copy(to, writer))]
        try:
            first, rest = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if rest and not any(w.exception() for w in first):
                await asyncio.wait(rest, timeout=LINGER)
        finally:
            whole = all(w.done() and not w.cancelled() and not w.exception() for w in ways)
            for w in ways:
                w.cancel()
            for t in (there, writer):
                t.close() if whole else t.transport.abort()

    async def main():
        listening = socket.socket(fileno=0)
        listening.setblocking(False)
        server = await asyncio.start_unix_server(carry, sock=listening, backlog=CARRIED)
        await server.serve_forever()

    carried = set()
    asyncio.run(main())


if __name__ == '__main__':
    if len(sys.argv) > 2 and sys.argv[1] == '--bridge':
        bridge(sys.argv[2])
    elif len(sys.argv) > 2 and sys.argv[1] == '--forward':
        forward(int(sys.argv[2]))
    else:
        if ROOT:
            os.setgroups([])
        else:
            limit_files()
        desk = DesktopAgent()
        serve()
