import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { PageInput, ToPage } from '../../../webview/protocol.js';
import { ScriptedRuntime } from '../../helpers/extension/scriptedRuntime.js';

interface Place {
  readonly fsPath: string;
}
interface Made {
  readonly column: string;
  readonly posted: ToPage[];
  say(m: object): void;
  revealed: number;
  visible: boolean;
  /** As the user does it. */
  close(): void;
}
class TabInputWebview {
  readonly viewType: string;
  constructor(viewType: string) {
    this.viewType = viewType;
  }
}
const tabs: { input: TabInputWebview; isActive: boolean; label: string }[] = [];
let tabsChanged = (): void => undefined;
const at = (fsPath: string): Place => ({ fsPath }),
  ends = { dispose: (): void => undefined },
  made: Made[] = [];
vi.mock('vscode', () => ({
  Uri: { file: at, joinPath: (u: Place, ...more: string[]) => at(join(u.fsPath, ...more)) },
  ViewColumn: { Active: 'active', Beside: 'beside' },
  TabInputWebview,
  env: { language: 'en' },
  l10n: { bundle: undefined },
  workspace: { isTrusted: true, onDidGrantWorkspaceTrust: () => ends },
  window: {
    registerWebviewPanelSerializer: () => ends,
    tabGroups: {
      all: [{ tabs }],
      onDidChangeTabs: (l: () => void) => {
        tabsChanged = l;
        return ends;
      },
    },
    createWebviewPanel: (_type: string, _title: string, o: { readonly viewColumn: string }) => {
      let say = (_: object): void => undefined;
      const panel: Made = {
        column: o.viewColumn,
        posted: [],
        say: (m) => say(m),
        revealed: 0,
        visible: true,
        close: () => undefined,
      };
      made.push(panel);
      return {
        get visible() {
          return panel.visible;
        },
        webview: {
          cspSource: 'csp:',
          asWebviewUri: (u: Place) => `uri:${u.fsPath}`,
          onDidReceiveMessage: (l: (m: object) => void) => {
            say = l;
            return ends;
          },
          postMessage: (m: ToPage) => Promise.resolve(panel.posted.push(m) > 0),
        },
        onDidDispose: (l: () => void) => {
          panel.close = l;
          return ends;
        },
        onDidChangeViewState: () => ends,
        reveal: () => {
          panel.revealed++;
        },
      };
    },
  },
}));
const { PanelManager } = await import('../../../extension/panels/panelManager.js');
const { panelType } = await import('../../../extension/ids.js');

function panels() {
  made.length = 0;
  const r = new ScriptedRuntime();
  r.state = 'ready';
  return new PanelManager({
    extensionUri: at('/ext') as never,
    runtime: r.runtime,
    log: { warn: () => undefined, error: () => undefined },
    caches: [],
    act: () => undefined,
    watchFps: () => 1,
    held: () => undefined,
    adopt: () => undefined,
    savedFilters: () => [{ name: 'f1', filter: {} }],
  });
}
const shows = (p: Made): PageInput[] => p.posted.flatMap((m) => (m.type === 'show' ? [m.input] : []));

describe('panels', () => {
  it('are told what they are to show only where their page does not by now', () => {
    const all = panels();
    all.show({ kind: 'compareRuns', runs: ['/a', '/b', '/c'] });
    all.show({ kind: 'inspector', run: '/a', rollout: 'x' });
    const [runs, inspector] = made as [Made, Made];
    for (const p of made) p.say({ type: 'ready', boot: 'b1' });
    runs.say({ type: 'now', boot: 'b1', input: { kind: 'compareRuns', runs: ['/a', '/b'] } });
    inspector.say({ type: 'now', boot: 'b1', input: { kind: 'inspector', run: '/a', rollout: 'x', step: 9 } });
    all.show({ kind: 'compareRuns', runs: ['/b', '/a', '/c'] });
    all.show({ kind: 'inspector', run: '/a', rollout: 'x', step: undefined });
    expect(made).toHaveLength(3);
    expect([shows(inspector), inspector.revealed]).toEqual([[], 1]);
    all.show({ kind: 'inspector', run: '/a', rollout: 'x', step: 5 });
    expect(shows(inspector)).toMatchObject([{ step: 5 }]);
  });
  it('are opened aside where one is not open yet', () => {
    const all = panels();
    all.show({ kind: 'live', desktop: 'd1' }, { aside: true });
    all.show({ kind: 'live', desktop: 'd1' }, { aside: true });
    all.show({ kind: 'live', desktop: 'd2' });
    expect(made.map((p) => [p.column, p.revealed])).toEqual([
      ['beside', 1],
      ['active', 0],
    ]);
  });
  it('are on their way back while a tab in front has none yet', () => {
    const all = panels(),
      tab = (isActive: boolean) => ({
        input: new TabInputWebview(`mainThreadWebview-${panelType('live')}`),
        isActive,
        label: '',
      });
    let changes = 0;
    all.onChange(() => changes++);
    const restoring = (...now: readonly boolean[]): boolean => {
      tabs.splice(0, tabs.length, ...now.map(tab));
      tabsChanged();
      return all.restoring('live');
    };
    // Behind another tab VS Code restores nothing.
    expect([restoring(), restoring(false), restoring(true)]).toEqual([false, false, true]);
    expect(all.restoring('dashboard')).toBe(false);
    expect(changes).toBe(3);
    all.show({ kind: 'live', desktop: 'd1' });
    const [panel] = made as [Made];
    expect([changes, restoring(true), restoring(true, false), restoring(true, true)]).toEqual([4, false, false, true]);
    // Hidden, with its tab in front: of a group that another one covers.
    panel.visible = false;
    expect([restoring(true), restoring(true, true)]).toEqual([false, true]);
    panel.close();
    expect([all.inputs, restoring()]).toEqual([[], false]);
  });
  it('of tables hear of filters that are saved', () => {
    const all = panels();
    all.show({ kind: 'table', run: '/a' });
    all.show({ kind: 'dashboard', run: '/a' });
    for (const p of made) p.say({ type: 'ready', boot: 'b1' });
    all.savedFiltersChanged();
    expect(made.map((p) => p.posted.filter((m) => m.type === 'savedFilters').length)).toEqual([1, 0]);
  });
});
