import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { PageInput } from '../../../webview/protocol.js';
import type { Runtime } from '../../../extension/runtimePort.js';
import { ScriptedRuntime } from '../../helpers/extension/scriptedRuntime.js';

interface Place {
  readonly fsPath: string;
}
const at = (fsPath: string): Place => ({ fsPath });
const trust = { is: true, granted: new Set<() => void>() };
vi.mock('vscode', () => ({
  Uri: { file: at, joinPath: (u: Place, ...more: string[]) => at(join(u.fsPath, ...more)) },
  env: { language: 'en' },
  l10n: { bundle: undefined },
  workspace: {
    get isTrusted() {
      return trust.is;
    },
    onDidGrantWorkspaceTrust: (l: () => void) => {
      trust.granted.add(l);
      return { dispose: () => trust.granted.delete(l) };
    },
  },
}));
const { fetchedIn } = await import('../../../extension/panels/remotePictures.js');
const { WebviewHost } = await import('../../../extension/panels/webviewHost.js');

const ours = ['/ext/dist/webview', '/ext/media'],
  caches = ['/store/cache', '/sample/cache'],
  dashboard: PageInput = { kind: 'dashboard', run: '/home/me/.ssh' },
  elsewhere = { name: 'train-x', reach: () => Promise.reject(new Error('not asked')), dispose: () => undefined };
function page(
  attached: boolean,
  runtimeOf?: () => Runtime | undefined,
  shown: PageInput = dashboard,
  extra: string[] = [],
) {
  const r = new ScriptedRuntime(),
    runtime = r.runtime;
  let receive = (_: unknown): void => undefined;
  let remote = attached ? elsewhere : undefined;
  Object.defineProperty(runtime, 'remote', { get: () => remote });
  r.state = 'ready';
  const webview = {
    options: { localResourceRoots: [] as Place[] },
    html: '',
    cspSource: 'csp:',
    asWebviewUri: (u: Place) => ({ toString: () => `uri:${u.fsPath}` }),
    onDidReceiveMessage: (l: (m: unknown) => void) => {
      receive = l;
      return { dispose: () => undefined };
    },
    posted: [] as { readonly type: string; readonly daemon?: string }[],
    postMessage: (m: { readonly type: string }) => Promise.resolve(webview.posted.push(m) > 0),
  };
  const host = new WebviewHost(
    {
      webview: webview as never,
      kind: shown.kind,
      title: 'x',
      input: shown,
      folders: [
        { path: '/home/me/.ssh', uri: at('/home/me/.ssh') as never, named: true },
        { path: '/opened', uri: at('/opened') as never },
        ...extra.map((path) => ({ path, uri: at('/drive') as never })),
      ],
    },
    {
      extensionUri: at('/ext') as never,
      runtime: runtime as Runtime,
      ...(runtimeOf ? { runtimeOf } : {}),
      log: { warn: () => undefined, error: () => undefined },
      caches: caches.map(at) as never,
      act: () => undefined,
      watchFps: () => 1,
      held: () => undefined,
      adopt: () => undefined,
      savedFilters: () => [],
    },
  );
  return {
    host,
    r,
    webview,
    receive: (m: object) => receive(m),
    roots: () => webview.options.localResourceRoots.map((u) => u.fsPath),
    become: (is: boolean) => {
      remote = is ? elsewhere : undefined;
      r.become('ready');
    },
  };
}

describe('the folders of this machine that a page may show', () => {
  it('are those that the runtime of this machine names', () => {
    const { roots, become } = page(false);
    expect(roots()).toEqual([...ours, '/home/me/.ssh', '/opened', ...caches]);
    become(true);
    expect(roots()).toEqual([...ours, '/opened', fetchedIn('/store/cache')]);
    become(false);
    expect(roots()).toEqual([...ours, '/home/me/.ssh', '/opened', ...caches]);
  });
  it('are none that a runtime elsewhere names, also not later, but what this window fetched from it', () => {
    const { host, roots, become } = page(true),
      alone = [...ours, '/opened', fetchedIn('/store/cache')];
    expect(roots()).toEqual(alone);
    expect(host.uriOf('/home/me/.ssh/id')).toBeUndefined();
    host.show({ kind: 'dashboard', run: '/' }, [
      { path: '/', uri: at('/') as never, named: true },
      { path: '/opened', uri: at('/opened') as never },
    ]);
    expect(roots()).toEqual(alone);
    expect(host.uriOf('/etc/passwd')).toBeUndefined();
    become(false);
    expect(roots()).toEqual([...ours, '/opened', ...caches]);
  });
});

describe('the file that a page names', () => {
  const { host } = page(false, undefined, dashboard, ['c:\\u\\cache']),
    file = (path: string): string | undefined => host.uriOf(path)?.fsPath;
  it('is found below a folder of this machine, whatever stands between the names', () => {
    expect(file('/store/cache/thumbs/320/ab/x.png')).toBe('/store/cache/thumbs/320/ab/x.png');
    expect(file('c:\\u\\cache\\thumbs\\320\\ab\\x.png')).toBe('/drive/thumbs/320/ab/x.png');
    expect(file('C:\\u\\cache\\thumbs/320/ab/x.png')).toBe('/drive/thumbs/320/ab/x.png');
  });
  it.each([
    'c:\\u\\cache\\..\\secret',
    'c:\\u\\cache\\a/..\\../secret',
    'c:\\u\\cached\\x',
    'c:\\u\\cache',
    'd:\\u\\cache\\x',
    '/store/cache/../secret',
    '/store/cache/a\\..\\..\\secret',
    '/store/cache',
  ])('%s is none', (path) => {
    expect(file(path)).toBeUndefined();
  });
});

describe('a comparison of runs', () => {
  it('reads again when one of its runs has another state, from the runtime that it shows', () => {
    const input: PageInput = { kind: 'compareRuns', runs: ['/a', '/b'] },
      other = new ScriptedRuntime(),
      port = other.runtime;
    let elsewhere = false;
    const { host, r, webview, receive } = page(false, () => (elsewhere ? port : undefined), input),
      told = (): unknown[] => webview.posted.filter((m) => m.type === 'do');
    receive({ type: 'ready', boot: 'b1' });
    r.notify('run/changed', { run: '/c', state: 'finished' });
    expect(told()).toEqual([]);
    r.notify('run/changed', { run: '/b', state: 'finished' });
    expect(told()).toEqual([{ type: 'do', boot: 'b1', what: 'reload' }]);
    elsewhere = true;
    expect(host.ask()).toBe(true);
    receive({ type: 'ready', boot: 'b2' });
    r.notify('run/changed', { run: '/b', state: 'finished' });
    expect(told()).toHaveLength(1);
    other.notify('run/changed', { run: '/a', state: 'finished' });
    expect(told()).toHaveLength(2);
    host.dispose();
    other.notify('run/changed', { run: '/a', state: 'finished' });
    expect(told()).toHaveLength(2);
  });
});

describe('a page of the sample run in a window that is not trusted', () => {
  it('asks the runtime that reads the sample once there is one, and no more once the window is trusted', () => {
    trust.is = false;
    const sample = new ScriptedRuntime();
    let started = false;
    const port = sample.runtime,
      { host, r, webview, receive } = page(false, () => (started && !trust.is ? port : undefined)),
      states = (): unknown[] => webview.posted.filter((m) => m.type === 'init').map((m) => m.daemon);
    r.state = 'stopped';
    sample.state = 'ready';
    receive({ type: 'ready', boot: 'b1' });
    const before = webview.html;
    expect(host.ask()).toBe(false);
    started = true;
    expect(host.ask()).toBe(true);
    expect(webview.html).not.toBe(before);
    receive({ type: 'ready', boot: 'b2' });
    const told = webview.posted.length;
    r.become('failed');
    expect(webview.posted).toHaveLength(told);
    trust.is = true;
    for (const l of trust.granted) l();
    receive({ type: 'ready', boot: 'b3' });
    expect(states()).toEqual(['stopped', 'ready', 'failed']);
    const last = webview.posted.length;
    sample.become('stopped');
    expect(webview.posted).toHaveLength(last);
    host.dispose();
  });
});
