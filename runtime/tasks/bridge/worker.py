"""OSWorld's own getters and metrics, one job after the other (runtime/tasks/README.md#evaluator-bridge).

JSON lines: jobs come on standard input, {"job": {...}}; what the evaluator wants to know of the desktop is asked on standard output,
{"ask": name, ...}, and answered {"answer": value}, {"file": path of its bytes, ours to delete} or {"fault": text}; each job ends with {"done": ...} or {"raised": ...}.

The evaluators catch nearly every exception and go on with None, which is then judged 0. So whatever fails on our side (the desktop,
a package that is not installed, the network) is noted in `faults`, and raised as what no `except Exception` catches.
"""
import base64, builtins, importlib.abc, importlib.machinery, json, os, resource, shutil, socket, sys, time, traceback, types

HEAVY = ('acoustid', 'borb', 'cv2', 'easyocr', 'fastdtw', 'fitz', 'formulas', 'imagehash', 'librosa', 'pydrive', 'scipy', 'skimage')
ADDRESS = 'desktop.invalid'
wire_in, wire_out = os.fdopen(os.dup(0), 'r', encoding='utf-8'), os.fdopen(os.dup(1), 'w', encoding='utf-8')
os.dup2(os.open(os.devnull, os.O_RDWR), 0)
os.dup2(2, 1)
faults = []


class Fault(BaseException):
    """Ours, not the policy's."""


def fault(text):
    faults.append(text)
    return Fault(text)


def send(message):
    wire_out.write(json.dumps(message) + '\n')
    wire_out.flush()


def ask(name, **what):
    send({'ask': name, **what})
    line = wire_in.readline()
    if not line:
        os._exit(0)
    reply = json.loads(line)
    if 'fault' in reply:
        raise fault(reply['fault'])
    if 'file' not in reply:
        return reply['answer']
    with open(reply['file'], 'rb') as f:
        data = f.read()
    os.remove(reply['file'])
    return data


# --- packages that are not installed

class Absent(types.ModuleType):
    """Can be imported; whatever is called of it is a fault."""

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        made = Absent(self.__name__ + '.' + name)
        made.__path__ = []
        setattr(self, name, made)
        return made

    def __call__(self, *_a, **_k):
        raise fault('the package %s is not installed (dart-studio osworld install --full)' % self.__name__.split('.')[0])


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        top = name.split('.')[0]
        # A part that an installed package looks for in vain is that package's own business.
        absent = top in HEAVY and (top == name or isinstance(sys.modules.get(top), Absent))
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


plain_import = builtins.__import__


def noting_import(name, globals=None, locals=None, fromlist=(), level=0):
    """A module that an evaluator cannot import is a fault, also where it goes on without."""
    try:
        return plain_import(name, globals, locals, fromlist, level)
    except ImportError as x:
        if str((globals or {}).get('__name__')).startswith('desktop_env'):
            faults.append('it needs a package that cannot be imported: %s' % x)
        raise


# --- the network

def no_network(*a, **_k):
    raise fault('it asks the network, which judging does not')


class DesktopResponse:
    """As much of requests.Response as the getters use."""

    def __init__(self, status, content, kind):
        self.status_code, self.content, self.headers, self.ok = status, content, {'Content-Type': kind}, status < 400
        self.text = content.decode('utf-8', 'replace')

    def json(self):
        return json.loads(self.text)

    def raise_for_status(self):
        if not self.ok:
            import requests
            raise requests.HTTPError('%d' % self.status_code)

    def iter_content(self, chunk_size=1):
        for i in range(0, len(self.content), chunk_size):
            yield self.content[i:i + chunk_size]


def desktop_request(_session, method, url, **options):
    from urllib.parse import urlsplit
    u = urlsplit(url)
    if u.hostname != ADDRESS:
        raise fault('it asks %s, and judging does not use the network' % (u.hostname or url))
    body = options.get('json')
    if body is None and options.get('data'):
        body = options['data']
        if isinstance(body, (str, bytes)):
            body = json.loads(body)
    answer = ask('http', port=u.port or 80, method=method.upper(), path=u.path, body=body)
    return DesktopResponse(answer['status'], base64.b64decode(answer['body']), answer['type'])


# --- the desktop

class Controller:
    def get_file(self, path):
        return ask('file', path=path)

    def execute_python_command(self, command):
        return ask('execute', command=['python3', '-c', command])

    def get_accessibility_tree(self):
        return ask('accessibility')

    def get_terminal_output(self):
        return ask('terminal')

    def get_vm_wallpaper(self):
        return ask('wallpaper')

    def get_vm_screen_size(self):
        return ask('screen_size')

    def get_vm_window_size(self, app_class_name):
        return ask('window_size', name=app_class_name)

    def get_vm_desktop_path(self):
        return '/home/user/Desktop'

    def get_vm_directory_tree(self, path):
        return ask('list_directory', path=path)

    def get_vm_platform(self):
        return 'Linux'

    def get_vm_machine(self):
        return 'x86_64'

    def get_screenshot(self):
        return ask('screenshot')

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        raise fault('it uses controller.%s, which is not offered' % name)


class Env:
    vm_ip, server_port, chromium_port, vlc_port, vnc_port = ADDRESS, 5000, 9222, 8080, 8006
    vm_platform, vm_machine, current_use_proxy, enable_proxy = 'Linux', 'x86_64', False, False
    client_password, os_type, provider_name = 'password', 'Ubuntu', 'docker'

    def __init__(self, cache):
        self.cache_dir, self.cache_dir_base, self.controller = cache, cache, Controller()

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        raise fault('it uses env.%s, which is not offered' % name)


# --- the browser: what getters use of playwright, over Chromium's own protocol, with no state between two calls

class Page:
    def __init__(self, browser, target):
        self.browser, self.id, self.url = browser, target['id'], target.get('url', '')

    def call(self, *steps, timeout=30000):
        return ask('cdp', target=self.id, steps=list(steps), timeoutMs=timeout)

    def value(self, expression):
        got = self.call(['Runtime.evaluate', {'expression': expression, 'returnByValue': True, 'awaitPromise': True}])[-1]
        if 'exceptionDetails' in got:
            raise Exception(str(got['exceptionDetails'].get('text')))
        return got.get('result', {}).get('value')

    def evaluate(self, script, arg=None):
        is_function = '=>' in script or script.lstrip().startswith('function')
        return self.value('(%s)(%s)' % (script, json.dumps(arg)) if is_function else script)

    def refresh(self):
        self.url = self.value('location.href')

    def goto(self, url, timeout=60000, **_k):
        got = ask('cdp', target=self.id, steps=[['Page.navigate', {'url': url}]], timeoutMs=timeout)[-1]
        if got.get('errorText'):
            raise Exception(got['errorText'])
        self.wait_for_load_state(timeout=timeout)

    def wait_for_load_state(self, state='load', timeout=30000):
        end = time.monotonic() + min(timeout, 30000) / 1000
        while self.value('document.readyState') != 'complete':
            if time.monotonic() > end:
                raise TimeoutError('the page did not load')
            time.sleep(0.1)
        self.refresh()

    def reload(self, **_k):
        self.call(['Page.reload', {}])
        self.wait_for_load_state()

    def wait_for_timeout(self, ms):
        time.sleep(min(ms, 5000) / 1000)

    def set_default_timeout(self, _ms):
        pass

    set_default_navigation_timeout = set_default_timeout

    def title(self):
        return self.value('document.title')

    def content(self):
        return self.value("(document.doctype ? '<!DOCTYPE ' + document.doctype.name + '>' : '') + document.documentElement.outerHTML")

    def is_closed(self):
        return self.id not in [t['id'] for t in ask('cdp_targets')]

    def close(self):
        ask('cdp_close', target=self.id)

    def query_selector_all(self, selector):
        return Element(self, 'document').query_selector_all(selector)

    def query_selector(self, selector):
        return Element(self, 'document').query_selector(selector)

    def locator(self, selector):
        return Locator(self, selector)

    def wait_for_selector(self, selector, timeout=30000, **_k):
        end = time.monotonic() + min(timeout, 30000) / 1000
        while True:
            found = self.query_selector(selector)
            if found:
                return found
            if time.monotonic() > end:
                raise TimeoutError('no element %s' % selector)
            time.sleep(0.2)

    def pdf(self, path=None, **_k):
        data = base64.b64decode(self.call(['Page.printToPDF', {'printBackground': True}])[-1].get('data', ''))
        if path:
            with open(path, 'wb') as f:
                f.write(data)
        return data

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        raise fault('it uses page.%s, which is not offered' % name)


class Element:
    """A node, as the expression that finds it."""

    def __init__(self, page, path):
        self.page, self.path = page, path

    def query_selector_all(self, selector):
        css = selector[4:] if selector.startswith('css=') else selector
        if css.startswith(('xpath=', '//')):
            xpath = css[6:] if css.startswith('xpath=') else css
            find = '(() => { const r = document.evaluate(%s, %s, null, 7, null), a = []; for (let i = 0; i < r.snapshotLength; i++) a.push(r.snapshotItem(i)); return a; })()' % (json.dumps(xpath), self.path)
        else:
            find = '%s.querySelectorAll(%s)' % (self.path, json.dumps(css))
        count = self.page.value('%s.length' % find) or 0
        return [Element(self.page, '%s[%d]' % (find, i)) for i in range(min(int(count), 2000))]

    def query_selector(self, selector):
        found = self.query_selector_all(selector)
        return found[0] if found else None

    def evaluate(self, script):
        return self.page.value('(%s)(%s)' % (script.strip(), self.path))

    def text_content(self, **_k):
        return self.page.value(self.path + '.textContent')

    def inner_text(self, **_k):
        return self.page.value(self.path + '.innerText')

    def inner_html(self, **_k):
        return self.page.value(self.path + '.innerHTML')

    def input_value(self, **_k):
        return self.page.value(self.path + '.value')

    def get_attribute(self, name, **_k):
        return self.page.value('%s.getAttribute(%s)' % (self.path, json.dumps(name)))

    def is_checked(self, **_k):
        return bool(self.page.value(self.path + '.checked'))

    def is_visible(self, **_k):
        return bool(self.page.value('%s.getClientRects().length' % self.path))

    def click(self, **_k):
        self.page.value(self.path + '.click()')


class Locator:
    def __init__(self, page, selector, index=None):
        self.page, self.selector, self.index = page, selector, index

    def all(self):
        return self.page.query_selector_all(self.selector)

    def count(self):
        return len(self.all())

    def nth(self, i):
        return Locator(self.page, self.selector, i)

    @property
    def first(self):
        return self.nth(0)

    def all_text_contents(self):
        return [e.text_content() for e in self.all()]

    def all_inner_texts(self):
        return [e.inner_text() for e in self.all()]

    def __getattr__(self, name):
        if name.startswith('__') or not hasattr(Element, name):
            raise AttributeError(name)
        found = self.all()
        i = self.index or 0
        if len(found) <= i:
            raise TimeoutError('no element %s' % self.selector)
        return getattr(found[i], name)


class Context:
    def __init__(self, browser):
        self.browser = browser

    @property
    def pages(self):
        return [Page(self.browser, t) for t in ask('cdp_targets') if t.get('type') == 'page']

    def new_page(self):
        return Page(self.browser, ask('cdp_open', url='about:blank'))

    def set_default_timeout(self, _ms):
        pass

    def close(self):
        pass


class Browser:
    """`close` leaves a browser that it only connected to as it was, but for pages that it opened."""

    def __init__(self):
        self.opened, self.contexts = [], [Context(self)]
        if ask('cdp_targets') is None:
            raise Exception('connect ECONNREFUSED')

    def new_page(self):
        page = self.contexts[0].new_page()
        self.opened.append(page)
        return page

    def new_context(self, **_k):
        return self.contexts[0]

    def close(self):
        for page in self.opened:
            page.close()


class Playwright:
    class chromium:
        @staticmethod
        def connect_over_cdp(_url, **_k):
            return Browser()

        @staticmethod
        def launch(**_k):
            raise fault('it starts a browser of its own, which needs the network')

    def __enter__(self):
        return self

    def __exit__(self, *_x):
        return False


def playwright_module():
    top, api = types.ModuleType('playwright'), types.ModuleType('playwright.sync_api')
    top.__path__, top.sync_api = [], api
    api.sync_playwright = Playwright
    api.TimeoutError = TimeoutError
    api.Error = Exception
    api.Page, api.Browser = Page, Browser
    api.expect = Absent('playwright.expect')
    return {'playwright': top, 'playwright.sync_api': api}


# --- start

def settle_packages():
    """Packages that would ask the network by themselves. What lacks them cannot ask it."""
    try:
        import requests
        requests.sessions.Session.request = desktop_request
    except ImportError:
        sys.modules['requests'] = plain_requests()
    try:
        import tldextract
        tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    except ImportError:
        pass


def plain_requests():
    made = types.ModuleType('requests')
    made.get = lambda url, **o: desktop_request(None, 'GET', url, **o)
    made.post = lambda url, **o: desktop_request(None, 'POST', url, **o)
    made.HTTPError = made.RequestException = OSError
    return made


def prepare(checkout):
    os.environ.update(OPENBLAS_NUM_THREADS='1', OMP_NUM_THREADS='1', NUMBA_CACHE_DIR='/tmp', MPLCONFIGDIR='/tmp', XDG_CACHE_HOME='/tmp')
    if checkout:
        sys.path.insert(0, checkout)
    sys.meta_path.append(AbsentFinder())
    sys.modules.update(playwright_module())
    import platform
    platform.machine = lambda: 'x86_64'
    settle_packages()
    from desktop_env.evaluators import getters, metrics
    import desktop_env.evaluators.getters.misc as misc
    if hasattr(misc, 'get_timezone_from_ip'):
        misc.get_timezone_from_ip = lambda: 'UTC'  # the desktops' own
    socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.create_connection = no_network
    builtins.__import__ = noting_import
    return getters, metrics


def limit():
    gb = 1 << 30
    for what, most in ((resource.RLIMIT_AS, 6 * gb), (resource.RLIMIT_FSIZE, gb), (resource.RLIMIT_CORE, 0)):
        soft, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


# --- jobs

def unpack(value, cache):
    if isinstance(value, dict):
        if '$file' in value:
            return os.path.join(cache, value['$file'])
        return {k: unpack(v, cache) for k, v in value.items()}
    return [unpack(v, cache) for v in value] if isinstance(value, list) else value


def brief(value, cache):
    text = value if isinstance(value, str) else repr(value)
    text = text.replace(cache + '/', 'file ')
    return ' '.join(text.split())[:200]


def obtain(what, env, getters):
    if 'getter' not in what:
        return unpack(what['value'], env.cache_dir)
    config = json.loads(json.dumps(what['getter']))
    return getattr(getters, 'get_' + config['type'])(env, config)


def judge(job, getters, metrics):
    stage, env = 'result', Env(job['cache'])
    found = expected = None
    try:
        found = obtain(job['result'], env, getters)
        stage = 'expected'
        args = [found]
        if job.get('expected') is not None:
            expected = obtain(job['expected'], env, getters)
            args.append(expected)
        stage = 'metric'
        send({'stage': stage})
        score = float(getattr(metrics, job['func'])(*args, **(job.get('options') or {})))
        if score != score:
            faults.append('it gave no number')
            score = 0.0
        return {'done': {'score': score, 'found': brief(found, env.cache_dir), 'expected': '' if expected is None else brief(expected, env.cache_dir)}}
    except Fault:
        return {'raised': {'stage': stage, 'type': 'Fault', 'text': faults[-1], 'found': ''}}
    except MemoryError:
        return {'raised': {'stage': stage, 'type': 'MemoryError', 'text': 'it ran out of memory', 'found': ''}}
    except BaseException as x:
        last = traceback.extract_tb(x.__traceback__)[-1]
        where = '%s, line %s' % (os.path.basename(last.filename), last.lineno)
        return {'raised': {'stage': stage, 'type': type(x).__name__, 'text': '%s (%s)' % (' '.join(str(x).split())[:300], where), 'found': brief(found, env.cache_dir)}}


def main():
    checkout = sys.argv[1] if len(sys.argv) > 1 else ''
    try:
        getters, metrics = prepare(checkout)
    except BaseException as x:
        send({'broken': '%s: %s' % (type(x).__name__, x)})
        os._exit(1)
    limit()
    names = lambda module, start: sorted(n[len(start):] for n in dir(module) if n.startswith(start) and callable(getattr(module, n)))
    absent = [m for m in HEAVY if isinstance(sys.modules.get(m), Absent)]
    send({'ready': {'getters': names(getters, 'get_'), 'metrics': names(metrics, ''), 'absent': absent}})
    for line in wire_in:
        job = json.loads(line)['job']
        faults.clear()
        os.chdir(job['cache'])
        end = judge(job, getters, metrics)
        os.chdir('/')
        send({**end, 'faults': list(faults)})


main()
