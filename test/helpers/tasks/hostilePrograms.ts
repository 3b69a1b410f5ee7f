/** Programs that a policy could write and start in its desktop, to have a failure judged a success or not judged at all. */

/** Puts `forged` into the output of every process it can find, for ever; says so once it has begun. */
export const FORGER = `
import os, sys
me = str(os.getpid())
open('/tmp/forging', 'w').close()
while True:
    for pid in os.listdir('/proc'):
        if not pid.isdigit() or pid == me: continue
        for fd in ('1', '2'):
            try:
                h = os.open('/proc/%s/fd/%s' % (pid, fd), os.O_WRONLY | os.O_NONBLOCK)
                os.write(h, b'forged\\n')
                os.close(h)
            except OSError: pass
`;

/** Ends every process of the same user that it finds, for ever, but shells and itself. */
export const KILLER = `
import os, signal
me = os.getpid()
open('/tmp/killing', 'w').close()
while True:
    for pid in os.listdir('/proc'):
        if not pid.isdigit() or int(pid) in (1, me): continue
        try:
            if open('/proc/%s/comm' % pid).read().strip() not in ('jwm', 'python3'): os.kill(int(pid), signal.SIGKILL)
        except OSError: pass
`;

/**
 * Sends `signal` to every `md5sum` of the same user, for ever, and counts in /tmp/moves. Timers of its own let it go on
 * soon after it was stopped: several, since a stop also takes away a SIGCONT that is under way, and its timer with it.
 */
export const MEDDLER = (signal: 'KILL' | 'STOP'): string => `
import ctypes, os, signal, struct, time
signal.signal(signal.SIGCONT, lambda *_: None)  # a timer whose signal is ignored sends it once
c, moves, count = ctypes.CDLL(None), os.open('/tmp/moves', os.O_WRONLY | os.O_CREAT), 0
for ms in (11, 13, 17, 19, 23, 29, 31, 37):
    timer = ctypes.c_void_p()
    c.timer_create(1, struct.pack('<Qii48x', 0, signal.SIGCONT, 0), ctypes.byref(timer))
    c.timer_settime(timer, 0, struct.pack('<4q', 0, ms * 1000000, 0, ms * 1000000), None)
while True:
    count += 1
    os.pwrite(moves, b'%9d' % count, 0)
    for pid in os.listdir('/proc'):
        if not pid.isdigit(): continue
        try:
            if open('/proc/%s/comm' % pid).read() == 'md5sum\\n': os.kill(int(pid), signal.SIG${signal})
        except OSError: pass
    time.sleep(0.001)
`;

/** Takes the X server for itself and never answers for the clipboard that it owns. */
export const GRABBER = `
import socket, struct, time
s = socket.socket(socket.AF_UNIX); s.connect('/tmp/.X11-unix/X0')
s.sendall(struct.pack('<BxHHHHxx', 0x6c, 11, 0, 0, 0))
head = s.recv(8); n = struct.unpack('<H', head[6:8])[0] * 4
setup = b''
while len(setup) < n: setup += s.recv(n - len(setup))
base = struct.unpack('<I', setup[4:8])[0]
root = struct.unpack('<I', setup[32 + (struct.unpack('<H', setup[16:18])[0] + 3 & ~3) + setup[21] * 8:][:4])[0]
w = base + 1
s.sendall(struct.pack('<BBHIIhhHHHHII', 1, 0, 8, w, root, 0, 0, 9, 9, 0, 1, 0, 0))     # CreateWindow
s.sendall(struct.pack('<BBHI', 22, 0, 4, w) + struct.pack('<II', 1, 0))                 # SetSelectionOwner PRIMARY
s.sendall(struct.pack('<BBH', 36, 0, 1))                                                # GrabServer
s.sendall(struct.pack('<BBH', 43, 0, 1)); s.recv(32)
open('/tmp/grabbed', 'w').close()
time.sleep(600)
`;

/** A folder in a folder, so many times. */
export const NEST = (deep: number): string => `
import os
os.chdir(os.path.expanduser('~'))
for i in range(${deep}):
    os.mkdir('d'); os.chdir('d')
open('deepest', 'w').close()
`;

/** Forks until nothing is left to fork with, and keeps all that it got. */
export const BOMB = `
import os, time
open('/tmp/bombing', 'w').close()
while True:
    try:
        if os.fork() == 0: pass
    except OSError: time.sleep(0.01)
`;

/** Windows whose titles are as long as the X server allows, and many of them. */
export const TITLES = `
import socket, struct, time
s = socket.socket(socket.AF_UNIX); s.connect('/tmp/.X11-unix/X0')
s.sendall(struct.pack('<BxHHHHxx', 0x6c, 11, 0, 0, 0))
head = s.recv(8); n = struct.unpack('<H', head[6:8])[0] * 4
setup = b''
while len(setup) < n: setup += s.recv(n - len(setup))
base = struct.unpack('<I', setup[4:8])[0]
root = struct.unpack('<I', setup[32 + (struct.unpack('<H', setup[16:18])[0] + 3 & ~3) + setup[21] * 8:][:4])[0]
title = b'a b\\t' * 500
for i in range(120):
    w = base + 1 + i
    s.sendall(struct.pack('<BBHIIhhHHHHII', 1, 0, 8, w, root, 0, 0, 9, 9, 0, 1, 0, 0))
    if i < 3: s.sendall(struct.pack('<BBHIIIBxxxI', 18, 0, 6 + len(title) // 4, w, 39, 31, 8, len(title)) + title)
    s.sendall(struct.pack('<BBHI', 8, 0, 2, w))
s.sendall(struct.pack('<BBH', 43, 0, 1)); s.recv(32)
open('/tmp/titled', 'w').close()
time.sleep(600)
`;

/** A shell line: a program takes a lease on its result, so that whoever opens the file has to wait for the program. */
export const HOLDER = `python3 -c "
import fcntl, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open('/home/user/r', 'w')
f.write('x')
f.flush()
fcntl.fcntl(f, 1024, fcntl.F_WRLCK) # F_SETLEASE
open('/tmp/held', 'w')
time.sleep(600)
" > /dev/null 2>&1 & while [ ! -e /tmp/held ]; do sleep 0.05; done`;
