import { beforeEach, describe, expect, it, vi } from 'vitest';

/** The folders of the workspace, and what is set for each of them and for the whole workspace. */
const editor = vi.hoisted(() => ({
  folders: [] as { readonly uri: { readonly scheme: string; readonly fsPath: string } }[],
  settings: {} as Record<string, Record<string, unknown>>,
}));
vi.mock('vscode', () => ({
  Uri: { file: (fsPath: string) => ({ scheme: 'file', fsPath }) },
  workspace: {
    get workspaceFolders() {
      return editor.folders;
    },
    getConfiguration: (section: string, place?: { readonly fsPath: string }) => {
      const folder = editor.folders.find(({ uri }) => `${place?.fsPath}/`.startsWith(`${uri.fsPath}/`)),
        set = { ...editor.settings['workspace'], ...editor.settings[folder?.uri.fsPath ?? ''] };
      return { get: (key: string, fallback: unknown) => set[`${section}.${key}`] ?? fallback };
    },
  },
}));
const { RunFolders } = await import('../../../extension/runFolders.js');

const folder = (fsPath: string, scheme = 'file') => ({ uri: { scheme, fsPath }, name: fsPath, index: 0 });
const [one, two] = [folder('/one'), folder('/two')];
const kept = new Map<string, unknown>(),
  folders = new RunFolders('/s', {
    get: (key: string, fallback: unknown) => kept.get(key) ?? fallback,
    update: (key: string, value: unknown) => Promise.resolve(void kept.set(key, value)),
  } as never);

beforeEach(() => {
  kept.clear();
  editor.folders = [one, two];
  editor.settings = {
    workspace: { 'dartStudio.desktops.count': 3 },
    '/one': { 'dartStudio.runsFolder': 'mine' },
    '/two': {
      'dartStudio.runsFolder': '/big/runs/',
      'dartStudio.desktops.provider': 'docker',
      'dartStudio.desktops.count': 12,
    },
  };
});

describe('folders of a workspace', () => {
  it('keep their runs where the settings of each say', () => {
    expect(folders.roots([])).toEqual(['/one/mine', '/big/runs', '/s/runs']);
    expect([folders.home(), folders.home(one as never), folders.home(two as never)]).toEqual([
      '/one/mine',
      '/one/mine',
      '/big/runs',
    ]);
  });
  it('have desktops of their own kind and number, for new runs and for the runs that they keep', () => {
    const of = (x?: unknown): unknown[] => {
      const { provider, desktopCount } = folders.settings(x as never);
      return [provider, desktopCount];
    };
    expect([of(one), of(two), of()]).toEqual([
      ['auto', 3],
      ['docker', 12],
      ['auto', 3],
    ]);
    expect([of('/one/mine/a'), of('/big/runs/a'), of('/two/other/a'), of('/elsewhere/a')]).toEqual([
      ['auto', 3],
      ['docker', 12],
      ['docker', 12],
      ['auto', 3],
    ]);
  });
  it('are told apart from the runtime’s own folder, once each', () => {
    expect(folders.homes()).toEqual(['/one/mine', '/big/runs']);
    editor.settings['/one'] = { 'dartStudio.runsFolder': '/s/elsewhere' };
    expect(folders.homes()).toEqual(['/big/runs']);
    editor.settings['/one'] = { 'dartStudio.runsFolder': '/s2' };
    editor.settings['/two'] = { 'dartStudio.runsFolder': '/s2' };
    expect(folders.homes()).toEqual(['/s2']);
  });
  it('that are not on this disk keep none', () => {
    const away = folder('/far', 'vscode-vfs');
    editor.folders = [away, two];
    expect([folders.home(away as never), folders.settings(away as never).provider]).toEqual(['/big/runs', 'docker']);
    editor.folders = [];
    expect([folders.home(), folders.roots([]), folders.settings().provider]).toEqual(['/s/runs', ['/s/runs'], 'auto']);
  });
});
