import { beforeEach, describe, expect, it, vi } from 'vitest';
import { StudioModel } from '../../../extension/model/studioModel.js';
import type { StudioContext } from '../../../extension/studioContext.js';
import { run } from '../../helpers/extension/rows.js';
import { ScriptedRuntime, settled } from '../../helpers/extension/scriptedRuntime.js';

const warnings = vi.hoisted(() => [] as string[]);
vi.mock('vscode', () => ({
  env: {},
  workspace: {},
  Uri: class {},
  TreeItem: class {},
  ThemeIcon: class {},
  ThemeColor: class {},
  EventEmitter: class {},
  window: {
    showWarningMessage: (words: string) => {
      warnings.push(words);
      return Promise.resolve(undefined);
    },
  },
}));
const { openLink } = await import('../../../extension/commands/share.js');

/** A window that the link opened: it is about to attach to a runtime that runs already. */
function opened() {
  const r = new ScriptedRuntime(),
    shown: unknown[] = [];
  let attached = (): void => undefined,
    attempts = 0;
  const attempt = new Promise<void>((resolve) => (attached = resolve));
  r.become('attaching');
  r.answers = {
    'run/list': () => ({ runs: [run({ run: '/w/runs/a', id: 'a', state: 'finished' })] }),
    'desktop/list': () => ({ desktops: [] }),
  };
  const model = new StudioModel({
    runtime: r.runtime,
    roots: () => ['/w/runs'],
    keepSelected: () => undefined,
    saved: () => Promise.resolve([run({ run: '/w/runs/old', id: 'old', state: 'finished' })]),
    failed: () => undefined,
  });
  const s = {
    model,
    client: r.runtime,
    panels: { show: (input: unknown) => shown.push(input) },
    attach: () => {
      attempts++;
      return attempt;
    },
  } as unknown as StudioContext;
  return {
    r,
    shown,
    attempts: () => attempts,
    open: (id: string) => openLink(s, { path: '/open', query: `run=${id}` }),
    becomes: (state: 'ready' | 'stopped') => {
      r.become(state);
      attached();
    },
  };
}
beforeEach(() => {
  warnings.length = 0;
});

describe('a link that opens the window', () => {
  it('waits for the runtime that runs already, which says where the run is', async () => {
    const { shown, open, becomes } = opened(),
      done = open('a');
    await settled();
    expect([shown, warnings]).toEqual([[], []]);
    becomes('ready');
    await done;
    expect([shown, warnings]).toEqual([[{ kind: 'dashboard', run: '/w/runs/a' }], []]);
  });
  it('shows a run of a folder where no runtime runs', async () => {
    const { shown, open, becomes } = opened(),
      done = open('old');
    becomes('stopped');
    await done;
    expect([shown, warnings]).toEqual([[{ kind: 'dashboard', run: '/w/runs/old' }], []]);
  });
  it('says that a run is not there when that is known', async () => {
    const { shown, open, becomes } = opened(),
      done = open('b');
    becomes('ready');
    await done;
    expect(shown).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('The run b of this link is not in this window.')]);
  });
  it('finds a run that was made since the list was read, and asks nothing for one that is listed', async () => {
    const { r, shown, attempts, open, becomes } = opened();
    becomes('ready');
    await settled();
    await open('a');
    expect(attempts()).toBe(0);
    r.answers['run/list'] = () => ({ runs: [run({ run: '/w/runs/b', id: 'b', state: 'finished' })] });
    await open('b');
    expect([shown, warnings]).toEqual([
      [
        { kind: 'dashboard', run: '/w/runs/a' },
        { kind: 'dashboard', run: '/w/runs/b' },
      ],
      [],
    ]);
  });
});
