import { describe, expect, it } from 'vitest';
import { ControlSessions } from '../../../extension/model/controlSessions.js';
import {
  badRunName,
  countsWords,
  exportWords,
  importDocument,
  importWords,
  previewDocument,
  runNameFor,
} from '../../../extension/model/interchangeWords.js';
import { PoolModel } from '../../../extension/model/poolModel.js';
import { asksOf, recordOrder, recordWords } from '../../../extension/model/recordTasks.js';
import { ReviewCount } from '../../../extension/model/reviewCount.js';
import { statusText } from '../../../extension/statusText.js';
import { trajectoriesOf } from '../../../extension/views/nodes.js';
import { coverageRow, entryRow, familyRow, poolDescription } from '../../../extension/views/poolRows.js';
import { poolChildren } from '../../../extension/views/poolTree.js';
import { desktopRow, trajectoryRow } from '../../../extension/views/rows.js';
import type { ImportPreview, ImportResult } from '../../../runtime/protocol/types.js';
import {
  control,
  desktop,
  poolEntry,
  poolFamily,
  poolView,
  run,
  status,
  task,
  trajectory,
} from '../../helpers/extension/rows.js';
import { ScriptedRuntime, settled } from '../../helpers/extension/scriptedRuntime.js';

describe('tasks for a demonstration', () => {
  it('that were never solved come first, those without a success in the pool before the others; then by success', () => {
    const tasks = [
      task({ family: 'often', rollouts: 40, successes: 30, rate: 0.9 }),
      task({ family: 'never, covered', rollouts: 40, successes: 0, poolEntries: 2 }),
      task({ family: 'rarely', rollouts: 40, successes: 1, rate: 0.05 }),
      task({ family: 'untried', rollouts: 0, successes: 0 }),
      task({ family: 'never', rollouts: 10, successes: 0 }),
      task({ family: 'kept apart', rollouts: 9, successes: 0, heldOut: true }),
    ];
    expect(recordOrder(tasks).map((k) => k.family)).toEqual([
      'never',
      'never, covered',
      'untried',
      'rarely',
      'often',
      'kept apart',
    ]);
  });
  it('say what is known of them', () => {
    expect(recordWords(task({ rollouts: 12, successes: 0, poolEntries: 1, apps: ['Calculator'] }))).toBe(
      '0 of 12 rollouts · 1 in the pool · Calculator',
    );
    expect(recordWords(task({ rollouts: 40, successes: 10, rate: 0.25 }))).toBe('success 25 %');
    expect([
      asksOf(task({ apps: ['yad'], title: 'yad: Press "OK".' })),
      asksOf(task({ title: 'Press "OK".' })),
      asksOf(task()),
    ]).toEqual(['Press "OK".', 'Press "OK".', '']);
  });
});

describe('control sessions', () => {
  function sessions(mine: string[] = []) {
    const r = new ScriptedRuntime(),
      kept: (readonly string[])[] = [],
      abandoned: string[] = [];
    r.answers = {
      'control/list': () => ({
        sessions: [control({ session: 's1', abandonedAt: 5000 }), control({ session: 's2', desktop: 'd2' })],
      }),
    };
    const s = new ControlSessions({
      runtime: r.runtime,
      mine,
      keepMine: (ids) => kept.push(ids),
      failed: (e) => {
        throw e as Error;
      },
    });
    s.onAbandoned((x) => abandoned.push(x.session));
    return { r, s, kept, abandoned };
  }
  it('are found again after a reload; only those of this window are announced when nobody shows them', async () => {
    const { r, s, abandoned } = sessions(['s1', 'long gone']);
    r.become('ready');
    await settled();
    expect(s.open.map((x) => x.session)).toEqual(['s1', 's2']);
    expect(abandoned).toEqual(['s1']);
    expect(s.isMine('long gone')).toBe(false);
  });
  it("are announced once when their page is closed, and not when another window's is", async () => {
    const { r, s, abandoned } = sessions();
    r.answers['control/list'] = () => ({ sessions: [] });
    r.become('ready');
    await settled();
    s.adopt(control({ session: 's5' }));
    for (const session of ['s5', 's6'])
      for (const at of [7000, 7000]) r.notify('control/changed', control({ session, abandonedAt: at }));
    expect(abandoned).toEqual(['s5']);
  });
  it('end with their verdict kept, and stay open while a failure waits for a decision', async () => {
    const { r, s, kept } = sessions();
    s.adopt(control({ session: 's5' }));
    r.notify('control/changed', control({ session: 's5', mode: 'ended', verdict: { outcome: 'failure' } }));
    expect(s.get('s5')?.mode).toBe('ended');
    r.notify(
      'control/changed',
      control({
        session: 's5',
        mode: 'ended',
        verdict: { outcome: 'failure' },
        kept: { rollout: 'h-1', pooled: false },
      }),
    );
    expect(s.open).toEqual([]);
    expect(kept.at(-1)).toEqual([]);
    await settled();
  });
  it('are forgotten with the runtime that held them', async () => {
    const { r, s } = sessions();
    r.become('ready');
    await settled();
    r.become('stopped');
    expect([s.open.length, s.of('d2')]).toEqual([0, undefined]);
  });
  it('show on their desktop and in the one status bar item', () => {
    expect(desktopRow(desktop({ desktop: 'hand-1' }), control())).toMatchObject({
      context: 'desktop.held',
      icon: { id: 'record' },
      description: 'recording · desk/form-one#5',
    });
    const s = statusText({
      daemon: 'ready',
      detail: undefined,
      active: run({ status: status() }),
      trusted: true,
      sessions: [control({ session: 's9', purpose: 'takeOver' })],
    });
    expect(s).toMatchObject({
      text: '$(person) DART under your control',
      command: 'dartStudio.showSession',
      argument: 's9',
    });
    expect(s.tooltip).toContain('rollouts/h');
  });
});

describe('the experience pool', () => {
  const never = poolFamily({ family: 'never', neverSolved: true, entries: [], successes: 0 }),
    covered = poolFamily({
      family: 'covered',
      neverSolved: true,
      entries: [poolEntry({ rollout: 'h-2', task: 'covered#1' })],
      successes: 0,
      rollouts: 9,
    });
  function pool() {
    const r = new ScriptedRuntime(),
      due: (() => void)[] = [];
    r.state = 'ready';
    const p = new PoolModel({
      runtime: r.runtime,
      later: (f) => {
        due.push(f);
        return () => undefined;
      },
    });
    return {
      r,
      p,
      tick: async () => {
        for (const f of due.splice(0)) f();
        await settled();
      },
      lists: () => r.asked.filter((a) => a.method === 'pool/list').length,
    };
  }
  it('is not read while nobody looks, and once when somebody does', async () => {
    const { r, p, lists } = pool();
    p.show('/r');
    r.notify('pool/changed', { run: '/r' });
    expect(lists()).toBe(0);
    p.seen(true);
    expect(lists()).toBe(1);
    r.asked[0]!.answer(poolView());
    await settled();
    expect(p.view?.entries).toBe(1);
  });
  it('a burst of changes is two readings, the first at once and one for the rest; other runs are none', async () => {
    const { r, p, tick, lists } = pool();
    r.answers['pool/list'] = () => poolView();
    p.seen(true);
    p.show('/r');
    await settled();
    for (let i = 0; i < 30; i++) r.notify('pool/changed', { run: '/r' });
    r.notify('pool/changed', { run: '/other' });
    expect(lists()).toBe(2);
    await tick();
    await tick();
    expect(lists()).toBe(3);
  });
  it("an answer that comes late never takes the place of a newer one, or of another run's", async () => {
    const { r, p } = pool();
    p.seen(true);
    p.show('/r');
    p.take('/r', poolView([never]));
    r.asked[0]!.answer(poolView());
    await settled();
    expect(p.view?.entries).toBe(0);
    p.take('/other', poolView());
    expect(p.view?.entries).toBe(0);
  });
  it('says why it cannot be read', async () => {
    const { r, p } = pool();
    p.seen(true);
    p.show('/r');
    r.asked[0]!.fail(Object.assign(new Error('The run is damaged'), { kind: 'store.damaged', remedy: 'Restore it.' }));
    await settled();
    expect(p.problem).toMatchObject({ kind: 'store.damaged' });
  });
  it('shows what covers the tasks that were never solved, and which of them lack a success', () => {
    const view = poolView([never, covered, poolFamily()]),
      tree = { run: '/r', view };
    expect(coverageRow(view)).toMatchObject({ description: '1 of 2 covered', icon: { id: 'warning' } });
    expect(poolDescription(view)).toBe('2 successes · 1 of 2 never-solved tasks covered');
    const top = poolChildren(tree, undefined);
    expect(top.map((n) => (n.kind === 'poolFamily' ? n.family.family : n.kind))).toEqual([
      'poolCoverage',
      'covered',
      'desk/form-one',
    ]);
    expect(poolChildren(tree, top[0]).map((n) => n.kind === 'poolMissing' && n.family.family)).toEqual(['never']);
    expect(poolChildren(tree, top[1]).map((n) => n.kind === 'poolEntry' && n.entry.rollout)).toEqual(['h-2']);
    expect(poolChildren({ run: '/r', view: poolView() }, undefined).map((n) => n.kind)).toEqual(['poolFamily']);
  });
  it('a success that is turned off, or was relabelled, covers nothing', () => {
    const off = poolFamily({
        family: 'off',
        neverSolved: true,
        entries: [poolEntry({ enabled: false, usable: false, why: 'off' })],
      }),
      relabelled = poolFamily({
        family: 'relabelled',
        neverSolved: true,
        entries: [poolEntry({ source: 'hindsight', usable: false, why: 'imitated' })],
      }),
      tree = { run: '/r', view: poolView([off, relabelled]) };
    expect(
      poolChildren(tree, poolChildren(tree, undefined)[0]).map((n) => n.kind === 'poolMissing' && n.family.family),
    ).toEqual(['off', 'relabelled']);
  });
  it('entries say where they are from, how often they were used, and why they are not', () => {
    expect(entryRow('/r', poolEntry({ uses: 3 }), 61_000)).toMatchObject({
      label: '4 steps',
      description: 'human · used 3 times',
      checked: true,
      context: 'pool.entry.on',
      icon: { id: 'person' },
    });
    expect(
      entryRow('/r', poolEntry({ enabled: false, usable: false, why: 'off', source: 'imported', from: 'osworld' }), 0),
    ).toMatchObject({
      description: 'imported from osworld · never used · turned off',
      checked: false,
      context: 'pool.entry.off',
    });
    const relabelled = entryRow(
      '/r',
      poolEntry({ source: 'hindsight', from: 'Click A', instruction: 'Click B', usable: false, why: 'imitated' }),
      0,
    );
    expect(relabelled).toMatchObject({ description: 'relabelled from: Click A · imitated', checked: true });
    expect(relabelled.tooltip).toContain('Click B');
    expect(relabelled.tooltip).not.toContain('never used');
    expect(relabelled.icon).toEqual({ id: 'tag' });
    expect(trajectoryRow('/r', trajectory({ provenance: 'hindsight', relabelledFrom: 'Click A' })).tooltip).toContain(
      'Relabelled from: Click A',
    );
    expect(entryRow('/r', poolEntry({ override: 'the clock [moved]' }), 0).tooltip).toContain('\\[moved\\]');
    expect(familyRow('/r', poolFamily({ uses: 2, neverSolved: true }), 0).description).toBe(
      '1 success · shortest 4 · used 2 times · never solved',
    );
  });
});

describe('annotations in the list', () => {
  it('are shown in the description of the row', () => {
    const r = trajectoryRow(
      '/r',
      trajectory({
        outcome: 'failure',
        tags: ['odd'],
        assisted: true,
        annotated: {
          revision: 3,
          outcome: 'success',
          tags: ['odd', 'slow'],
          marks: 2,
          edited: true,
          reviewed: true,
          replayed: 'success',
          note: true,
        },
      }),
    );
    expect(r.description).toBe(
      'corrected: success · 3 steps · assisted · edited · 2 marks · note · replayed: success · reviewed · #odd · #slow',
    );
    expect(r.spoken).toContain('assisted, edited, 2 marks');
    expect(r.context).toBe('trajectory.failure');
  });
  it('what was imported without an instruction is called by its task', () => {
    expect(trajectoryRow('/r', trajectory({ instruction: '', task: 'os/aaa' })).label).toBe('os/aaa');
  });
  it('menus get all that is selected when the one clicked is among them', () => {
    const a = { kind: 'trajectory', run: '/r', row: trajectory({ rollout: 'a' }) },
      b = { kind: 'poolEntry', run: '/r', entry: poolEntry({ rollout: 'b' }) };
    expect(
      [
        trajectoriesOf(a, [a, b]),
        trajectoriesOf(b, [a]),
        trajectoriesOf(undefined, undefined),
        trajectoriesOf({ kind: 'task' }, [a]),
      ].map((x) => x.map((y) => y.rollout)),
    ).toEqual([['a', 'b'], ['b'], [], ['a']]);
  });
  it('are counted as waiting from when somebody reviews the run, and again after an edit', async () => {
    const r = new ScriptedRuntime(),
      said: (number | undefined)[] = [],
      due: (() => void)[] = [];
    r.state = 'ready';
    const c = new ReviewCount(
      r.runtime,
      (n) => said.push(n),
      (f) => {
        due.push(f);
        return () => undefined;
      },
    );
    c.show('/r');
    r.notify('annotation/changed', { run: '/r', rollout: 'x', revision: 1 });
    expect([said, r.asked.length]).toEqual([[undefined], 0]);
    c.begin('/r', { items: [], total: 9, reviewed: 2 });
    r.answers['review/queue'] = () => ({ items: [], total: 9, reviewed: 3 });
    r.notify('annotation/changed', { run: '/r', rollout: 'x', revision: 1 });
    await settled();
    expect(said).toEqual([undefined, 7, 6]);
    c.show('/other');
    expect(said.at(-1)).toBeUndefined();
    c.show('/r');
    expect(said.at(-1)).toBe(6);
  });
});

describe('import and export in words', () => {
  const preview: ImportPreview = {
    path: '/d/res',
    formats: { osworld: 12 },
    trajectories: 12,
    steps: 140,
    successes: 7,
    failures: 4,
    tasks: 5,
    already: 2,
    problems: [{ where: 'chrome/a|b', what: 'traj.jsonl ends early', remedy: 'Copy it again.' }],
    problemCount: 3,
    notes: { 'the first frame is missing': 12 },
  };
  const result: ImportResult = {
    run: '/r',
    imported: 10,
    successes: 7,
    steps: 120,
    pooled: 6,
    notPooled: { 'no frame of its first step': 1 },
    already: 2,
    duplicateCount: 1,
    problems: [],
    problemCount: 0,
    notes: {},
    stopped: false,
  };
  it('the preview is a table in which nothing of the files is markup', () => {
    const text = previewDocument(preview);
    expect(text).toContain('| Successes | 7 |');
    expect(text).toContain('| chrome/a\\|b | traj\\.jsonl ends early | Copy it again\\. |');
    expect(text).toContain('And 2 more.');
    expect(previewDocument({ ...preview, path: '](command:evil)' })).not.toContain('](command');
    expect(countsWords(preview)).toBe('7 successes, 4 failures, 1 without a verdict, 140 steps, 5 tasks');
  });
  it('the end says what joined the pool, what was already in the run, and whether it was stopped', () => {
    expect(importWords(result)).toBe(
      'Imported 10 trajectories: 6 in the experience pool, 2 already in the run, 1 duplicate left out.',
    );
    expect(importWords({ ...result, imported: 1, pooled: 0, already: 0, duplicateCount: 0, stopped: true })).toBe(
      'Imported 1 trajectory. It was stopped; import again to continue from there.',
    );
    expect(importDocument(result, '/d')).toContain('no frame of its first step: 1');
    expect(exportWords({ to: '/x', trajectories: 0, steps: 0, parts: {}, problems: [] })).toContain('no trajectory');
    expect(exportWords({ to: '/x', trajectories: 9, steps: 30, parts: { train: 8, test: 1 }, problems: [] })).toBe(
      'Exported 9 trajectories, 30 steps (train 8, test 1).',
    );
  });
  it('a new run gets a name that a folder can have', () => {
    expect(['/d/OSWorld Results/', '/x/agentnet.jsonl', '/', '/a/Import-3', '/ü/日本'].map(runNameFor)).toEqual([
      'imported-osworld-results',
      'imported-agentnet',
      'imported',
      'import-3',
      'imported',
    ]);
    for (const p of ['/d/OSWorld Results/', '/..', '/x/..', '/']) expect(badRunName(runNameFor(p)), p).toBeUndefined();
    expect([badRunName('../x'), badRunName(''), badRunName('a/b')].every((x) => x !== undefined)).toBe(true);
  });
});
