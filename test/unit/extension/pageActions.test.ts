import { posix } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { StudioContext } from '../../../extension/studioContext.js';
import type { HostAction, PageInput, PageKind } from '../../../webview/protocol.js';

interface Place {
  readonly path: string;
}
/** The files that there are, what was copied, and what was said. */
const disk = { files: [] as string[], copied: [] as string[][], said: [] as string[] };
vi.mock('vscode', () => ({
  env: {},
  window: {
    showWarningMessage: (words: string) => Promise.resolve(void disk.said.push(words)),
    showSaveDialog: ({ defaultUri }: { readonly defaultUri: Place }) => Promise.resolve(defaultUri),
  },
  workspace: {
    getConfiguration: () => ({ get: (_key: string, otherwise: unknown) => otherwise }),
    fs: {
      stat: ({ path }: Place) => (disk.files.includes(path) ? Promise.resolve({}) : Promise.reject(new Error(path))),
      copy: (from: Place, to: Place) => Promise.resolve(void disk.copied.push([from.path, to.path])),
    },
  },
  Uri: class {
    static joinPath = ({ path }: Place, ...more: string[]): Place => ({ path: posix.join(path, ...more) });
  },
  TreeItem: class {},
  ThemeIcon: class {},
  ThemeColor: class {},
  EventEmitter: class {},
}));
const { carryOut } = await import('../../../extension/panels/pageActions.js');
const { savedFilters } = await import('../../../extension/savedFilters.js');

function studio() {
  const kept = new Map<string, unknown>(),
    shown: unknown[][] = [],
    told: unknown[] = [];
  const workspaceState = {
    get: (key: string) => kept.get(key),
    update: (key: string, value: unknown) => Promise.resolve(void kept.set(key, value)),
  };
  const s = {
    extension: { workspaceState },
    requireTrust: () => undefined,
    requireHere: () => undefined,
    sessions: { of: () => undefined },
    run: (...a: unknown[]) => shown.push(a),
    panels: {
      show: (input: PageInput, o: object) => shown.push([input, o]),
      savedFiltersChanged: () => told.push(savedFilters(workspaceState as never).map((f) => f.name)),
    },
  } as unknown as StudioContext;
  const uriOf = (path: string): Place | undefined => (path.startsWith('/cache/') ? { path } : undefined);
  const act = (a: HostAction, kind: PageKind): Promise<void> => carryOut(s, a, { kind, uriOf } as never);
  return { act, shown, told };
}

describe('what a page asks of the editor', () => {
  it('a filter is saved beside those that other pages saved, in place of one of its name, and all tables hear of it', async () => {
    const { act, told } = studio();
    for (const name of ['f1', 'f2', 'f1'])
      await act({ action: 'keepFilter', filter: { name, filter: { text: name } } }, 'table');
    await act({ action: 'dropFilter', name: 'f2' }, 'table');
    expect(told).toEqual([['f1'], ['f1', 'f2'], ['f2', 'f1'], ['f1']]);
  });
  it('a screenshot is copied; where its picture is not found, that is said and nothing is asked', async () => {
    const { act } = studio(),
      save = (path: string): Promise<void> => act({ action: 'saveImage', path, name: 'r-1 step 2.png' }, 'inspector');
    disk.files.push('/cache/ab/x.png');
    await save('/cache/ab/x.png');
    expect(disk).toMatchObject({ copied: [['/cache/ab/x.png', '/cache/ab/r-1-step-2.png']], said: [] });
    for (const path of ['/elsewhere/x.png', '/cache/ab/gone.png']) await save(path);
    const words = 'The picture of this screenshot was not found. Wait until the page shows it, then save it again.';
    expect(disk).toMatchObject({ copied: { length: 1 }, said: [words, words] });
  });
  it('the desktop of a replay is watched beside the trajectory, any other where it was asked for', async () => {
    const { act, shown } = studio(),
      watch = { action: 'command', command: 'watchDesktop', argument: 'd1' } as const;
    await act(watch, 'inspector');
    await act(watch, 'dashboard');
    expect(shown).toEqual([
      [{ kind: 'live', desktop: 'd1', session: undefined }, { aside: true }],
      ['dartStudio.watchDesktop', 'd1'],
    ]);
  });
});
