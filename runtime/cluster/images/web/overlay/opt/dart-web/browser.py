#!/usr/bin/python3
"""Chromium on the whole screen of a desktop, held by its own protocol (--remote-debugging-pipe; Python's standard library only).

    browser.py start PORT PROFILE [FLAG ...]     returns when the browser is there, which stays

It listens on 127.0.0.1:PORT inside the desktop, which has a network of its own. One request a connection: a line with a JSON list of commands
(which no page can send: the first line of its requests is HTTP's), answered by a line {"ok": [result, ...]} or
{"error": text, "at": index, "kind": "page" | "hung" | "browser" | "request"}:

    {"open": URL, "ms": 5000}              the page is loaded; one that is open stays -> {"opened": whether it was loaded}
    {"run": JAVASCRIPT, "ms": 2000}        its value, a promise's when it is settled                       -> {"value": ...}
    {"tidy": true}                         other pages and programs closed, storage cleared                -> {"whole": whether no other page was open}
    {"drawn": true}                        the page has painted what was changed; the screen follows        -> {}

"hung": the page has not answered in time. After "browser" this program ends, and Chromium with it.
Menus of the right button are off, since they lead to developer tools; jwm takes the keys that do (etc/jwm/system.jwmrc).
"""
import json, os, select, signal, socket, subprocess, sys, time

FLAGS = ['--kiosk', '--no-sandbox', '--test-type', '--no-first-run', '--no-default-browser-check', '--disable-gpu', '--disable-software-rasterizer',
         '--disable-dev-shm-usage', '--disable-breakpad', '--disable-crash-reporter', '--disable-component-update', '--disable-background-networking',
         '--disable-sync', '--disable-extensions', '--disable-default-apps', '--disable-translate', '--disable-notifications', '--disable-popup-blocking',
         '--disable-session-crashed-bubble', '--disable-infobars', '--disable-pinch', '--overscroll-history-navigation=0', '--disable-smooth-scrolling',
         '--disable-domain-reliability', '--no-pings', '--password-store=basic', '--use-mock-keychain', '--allow-file-access-from-files',
         '--disable-background-timer-throttling', '--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows',
         '--disable-features=Translate,MediaRouter,OptimizationHints,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,DialMediaRouteProvider,GlobalMediaControls',
         '--process-per-site', '--renderer-process-limit=1', '--in-process-gpu', '--remote-debugging-pipe']
LONGEST = 1 << 20
DRAWN = 'new Promise(d=>requestAnimationFrame(()=>{const c=new MessageChannel();c.port1.onmessage=()=>d(0);c.port2.postMessage(0)}))'
NO_MENU = "addEventListener('contextmenu', e => e.preventDefault(), true)"


class Hung(Exception):
    pass


class Page(Exception):
    pass


class Browser:
    def __init__(self, profile, flags):
        to_it, ours_out = os.pipe()
        ours_in, from_it = os.pipe()

        def descriptors():  # Chromium reads the protocol at 3 and writes it at 4
            a, b = os.dup(to_it), os.dup(from_it)
            os.dup2(a, 3)
            os.dup2(b, 4)

        os.set_inheritable(to_it, True)
        self.proc = subprocess.Popen(['/usr/bin/chromium', *FLAGS, '--user-data-dir=' + profile, *flags, 'about:blank'], preexec_fn=descriptors, pass_fds=(3, 4),
                                     close_fds=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        self.out, self.inn, self.buffer, self.number, self.loaded = ours_out, ours_in, bytearray(), 0, set()
        self.url, self.session, self.target = None, None, None
        end = time.monotonic() + 20
        self.call('Target.setDiscoverTargets', {'discover': True}, None, end)
        while not self.session:
            for t in self.pages(end):
                self.target = t['targetId']
                self.session = self.call('Target.attachToTarget', {'targetId': self.target, 'flatten': True}, None, end)['sessionId']
                break
        self.call('Page.enable', {}, self.session, end)
        self.call('Page.addScriptToEvaluateOnNewDocument', {'source': NO_MENU}, self.session, end)
        self.call('Page.setLifecycleEventsEnabled', {'enabled': True}, self.session, end)
        self.open({'open': 'about:blank', 'ms': 10000})

    # --- the protocol
    def send(self, method, params, session):
        self.number += 1
        m = {'id': self.number, 'method': method, 'params': params}
        if session:
            m['sessionId'] = session
        data = json.dumps(m).encode() + b'\0'
        while data:
            data = data[os.write(self.out, data):]
        return self.number

    def receive(self, end):
        """The next message; Hung when none has come by `end`."""
        while True:
            at = self.buffer.find(b'\0')
            if at >= 0:
                m = json.loads(bytes(self.buffer[:at]))
                del self.buffer[:at + 1]
                return m
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.inn], [], [], left)[0]:
                raise Hung('no answer in time')
            data = os.read(self.inn, 1 << 18)
            if not data:
                raise OSError('the browser ended')
            self.buffer += data

    def call(self, method, params, session, end):
        number = self.send(method, params, session)
        while True:
            m = self.receive(end)
            if m.get('id') == number:
                if 'error' in m:
                    raise Page('%s: %s' % (method, m['error'].get('message')))
                return m['result']
            if 'method' in m:
                self.happened(m)

    def happened(self, m):
        if m['method'] == 'Page.javascriptDialogOpening' and m.get('sessionId') == self.session:
            self.send('Page.handleJavaScriptDialog', {'accept': False}, self.session)
        elif m['method'] == 'Page.lifecycleEvent' and m['params']['name'] == 'load':
            self.loaded.add(m['params']['loaderId'])

    # --- commands
    def pages(self, end):
        return [t for t in self.call('Target.getTargets', {}, None, end)['targetInfos'] if t['type'] == 'page']

    def open(self, m):
        if m['open'] == self.url:
            return {'opened': False}
        end = time.monotonic() + m.get('ms', 5000) / 1000
        self.url = None
        self.loaded.clear()
        got = self.call('Page.navigate', {'url': m['open']}, self.session, end)
        if got.get('errorText'):
            raise Page(got['errorText'])
        while got['loaderId'] not in self.loaded:
            said = self.receive(end)
            if 'method' in said:
                self.happened(said)
        self.url = m['open']
        return {'opened': True}

    def run(self, m):
        end = time.monotonic() + m.get('ms', 2000) / 1000
        got = self.call('Runtime.evaluate', {'expression': m['run'], 'returnByValue': True, 'awaitPromise': True}, self.session, end)
        if 'exceptionDetails' in got:
            d = got['exceptionDetails']
            raise Page(d.get('exception', {}).get('description') or d.get('text') or 'an exception')
        return {'value': got['result'].get('value')}

    def tidy(self, m):
        end = time.monotonic() + m.get('ms', 2000) / 1000
        others = [t['targetId'] for t in self.pages(end) if t['targetId'] != self.target]
        for t in others:
            self.call('Target.closeTarget', {'targetId': t}, None, end)
        self.call('Storage.clearDataForOrigin', {'origin': 'file://', 'storageTypes': 'all'}, self.session, end)
        kill_strangers(self.proc.pid)
        return {'whole': not others}

    def drawn(self, m):
        """Its message comes after style, layout and paint of the next frame. Whoever looks at the screen waits until it rests."""
        return self.run({'run': DRAWN, 'ms': m.get('ms', 1000)}) and {}

    def obey(self, commands):
        done = []
        for i, m in enumerate(commands):
            try:
                name = next((n for n in ('open', 'run', 'tidy', 'drawn') if n in m), None)
                if name is None:
                    return {'error': 'no such command', 'at': i, 'kind': 'request'}
                done.append(getattr(self, name)(m))
            except Hung as x:
                return {'error': str(x), 'at': i, 'kind': 'hung'}
            except Page as x:
                return {'error': str(x)[:2000], 'at': i, 'kind': 'page'}
        return {'ok': done}


def kill_strangers(browser):
    """Ends programs of this user that neither are ours nor the window manager's (crash handlers of the browser, say, which leave its family)."""
    parents, names = {}, {}
    for pid in os.listdir('/proc'):
        if pid.isdigit():
            try:
                with open('/proc/%s/stat' % pid, 'rb') as f:
                    head, _, rest = f.read().rpartition(b') ')
                parents[int(pid)] = int(rest.split()[1])
                if os.stat('/proc/' + pid).st_uid == os.getuid():
                    names[int(pid)] = head.partition(b'(')[2]
            except OSError:
                continue
    for pid, name in names.items():
        up, seen = pid, 0
        while up not in (0, 1, browser, os.getpid()) and seen < 64:
            up, seen = parents.get(up, 0), seen + 1
        if up in (browser, os.getpid()) or name == b'jwm' or pid == 1:
            continue
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def line_of(c):
    data = bytearray()
    while not data.endswith(b'\n'):
        got = c.recv(1 << 16)
        if not got or len(data) > LONGEST:
            return None
        data += got
    return bytes(data)


def listen(port, profile, flags, ready):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', port))
    browser = Browser(profile, flags)
    s.listen(4)
    os.write(ready, b'ok')
    os.close(ready)
    while True:
        c, _ = s.accept()
        c.settimeout(2)
        with c:
            try:
                line = line_of(c)
                if line is None or not line.startswith(b'['):
                    continue
                try:
                    commands = json.loads(line)
                except ValueError:
                    c.sendall(b'{"error":"not JSON","at":0,"kind":"request"}\n')
                    continue
                try:
                    said = browser.obey(commands)
                except OSError as x:
                    c.sendall(json.dumps({'error': str(x), 'at': 0, 'kind': 'browser'}).encode() + b'\n')
                    return
                c.sendall(json.dumps(said).encode() + b'\n')
            except OSError:
                continue


def start(port, profile, flags):
    """Exit status 0 when it listens; else what went wrong is on standard error."""
    r, w = os.pipe()
    if os.fork():
        os.close(w)
        said = b''
        while True:
            got = os.read(r, 4096)
            if not got:
                break
            said += got
        if said != b'ok':
            sys.stderr.buffer.write(said or b'it ended')
            sys.exit(1)
        return
    os.close(r)
    os.setsid()
    null = os.open('/dev/null', os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    try:
        listen(port, profile, flags, w)
    except BaseException as x:
        try:
            os.write(w, str(x).encode()[:2000])
        except OSError:
            pass
    os._exit(1)


if __name__ == '__main__':
    start(int(sys.argv[2]), sys.argv[3], sys.argv[4:])
