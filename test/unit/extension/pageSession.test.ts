import { describe, expect, it } from 'vitest';
import { PageSession } from '../../../extension/panels/pageSession.js';
import type { ControlState, SavedTableFilter } from '../../../runtime/protocol/types.js';
import type { HostAction, PageInput, ToPage } from '../../../webview/protocol.js';
import { control, desktop, status } from '../../helpers/extension/rows.js';
import { ScriptedRuntime, settled } from '../../helpers/extension/scriptedRuntime.js';

function page(input: PageInput = { kind: 'inspector', run: '/r', rollout: 'x' }) {
  const r = new ScriptedRuntime(),
    posted: ToPage[] = [],
    acts: HostAction[] = [],
    warned: string[] = [],
    rebuilt: number[] = [],
    adopted: ControlState[] = [],
    held = new Map<string, ControlState>(),
    saved: { filters: SavedTableFilter[] } = { filters: [] };
  const there = { is: true, trusted: true };
  r.state = 'ready';
  const session = new PageSession({
    kind: input.kind,
    input,
    runtime: r.runtime,
    post: (m) => {
      if (there.is) posted.push(m);
      return Promise.resolve(there.is);
    },
    roots: () => [{ path: '/r', uri: 'u' }],
    trusted: () => there.trusted,
    held: (d) => held.get(d),
    adopt: (s) => adopted.push(s),
    savedFilters: () => saved.filters,
    act: (a) => acts.push(a),
    setTitle: () => undefined,
    rebuild: (time) => rebuilt.push(time),
    watchFps: () => 10,
    cache: '/cache',
    log: { warn: (m) => warned.push(m), error: (m) => warned.push(m) },
  });
  const of = <T extends ToPage['type']>(type: T) =>
    posted.filter((m): m is Extract<ToPage, { type: T }> => m.type === type);
  return { r, session, posted, acts, warned, rebuilt, there, of, adopted, held, saved };
}

describe('a page', () => {
  it('is told everything when it is ready, and nothing before', async () => {
    const { session, posted, r } = page();
    r.notify('run/status', { run: '/r', status: status(), ledger: {} });
    expect(posted).toEqual([]);
    session.receive({ type: 'ready', boot: 'b1' });
    expect(posted.map((m) => m.type)).toEqual(['init', 'daemon']);
    expect(posted[0]).toMatchObject({
      boot: 'b1',
      daemon: 'ready',
      trusted: true,
      roots: [{ path: '/r' }],
      input: { rollout: 'x' },
    });
    await settled();
  });
  it('whose script did not come is built anew, and anew from the first time once it was there', () => {
    const { session, rebuilt, posted, warned } = page();
    for (const type of ['lost', 'lost', 'ready', 'lost']) session.receive({ type, boot: 'b1' });
    expect(rebuilt).toEqual([1, 2, 1]);
    expect(posted.map((m) => m.type)).toEqual(['init', 'daemon']);
    expect(warned).toHaveLength(3);
    expect(warned[0]).toContain('inspector page: its script did not come');
  });
  it("that was rebuilt never gets the old page's mail, and the old one's work ends", async () => {
    const { session, r, of } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({
      type: 'request',
      boot: 'b1',
      id: 1,
      method: 'trajectory/get',
      params: { run: '/r', rollout: 'x' },
    });
    session.receive({ type: 'subscribe', boot: 'b1', run: '/r', sinceSeq: 0 });
    session.receive({ type: 'ready', boot: 'b2' });
    expect(r.asked[0]!.signal?.aborted).toBe(true);
    expect(r.subscriptions[0]!.ended).toBe(true);
    r.asked[0]!.answer({});
    await settled();
    expect(of('response')).toEqual([]);
    session.receive({ type: 'request', boot: 'b1', id: 2, method: 'trajectory/get', params: {} });
    expect(r.asked).toHaveLength(1);
  });
  it('that was hidden and torn down costs nothing until it is back', async () => {
    const { session, r, there } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({ type: 'subscribe', boot: 'b1', run: '/r', sinceSeq: 7 });
    await settled();
    there.is = false;
    r.subscriptions[0]!.send({ events: [], nextSeq: 8, live: true });
    await settled();
    expect(r.subscriptions[0]!.ended).toBe(true);
  });
  it('that was hidden gets the answers to what takes long when it is back, and may cancel it', async () => {
    const { session, r, of, there } = page(),
      replay = { run: '/r', rollout: 'x' },
      go = { ...replay, step: 2, of: 5, desktop: 'd3' };
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({ type: 'request', boot: 'b1', id: 7, method: 'annotation/replay', params: replay });
    session.receive({ type: 'request', boot: 'b1', id: 8, method: 'trajectory/get', params: replay });
    there.is = false;
    r.notify('annotation/replayProgress', go);
    await settled();
    expect(r.asked.map((a) => a.signal?.aborted)).toEqual([false, true]);
    // It goes on when the page is back.
    there.is = true;
    session.receive({ type: 'ready', boot: 'b2' });
    expect(of('init').at(-1)!.jobs).toEqual([{ id: 7, method: 'annotation/replay', params: replay }]);
    expect(of('annotation')).toMatchObject([{ boot: 'b2', replay: { step: 2, of: 5, desktop: 'd3' } }]);
    // It ends while the page is hidden again.
    there.is = false;
    r.asked[0]!.answer({ replays: [] });
    await settled();
    there.is = true;
    session.receive({ type: 'ready', boot: 'b3' });
    await settled();
    expect(of('response')).toMatchObject([{ boot: 'b3', id: 7, result: { replays: [] } }]);
    session.receive({ type: 'ready', boot: 'b4' });
    expect(of('init').at(-1)!.jobs).toEqual([]);
    session.receive({ type: 'request', boot: 'b4', id: 9, method: 'annotation/replay', params: replay });
    session.receive({ type: 'ready', boot: 'b5' });
    session.receive({ type: 'cancel', boot: 'b5', id: 9 });
    await settled();
    expect(of('response').at(-1)).toMatchObject({ boot: 'b5', id: 9, error: { kind: 'cancelled' } });
  });
  it('that is closed ends what takes long, too', () => {
    const { session, r } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    const params = { run: '/r', rollout: 'x' };
    session.receive({ type: 'request', boot: 'b1', id: 1, method: 'annotation/replay', params });
    session.dispose();
    expect(r.asked[0]!.signal?.aborted).toBe(true);
  });
  it('that is built again begins with what its reader chose, not with what it was opened with', async () => {
    const { session, of, warned } = page({ kind: 'inspector', run: '/r', rollout: 'x', step: 5, annotate: true });
    session.receive({ type: 'ready', boot: 'b1' });
    const input = { kind: 'inspector', run: '/r', rollout: 'x', step: 9, annotate: false, evil: 1 };
    session.receive({ type: 'now', boot: 'b1', input });
    session.receive({ type: 'now', boot: 'b1', input: { kind: 'table', run: '/r' } });
    session.receive({ type: 'ready', boot: 'b2' });
    expect(of('init').at(-1)!.input).toEqual({ kind: 'inspector', run: '/r', rollout: 'x', step: 9 });
    expect(warned).toHaveLength(1);
    // To be shown the same, which says nothing of a step, changes nothing; another step does.
    session.show({ kind: 'inspector', run: '/r', rollout: 'x' });
    expect(session.input).toMatchObject({ step: 9 });
    session.show({ kind: 'inspector', run: '/r', rollout: 'x', step: 2 });
    expect(session.input).toMatchObject({ step: 2 });
    await settled();
  });
  it('of a table keeps its filters while it is hidden, and knows those that other pages save', async () => {
    const { session, of, saved } = page({ kind: 'table', run: '/r' }),
      f1 = { name: 'f1', filter: { text: 'a' } };
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({
      type: 'now',
      boot: 'b1',
      input: { kind: 'table', run: '/r', filter: { text: 'b' }, view: 'failures', saved: [] },
    });
    saved.filters = [f1];
    session.savedFiltersChanged();
    expect(of('savedFilters')).toEqual([{ type: 'savedFilters', boot: 'b1', saved: [f1] }]);
    session.show({ kind: 'table', run: '/r' });
    session.receive({ type: 'ready', boot: 'b2' });
    expect(of('init').at(-1)!.input).toEqual({
      kind: 'table',
      run: '/r',
      filter: { text: 'b' },
      view: 'failures',
      saved: [f1],
    });
    await settled();
  });
  it('gets answers by id, faults with what to do, and can cancel', async () => {
    const { session, r, of } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    for (const id of [1, 2, 3])
      session.receive({
        type: 'request',
        boot: 'b1',
        id,
        method: 'trajectory/get',
        params: { run: '/r', rollout: String(id) },
      });
    r.asked[1]!.answer({ row: 2 });
    r.asked[0]!.fail(Object.assign(new Error('no such rollout'), { kind: 'not.found', remedy: 'Refresh.' }));
    session.receive({ type: 'cancel', boot: 'b1', id: 3 });
    await settled();
    expect(
      of('response')
        .map(({ id, result, error }) => ({ id, result, error }))
        .sort((a, b) => a.id - b.id),
    ).toEqual([
      { id: 1, result: undefined, error: { kind: 'not.found', message: 'no such rollout', remedy: 'Refresh.' } },
      { id: 2, result: { row: 2 }, error: undefined },
      { id: 3, result: undefined, error: { kind: 'cancelled', message: 'Cancelled.', remedy: '' } },
    ]);
  });
  it('may ask nothing but its own requests', () => {
    const { session, r, warned } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({ type: 'request', boot: 'b1', id: 1, method: 'run/stop', params: { run: '/r' } });
    expect(r.asked).toEqual([]);
    expect(warned).toHaveLength(1);
  });
  it('has one subscription; a new one replaces it', () => {
    const { session, r, of } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({ type: 'subscribe', boot: 'b1', run: '/r', sinceSeq: 7, types: ['step'], rollout: 'x' });
    session.receive({ type: 'subscribe', boot: 'b1', run: '/r', sinceSeq: 9 });
    expect(r.subscriptions.map((s) => [s.query.sinceSeq, s.ended])).toEqual([
      [7, true],
      [9, false],
    ]);
    r.subscriptions[1]!.send({
      events: [{ type: 'note', seq: 9, at: 0, level: 'info', message: 'm' }],
      nextSeq: 10,
      live: true,
    });
    expect(of('events')).toMatchObject([{ run: '/r', nextSeq: 10, live: true, boot: 'b1' }]);
  });
  it('hears of its own run only', () => {
    const { session, r, of } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    r.notify('run/status', { run: '/other', status: status(), ledger: {} });
    r.notify('run/status', { run: '/r', status: status(), ledger: {} });
    expect(of('status').map((m) => m.run)).toEqual(['/r']);
  });
  it('shows another thing in the same page', () => {
    const { session, of } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    session.show({ kind: 'inspector', run: '/r', rollout: 'y' });
    expect(of('show')).toMatchObject([{ input: { rollout: 'y' }, boot: 'b1' }]);
    expect(session.input).toMatchObject({ rollout: 'y' });
  });
  it('that moved by itself is told nothing of it, and hears of what it shows now', () => {
    const { session, r, of } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    session.moved('y');
    for (const rollout of ['x', 'y']) r.notify('annotation/changed', { run: '/r', rollout, revision: 3 });
    expect(of('show')).toEqual([]);
    expect(of('annotation')).toMatchObject([{ rollout: 'y', revision: 3 }]);
    expect(session.input).toEqual({ kind: 'inspector', run: '/r', rollout: 'y', annotate: true, queue: true });
  });
  it('says what it wants of the editor, checked', () => {
    const { session, acts } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({
      type: 'action',
      boot: 'b1',
      action: { action: 'openTrajectory', run: '/r', rollout: 'z', beside: true },
    });
    session.receive({ type: 'action', boot: 'b1', action: { action: 'command', command: 'rm' } });
    session.receive({ type: 'action', boot: 'old', action: { action: 'copy', text: 'x' } });
    expect(acts).toEqual([{ action: 'openTrajectory', run: '/r', rollout: 'z', beside: true }]);
  });
});

describe('the live page', () => {
  it('has pictures while it and the runtime are there', () => {
    const { session, r, of } = page({ kind: 'live', desktop: 'local-1' });
    r.state = 'attaching';
    session.receive({ type: 'ready', boot: 'b1' });
    expect(r.watches).toHaveLength(0);
    r.become('ready');
    expect(r.watches).toHaveLength(1);
    r.watches[0]!.listener.start({ width: 640, height: 400 });
    const message = Buffer.from([7, 7, 9, 8]);
    r.watches[0]!.listener.patch({ stream: 1, x: 1, y: 2, width: 3, height: 4, at: 5 }, message.subarray(2));
    expect(of('screen')).toMatchObject([
      { x: 1, y: 2, width: 3, height: 4, at: 5, screen: { width: 640, height: 400 } },
    ]);
    // What VS Code passes on as bytes: no Buffer, no larger buffer behind it.
    const { png } = of('screen')[0]!;
    expect([png.constructor.name, png.buffer.byteLength, [...png]]).toEqual(['Uint8Array', 2, [9, 8]]);
    session.dispose();
    expect(r.watches[0]!.ended).toBe(true);
  });
  it('watches again when its desktop was replaced, not for any other', () => {
    const { session, r } = page({ kind: 'live', desktop: 'local-1' });
    session.receive({ type: 'ready', boot: 'b1' });
    r.watches[0]!.listener.end({ kind: 'desktop.lost', message: 'm', remedy: 'r' });
    for (const row of [desktop({ desktop: 'local-2' }), desktop({ desktop: 'local-1', state: 'broken' })])
      r.notify('desktop/changed', { desktop: row.desktop, row });
    expect(r.watches).toHaveLength(1);
    r.notify('desktop/changed', { desktop: 'local-1', row: desktop({ desktop: 'local-1', state: 'starting' }) });
    expect(r.watches).toHaveLength(2);
  });
});

describe('a page in which a person acts', () => {
  const live = (session?: string): PageInput => ({ kind: 'live', desktop: 'd1', ...(session ? { session } : {}) });
  it('hears of its session and of whoever takes its desktop, and of no other', () => {
    const { session, r, of } = page(live('s1'));
    session.receive({ type: 'ready', boot: 'b1' });
    r.notify('control/changed', control({ session: 's1', desktop: 'd1' }));
    r.notify('control/changed', control({ session: 's2', desktop: 'd1' }));
    r.notify('control/changed', control({ session: 's3', desktop: 'd9' }));
    expect(of('control').map((m) => m.state.session)).toEqual(['s1', 's2']);
  });
  it('is told at once who has the desktop it shows', () => {
    const { session, held, of } = page(live());
    held.set('d1', control({ session: 's7', desktop: 'd1' }));
    session.receive({ type: 'ready', boot: 'b1' });
    expect(of('control').map((m) => m.state.session)).toEqual(['s7']);
  });
  it('that took over shows that session from then on, so that closing it lets go', async () => {
    const { session, r, adopted } = page(live());
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({
      type: 'request',
      boot: 'b1',
      id: 1,
      method: 'control/takeOver',
      params: { desktop: 'd1', mode: 'human' },
    });
    r.asked.at(-1)!.answer(control({ session: 's4', purpose: 'takeOver', desktop: 'd1' }));
    await settled();
    expect(session.input).toEqual({ kind: 'live', desktop: 'd1', session: 's4' });
    expect(adopted.map((s) => s.session)).toEqual(['s4']);
  });
  it('that tries a policy shows the pictures of each session it attaches to; another policy is only chosen', async () => {
    const input: PageInput = { kind: 'try', roots: ['/runs'], files: [], base: '/runs' },
      { session, r, of, adopted } = page(input);
    session.receive({ type: 'ready', boot: 'b1' });
    expect(r.watches).toHaveLength(0);
    const attach = async (id: string): Promise<void> => {
      session.receive({ type: 'request', boot: 'b1', id: 1, method: 'control/attach', params: { session: id } });
      r.asked.at(-1)!.answer(control({ session: id, purpose: 'try', desktop: 'local-1' }));
      await settled();
    };
    await attach('s1');
    expect(session.input).toEqual({ ...input, session: 's1', desktop: 'local-1' });
    expect(r.watches).toHaveLength(1);
    r.notify('control/changed', control({ session: 's1', desktop: 'local-1' }));
    r.notify('control/changed', control({ session: 's9', desktop: 'local-9' }));
    expect(of('control').map((m) => m.state.session)).toEqual(['s1']);
    // The next desktop may have the name of the last one.
    await attach('s2');
    expect(r.watches).toHaveLength(2);
    expect(adopted.map((s) => s.session)).toEqual(['s1', 's2']);
    session.show({ ...input, run: '/runs/a', version: 3 });
    expect(session.input).toEqual({ ...input, run: '/runs/a', version: 3, session: 's2', desktop: 'local-1' });
    // What its reader chose in the page is its policy from now on; which session it has the host knows better.
    session.receive({
      type: 'now',
      boot: 'b1',
      input: { ...input, run: '/runs/b', session: 's1', desktop: 'local-9' },
    });
    expect(session.input).toEqual({ ...input, run: '/runs/b', session: 's2', desktop: 'local-1' });
  });
  it('has pictures at the pace of who acts while somebody does, and shows no session that it let go', async () => {
    const { session, r } = page(live()),
      ask = async (method: string, params: object, answer: object | Error): Promise<void> => {
        session.receive({ type: 'request', boot: 'b1', id: 1, method, params });
        if (answer instanceof Error) r.asked.at(-1)!.fail(answer);
        else r.asked.at(-1)!.answer(answer);
        await settled();
      },
      paces = (): unknown => r.watches.filter((w) => !w.ended).map((w) => w.fps),
      s1 = control({ session: 's1', purpose: 'takeOver', desktop: 'd1' });
    session.receive({ type: 'ready', boot: 'b1' });
    expect(paces()).toEqual([10]);
    await ask('control/takeOver', { desktop: 'd1', mode: 'human' }, s1);
    expect(paces()).toEqual([30]);
    await ask('control/detach', { session: 's1' }, {});
    expect([session.input, paces()]).toEqual([live(), [10]]);
    session.show(live('s2'));
    expect(paces()).toEqual([30]);
    const gone = Object.assign(new Error('No such session.'), { kind: 'not.found', remedy: '' });
    await ask('control/attach', { session: 's2' }, gone);
    expect([session.input, paces()]).toEqual([live(), [10]]);
  });
  it('that began to try a policy and is hidden keeps the session, and gets it when it is back', async () => {
    const input: PageInput = { kind: 'try', roots: ['/runs'], files: [], base: '/runs' },
      { session, r, of, there, adopted } = page(input),
      s1 = control({ session: 's1', purpose: 'try', desktop: 'local-1' });
    r.answers = { 'control/attach': () => s1, 'control/detach': () => ({}) };
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({ type: 'request', boot: 'b1', id: 3, method: 'try/start', params: { mode: 'policy' } });
    there.is = false;
    r.notify('desktop/changed', { desktop: 'local-9', row: desktop({ desktop: 'local-9' }) });
    await settled();
    r.asked[0]!.answer(s1);
    await settled();
    expect(r.asked.map((a) => a.method)).toEqual(['try/start', 'control/attach']);
    expect(adopted.map((s) => s.session)).toEqual(['s1']);
    there.is = true;
    session.receive({ type: 'ready', boot: 'b2' });
    await settled();
    expect(of('init').at(-1)).toMatchObject({
      input: { session: 's1', desktop: 'local-1' },
      jobs: [{ id: 3, method: 'try/start' }],
    });
    expect(of('response')).toMatchObject([{ boot: 'b2', id: 3, result: { session: 's1' } }]);
  });
  it('that was rebuilt still counts as one that looks, and anew after the connection was lost', async () => {
    const { session, r } = page(live('s1')),
      detached = (): number => r.asked.filter((a) => a.method === 'control/detach').length;
    r.answers = { 'control/attach': () => control({ session: 's1', desktop: 'd1' }), 'control/detach': () => ({}) };
    const look = async (boot: string): Promise<void> => {
      session.receive({ type: 'ready', boot });
      session.receive({ type: 'request', boot, id: 1, method: 'control/attach', params: { session: 's1' } });
      await settled();
    };
    await look('b1');
    expect(detached()).toBe(0);
    await look('b2');
    expect(detached()).toBe(1);
    r.become('reconnecting');
    r.become('ready');
    await look('b2');
    expect(detached()).toBe(1);
  });
  it('changes nothing in Restricted Mode, and is told so in words', async () => {
    const { session, r, of, there } = page(live('s1'));
    there.trusted = false;
    session.receive({ type: 'ready', boot: 'b1' });
    session.receive({
      type: 'request',
      boot: 'b1',
      id: 1,
      method: 'control/input',
      params: { session: 's1', events: [] },
    });
    session.receive({ type: 'request', boot: 'b1', id: 2, method: 'desktop/list', params: {} });
    await settled();
    expect(r.asked.map((a) => a.method)).toEqual(['desktop/list']);
    expect(of('response')).toMatchObject([
      { id: 1, error: { kind: 'untrusted', message: expect.stringContaining('not trusted') as string } },
    ]);
  });
});

describe('a page that shows what people said', () => {
  it('hears of edits of its trajectory, whoever made them', () => {
    const { session, r, of } = page();
    session.receive({ type: 'ready', boot: 'b1' });
    r.notify('annotation/changed', { run: '/r', rollout: 'x', revision: 4 });
    r.notify('annotation/changed', { run: '/r', rollout: 'y', revision: 9 });
    r.notify('annotation/changed', { run: '/other', rollout: 'x', revision: 9 });
    expect(of('annotation')).toMatchObject([{ run: '/r', rollout: 'x', revision: 4 }]);
  });
  it('hears how its own replay goes, and nothing once that is over', async () => {
    const { session, r, of } = page(),
      go = { run: '/r', rollout: 'x', step: 2, of: 5, desktop: 'd3' };
    session.receive({ type: 'ready', boot: 'b1' });
    r.notify('annotation/replayProgress', go);
    session.receive({
      type: 'request',
      boot: 'b1',
      id: 1,
      method: 'annotation/replay',
      params: { run: '/r', rollout: 'x' },
    });
    r.notify('annotation/replayProgress', go);
    r.asked.at(-1)!.answer({});
    await settled();
    r.notify('annotation/replayProgress', { ...go, step: 5 });
    expect(of('annotation').map((m) => m.replay)).toEqual([{ step: 2, of: 5, desktop: 'd3' }]);
  });
  it('edits nothing in Restricted Mode', async () => {
    const { session, r, of, there } = page();
    there.trusted = false;
    session.receive({ type: 'ready', boot: 'b1' });
    for (const [id, method] of ['annotation/edit', 'annotation/undo', 'annotation/replay', 'pool/add'].entries())
      session.receive({ type: 'request', boot: 'b1', id, method, params: { run: '/r', rollout: 'x' } });
    session.receive({
      type: 'request',
      boot: 'b1',
      id: 9,
      method: 'annotation/get',
      params: { run: '/r', rollout: 'x' },
    });
    await settled();
    expect(r.asked.map((a) => a.method)).toEqual(['annotation/get']);
    expect(of('response').map((m) => m.error?.kind)).toEqual(Array(4).fill('untrusted'));
  });
});
