#!/usr/bin/env python3
"""PID 1 of a desktop on Kubernetes (standard library only). It runs the agent, and carries the relay's two pipes over channels that may
be cut: what was on its way when one ended is sent again over the next, so that neither side of the relay sees a gap.

  link.py serve SECONDS [PIDS]   runs the agent; ends with it, or when no host was heard for SECONDS. PIDS limits its processes, where
                                 this container has users of its own
  link.py attach                 hands its standard input and output to `serve` as the new channel, in place of the last one, and waits

Messages both ways: type (1 byte), length of payload (4 bytes, little-endian), payload.
  HELLO session received   16 bytes and 8: first on every channel, and its answer. An unknown session that received nothing is a new one:
                           it gets a relay of its own, and the last one's ends
  DATA bytes               ACK received (8 bytes): what may be forgotten        PING: answered with an ACK
  END reason               the session cannot be continued
"""
import ctypes, os, resource, selectors, signal, socket, struct, subprocess, sys, time

HELLO, DATA, ACK, PING, END = 1, 2, 3, 4, 5
HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.environ.get('DART_RUN', '/run/dart')
PATH = RUN + '/link.sock'
PIECE, ACK_EVERY = 1 << 18, 1 << 16
HELD = 1 << 25  # bytes sent and not yet acknowledged, beyond which the relay is not read
PYTHON = [sys.executable, '-S', '-E']
sel = selectors.DefaultSelector()


def message(kind, payload=b''):
    return struct.pack('<BI', kind, len(payload)) + payload


class Channel:
    """One pair of pipes to the host; `holder` keeps the process alive that brought them."""

    def __init__(self, holder, fds):
        self.holder, (self.fd_in, self.fd_out) = holder, fds
        self.inbuf, self.out, self.greeted = bytearray(), bytearray(), False
        for fd in fds:
            os.set_blocking(fd, False)
        sel.register(self.fd_in, selectors.EVENT_READ, self.read)
        sel.register(holder, selectors.EVENT_READ, self.close)

    def send(self, data):
        was = len(self.out)
        self.out += data
        if not was:
            self.flush()

    def flush(self):
        try:
            while self.out:
                del self.out[:os.write(self.fd_out, self.out[:PIECE])]
        except BlockingIOError:
            pass
        except OSError:
            return self.close()
        watched = self.fd_out in sel.get_map()
        if self.out and not watched:
            sel.register(self.fd_out, selectors.EVENT_WRITE, self.flush)
        elif watched and not self.out:
            sel.unregister(self.fd_out)

    def read(self):
        try:
            data = os.read(self.fd_in, PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b''
        if not data:
            return self.close()
        self.inbuf += data
        while len(self.inbuf) >= 5 and link.channel is self:
            kind, n = struct.unpack_from('<BI', self.inbuf)
            if len(self.inbuf) < 5 + n:
                return
            payload = bytes(self.inbuf[5:5 + n])
            del self.inbuf[:5 + n]
            link.take(self, kind, payload)

    def close(self):
        if self.holder.fileno() < 0:
            return
        for f in (self.fd_in, self.fd_out, self.holder):
            if f in sel.get_map():
                sel.unregister(f)
        os.close(self.fd_in)
        os.close(self.fd_out)
        self.holder.close()
        link.gone(self)


class Link:
    def __init__(self, patience):
        self.channel, self.relay, self.session = None, None, None
        self.patience, self.heard = patience, time.monotonic()
        self.forget()

    def forget(self):
        self.start, self.kept, self.received, self.acked, self.to_relay = 0, bytearray(), 0, 0, bytearray()

    def attach(self, holder, fds):
        last = self.channel
        self.channel = Channel(holder, fds)
        if last:
            last.close()

    def gone(self, channel):
        if channel is self.channel:
            self.channel = None

    def left(self):
        """Seconds until the end of a desktop that nobody uses. A channel alone does not count: its other end may be dead."""
        return max(0.0, self.heard + self.patience - time.monotonic())

    def take(self, channel, kind, payload):
        self.heard = time.monotonic()
        if kind == HELLO:
            self.hello(channel, payload[:16], struct.unpack('<Q', payload[16:24])[0])
        elif not channel.greeted:
            channel.close()
        elif kind == DATA:
            self.received += len(payload)
            self.to_relay += payload
            self.feed()
            if self.received - self.acked >= ACK_EVERY:
                self.ack(channel)
        elif kind == ACK:
            self.drop(struct.unpack('<Q', payload)[0])
        elif kind == PING:
            self.ack(channel)

    def ack(self, channel):
        self.acked = self.received
        channel.send(message(ACK, struct.pack('<Q', self.received)))

    def hello(self, channel, session, theirs):
        if session != self.session:
            if theirs:
                return channel.send(message(END, b'this desktop does not know the session'))
            self.begin(session)
        if not self.start <= theirs <= self.start + len(self.kept):
            return channel.send(message(END, b'what was sent meanwhile is no longer there'))
        self.drop(theirs)
        channel.greeted = True
        channel.send(message(HELLO, session + struct.pack('<Q', self.received)))
        for at in range(0, len(self.kept), PIECE):
            channel.send(message(DATA, bytes(self.kept[at:at + PIECE])))

    def drop(self, theirs):
        n = theirs - self.start
        if 0 < n <= len(self.kept):
            del self.kept[:n]
            self.start = theirs
            self.listen_to_relay()

    def begin(self, session):
        self.end_relay()
        self.session = session
        self.forget()
        self.relay = subprocess.Popen(PYTHON + [HERE + '/relay.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        os.set_blocking(self.relay.stdin.fileno(), False)
        self.listen_to_relay()

    def end_relay(self):
        if not self.relay:
            return
        for f in (self.relay.stdin, self.relay.stdout):
            if f in sel.get_map():
                sel.unregister(f)
            f.close()
        self.relay.kill()
        self.relay.wait()
        self.relay = None

    def listen_to_relay(self):
        if self.relay and len(self.kept) < HELD and self.relay.stdout not in sel.get_map():
            sel.register(self.relay.stdout, selectors.EVENT_READ, self.from_relay)

    def from_relay(self):
        data = os.read(self.relay.stdout.fileno(), PIECE)
        if not data:
            self.end_relay()
            self.session = None
            if self.channel:
                self.channel.send(message(END, b'the relay ended'))
            return
        self.kept += data
        if len(self.kept) >= HELD:
            sel.unregister(self.relay.stdout)
        if self.channel and self.channel.greeted:
            self.channel.send(message(DATA, data))

    def feed(self):
        if not self.relay:
            return
        pipe = self.relay.stdin
        try:
            while self.to_relay:
                del self.to_relay[:os.write(pipe.fileno(), self.to_relay[:PIECE])]
        except BlockingIOError:
            pass
        except OSError:  # it has ended: its output says so
            self.to_relay.clear()
        watched = pipe in sel.get_map()
        if self.to_relay and not watched:
            sel.register(pipe, selectors.EVENT_WRITE, self.feed)
        elif watched and not self.to_relay:
            sel.unregister(pipe)


def start_agent(pids):
    def prepare():
        PR_SET_CHILD_SUBREAPER = 36
        # What its programs leave behind comes to the agent, as if it were PID 1: a reset waits until all of it is gone.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if pids:
            resource.setrlimit(resource.RLIMIT_NPROC, (pids, pids))

    return subprocess.Popen(PYTHON + [HERE + '/agent.py'], stdin=subprocess.DEVNULL, preexec_fn=prepare)


def serve(patience, pids):
    global link
    for path, mode in (('/run', 0o755), (RUN, 0o755), ('/tmp', 0o1777), ('/var/tmp', 0o1777)):
        if os.getpid() == 1 and os.path.isdir(path):
            os.chmod(path, mode)  # a memory volume is open to everybody
    os.makedirs(RUN, exist_ok=True)
    if os.path.exists(PATH):
        os.unlink(PATH)
    server = socket.socket(socket.AF_UNIX)
    server.bind(PATH)
    os.chmod(PATH, 0o600)
    server.listen(4)
    link = Link(patience)

    def arrived():
        holder = server.accept()[0]
        try:
            fds = socket.recv_fds(holder, 1, 2)[1]
        except OSError:
            fds = []
        if len(fds) == 2:
            link.attach(holder, fds)
        else:
            holder.close()

    sel.register(server, selectors.EVENT_READ, arrived)
    wake, woken = os.pipe()
    for fd in (wake, woken):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    agent = start_agent(pids)

    def ended():
        try:
            os.read(wake, 4096)
        except BlockingIOError:
            pass
        if agent.poll() is not None:
            os._exit(agent.returncode if agent.returncode > 0 else 1)

    sel.register(wake, selectors.EVENT_READ, ended)
    while True:
        left = link.left()
        if left == 0.0:
            print('dart-link: no word for %d s, nobody uses this desktop' % patience, file=sys.stderr, flush=True)
            os._exit(0)
        for key, _ in sel.select(left):
            if key.fd in sel.get_map() and sel.get_map()[key.fd].data is key.data:
                key.data()


def attach():
    s = socket.socket(socket.AF_UNIX)
    end = time.monotonic() + 10  # `serve` may just be starting
    while True:
        try:
            s.connect(PATH)
            break
        except OSError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.003)
    socket.send_fds(s, [b'.'], [0, 1])
    for fd in (0, 1):
        os.close(fd)
    s.recv(1)


if __name__ == '__main__':
    if sys.argv[1:2] == ['attach']:
        attach()
    else:
        serve(float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
