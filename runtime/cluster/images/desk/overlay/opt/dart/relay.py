#!/usr/bin/env python3
"""Carries a desktop's sockets and screen over one pair of pipes (`docker exec`), for engines whose files the host cannot see:
remote ones, Docker Desktop, or a host process without the right to open the desktop's sockets. Needs no network.

Messages both ways: type (1 byte), channel (1 byte), length of payload (4 bytes, little-endian), payload.
  to us    OPEN ch path     connect channel `ch` to a unix socket       DATA ch bytes     CLOSE ch
           FRAME 0 flags    send the screen; flag 1: whole, not only what changed; flag 2: deflate it; flag 4: encode it
  from us  OPENED ch        DATA ch bytes        CLOSED ch reason       FRAME 0 (see Screen.frame)
           ERROR 0 reason   the screen could not be read                ENCODED 0 (see Screen.encoded)

The screen is the file that `Xvfb -fbdir` keeps (an XWD dump), so it is the same picture, pointer included, as on the fast path.
"""
import errno, os, selectors, socket, struct, time, zlib

OPEN, DATA, CLOSE, FRAME, ERROR, ENCODED = 1, 2, 3, 4, 5, 6
WHOLE, DEFLATE, ENCODE = 1, 2, 4
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
        self.fd, self.ino, self.last, self.shown = -1, None, None, None

    def read(self):
        """width, height and the pixels, BGRX"""
        st = os.stat(FB)
        if st.st_ino != self.ino:  # a new X server
            if self.fd >= 0:
                os.close(self.fd)
            self.fd, self.ino = os.open(FB, os.O_RDONLY | os.O_NOFOLLOW), st.st_ino
            self.last = self.shown = None
        head = struct.unpack('>25I', os.pread(self.fd, 100, 0))
        offset, width, height, line = head[0] + head[19] * 12, head[4], head[5], head[12]
        if head[1] != 7 or line != width * 4:
            raise ValueError('not an XWD file of 32-bit rows without padding')
        now = os.pread(self.fd, line * height, offset)
        if len(now) != line * height:
            raise ValueError('the framebuffer file is cut off')
        return width, height, now

    def frame(self, flags):
        """width, height, number of bands (u32 each), then per band: first row, rows, bytes (u32 each) and its BGRX pixels.
        With DEFLATE everything after the number of bands is one zlib stream."""
        width, height, now = self.read()
        last = None if flags & WHOLE else self.last
        self.last = now
        bands = [(0, height, now)] if last is None else list(changed(last, now, width, height))
        parts = []
        for y, rows, data in bands:
            parts += [struct.pack('<III', y, rows, len(data)), data]
        if flags & DEFLATE and parts:
            parts = [zlib.compress(b''.join(parts), 1)]
        send(FRAME, 0, struct.pack('<III', width, height, len(bands)), *parts)

    def encoded(self, flags):
        """width, height, rows of a band, bands that follow (u32 each), then per band: its number, Adler-32 and length (u32
        each) and deflate blocks of its scanlines: PNG's filter byte (0, none) and RGB. Each band is compressed on its own,
        so that the same picture is the same bytes whatever was sent before."""
        width, height, now = self.read()
        last = None if flags & WHOLE else self.shown
        self.shown = now
        parts, n = [], 0
        for y, rows, data in changed(last, now, width, height):
            lines = scanlines(data, width, rows)
            z = zlib.compressobj(1, zlib.DEFLATED, -15)
            packed = z.compress(lines) + z.flush(zlib.Z_FULL_FLUSH)
            parts += [struct.pack('<III', y // BAND, zlib.adler32(lines), len(packed)), packed]
            n += 1
        send(ENCODED, 0, struct.pack('<IIII', width, height, BAND, n), *parts)


def changed(last, now, width, height):
    """Bands of `now` that `last` does not have; all of them where there is no `last`."""
    line = width * 4
    if last == now:
        return
    for y in range(0, height, BAND):
        rows = min(BAND, height - y)
        part = now[y * line:(y + rows) * line]
        if last is None or part != last[y * line:(y + rows) * line]:
            yield y, rows, part


def scanlines(bgrx, width, rows):
    rgb = bytearray(width * rows * 3)
    rgb[0::3], rgb[1::3], rgb[2::3] = bgrx[2::4], bgrx[1::4], bgrx[0::4]
    n = width * 3
    return b''.join(b'\0' + rgb[y * n:(y + 1) * n] for y in range(rows))


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
                flags = payload[0] if payload else 0
                (screen.encoded if flags & ENCODE else screen.frame)(flags)
            except (OSError, ValueError, struct.error) as x:
                send(ERROR, 0, str(x).encode())


sel.register(0, selectors.EVENT_READ, from_host)
while True:
    for key, _ in sel.select():
        if key.fileobj == 0 or key.fileobj in channels.values():
            key.data()
