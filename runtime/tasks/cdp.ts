import type { ExecResult } from '../cluster/types.js';
import { desktopJson } from '../foreign/desktopJson.js';
import { isObject } from '../foreign/json.js';
import type { TaskContext } from './context.js';
import { Spoiled } from './spoiled.js';

/** A page or another target of the desktop's Chromium, as its DevTools list it. */
export interface CdpTarget {
  readonly id: string;
  readonly type: string;
  readonly title: string;
  readonly url: string;
}
/** A method of Chrome's DevTools Protocol with its parameters. */
export type CdpStep = readonly [method: string, params: Readonly<Record<string, unknown>>];

/** The browser does not listen: nobody started it with a debugging port, or it has ended. */
export class NoBrowser extends Error {}

/**
 * Speaks DevTools from inside the desktop, whose network is its own: an operation comes on standard input. Port 9222 is
 * where OSWorld's tasks put it (socat), 1337 where Chromium itself listens.
 */
const CLIENT = `
import base64, json, os, socket, struct, sys, time, urllib.parse, urllib.request
o = json.load(sys.stdin)
end = time.monotonic() + o['timeoutMs'] / 1000
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def left(): return max(0.1, end - time.monotonic())
def http(port, path, method='GET'):
    r = urllib.request.Request('http://127.0.0.1:%d%s' % (port, path), method=method)
    return opener.open(r, timeout=left()).read()
def listening():
    while True:
        for port in (9222, 1337):
            try:
                http(port, '/json/version')
                return port
            except OSError: pass
        if not o.get('wait') or left() <= 0.1: return None
        time.sleep(0.05)
def socket_to(port, path):
    s = socket.create_connection(('127.0.0.1', port), left())
    key = base64.b64encode(os.urandom(16)).decode()
    s.sendall(('GET %s HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Key: %s\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n' % (path, port, key)).encode())
    f = s.makefile('rb')
    if b' 101 ' not in f.readline(): raise OSError('no WebSocket')
    while f.readline().strip(): pass
    return s, f
def send(s, text):
    d, mask = text.encode(), os.urandom(4)
    n = len(d)
    head = bytes([0x81]) + (bytes([0x80 | n]) if n < 126 else bytes([0xfe]) + struct.pack('>H', n) if n < 65536 else bytes([0xff]) + struct.pack('>Q', n))
    s.sendall(head + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(d)))
def receive(s, f):
    whole = b''
    while True:
        s.settimeout(left())
        a, b = f.read(2)
        n = b & 127
        if n == 126: n = struct.unpack('>H', f.read(2))[0]
        elif n == 127: n = struct.unpack('>Q', f.read(8))[0]
        d = f.read(n)
        if a & 15 == 8: raise OSError('closed')
        if a & 15 in (0, 1, 2): whole += d
        if a & 128 and a & 15 < 3: return json.loads(whole)
def calls(port, target, steps):
    s, f = socket_to(port, '/devtools/page/' + urllib.parse.quote(target, safe=''))
    out = []
    for i, (method, params) in enumerate(steps):
        send(s, json.dumps({'id': i + 1, 'method': method, 'params': params}))
        while True:
            m = receive(s, f)
            if m.get('id') == i + 1: break
        out.append(m['result'] if 'result' in m else {'errorText': m.get('error', {}).get('message', 'refused')})
    return out
def listed(port):
    return [{k: t.get(k, '') for k in ('id', 'type', 'title', 'url')} for t in json.loads(http(port, '/json/list'))]
port = listening()
if port is None: answer = None
elif o['op'] == 'targets': answer = listed(port)
elif o['op'] == 'open':
    t = json.loads(http(port, '/json/new?' + urllib.parse.quote(o['url'], safe=''), 'PUT'))
    answer = {k: t.get(k, '') for k in ('id', 'type', 'title', 'url')}
elif o['op'] == 'close': answer = http(port, '/json/close/' + urllib.parse.quote(o['target'], safe='')).decode()
elif o['op'] == 'loaded':
    while calls(port, o['target'], [['Runtime.evaluate', {'expression': 'document.readyState', 'returnByValue': True}]])[0].get('result', {}).get('value') != 'complete' and left() > 0.2: time.sleep(0.05)
    answer = True
else: answer = calls(port, o['target'], o['steps'])
json.dump({'answer': answer}, sys.stdout)
`;

type Operation =
  | { readonly op: 'targets'; readonly wait?: boolean }
  | { readonly op: 'open'; readonly url: string }
  | { readonly op: 'close' | 'loaded'; readonly target: string }
  | { readonly op: 'call'; readonly target: string; readonly steps: readonly CdpStep[] };

/** A page of a million characters as text or PDF, and what a getter lists of one. */
const BOUNDS = { bytes: 4 << 20, depth: 64, values: 1 << 15 };

/** Checks an answer: undefined where it does not have the shape. */
type Shape<T> = (answer: unknown) => T | undefined;

/** Asks the desktop's Chromium; rejects with NoBrowser where none listens, with an Error where it does not answer. */
async function cdp<T>(ctx: TaskContext, o: Operation, timeoutMs: number, shape: Shape<T>): Promise<T> {
  const argv = ['python3', '-c', CLIENT],
    options = {
      stdin: JSON.stringify({ ...o, timeoutMs }),
      timeoutMs: timeoutMs + 5000,
      signal: ctx.signal,
    };
  const r: ExecResult = await (ctx.verdict
    ? ctx.verdict.exec(argv, options, 'that asks the browser', 'applications')
    : ctx.desktop.exec(argv, options));
  const refused = (why: string): Error => new (ctx.verdict ? Spoiled : Error)(`the browser did not answer (${why})`);
  if (r.timedOut || r.code !== 0) throw refused(r.stderr.toString('utf8').trim().split('\n').at(-1) ?? '');
  const said = desktopJson(r.stdout, BOUNDS, (why) => refused(`what came back ${why}`)),
    answer = isObject(said) ? said['answer'] : undefined;
  if (answer === null) throw new NoBrowser('no browser of the desktop listens for DevTools (port 9222 or 1337)');
  const known = shape(answer);
  if (known === undefined) throw refused('what came back is nothing that was asked for');
  return known;
}

const targetOf: Shape<CdpTarget> = (t) => {
  if (!isObject(t)) return undefined;
  const { id, type, title, url } = t,
    texts = [id, type, title, url].every((x) => typeof x === 'string');
  return texts ? ({ id, type, title, url } as CdpTarget) : undefined;
};
const targetsOf: Shape<CdpTarget[]> = (list) => {
  const targets = Array.isArray(list) ? list.map(targetOf) : [undefined];
  return targets.every((t) => t !== undefined) ? targets : undefined;
};
const anything: Shape<true> = () => true;

/** The pages that the browser has open; `waitMs`: how long to wait for it to listen. */
export const cdpTargets = (ctx: TaskContext, waitMs = 0): Promise<CdpTarget[]> =>
  cdp(ctx, { op: 'targets', wait: waitMs > 0 }, Math.max(waitMs, 10_000), targetsOf);
export const cdpOpen = (ctx: TaskContext, url: string): Promise<CdpTarget> =>
  cdp(ctx, { op: 'open', url }, 15_000, targetOf);
export const cdpClose = async (ctx: TaskContext, target: string): Promise<void> => {
  await cdp(ctx, { op: 'close', target }, 15_000, anything);
};
/** Waits until a page has loaded, at most so long; one that has not is left to go on. */
export const cdpLoaded = async (ctx: TaskContext, target: string, ms: number): Promise<void> => {
  await cdp(ctx, { op: 'loaded', target }, ms, anything);
};
export const cdpCall = (ctx: TaskContext, target: string, steps: readonly CdpStep[], ms = 30_000): Promise<unknown[]> =>
  cdp(ctx, { op: 'call', target, steps }, ms, (answer) =>
    Array.isArray(answer) && answer.length === steps.length && answer.every(isObject) ? answer : undefined,
  );
