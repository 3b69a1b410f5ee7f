import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StudioModel, type Change } from '../../../extension/model/studioModel.js';
import { TrajectoryList } from '../../../extension/model/trajectoryList.js';
import type { RunState, TrajectoryRow } from '../../../runtime/protocol/types.js';
import { desktop, run, status, trajectory } from '../../helpers/extension/rows.js';
import { ScriptedRuntime, settled } from '../../helpers/extension/scriptedRuntime.js';

function studio(o: { selected?: string } = {}) {
  const r = new ScriptedRuntime(),
    changes: Change[] = [],
    failures: string[] = [],
    due: (() => void)[] = [];
  r.answers = {
    'run/list': () => ({
      runs: [run({ run: '/w/runs/b', state: 'finished' }), run({ run: '/w/runs/a', status: status() })],
    }),
    'run/get': ({ run: path }: { run: string }) => ({
      summary: run({ run: path }),
      ledger: { generated: 1 },
      evals: [],
      tasks: [],
      config: {},
      checkpoints: [],
      seq: 41,
    }),
    'desktop/list': () => ({ desktops: [desktop({ desktop: 'local-10' }), desktop({ desktop: 'local-2' })] }),
    'task/list': () => ({ tasks: [] }),
  };
  const model = new StudioModel({
    runtime: r.runtime,
    roots: (active) => ['/w/runs', ...active],
    selected: o.selected,
    keepSelected: () => undefined,
    failed: (_e, doing) => failures.push(doing),
    later: (f) => {
      due.push(f);
      return () => undefined;
    },
  });
  model.onChange((c) => changes.push(c));
  return {
    r,
    model,
    changes,
    failures,
    tick: async () => {
      for (const f of due.splice(0)) f();
      await settled();
    },
  };
}

describe('the model', () => {
  it('asks for everything when the runtime is there, and follows the active run from where its state was read', async () => {
    const { r, model } = studio();
    r.become('ready');
    await settled();
    expect(model.selected).toBe('/w/runs/a');
    expect(model.active?.run).toBe('/w/runs/a');
    expect(model.desktops.map((d) => d.desktop)).toEqual(['local-2', 'local-10']);
    expect(r.subscriptions.map((s) => s.query)).toMatchObject([{ run: '/w/runs/a', sinceSeq: 41 }]);
  });
  it('a chosen run stays chosen, and is followed instead', async () => {
    const { r, model } = studio();
    r.become('ready');
    await settled();
    model.select('/w/runs/b');
    await settled();
    expect(model.selected).toBe('/w/runs/b');
    expect(r.subscriptions.map((s) => [s.query.run, s.ended])).toEqual([
      ['/w/runs/a', true],
      ['/w/runs/b', false],
    ]);
  });
  it('a status renews the run without listing again', async () => {
    const { r, model, changes } = studio();
    r.become('ready');
    await settled();
    const lists = r.asked.filter((a) => a.method === 'run/list').length;
    r.notify('run/status', {
      run: '/w/runs/a',
      status: status({ state: 'paused', rollouts: 500 }),
      ledger: { generated: 9 },
    });
    expect(model.active).toMatchObject({ state: 'paused', rollouts: 500 });
    expect(model.ledger).toEqual({ generated: 9 });
    expect(changes.at(-1)).toBe('status');
    expect(r.asked.filter((a) => a.method === 'run/list').length).toBe(lists);
  });
  it('a burst of events is one reading of the tasks', async () => {
    const { r, tick } = studio();
    r.become('ready');
    await settled();
    for (let i = 0; i < 50; i++)
      r.subscriptions[0]!.send({
        events: [{ type: 'ended', seq: 50 + i, at: 0, row: trajectory() }],
        nextSeq: 51 + i,
        live: true,
      });
    await settled();
    expect(r.asked.filter((a) => a.method === 'task/list')).toHaveLength(1);
    await tick();
    expect(r.asked.filter((a) => a.method === 'task/list')).toHaveLength(2);
  });
  it('tells once that a run is over', async () => {
    const { r, model, tick } = studio(),
      over: string[] = [];
    model.onEnded((s) => over.push(`${s.run} ${s.state}`));
    r.become('ready');
    await settled();
    r.answers['run/list'] = () => ({ runs: [run({ run: '/w/runs/a', state: 'finished' })] });
    r.notify('run/changed', { run: '/w/runs/a', state: 'finished' });
    await tick();
    await settled();
    r.notify('run/changed', { run: '/w/runs/a', state: 'finished' });
    await tick();
    await tick();
    expect(over).toEqual(['/w/runs/a finished']);
  });
  it('a run that another window starts elsewhere is listed and shown', async () => {
    const { r, tick } = studio();
    r.become('ready');
    await settled();
    r.notify('run/changed', { run: '/elsewhere/c', state: 'running' });
    await tick();
    await settled();
    expect(r.asked.filter((a) => a.method === 'run/list').at(-1)!.params).toEqual({
      roots: ['/w/runs', '/elsewhere/c'],
    });
  });
  /** A model whose runtime lists what lies under the roots that it is asked for, as the real one does. */
  const elsewhere = async () => {
    const s = studio(),
      over: string[] = [];
    let state: RunState = 'running';
    s.r.answers['run/list'] = ({ roots }: { roots: readonly string[] }) => ({
      runs: [run({ run: '/w/runs/b', state: 'finished' }), run({ run: '/elsewhere/c', state })].filter((x) =>
        roots.some((root) => root === x.run || root === dirname(x.run)),
      ),
    });
    s.model.onEnded((x) => over.push(`${x.run} ${x.state}`));
    s.r.become('ready');
    await settled();
    return {
      ...s,
      over,
      listed: () => s.model.runs.map((x) => x.run),
      change: async (to: RunState) => {
        state = to;
        s.r.notify('run/changed', { run: '/elsewhere/c', state: to });
        await s.tick();
        await settled();
        await s.tick();
      },
    };
  };
  it('a run outside of the roots is listed when it is over, too, and its end is told', async () => {
    const { model, over, listed, change } = await elsewhere();
    await model.started('/elsewhere/c');
    expect([model.active?.run, listed()]).toEqual(['/elsewhere/c', ['/w/runs/b', '/elsewhere/c']]);
    await change('finished');
    expect([over, listed(), model.selected]).toEqual([
      ['/elsewhere/c finished'],
      ['/w/runs/b', '/elsewhere/c'],
      '/elsewhere/c',
    ]);
  });
  it('so is one that the queue, another window or a new runtime begins', async () => {
    const { over, listed, change } = await elsewhere();
    await change('running');
    await change('failed');
    expect([over, listed()]).toEqual([['/elsewhere/c failed'], ['/w/runs/b', '/elsewhere/c']]);
  });
  it('until a person removes it from the list, which one that is active stays in', async () => {
    const { model, listed, change } = await elsewhere();
    await change('running');
    model.forget('/elsewhere');
    await model.reload();
    expect(listed()).toContain('/elsewhere/c');
    await change('finished');
    model.forget('/elsewhere');
    await model.reload();
    expect(listed()).toEqual(['/w/runs/b']);
  });
  it('forgets what a runtime said that is gone, and keeps the runs while it comes back', async () => {
    const { r, model, changes } = studio();
    r.become('ready');
    await settled();
    const before = changes.length;
    expect(model.reconnecting).toBe(false);
    r.become('reconnecting');
    expect([model.runs.length, model.desktops.length, model.reconnecting]).toEqual([2, 0, true]);
    // The rows of the runs are drawn with it.
    expect(changes.slice(before)).toContain('daemon');
    r.become('stopped');
    expect([model.runs.length, model.selected, model.loaded]).toEqual([0, undefined, false]);
  });
  it('a run that was followed to its end is followed again when it is resumed', async () => {
    const { r, model, changes, tick } = studio();
    r.become('ready');
    await settled();
    r.subscriptions[0]!.send({ events: [], nextSeq: 60, live: true, ended: true });
    r.answers['run/list'] = () => ({ runs: [run({ run: '/w/runs/a', state: 'finished' })] });
    r.notify('run/changed', { run: '/w/runs/a', state: 'finished' });
    await tick();
    await settled();
    expect(model.active).toBeUndefined();
    const rows = changes.filter((c) => c === 'trajectories').length;
    r.notify('run/changed', { run: '/w/runs/a', state: 'running' });
    // Its row says so before the list is read again.
    expect(model.active?.run).toBe('/w/runs/a');
    await settled();
    expect(r.subscriptions.map((s) => [s.query.run, s.ended])).toEqual([
      ['/w/runs/a', true],
      ['/w/runs/a', false],
    ]);
    expect(changes.filter((c) => c === 'trajectories').length).toBe(rows + 1);
    r.subscriptions[1]!.send({
      events: [{ type: 'ended', seq: 70, at: 0, row: trajectory() }],
      nextSeq: 71,
      live: true,
    });
    expect(changes.filter((c) => c === 'trajectories').length).toBe(rows + 2);
  });
  it('without a runtime the runs are those of their folders', async () => {
    const r = new ScriptedRuntime(),
      saved = { ...run({ run: '/w/runs/old', state: 'finished' }) },
      model = new StudioModel({
        runtime: r.runtime,
        roots: () => ['/w/runs'],
        keepSelected: () => undefined,
        failed: () => undefined,
        saved: (roots) => Promise.resolve(roots.includes('/w/runs') ? [saved] : []),
      });
    r.become('stopped');
    await settled();
    expect([model.runs.map((x) => x.run), model.fromFolders, model.loaded]).toEqual([['/w/runs/old'], true, false]);
    r.answers = {
      'run/list': () => ({ runs: [run({ run: '/w/runs/a', state: 'finished' })] }),
      'run/get': () => ({ summary: run({}), ledger: {}, evals: [], tasks: [], config: {}, checkpoints: [], seq: 1 }),
      'desktop/list': () => ({ desktops: [] }),
    };
    r.become('ready');
    await settled();
    expect([model.runs.map((x) => x.run), model.fromFolders]).toEqual([['/w/runs/a'], false]);
  });
  it('a run that was selected without a runtime is followed once there is one; a damaged one is none to begin with', async () => {
    const { r, model } = studio();
    r.answers['run/list'] = () => ({
      runs: [
        run({
          run: '/w/runs/broken',
          state: 'interrupted',
          damaged: { kind: 'store.damaged', message: 'Cut off.', remedy: '' },
        }),
        run({ run: '/w/runs/b', state: 'finished' }),
        run({ run: '/w/runs/c', state: 'finished' }),
      ],
    });
    r.become('ready');
    await settled();
    expect(model.selected).toBe('/w/runs/b');
    r.become('stopped');
    model.select('/w/runs/c');
    await settled();
    r.become('ready');
    await settled();
    expect([model.selected, model.detail?.summary.run]).toEqual(['/w/runs/c', '/w/runs/c']);
    expect(r.subscriptions.at(-1)?.query.run).toBe('/w/runs/c');
  });
  it('a run that could not be read is followed once it can be', async () => {
    const { r, model, failures } = studio(),
      get = r.answers['run/get']!;
    r.answers['run/get'] = () => {
      throw new Error('busy');
    };
    r.become('ready');
    await settled();
    expect([failures, r.subscriptions.length]).toEqual([['read the run'], 0]);
    r.answers['run/get'] = get;
    await model.reload();
    await settled();
    expect(r.subscriptions.map((s) => s.query.run)).toEqual(['/w/runs/a']);
  });
  /** Two lists of runs were asked for, and neither is there. */
  const askedTwice = async () => {
    const { r, model } = studio();
    r.become('ready');
    await settled();
    delete r.answers['run/list'];
    const older = model.reload(),
      newer = model.reload(),
      [first, second] = r.asked.filter((x) => x.method === 'run/list').slice(-2);
    return { r, model, older, newer, first, second };
  };
  it('an older list of runs does not take the place of a newer one', async () => {
    const { model, older, newer, first, second } = await askedTwice();
    second!.answer({ runs: [run({ run: '/w/runs/new', state: 'finished' })] });
    await newer;
    first!.answer({ runs: [] });
    await older;
    expect(model.runs.map((x) => x.run)).toEqual(['/w/runs/new']);
  });
  it('a list is shown though another was asked for meanwhile, and what an older one failed with is not told', async () => {
    const { r, model, older, newer, first, second } = await askedTwice();
    first!.answer({ runs: [run({ run: '/w/runs/first', state: 'finished' })] });
    await older;
    expect(model.runs.map((x) => x.run)).toEqual(['/w/runs/first']);
    const last = model.reload(),
      third = r.asked.filter((a) => a.method === 'run/list').at(-1);
    third!.answer({ runs: [run({ run: '/w/runs/third', state: 'finished' })] });
    await last;
    second!.fail(new Error('too slow'));
    await newer;
    expect([model.problem, ...model.runs.map((x) => x.run)]).toEqual([undefined, '/w/runs/third']);
  });
  it('says why the list could not be read', async () => {
    const { r, model } = studio();
    delete r.answers['run/list'];
    r.become('ready');
    await settled();
    r.asked
      .find((a) => a.method === 'run/list')!
      .fail(Object.assign(new Error('The folder cannot be read'), { kind: 'store.io', remedy: 'Check it.' }));
    await settled();
    expect(model.problem).toEqual({ kind: 'store.io', message: 'The folder cannot be read', remedy: 'Check it.' });
  });
});

describe('the list of trajectories', () => {
  const rows = (from: number, n: number): TrajectoryRow[] =>
    Array.from({ length: n }, (_, i) => trajectory({ rollout: `r-${from + i}` }));
  const open = () => {
    const r = new ScriptedRuntime();
    r.state = 'ready';
    return { r, list: new TrajectoryList(r.runtime, () => 100, {}, 'newest') };
  };
  it('adds pages, and shows no row twice when rows move between them', async () => {
    const { r, list } = open();
    r.answers['trajectory/list'] = ({ cursor }: { cursor?: string }) =>
      cursor ? { rows: rows(98, 50), total: 148 } : { rows: rows(0, 100), total: 148, cursor: 'c' };
    await list.show({ run: '/r' });
    expect([list.rows.length, list.more]).toEqual([100, true]);
    await list.loadMore();
    expect([list.rows.length, list.more, new Set(list.rows.map((x) => x.rollout)).size]).toEqual([148, false, 148]);
  });
  it('a new filter cancels what is on the way for the old one', async () => {
    const { r, list } = open();
    void list.show({ run: '/r' });
    const old = r.asked[0]!;
    void list.show({ filter: { outcome: ['success'] } });
    expect(old.signal?.aborted).toBe(true);
    old.answer({ rows: rows(0, 3), total: 3 });
    r.asked[1]!.answer({ rows: rows(7, 1), total: 1 });
    await settled();
    expect(list.rows.map((x) => x.rollout)).toEqual(['r-7']);
    expect(r.asked[1]!.params).toMatchObject({ filter: { outcome: ['success'] } });
  });
  it('reloads what is shown, not only the first page, and once more for what came meanwhile', async () => {
    const { r, list } = open();
    r.answers['trajectory/list'] = ({ limit, cursor }: { limit: number; cursor?: string }) => ({
      rows: rows(cursor ? 100 : 0, limit),
      total: 900,
      cursor: 'c',
    });
    await list.show({ run: '/r' });
    await list.loadMore();
    r.answers['trajectory/list'] = ({ limit }: { limit: number }) => ({
      rows: rows(0, limit),
      total: 901,
      cursor: 'c',
    });
    void list.reload();
    void list.reload();
    void list.reload();
    await settled();
    expect(r.asked.slice(2).map((a) => (a.params as { limit: number }).limit)).toEqual([200, 200]);
    expect(list.total).toBe(901);
  });
  it('a reading that fails leaves the rows and says why', async () => {
    const { r, list } = open();
    r.answers['trajectory/list'] = () => ({ rows: rows(0, 2), total: 2 });
    await list.show({ run: '/r' });
    delete r.answers['trajectory/list'];
    const again = list.reload();
    r.asked.at(-1)!.fail(Object.assign(new Error('damaged'), { kind: 'store.damaged', remedy: 'Restore.' }));
    await again;
    expect([list.rows.length, list.problem?.kind]).toEqual([2, 'store.damaged']);
  });
  it('asks nothing without a run or a runtime', async () => {
    const { r, list } = open();
    await list.reload();
    r.state = 'stopped';
    await list.show({ run: '/r' });
    expect(r.asked).toEqual([]);
  });
});
