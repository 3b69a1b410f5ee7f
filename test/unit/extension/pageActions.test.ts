import { describe, expect, it, vi } from 'vitest';
import type { StudioContext } from '../../../extension/studioContext.js';
import type { HostAction, PageInput, PageKind } from '../../../webview/protocol.js';

vi.mock('vscode', () => ({
  env: {},
  window: {},
  workspace: { getConfiguration: () => ({ get: (_key: string, otherwise: unknown) => otherwise }) },
  Uri: class {},
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
    sessions: { of: () => undefined },
    run: (...a: unknown[]) => shown.push(a),
    panels: {
      show: (input: PageInput, o: object) => shown.push([input, o]),
      savedFiltersChanged: () => told.push(savedFilters(workspaceState as never).map((f) => f.name)),
    },
  } as unknown as StudioContext;
  const act = (a: HostAction, kind: PageKind): Promise<void> => carryOut(s, a, { kind } as never);
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
