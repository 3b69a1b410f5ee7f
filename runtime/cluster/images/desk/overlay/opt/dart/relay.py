#!/usr/bin/env python3
"""Carries a desktop's sockets and screen over one pair of pipes (`docker exec`), for engines whose files the host cannot see:
remote ones, Docker Desktop, or a host process without the right to open the desktop's sockets. Needs no network.

Messages both ways: type (1 byte), channel (1 byte), length of payload (4 bytes, little-endian), payload.
  to us    OPEN ch path     connect channel `ch` to a unix socket       DATA ch bytes     CLOSE ch
           FRAME 0 flags    send the screen; flag 1: whole, not only what changed; flag 2: deflate it
  from us  OPENED ch        DATA ch bytes        CLOSED ch reason       FRAME 0 (see Screen.frame)
           ERROR 0 reason   the screen could not be read

The screen is the file that `Xvfb -fbdir` keeps (an XWD dump), so it is the same picture, pointer included, as on the fast path.
"""
import errno, os, selectors, socket, struct, time, zlib

OPEN, DATA, CLOSE, FRAME, ERROR = 1, 2, 3, 4, 5
WHOLE, DEFLATE = 1, 2
BAND = 16  # rows compared and sent together
FB = os.environ.get('DART_RUN', '/run/dart') + '/fb/Xvfb_screen0'
sel = selectors.DefaultSelector()
channels = {}
first = True


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]


def send(kind, channel, *parts):
    write_all(struct.pack('<BBI', kind, channel, sum(map(len, parts))))
    for p in parts:
        write_all(p)


def close(channel, reason=b''):
    s = channels.pop(channel, None)
    if s:
        sel.unregister(s)
        s.close()
        send(CLOSE, channel, reason)


def connect(channel, path):
    global first
    end = time.monotonic() + (5 if first else 0)  # the first one is the agent, which may just be starting
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            break
        except OSError as x:
            s.close()
            if time.monotonic() >= end or x.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                return send(CLOSE, channel, (x.strerror or str(x)).encode())
            time.sleep(0.003)
    first = False
    channels[channel] = s
    send(OPEN, channel)
    sel.register(s, selectors.EVENT_READ, lambda: from_socket(channel, s))


def from_socket(channel, s):
    try:
        data = s.recv(1 << 18)
    except OSError as x:
        return close(channel, (x.strerror or str(x)).encode())
    if data:
        send(DATA, channel, data)
    else:
        close(channel)


class Screen:
    def __init__(self):
        self.fd, self.ino, self.last = -1, None, None

    def frame(self, flags):
        """width, height, number of bands (u32 each), then per band: first row, rows, bytes (u32 each) and its BGRX pixels.
        With DEFLATE everything after the number of bands is one zlib stream."""
        st = os.stat(FB)
        if st.st_ino != self.ino:  # a new X server
            if self.fd >= 0:
                os.close(self.fd)
            self.fd, self.ino, self.last = os.open(FB, os.O_RDONLY | os.O_NOFOLLOW), st.st_ino, None
        head = struct.unpack('>25I', os.pread(self.fd, 100, 0))
        offset, width, height, line = head[0] + head[19] * 12, head[4], head[5], head[12]
        if head[1] != 7 or line != width * 4:
            raise ValueError('not an XWD file of 32-bit rows without padding')
        now = os.pread(self.fd, line * height, offset)
        if len(now) != line * height:
            raise ValueError('the framebuffer file is cut off')
        last = None if flags & WHOLE else self.last
        self.last = now
        bands = []
        if last is None:
            bands.append((0, height, now))
        elif last != now:
            for y in range(0, height, BAND):
                rows = min(BAND, height - y)
                part = now[y * line:(y + rows) * line]
                if part != last[y * line:(y + rows) * line]:
                    bands.append((y, rows, part))
        parts = []
        for y, rows, data in bands:
            parts += [struct.pack('<III', y, rows, len(data)), data]
        if flags & DEFLATE and parts:
            parts = [zlib.compress(b''.join(parts), 1)]
        send(FRAME, 0, struct.pack('<III', width, height, len(bands)), *parts)


screen = Screen()
inbuf = bytearray()


def from_host():
    data = os.read(0, 1 << 18)
    if not data:
        os._exit(0)
    inbuf.extend(data)
    while len(inbuf) >= 6:
        kind, channel, n = struct.unpack_from('<BBI', inbuf)
        if len(inbuf) < 6 + n:
            return
        payload = bytes(inbuf[6:6 + n])
        del inbuf[:6 + n]
        if kind == OPEN:
            connect(channel, payload.decode())
        elif kind == DATA and channel in channels:
            try:
                channels[channel].sendall(payload)
            except OSError as x:
                close(channel, (x.strerror or str(x)).encode())
        elif kind == CLOSE:
            close(channel)
        elif kind == FRAME:
            try:
                screen.frame(payload[0] if payload else 0)
            except (OSError, ValueError, struct.error) as x:
                send(ERROR, 0, str(x).encode())


sel.register(0, selectors.EVENT_READ, from_host)
while True:
    for key, _ in sel.select():
        if key.fileobj == 0 or key.fileobj in channels.values():
            key.data()
