import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { StudioContext } from '../../../extension/studioContext.js';

/** Files of a disk, what a person answers, and what the editor asked and deleted. */
const editor = vi.hoisted(() => ({
  files: [] as string[],
  answer: undefined as string | undefined,
  asked: [] as { readonly detail: string; readonly buttons: readonly string[] }[],
  deleted: [] as string[],
}));
vi.mock('vscode', () => {
  const uri = (path: string) => ({ path, fsPath: path }),
    below = (path: string): string[] => editor.files.filter((f) => f === path || f.startsWith(`${path}/`));
  return {
    FileType: { File: 1, Directory: 2 },
    ProgressLocation: { Notification: 15 },
    Uri: { file: uri, joinPath: ({ path }: { path: string }, ...names: string[]) => uri([path, ...names].join('/')) },
    window: {
      showWarningMessage: (_words: string, { detail }: { detail: string }, ...buttons: string[]) => {
        editor.asked.push({ detail, buttons });
        return Promise.resolve(editor.answer);
      },
      showInformationMessage: () => Promise.resolve(undefined),
      withProgress: (_o: unknown, work: (p: unknown, token: unknown) => unknown) =>
        work({ report: () => undefined }, { onCancellationRequested: () => ({ dispose: () => undefined }) }),
    },
    workspace: {
      fs: {
        stat: ({ path }: { path: string }) =>
          below(path).length > 0 ? Promise.resolve({}) : Promise.reject(new Error('not there')),
        readDirectory: ({ path }: { path: string }) =>
          Promise.resolve(
            [...new Set(below(path).map((f) => f.slice(path.length + 1).split('/')[0]))].map((n) => [n, 2]),
          ),
        delete: ({ path }: { path: string }) => {
          editor.deleted.push(path);
          return Promise.resolve();
        },
      },
    },
  };
});
const { helpCommands } = await import('../../../extension/commands/help.js'),
  { commands } = await import('../../../extension/ids.js');

const memento = { keys: () => [], update: () => Promise.resolve() },
  studio = (homes: readonly string[]): StudioContext =>
    ({
      storage: '/s',
      homes: () => homes,
      requireTrust: () => undefined,
      attach: () => Promise.resolve(),
      client: { state: 'stopped' },
      extension: { globalState: memento, workspaceState: memento },
    }) as unknown as StudioContext;
const remove = (...homes: string[]): Promise<void> =>
  Promise.resolve(helpCommands(studio(homes))[commands.deleteAllData].run());
const [own, both] = ['Delete', 'Delete with the Runs of This Workspace'];

beforeEach(() => {
  const run = (dir: string): string[] => [`${dir}/run.json`, `${dir}/journal/1`];
  Object.assign(editor, { asked: [], deleted: [], answer: undefined });
  editor.files = [
    '/s/daemon.log',
    ...run('/one/runs/a'),
    ...run('/two/mine/b'),
    '/two/mine/notes/x',
    '/one/runs/run.json',
  ];
});

describe('Delete All Data', () => {
  it('keeps the runs of the workspace, and says where they are', async () => {
    editor.answer = own;
    await remove('/one/runs', '/two/mine');
    expect(editor.deleted).toEqual(['/s']);
    expect(editor.asked[0]!.detail).toContain('Runs of this workspace, in /one/runs, /two/mine, are kept');
  });
  it('with the runs of the workspace deletes those of every folder, and nothing beside them', async () => {
    editor.answer = both;
    await remove('/one/runs', '/two/mine');
    expect(editor.deleted).toEqual(['/s', '/one/runs/a', '/two/mine/b']);
  });
  it('offers the extension’s own alone where no folder is open', async () => {
    await remove();
    expect(editor.asked[0]!.buttons).toEqual([own]);
    expect(editor.deleted).toEqual([]);
  });
});
