import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { FolderSettings } from '../../../extension/settings.js';
import type { StudioContext } from '../../../extension/studioContext.js';
import type { RunSummary } from '../../../runtime/protocol/types.js';
import { run, status } from '../../helpers/extension/rows.js';

/** The run file that is open, and what was said to the person, who takes the first answer of every question. */
const editor = vi.hoisted(() => ({ text: '{}', said: [] as string[] }));
vi.mock('vscode', () => {
  class Uri {
    readonly scheme = 'file';
    readonly fsPath: string;
    constructor(fsPath: string) {
      this.fsPath = fsPath;
    }
    get path(): string {
      return this.fsPath;
    }
    static file(fsPath: string): Uri {
      return new Uri(fsPath);
    }
  }
  const createQuickPick = () => {
    let accept = (): void => undefined;
    const pick = {
      items: [] as unknown[],
      selectedItems: [] as unknown[],
      onDidAccept: (f: () => void) => (accept = f),
      onDidHide: () => undefined,
      onDidChangeActive: () => undefined,
      hide: () => undefined,
      show: () => {
        pick.selectedItems = pick.items.slice(0, 1);
        accept();
      },
    };
    return pick;
  };
  return {
    Uri,
    TreeItem: class {},
    ThemeIcon: class {},
    ThemeColor: class {},
    EventEmitter: class {},
    env: {},
    commands: {},
    ProgressLocation: {},
    window: {
      createQuickPick,
      showInputBox: () => Promise.resolve(''),
      setStatusBarMessage: () => undefined,
      showInformationMessage: (words: string) => {
        editor.said.push(words);
        return Promise.resolve(undefined);
      },
    },
    workspace: {
      asRelativePath: (uri: Uri) => uri.path,
      findFiles: () => Promise.resolve([new Uri('/w/dart-run.json')]),
      openTextDocument: () => Promise.resolve({ getText: () => editor.text }),
      getWorkspaceFolder: (uri: Uri) => (uri.path.startsWith('/w/') ? { uri: new Uri('/w') } : undefined),
      getConfiguration: () => ({ get: (_key: string, otherwise: unknown) => otherwise }),
    },
  };
});
const { Uri } = await import('vscode'),
  { startTraining } = await import('../../../extension/commands/startTraining.js'),
  { trainingCommands } = await import('../../../extension/commands/training.js'),
  { queueCommands } = await import('../../../extension/commands/queue.js'),
  { runCommands } = await import('../../../extension/commands/runs.js'),
  { commands } = await import('../../../extension/ids.js');

let roots: string[], done: unknown[], asked: unknown[];
/** A window of the folder /w whose runtime begins this run. */
function studio(begun: string, o: { readonly remote?: object; readonly listed?: readonly RunSummary[] } = {}) {
  const active = run({ run: begun, status: status() });
  return {
    requireTraining: () => undefined,
    ensureRuntime: () => Promise.resolve(),
    home: () => '/w/runs',
    settings: (of?: { readonly uri?: unknown }): FolderSettings => ({
      runsFolder: 'runs',
      provider: of?.uri ? 'docker' : 'auto',
      desktopCount: of?.uri ? 5 : 0,
    }),
    roots: () => ['/w/runs', '/s/runs', ...roots],
    addRoot: (path: string) => {
      done.push(`add ${path}`);
      return Promise.resolve(void roots.push(path));
    },
    dropRoot: (path: string) => {
      done.push(`drop ${path}`);
      return Promise.resolve(void (roots = roots.filter((r) => r !== path)));
    },
    log: { info: () => undefined },
    runFiles: { choose: () => undefined },
    panels: { show: () => undefined },
    client: {
      state: 'ready',
      remote: o.remote,
      request: ({ method }: { readonly method: string }, params: unknown) => {
        asked.push([method, params]);
        return Promise.resolve({ run: begun });
      },
    },
    model: {
      active,
      runs: o.listed ?? [active],
      summary: (path: string) => (o.listed ?? [active]).find((r) => r.run === path),
      onChange: () => () => undefined,
      reload: () => Promise.resolve(void done.push('reload')),
      started: (path: string) => Promise.resolve(void done.push(`started ${path}`)),
      forget: (path: string) => void done.push(`forget ${path}`),
    },
    extension: {
      globalState: { get: () => true },
      workspaceState: { get: () => roots },
    },
  } as unknown as StudioContext;
}
beforeEach(() => {
  Object.assign(editor, { text: '{}', said: [] });
  roots = [];
  done = [];
  asked = [];
});

describe('a run that begins', () => {
  it('where no folder of the window lists it is listed from now on, with what its run file keeps beside it', async () => {
    editor.text = '{"store":{"dir":"/elsewhere"}}';
    await startTraining(studio('/elsewhere/c'), Uri.file('/w/dart-run.json'));
    expect(done).toEqual(['add /elsewhere', 'started /elsewhere/c']);
    await startTraining(studio('/elsewhere/d'), Uri.file('/w/dart-run.json'));
    expect(done.slice(2)).toEqual(['started /elsewhere/d']);
  });
  it('in a folder below that of the runs is no run of that one', async () => {
    await startTraining(studio('/w/runs/deep/c'), Uri.file('/w/dart-run.json'));
    expect(done).toEqual(['add /w/runs/deep', 'started /w/runs/deep/c']);
  });
  it('in the runs folder of the window adds none', async () => {
    await startTraining(studio('/w/runs/c'), Uri.file('/w/dart-run.json'));
    expect(done).toEqual(['started /w/runs/c']);
  });
  it('has desktops as the settings of its own folder say', async () => {
    await startTraining(studio('/w/runs/c'), Uri.file('/w/dart-run.json'));
    await startTraining(studio('/w/runs/c'), Uri.file('/far/dart-run.json'));
    expect(asked).toMatchObject([
      ['run/start', { provider: 'docker', desktops: 5 }],
      ['run/start', { provider: undefined, desktops: undefined }],
    ]);
  });
});

describe('a run that is resumed', () => {
  const resume = (s: StudioContext, path: string): Promise<void> =>
    Promise.resolve(trainingCommands(s)[commands.resumeRun].run(path));
  it('is listed from now on, alone where it is in a folder of others', async () => {
    await resume(studio('/other/runs/c'), '/other/runs/c');
    expect(done).toEqual(['add /other/runs/c', 'started /other/runs/c']);
    await resume(studio('/w/runs/c'), '/w/runs/c');
    expect(done.slice(2)).toEqual(['started /w/runs/c']);
  });
  it('by a runtime elsewhere is in no folder of this machine', async () => {
    await resume(studio('/studio/c', { remote: {} }), '/studio/c');
    expect(done).toEqual(['started /studio/c']);
  });
});

describe('runs that are queued', () => {
  const queue = (s: StudioContext): Promise<void> => Promise.resolve(queueCommands(s)[commands.addToQueue].run());
  it('are listed when their turn comes, wherever their run file keeps them', async () => {
    await queue(studio('/w/runs/c'));
    expect(done).toEqual([]);
    editor.text = '{"store":{"dir":"../elsewhere"}}';
    await queue(studio('/elsewhere/c'));
    expect(done).toEqual(['add /elsewhere']);
  });
});

describe('Remove from List', () => {
  const forget = (s: StudioContext, path: string): Promise<void> =>
    Promise.resolve(runCommands(s)[commands.forgetRunFolder].run(path));
  const over = run({ run: '/elsewhere/c', state: 'finished' });
  it('removes a folder that was opened or that a run was started in', async () => {
    roots = ['/elsewhere'];
    await forget(studio('/w/runs/c', { listed: [over] }), over.run);
    expect(done).toEqual(['forget /elsewhere', 'drop /elsewhere', 'reload']);
  });
  it('removes a run that another window began', async () => {
    await forget(studio('/w/runs/c', { listed: [over] }), over.run);
    expect(done).toEqual(['forget /elsewhere/c', 'drop /elsewhere/c', 'reload']);
  });
  it('leaves the runs of the workspace', async () => {
    const own = run({ run: '/w/runs/a', state: 'finished' });
    await forget(studio('/w/runs/c', { listed: [own] }), own.run);
    expect(done).toEqual([]);
    expect(editor.said).toEqual([expect.stringMatching(/always listed/)]);
  });
});
