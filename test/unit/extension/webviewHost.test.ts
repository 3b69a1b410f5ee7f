import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { Runtime } from '../../../extension/runtimePort.js';
import { ScriptedRuntime } from '../../helpers/extension/scriptedRuntime.js';

interface Place {
  readonly fsPath: string;
}
const at = (fsPath: string): Place => ({ fsPath });
vi.mock('vscode', () => ({
  Uri: { file: at, joinPath: (u: Place, ...more: string[]) => at(join(u.fsPath, ...more)) },
  env: { language: 'en' },
  l10n: { bundle: undefined },
  workspace: { isTrusted: true, onDidGrantWorkspaceTrust: () => ({ dispose: () => undefined }) },
}));
const { fetchedIn } = await import('../../../extension/panels/remotePictures.js');
const { WebviewHost } = await import('../../../extension/panels/webviewHost.js');

const ours = ['/ext/dist/webview', '/ext/media'],
  caches = ['/store/cache', '/sample/cache'],
  elsewhere = { name: 'train-x', reach: () => Promise.reject(new Error('not asked')), dispose: () => undefined };
function page(attached: boolean) {
  const r = new ScriptedRuntime(),
    runtime = r.runtime;
  let remote = attached ? elsewhere : undefined;
  Object.defineProperty(runtime, 'remote', { get: () => remote });
  r.state = 'ready';
  const webview = {
    options: { localResourceRoots: [] as Place[] },
    html: '',
    cspSource: 'csp:',
    asWebviewUri: (u: Place) => ({ toString: () => `uri:${u.fsPath}` }),
    onDidReceiveMessage: () => ({ dispose: () => undefined }),
    postMessage: () => Promise.resolve(true),
  };
  const host = new WebviewHost(
    {
      webview: webview as never,
      kind: 'dashboard',
      title: 'x',
      input: { kind: 'dashboard', run: '/home/me/.ssh' },
      folders: [
        { path: '/home/me/.ssh', uri: at('/home/me/.ssh') as never, named: true },
        { path: '/opened', uri: at('/opened') as never },
      ],
    },
    {
      extensionUri: at('/ext') as never,
      runtime: runtime as Runtime,
      log: { warn: () => undefined, error: () => undefined },
      caches: caches.map(at) as never,
      act: () => undefined,
      watchFps: () => 1,
      held: () => undefined,
      adopt: () => undefined,
    },
  );
  return {
    host,
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
